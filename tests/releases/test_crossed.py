"""The crossed items of a release: a config of their own where there are any, derived again, compared, told and loaded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import mlcroissant
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.hashing import digest_file
from empathy_eval.design.dataset import OPTIONAL, SPLITS, read_manifest, read_tables, split_of
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.outcomes import BUILD, OUTCOMES
from empathy_eval.releases.assemble.manifest import manifest_text, seal_manifest
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.compare.diff import diff
from empathy_eval.releases.hub.fetch import load
from empathy_eval.releases.inspect.show import show
from empathy_eval.releases.verify.content import content_faults
from empathy_eval.releases.verify.texts import load_text_checks
from empathy_eval.releases.verify.verify import verify
from empathy_eval.reports.explorer import explore_page
from empathy_eval.reports.report import page_text, report_from_json, tables_text

from tests.doubles.papers_anew import papers_anew

PET, WITHDRAWN = "017-seed", "007-seed"
SPLIT = split_of(PET)
OTHER = next(split for split in SPLITS if split not in {split_of(f"{number}-seed") for number in ("003", "007", "017")})
KEYS = [f"s1-{number:064x}" for number in range(5)]


def table(folder: Path, config: str) -> list[dict[str, Any]]:
    return [row for split in SPLITS for row in pq.read_table(folder / "data" / config / f"{split}.parquet").to_pylist()]


def change_rows(path: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    rows = pq.read_table(path)
    values = rows.to_pylist()
    change(values)
    pq.write_table(pa.Table.from_pylist(values, schema=rows.schema), path)


def rehash(folder: Path, **manifest: Any) -> None:
    """What somebody would do who wants a change to go unseen."""
    path = folder / "manifest.json"
    value = json.loads(path.read_text()) | manifest
    papers_anew(folder, value)
    value["files"] = {p.relative_to(folder).as_posix(): digest_file(p) for p in folder.rglob("*") if p.is_file() and p != path}
    path.write_text(manifest_text(seal_manifest(value)))


def said(folder: Path) -> str:
    return "\n".join(map(str, verify(folder, fast=True)))


def by_models(line: dict[str, Any]) -> None:
    """Makes the pet's dialogue one of a model, with an item that a model wrote and another one judged."""
    if line["dialogue_id"] != PET:
        return
    line["dialogue"]["source"] = "model"
    item = line["crossed"][0]
    item |= {"source": "model", "writer": "a-writer", "judge": "a-judge", "request_keys": KEYS}
    item["reply_1"] = line["dialogue"]["turns"][item["turn"]]["text"]
    line["crossed"] = [item]


