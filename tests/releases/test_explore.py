"""The page of the explorer: what it says of its release, what it embeds, and how it is held against it."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.json_text import csp
from empathy_eval.base.version import __version__
from empathy_eval.design.dataset import OPTIONAL, SPLITS, column, file_of, read_manifest
from empathy_eval.releases.verify.documents import code_of, explorer_faults, known_code
from empathy_eval.reports import explorer as explore
from empathy_eval.reports.explorer import EMBEDDED, PAGE, explore_page, hub_address, write_page

from tests.releases.test_verify import change_rows, rehash

HOSTILE = "</script><script>alert(1)</script><!-- & \u2028 \u202e 👩‍👧"


def by_value(folder: Path) -> dict[str, Any]:
    """A manifest whose page is not held by bytes: another version made it."""
    return {**read_manifest(folder), "builder": "0.0.9"}


def held(page: str) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """What a page says of its release, and the tables that it embeds."""
    found = {name: json.loads(text) for name, text in EMBEDDED.findall(page)}
    files = {name: pq.read_table(pa.BufferReader(base64.b64decode(one))) for name, one in found["sample"]["files"].items()}
    return found["about"], files


def page_of(folder: Path) -> str:
    return (folder / PAGE).read_text(encoding="utf-8")


@pytest.fixture
def copy(light: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(light, tmp_path / "release"))


def test_the_page_says_what_its_release_holds_and_where(seeds: Path) -> None:
    about, _ = held(page_of(seeds))
    manifest = read_manifest(seeds)
    assert (about["name"], about["version"], about["date"], about["base"]) == (manifest["name"], "0.1.0", None, "../")
    there = {path.relative_to(seeds).as_posix() for path in seeds.rglob("*.parquet")} - {"provenance.parquet"}
    assert [one["path"] for one in about["files"]][:3] == [f"data/pairs/{split}.parquet" for split in SPLITS]
    assert {one["path"] for one in about["files"]} == there == {name for name in manifest["files"] if name in there}
    for one in about["files"]:
        path = (seeds / PAGE).parent / about["base"] / one["path"]
        assert path.stat().st_size == one["bytes"] and pq.read_metadata(path).num_rows == one["rows"]
        if one["split"]:
            assert file_of(seeds, one["config"], one["split"]) == seeds / one["path"]
            assert manifest["counts"][one["config"]][one["split"]] == one["rows"]
    (metric,) = about["metrics"]
    assert (metric["name"], metric["higher is better"]) == ("BLEU-4", True) and "tok:13a" in metric["signature"]
    assert set(column(seeds, "pairs", "strategy")) <= {name for one in about["strategies"] for name in one["names"]}
    assert set(column(seeds, "pairs", "scenario_id")) == {one["id"] for one in about["scenarios"]}


def test_a_sample_of_the_test_split_is_embedded_with_all_that_is_of_its_pairs(seeds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about, files = held(page_of(seeds))
    there = column(seeds, "pairs", "pair_id", ["test"])
    assert about["sampled"] == {"pairs": min(200, len(there)), "of": len(there), "seed": 2026, "split": "test"} and len(there) > 40
    monkeypatch.setattr(explore, "SAMPLED", 40)
    about, files = held(explore_page(seeds, read_manifest(seeds)))
    pairs = files["data/pairs/test.parquet"]
    chosen = pairs.column("pair_id").to_pylist()
    assert len(chosen) == 40 == about["sampled"]["pairs"] and chosen == [one for one in there if one in chosen] != there[:40]
    assert set(files) == {
        *(f"data/{one}/test.parquet" for one in ("pairs", "dialogues", "controls")),
        "candidates.parquet",
        "report/items.parquet",
    }
    for name, table in files.items():
        whole = pq.read_table(seeds / name)
        assert table.schema.equals(whole.schema)
        wanted = set(pairs.column("dialogue_id").to_pylist()) if "dialogues" in name else set(chosen)
        assert table.to_pylist() == [row for row in whole.to_pylist() if row["dialogue_id" if "dialogues" in name else "pair_id"] in wanted]
    monkeypatch.setattr(explore, "SAMPLED", 39)
    assert set(held(explore_page(seeds, read_manifest(seeds)))[1]["data/pairs/test.parquet"].column("pair_id").to_pylist()) < set(chosen)


def test_where_the_test_split_is_empty_another_one_is_sampled_and_said(light: Path) -> None:
    about, files = held(page_of(light))
    assert about["sampled"] == {"pairs": 20, "of": 20, "seed": 2026, "split": "train"}
    assert len(files["data/pairs/train.parquet"]) == 20 and len(files["report/items.parquet"]) == 100


def test_annotations_of_sampled_pairs_and_of_their_dialogues_are_embedded(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = (("003-seed-t01", "003-seed"), (None, "003-seed"), (None, "017-seed"), ("017-seed-t01", "017-seed"), (None, "007-seed"))
    rows = [{"pair_id": pair, "dialogue_id": dialogue} for pair, dialogue in places]
    facts = read_manifest(copy)
    for split in SPLITS:
        path = file_of(copy, "annotations", split)
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows if split == "train" else [], schema=OPTIONAL["annotations"]), path)
    facts["counts"]["annotations"] = {"train": len(rows), "validation": 0, "test": 0}
    monkeypatch.setattr(explore, "SAMPLED", 1)
    _, files = held(explore_page(copy, facts))
    (pair,) = files["data/pairs/train.parquet"].to_pylist()
    mine = [row for row in rows if row["pair_id"] == pair["pair_id"] or (not row["pair_id"] and row["dialogue_id"] == pair["dialogue_id"])]
    found = files["data/annotations/train.parquet"].select(["pair_id", "dialogue_id"]).to_pylist()
    assert found == mine and 0 < len(mine) < len(rows)


def test_what_was_left_out_is_told_as_the_manifest_tells_it(light: Path) -> None:
    facts = read_manifest(light)
    withdrawn = [{"dialogue_id": "021-seed", "kind": "error", "reason": "taken out", "date": "2026-02-28"}]
    removed = [{"dialogue_id": "022-seed", "remove": 2, "keep": 1, "reasons": ["unkind"]}]
    facts["summary"] |= {"rejected": 2, "rejected_by_reason": {"toxic": 2}, "samples_refused": {"dialogue: cut": 1}}
    facts |= {"withdrawn": withdrawn, "reviews": {"removed": removed}, "duplicates": {"023-seed": "003-seed"}, "spares_left_out": 4}
    about, _ = held(explore_page(light, facts))
    assert about["left_out"] == {
        "planned": 3, "accepted": 3, "rejected": 2, "missing": 0,
        "rejected_by_reason": {"toxic": 2}, "samples_refused": {"dialogue: cut": 1},
        "withdrawn": withdrawn, "removed": removed, "duplicates": {"023-seed": "003-seed"}, "spares_left_out": 4, "below_quota": {},
    }  # fmt: skip


def test_texts_of_a_release_stay_texts_and_only_the_pages_own_scripts_may_run(copy: Path) -> None:
    for config in ("pairs", "dialogues"):
        change_rows(file_of(copy, config, "train"), lambda rows: [row.update(scenario=HOSTILE, description=HOSTILE) for row in rows])
    facts = read_manifest(copy) | {"name": HOSTILE}
    facts["withdrawn"] = [{"dialogue_id": "021-seed", "reason": HOSTILE, "date": "2026-02-28"}]
    page, before = explore_page(copy, facts), page_of(copy)
    assert page.count("<script") == before.count("<script") and "alert(1)</script" not in page
    about, files = held(page)
    assert about["name"] == HOSTILE == files["data/pairs/train.parquet"].to_pylist()[0]["scenario"]
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[0]
    scripts = re.findall(r'<script(?: type="module")?>(.*?)</script>', page, re.DOTALL)
    allowed = " ".join(f"'{csp(one)}'" for one in scripts)
    assert f"default-src 'none'; script-src {allowed}; style-src" in policy.replace("&#39;", "'") and "connect-src *" in policy
    assert "unsafe" not in policy and "eval" not in policy


def test_the_page_of_a_release_is_that_of_its_manifest_again(light: Path) -> None:
    assert explore_page(light, read_manifest(light)) == page_of(light)
    assert PAGE in read_manifest(light)["files"]


def test_the_card_leads_to_the_page(light: Path) -> None:
    assert f"`{PAGE}`" in (light / "README.md").read_text()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda page: page.replace('"planned": 3', '"planned": 2'), "about: left_out: differs from the release"),
        (lambda page: page.replace('"base": "../"', '"base": "https://elsewhere.example/"'), "about: base: differs from the release"),
        (lambda page: page.replace('"base": ', '"more": 1, "base": '), "about: more: differs from the release"),
        (
            lambda page: page.replace("data/pairs/train.parquet", "data/pairs/other.parquet"),
            "sample: data/pairs/other.parquet: does not hold",
        ),
        (lambda page: page.replace('id="sample"', 'id="other"'), "does not have the content of an explorer page"),
        (lambda page: page.replace('"files": {"', '"files": {"x": "!", "'), "sample: x: does not hold the rows of the release"),
        (
            lambda page: page.replace('{"files": {', '{"files": [{').replace("}}</script>", "}]}</script>"),
            "does not have the content of an explorer page",
        ),
        (lambda page: "", "does not have the content of an explorer page"),
        # A browser takes the first element of an id, however it is written.
        (
            lambda page: page.replace("<main", '<script id="sample" type="application/json">{"files": {}}</script><main'),
            "other element with these ids",
        ),
        (lambda page: page.replace("<main", "<script type=text/plain ID = ab&#111;ut>{}</script><main"), "other element with these ids"),
        (lambda page: page.replace("<main", '<script type="application/json" id="about">{}</script><main'), "one script"),
    ],
)
def test_a_page_that_says_otherwise_is_told(change: Callable[[str], str], what: str, copy: Path) -> None:
    changed = change(page_of(copy))
    assert changed != page_of(copy)
    (copy / PAGE).write_text(changed)
    assert what in "\n".join(f"{one.where}: {one.what}" for one in explorer_faults(copy, by_value(copy)))


@pytest.mark.parametrize("other", ['"format": 1', '"other": 1'])
def test_a_page_of_another_format_is_no_fault_and_is_told_as_not_compared(other: str, copy: Path) -> None:
    (copy / PAGE).write_text(page_of(copy).replace('"format": 2', other).replace('"planned": 3', '"plans": 3'))
    (told,) = explorer_faults(copy, by_value(copy))
    assert told.severity != "fault" and "this program has 2" in told.what and told.where == str(copy / PAGE)


def test_other_rows_in_the_sample_are_told(copy: Path) -> None:
    _, files = held(page_of(copy))
    table = files["data/pairs/train.parquet"]
    place = table.schema.get_field_index("apathetic")
    other = table.set_column(place, table.schema.field(place), pa.array(["kind words"] * len(table)))
    before, after = (base64.b64encode(explore._parquet(one)).decode() for one in (table, other))
    (copy / PAGE).write_text(page_of(copy).replace(before, after))
    rehash(copy)
    (fault,) = explorer_faults(copy, by_value(copy))
    assert fault.where == f"{copy / PAGE}: sample: data/pairs/train.parquet" and fault.what == "does not hold the rows of the release"


def test_a_page_beside_a_release_finds_it_and_is_written_anew_but_over_nothing_else(copy: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a b#c"
    copy.rename(folder)
    out = tmp_path / "pages" / "page.html"
    write_page(folder, out)
    first = out.read_text()
    assert held(first)[0]["base"] == "../a%20b%23c/" and held(first)[0]["files"] == held(page_of(folder))[0]["files"]
    write_page(folder, out)
    assert out.read_text() == first
    write_page(folder, out, hub_address("my-lab/set@v1.0.0"))
    assert held(out.read_text())[0]["base"] == "https://huggingface.co/datasets/my-lab/set/resolve/v1.0.0/"
    (tmp_path / "mine.html").write_text("<p>mine</p>")
    for wrong, what in (
        ("mine.html", "is not an explorer page"),
        ("pages", "is not an explorer page"),
        ("a b#c/page.html", "lies in the release"),
        ("mine.html/page.html", "is not a folder"),
        ("mine.html/pages/page.html", "is not a folder"),
    ):
        with pytest.raises(InputError, match=what):
            write_page(folder, tmp_path / wrong)
    assert (tmp_path / "mine.html").read_text() == "<p>mine</p>"
    with pytest.raises(InputError, match="is not a release"):
        write_page(tmp_path / "pages", tmp_path / "x.html")


def test_a_release_of_before_has_a_page_without_scores(copy: Path) -> None:
    for path in (copy / "report" / "items.parquet", copy / PAGE, copy / "candidates.parquet"):
        path.unlink()
    about, files = held(explore_page(copy, read_manifest(copy)))
    assert about["metrics"] == [] and not {"report/items.parquet", "candidates.parquet"} & {one["path"] for one in about["files"]}
    assert "report/items.parquet" not in files


def without_ids(table: pa.Table) -> pa.Table:
    return table.drop_columns([name for name in ("pair_id", "dialogue_id") if name in table.column_names])


@pytest.mark.parametrize("path", ["report/items.parquet", "data/controls/train.parquet"])
@pytest.mark.parametrize(
    "change",
    [
        without_ids,
        lambda table: table.set_column(0, "pair_id", pa.array(range(len(table)), pa.int64())),
        lambda table: table.append_column("pair_id", table.column("pair_id")),
    ],
    ids=["none", "numbers", "twice"],
)
def test_a_file_without_ids_of_texts_is_told(change: Callable[[pa.Table], pa.Table], path: str, copy: Path) -> None:
    pq.write_table(change(pq.read_table(copy / path)), copy / path)
    with pytest.raises(InputError, match='no text column "pair_id"'):
        explore_page(copy, read_manifest(copy))


def test_a_scenario_without_a_number_is_told_at_the_manifest(copy: Path) -> None:
    facts = read_manifest(copy)
    facts["scenarios"]["abc"] = {"name": "Loneliness", "quota": 1}
    (copy / "manifest.json").write_text(json.dumps(facts))
    with pytest.raises(InputError, match='scenarios: "abc" does not match'):
        write_page(copy, copy.parent / "page.html")


def test_a_release_whose_folder_is_not_named_in_utf8_has_a_page_from_within(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copy.with_name(os.fsdecode(b"r\xff"))
    copy.rename(folder)
    with pytest.raises(InputError, match="needs a path in UTF-8"):
        write_page(folder, folder.parent / "page.html")
    monkeypatch.chdir(folder)
    write_page(Path(), folder.parent / "page.html")
    assert held((folder.parent / "page.html").read_text())[0]["base"] == "r%FF/"


def test_a_damaged_file_is_told_in_words(copy: Path) -> None:
    file_of(copy, "controls", "train").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="cannot be read"):
        explore_page(copy, read_manifest(copy))
    assert "cannot be read" in next(explorer_faults(copy, by_value(copy))).what


def test_the_scripts_of_this_version_are_known_by_its_hash(light: Path) -> None:
    page = explore_page(light, read_manifest(light))
    assert known_code().get(code_of(page)) == __version__, f"write {__version__}: {code_of(page)} into release/explore/known.yaml"