@pytest.fixture(scope="module")
def modelled(light: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release in which one of the items is by models, and a dialogue was withdrawn."""
    folder = tmp_path_factory.mktemp("modelled")
    source = shutil.copytree(light.parent / "build", folder / "build")
    lines = [json.loads(line) for line in (source / OUTCOMES).read_text(encoding="utf-8").splitlines()]
    for line in lines:
        by_models(line)
    (source / OUTCOMES).write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    header = json.loads((source / BUILD).read_text()) | {"outcomes": digest_file(source / OUTCOMES)}
    header["configuration"]["withdrawn"] = [{"dialogue_id": WITHDRAWN, "date": "2026-01-02", "kind": "error", "reason": "a mistake"}]
    (source / BUILD).write_text(json.dumps(header))
    release(source, folder / "release", "0.2.0")
    return folder / "release"


@pytest.fixture
def copy(modelled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(modelled, tmp_path / "release"))


@pytest.fixture
def bare(light: Path, tmp_path: Path) -> Path:
    """A release without crossed items, as every one of before."""
    folder = Path(shutil.copytree(light, tmp_path / "bare"))
    shutil.rmtree(folder / "data" / "crossed")
    manifest = json.loads((folder / "manifest.json").read_text())
    less = {
        part: {name: one for name, one in manifest[part].items() if name != "crossed"} for part in ("counts", "summary", "scenario_files")
    }
    tables = {name: one for name, one in read_tables(folder).items() if name != "crossed"}
    (folder / "report" / "tables.json").write_text(tables_text(tables))
    (folder / "report" / "index.html").write_text(page_text(report_from_json(tables)))
    rehash(folder, **less)
    return folder


def test_rows_are_the_items_with_both_contexts(light: Path, catalogue: Catalogue) -> None:
    dialogues = {row["dialogue_id"]: row for row in table(light, "dialogues")}
    rows = table(light, "crossed")
    items = {one.crossed_id: one for some in catalogue.crossed.values() for one in some}
    assert {row["crossed_id"] for row in rows} == set(items) and len(rows) == 9
    for row in rows:
        item, turns = items[row["crossed_id"]], dialogues[row["dialogue_id"]]["turns"]
        assert {name: row[name] for name in ("turn", "reply_1", "reply_2", "reason")} == {
            name: getattr(item, name) for name in ("turn", "reply_1", "reply_2", "reason")
        }
        assert row["context_1"] == [{"role": one["role"], "text": one["text"]} for one in turns[: item.turn]]
        assert row["context_2"] == [*row["context_1"][:-1], {"role": "seeker", "text": item.twin}]
        assert (row["source"], row["writer"], row["judge"], row["request_keys"]) == ("seed", None, None, [])
    assert verify(light, fast=True) == []


def test_they_load_by_their_name(light: Path, tmp_path: Path) -> None:
    ours, theirs = load(light, "crossed"), datasets.load_dataset(str(light), "crossed", cache_dir=str(tmp_path))
    assert isinstance(ours, datasets.DatasetDict) and sum(ours.num_rows.values()) == 9
    assert list(theirs[SPLIT].features) == OPTIONAL["crossed"].names
    assert theirs[SPLIT]["crossed_id"] == ours[SPLIT]["crossed_id"] and f"{PET}-x3" in ours[SPLIT]["crossed_id"]


def test_croissant_reads_them(light: Path) -> None:
    dataset = mlcroissant.Dataset(jsonld=str(light / "croissant.json"))
    assert not dataset.metadata.issues.errors
    records = [one[f"crossed_{SPLIT}/crossed_id"].decode() for one in dataset.records(f"crossed_{SPLIT}")]
    assert records == [row["crossed_id"] for row in table(light, "crossed") if split_of(row["dialogue_id"]) == SPLIT]


def test_requests_of_models_are_in_the_provenance_and_no_curated_item_has_any(modelled: Path, light: Path) -> None:
    rows = [row for row in pq.read_table(modelled / "provenance.parquet").to_pylist() if row["what"] == "crossed"]
    turn = next(row["turn"] for row in table(modelled, "crossed") if row["source"] == "model")
    place = {"dialogue_id": PET, "pair_id": f"{PET}-t{turn:02d}", "what": "crossed"}
    made = [("model", "a-writer"), *[("judge", "a-judge")] * 4]
    assert rows == [{**place, "method": how, "model": who, "request_key": key} for (how, who), key in zip(made, KEYS, strict=True)]
    assert {row["what"] for row in pq.read_table(light / "provenance.parquet").to_pylist()} & {"crossed"} == set()
    found = list(content_faults(modelled, read_manifest(modelled), None))
    # No build asked these models.
    assert {one.what.rpartition(", ")[2] for one in found} == {
        "but the provenance has 1", "but the provenance has 4",
    }  # fmt: skip


def test_the_card_says_how_they_were_made(light: Path, modelled: Path) -> None:
    curated, both = ((folder / "README.md").read_text(encoding="utf-8") for folder in (light, modelled))
    assert "9 of 9 items are **curated**: written by a language model under the authors' guidelines" in curated
    assert "written by models" not in curated.split("## Crossed items")[1].split("##")[0]
    assert "3 of 4 items are **curated**" in both and "1 of 4 items are **written by models**" in both and "`a-writer` wrote" in both
    assert "The writer of a crossed item sees both contexts." in curated
    assert "came with the scenarios" not in curated + both


Change = Callable[[dict[str, Any]], object]


def says(**values: Any) -> Change:
    return lambda row: row.update(values)


def of_context(number: int, place: int, **values: Any) -> Change:
    return lambda row: row[f"context_{number}"][place].update(values)


# What is changed in the item of models, and what is said of it.
FAULTS: dict[str, tuple[Change, str]] = {
    "no value": (says(reply_2=None), "reply_2: null is not of type string"),
    "id of another": (says(crossed_id="018-seed-x1"), f"has 018-seed-x1 where the rest of the release gives {PET}-x1"),
    "id twice": (says(crossed_id="003-seed-x1"), "has 003-seed-x1 where"),
    "scenario": (says(scenario_id=3), "scenario_id is '3', but the rest of the release gives '17'"),
    "turn of a seeker": (says(turn=4), f"has {PET}-x1 where the rest of the release gives nothing more"),
    "turn beyond": (says(turn=99), f"has {PET}-x1 where the rest of the release gives nothing more"),
    "context_1": (of_context(1, 0, text="Hello."), "context_1[0][text] is 'Hello.', but"),
    "context_2": (of_context(2, 0, text="Hello."), "context_2[0][text] is 'Hello.', but"),
    "twin of a helper": (of_context(2, -1, role="helper"), "[role] is 'helper', but the rest of the release gives 'seeker'"),
    "twin far": (of_context(2, -1, text="word " * 60), "where the rest of the release gives"),
    "one reply": (lambda row: row.update(reply_2=row["reply_1"]), "where the rest of the release gives"),
    "reply_1 of a model": (
        says(reply_1="Something that was not said in the dialogue."),
        "reply_1 is 'Something that was not said in",
    ),
    "no writer": (says(writer=None), "writer: null is not of type string"),
    "curated, with requests": (says(source="seed"), "request_keys: has 5 entries, at most 0 are taken"),
    "other source": (
        says(source="seed", writer=None, judge=None, request_keys=[]),
        "source is 'seed', but the rest of",
    ),
    "other requests": (lambda row: row["request_keys"].reverse(), "row 54: "),
    "no requests": (lambda row: row["request_keys"].pop(), "crossed where the rest of the release gives nothing more"),
    "no dialogue": (says(dialogue_id="017-00042", crossed_id="017-00042-x1"), '"017-00042" has no dialogue in this place'),
}


@pytest.mark.parametrize("name", FAULTS)
def test_verify_names_what_is_wrong_with_an_item(name: str, copy: Path) -> None:
    change, told = FAULTS[name]
    change_rows(copy / "data" / "crossed" / f"{SPLIT}.parquet", lambda rows: change(rows[-1]))
    rehash(copy)
    facts = read_manifest(copy)
    found = "\n".join(str(one) for one in content_faults(copy, facts, load_text_checks(copy, facts)))
    assert told in found, found


def test_verify_names_items_in_another_split_columns_and_files_that_are_not_counted(copy: Path) -> None:
    folder = copy / "data" / "crossed"
    counts = json.loads((copy / "manifest.json").read_text())["counts"]
    (folder / f"{SPLIT}.parquet").rename(folder / "swap")
    (folder / f"{OTHER}.parquet").rename(folder / f"{SPLIT}.parquet")
    (folder / "swap").rename(folder / f"{OTHER}.parquet")
    moved = counts["crossed"] | {SPLIT: counts["crossed"][OTHER], OTHER: counts["crossed"][SPLIT]}
    rehash(copy, counts={**counts, "crossed": moved})
    assert f'"{PET}" belongs to the split {SPLIT} by its id' in said(copy)
    path = folder / f"{OTHER}.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["judge"]), path)
    rehash(copy)
    assert 'has other columns than the data contract: "judge"' in said(copy)
    rehash(copy, counts={name: one for name, one in counts.items() if name != "crossed"})
    assert "is named by the manifest, but no release has such a file" in said(copy)


def test_items_of_a_withdrawn_dialogue_are_gone_and_diff_names_what_went_and_changed(light: Path, modelled: Path) -> None:
    assert {row["dialogue_id"] for row in table(modelled, "crossed")} == {"003-seed", PET}
    found = diff(light, modelled)
    gone = [*(f"{WITHDRAWN}-x{number}" for number in (1, 2, 3)), f"{PET}-x2", f"{PET}-x3"]
    assert found.crossed == {"removed": tuple(gone), "changed": (f"{PET}-x1",)}
    assert f"crossed items removed: 5  {WITHDRAWN}-x1" in str(found) and found.to_json()["crossed"] == found.crossed
    assert diff(light, light).crossed == {}


def test_a_release_without_them_is_read_as_before(bare: Path, light: Path) -> None:
    assert verify(bare, fast=True) == []
    with pytest.raises(InputError, match='this release has no "crossed"'):
        load(bare, "crossed")
    came = diff(bare, light)
    assert list(came.crossed) == ["added"] and len(came.crossed["added"]) == 9 and came.changed == () == came.added


def test_the_explorers_page_and_show_go_past_them(modelled: Path) -> None:
    facts = json.loads((modelled / "manifest.json").read_text())
    assert f"data/crossed/{SPLIT}.parquet" in explore_page(modelled, facts)
    turn = next(row["turn"] for row in table(modelled, "crossed") if row["source"] == "model")
    assert f"{PET}-t{turn:02d}" in str(show(modelled, f"{PET}-t{turn:02d}"))
    assert show(modelled, KEYS[0])
