"""What judges said becomes configs of a release: taken where it is of the very texts, and held against itself and against the answers."""

from __future__ import annotations

import json
import re
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
from empathy_eval.commands.annotate import annotate
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.dataset import JUDGED as SAID
from empathy_eval.design.dataset import SPLITS, split_of
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.rubrics import rubric_of
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.generation.build import build
from empathy_eval.raters.judges.annotations import annotations_in
from empathy_eval.releases.assemble.manifest import manifest_text, seal_manifest
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.compare.diff import diff
from empathy_eval.releases.hub.fetch import load
from empathy_eval.releases.verify.annotations import annotation_faults
from empathy_eval.releases.verify.ledger import ledger_faults
from empathy_eval.releases.verify.verify import verify

from tests.conftest import copy_world, demo_file
from tests.doubles import made_once
from tests.doubles.judges import Judge
from tests.doubles.papers_anew import papers_anew

DIALOGUE = """
name: whole
title: A whole dialogue
source: a test
kind: rating
unit: dialogue
style: plain
together: true
criteria:
- name: warmth
  question: How warm is the helper?
  scale: {from: 0, to: 1, whole: true}
  anchors: [{value: 0, text: cold}, {value: 1, text: warm}]
  better: high
"""
RUBRICS = {"teacher": "annotations", "warmer": "comparisons", "strategies": "strategies"}
TEXT, NUMBER, WHOLE = "string", "float64", "int64"
JUDGED = {"teacher": TEXT, "rubric": TEXT, "rubric_hash": TEXT}
CONTRACT: dict[str, dict[str, Any]] = {
    "annotations": {
        "pair_id": TEXT, "dialogue_id": TEXT, "turn": WHOLE, "variant": TEXT, **JUDGED, "criterion": TEXT, "sample": WHOLE, "value": NUMBER,
        "reason": TEXT, "request_key": TEXT,
    },
    "comparisons": {
        "pair_id": TEXT, "variant_1": TEXT, "variant_2": TEXT, **JUDGED, "sample": WHOLE, "winner_12": TEXT, "winner_21": TEXT,
        "consistent": "bool", "winner": TEXT, "reason_12": TEXT, "reason_21": TEXT, "request_key_12": TEXT, "request_key_21": TEXT,
    },
    "strategies": {
        "pair_id": TEXT, **JUDGED, "sample": WHOLE, "ideal": [NUMBER], "ideal_request_key": TEXT, "variant": TEXT, "named": TEXT,
        "request_key": TEXT,
    },
}  # fmt: skip

# Each takes a judged release apart or verifies one whole.
pytestmark = pytest.mark.e2e

# Some of every split, and more turns than are judged.
SOME = ("001", "003", "004", "005", "019")
TURNS, MORE = 20, 30
REPORT = {"metrics": ["length"], "bootstrap": 10}


class World:
    """Some of the seeds: a build, its release, what a judge said of it, and the release with that."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.build, self.plain, self.judged = folder, folder / "build", folder / "plain", folder / "judged"
        self.annotations = [folder / f"by-{name}" for name in (*RUBRICS, "whole")]

    def make(self, prompts: Prompts) -> None:
        catalogue = load_catalogue(copy_world(self.folder / "scenarios", SOME))
        config = load_configuration(demo_file(self.folder, report=REPORT))
        build(Recipe(config, catalogue, prompts), self.build)
        release(self.build, self.plain, "0.1.0")
        (self.folder / "whole.yaml").write_text(DIALOGUE)
        for name in RUBRICS:
            self.annotated(name, turns=TURNS)
        self.annotated(self.folder / "whole.yaml", turns=None)
        release(self.build, self.judged, "0.2.0", annotations=self.annotations)

    def annotated(self, rubric: str | Path, out: str = "", judge: Judge | None = None, of: Path | None = None, **how: Any) -> Path:
        folder = self.folder / (out or f"by-{Path(rubric).stem}")
        annotate(of or self.plain, folder, rubric=rubric, model=judge or Judge(), **how)
        return folder

    @property
    def ledgers(self) -> list[Path]:
        return [one / "ledger.sqlite" for one in (self.build, *self.annotations)]

    def answers(self, folder: Path, rubric: str) -> str:
        """What the ledger of a rubric tells of its rows in a release in which nothing else is wrong."""
        assert said(folder) == ""
        manifest = manifest_of(folder)
        one = manifest | {"annotations": [entry_of(manifest, rubric)]}
        return "\n".join(map(str, ledger_faults(folder, one, [self.folder / f"by-{rubric}" / "ledger.sqlite"])))


@pytest.fixture(scope="session")
def judged_world(tmp_path_factory: pytest.TempPathFactory, prompts: Prompts) -> World:
    return World(made_once.copied(tmp_path_factory, "judged-world", lambda folder: World(folder).make(prompts))[0])


@pytest.fixture
def world(judged_world: World) -> World:
    return judged_world


@pytest.fixture
def copy(world: World, tmp_path: Path) -> Path:
    return Path(shutil.copytree(world.judged, tmp_path / "release"))


def rows(folder: Path, config: str) -> list[dict[str, Any]]:
    return [row for split in SPLITS for row in pq.read_table(folder / "data" / config / f"{split}.parquet").to_pylist()]


def manifest_of(folder: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return value


def resealed(folder: Path, change: Callable[[dict[str, Any]], object] = lambda manifest: None) -> None:
    value = manifest_of(folder)
    change(value)
    papers_anew(folder, value)
    value["files"] = {name: digest_file(folder / name) for name in value["files"]}
    (folder / "manifest.json").write_text(manifest_text(seal_manifest(value)))


def forged(folder: Path, config: str, change: Callable[[list[dict[str, Any]]], object], seal: bool = True) -> None:
    """Rows of ``test`` changed as somebody would who wants it to go unseen."""
    path = folder / "data" / config / "test.parquet"
    table = pq.read_table(path)
    changed = table.to_pylist()
    change(changed)
    pq.write_table(pa.Table.from_pylist(changed, schema=table.schema), path)
    if seal:
        resealed(folder)


def said(folder: Path, ledgers: list[Path] | None = None) -> str:
    return "\n".join(map(str, verify(folder, fast=True, ledgers=ledgers or [])))


@pytest.mark.parametrize("config", CONTRACT)
def test_load_dataset_gives_the_columns_and_types_of_the_contract(config: str, world: World, tmp_path: Path) -> None:
    theirs = datasets.load_dataset(str(world.judged), config, cache_dir=str(tmp_path))
    assert list(theirs) == list(SPLITS)
    for split in SPLITS:
        features = types_of(theirs[split].features)
        assert features == CONTRACT[config] and list(features) == SAID[config].names and theirs[split].num_rows > 0
        assert theirs[split].to_list() == load(world.judged, config, split).to_list()
        assert {split_of((row.get("dialogue_id") or row["pair_id"])[:8]) for row in theirs[split]} == {split}


def types_of(features: Any) -> dict[str, Any]:
    return {name: [one.feature.dtype] if isinstance(one, datasets.List) else one.dtype for name, one in features.items()}


def test_configs_of_which_everything_is_in_one_split_load_with_the_types_of_the_contract(light: Path, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in RUBRICS]
    for name in RUBRICS:
        annotate(light, tmp_path / name, rubric=name, model=Judge(), turns=1)
    release(light.parent / "build", tmp_path / "r", "0.3.0", annotations=folders)
    for config in CONTRACT:
        theirs = datasets.load_dataset(str(tmp_path / "r"), config, cache_dir=str(tmp_path / "cache"))
        (split,) = theirs
        assert types_of(theirs[split].features) == CONTRACT[config] and theirs[split].num_rows == len(rows(tmp_path / "r", config)) > 0
        for empty in set(SPLITS) - {split}:
            # The file is there, without rows and with every type.
            ours = load(tmp_path / "r", config, empty)
            assert ours.num_rows == 0 and types_of(ours.features) == CONTRACT[config]
    assert verify(tmp_path / "r", fast=True, ledgers=[one / "ledger.sqlite" for one in (light.parent / "build", *folders)]) == []


def test_a_release_without_annotations_is_as_before_and_with_them_its_texts_are_the_same(world: World, light: Path, tmp_path: Path) -> None:
    release(light.parent / "build", tmp_path / "again", "0.1.0", annotations=[])
    assert sorted(manifest_of(tmp_path / "again")) == sorted(manifest_of(light))
    assert "annotations" not in manifest_of(world.plain) and set(manifest_of(world.plain)["counts"]).isdisjoint(SAID)
    for path in light.rglob("*.*"):
        assert (tmp_path / "again" / path.relative_to(light)).read_bytes() == path.read_bytes()
    for path in (world.plain / "data").rglob("*.*"):
        assert (world.judged / path.relative_to(world.plain)).read_bytes() == path.read_bytes()
    with pytest.raises(InputError, match='has no "comparisons"'):
        load(world.plain, "comparisons")


def test_the_manifest_tells_who_judged_what_by_what_and_how_much(world: World) -> None:
    manifest = manifest_of(world.judged)
    by_rubric = {one["rubric"]: one for one in manifest["annotations"]}
    assert list(by_rubric) == ["strategies", "teacher", "warmer", "whole"]
    for name, config in [*RUBRICS.items(), ("whole", "annotations")]:
        one, header = by_rubric[name], json.loads((world.folder / f"by-{name}" / "build.json").read_text())
        found = [row for row in rows(world.judged, config) if row["rubric"] == name]
        assert one["counts"] == {config: len(found)} and {row["rubric_hash"] for row in found} == {one["rubric_hash"]}
        assert one["teacher"] == "judge" and one["release"]["seal"] == manifest_of(world.plain)["seal"] and one["left_out"] == []
        assert (one["usage"], one["unannotated_by_reason"]) == (header["summary"]["usage"], header["summary"]["unannotated_by_reason"])
        assert (one["templates"], one["schemas"], one["says"]) == (header["templates"], header["schemas"], header["rubric"])
        assert one["cases"] == len((world.folder / f"by-{name}" / "outcomes.jsonl").read_text().splitlines())
    for config in SAID:
        assert sum(manifest["counts"][config].values()) == len(rows(world.judged, config))
    requests = pq.read_table(world.judged / "provenance.parquet").to_pylist()
    assert {one["what"] for one in requests} >= {"annotation", "comparison", "strategy"}
    keys = {one["request_key"] for one in requests}
    assert all(row[name] in keys for config in SAID for row in rows(world.judged, config) for name in row if "request_key" in name)


def test_rows_of_whole_dialogues_have_no_pair_and_winners_follow_from_both_orders(world: World) -> None:
    for row in rows(world.judged, "annotations"):
        assert (row["rubric"] == "whole") == (row["pair_id"] is None) == (row["turn"] is None) >= (row["variant"] is None)
    for row in rows(world.judged, "comparisons"):
        assert row["variant_1"] < row["variant_2"] and row["consistent"] == (row["winner_12"] == row["winner_21"])
        assert row["winner"] == (row["winner_12"] if row["consistent"] else None)
    known = {row["strategy"] for row in rows(world.judged, "pairs")}
    assert {row["named"] for row in rows(world.judged, "strategies")} & known


def test_card_and_croissant_name_the_configs(world: World) -> None:
    card = (world.judged / "README.md").read_text()
    manifest = manifest_of(world.judged)
    for config in SAID:
        assert f"- config_name: {config}\n" in card
        assert f"| `{config}` | " in card and " | ".join(str(count) for count in manifest["counts"][config].values()) in card
    assert "| `consistent` | true or false |" in card and card.count("--annotations ANNOTATIONS") == 4
    croissant = mlcroissant.Dataset(jsonld=str(world.judged / "croissant.json"))
    names = {one.id for one in croissant.metadata.record_sets}
    assert {f"{config}_{split}" for config in SAID for split in SPLITS} <= names
    found = next(iter(croissant.records("comparisons_test")))
    assert found["comparisons_test/pair_id"].decode() in {row["pair_id"] for row in rows(world.judged, "comparisons")}


def test_what_the_card_says_to_preference_trainers_runs(world: World) -> None:
    card = (world.judged / "README.md").read_text()
    code = next(part for part in (one.split("```")[0] for one in card.split("```python\n")[1:]) if "comparisons" in part)
    scope: dict[str, Any] = {}
    exec(code.replace("<this folder or repository>", str(world.judged)), scope)  # noqa: S102
    train = scope["train"]
    assert train.column_names == ["prompt", "chosen", "rejected"] and train.num_rows > 0
    assert all(row["chosen"] != row["rejected"] for row in train)


def test_every_number_of_a_judged_release_is_what_it_claims(world: World) -> None:
    assert verify(world.judged) == []


def test_a_judged_release_is_what_it_claims_with_the_ledgers_and_told_where_some_are_not_given(world: World) -> None:
    assert verify(world.judged, fast=True, ledgers=world.ledgers) == []
    some = ledger_faults(world.judged, manifest_of(world.judged), world.ledgers[:2])
    assert "\n".join(map(str, some)).count("none of the given ledgers holds its answers") == 3
    with pytest.raises(InputError, match="no annotations"):
        verify(world.plain, ledgers=world.ledgers[1:])


FORGERIES: dict[str, tuple[str, Callable[[dict[str, Any]], object], str]] = {
    "a score": ("annotations", lambda row: row.update(value=1 - row["value"]), "value: says"),
    "a reason": ("annotations", lambda row: row.update(reason="because"), "reason: says because, but the answer says"),
    "a winner": (
        "comparisons",
        lambda row: row.update(winner_12=row["variant_1"], winner_21=row["variant_1"], winner=row["variant_1"], consistent=True),
        "winner_",
    ),
    "a reason of a comparison": ("comparisons", lambda row: row.update(reason_21="because"), "reason_21: says because"),
    "a strategy": ("strategies", lambda row: row.update(named="Clarification"), "named: says Clarification"),
    "an ideal": ("strategies", lambda row: row.update(ideal=[1.0] + [0.0] * 14), "ideal: says"),
}


@pytest.mark.parametrize("config", SAID)
def test_forgeries_that_fit_together_are_found_by_the_ledger_alone(config: str, world: World, copy: Path) -> None:
    """Each is done to cases of its own, all rows of them."""
    mine = [name for name, forgery in FORGERIES.items() if forgery[0] == config]
    forgery_of: dict[str, str] = {}

    def all_rows(found: list[dict[str, Any]]) -> None:
        for row in found:
            about = row["pair_id"] or row["dialogue_id"]
            name = forgery_of.setdefault(about, mine[len(forgery_of) % len(mine)])
            FORGERIES[name][1](row)

    forged(copy, config, all_rows)
    names = [name for name, one in (*RUBRICS.items(), ("whole", "annotations")) if one == config]
    lines = [line for name in names for line in world.answers(copy, name).splitlines()]
    for name in mine:
        cases = [about for about, forgery in forgery_of.items() if forgery == name]
        assert any(FORGERIES[name][2] in line and any(about in line for about in cases) for line in lines), name
    assert all(any(about in line for line in lines) for about in forgery_of)


def without(folder: Path, config: str, goes: Callable[[dict[str, Any]], bool], **entry: Any) -> None:
    """Takes rows out with all that tells of them: their requests, the counts of manifest and card."""
    before = rows(folder, config)
    gone = [row for row in before if goes(row)]
    path = folder / "data" / config / "test.parquet"
    table = pq.read_table(path)
    pq.write_table(pa.Table.from_pylist([row for row in table.to_pylist() if not goes(row)], schema=table.schema), path)
    left = {row[name] for row in rows(folder, config) for name in row if "request_key" in name}
    keys = {row[name] for row in gone for name in row if "request_key" in name} - left
    path = folder / "provenance.parquet"
    table = pq.read_table(path)
    pq.write_table(pa.Table.from_pylist([row for row in table.to_pylist() if row["request_key"] not in keys], schema=table.schema), path)

    def recount(manifest: dict[str, Any]) -> None:
        counts = manifest["counts"][config]
        counts["test"] -= len(gone)
        card = folder / "README.md"
        card.write_text(re.sub(rf"(\| `{config}` \| .* \| )\d+ \|", rf"\g<1>{counts['test']} |", card.read_text()))
        for one in manifest["annotations"]:
            one["counts"] = {name: count - sum(row["rubric"] == one["rubric"] for row in gone) for name, count in one["counts"].items()}
            if any(row["rubric"] == one["rubric"] for row in gone):
                one.update({name: change(one[name]) for name, change in entry.items()})

    resealed(folder, recount)


def test_a_missing_row_is_found_by_the_ledger_alone(world: World, copy: Path) -> None:
    first = pq.read_table(copy / "data" / "comparisons" / "test.parquet").to_pylist()[0]
    without(copy, "comparisons", lambda row: row == first)
    assert f"{first['pair_id']} {first['variant_1']} {first['variant_2']}" in (found := world.answers(copy, "warmer"))
    assert "is missing: the ledger holds its answer" in found


@pytest.mark.parametrize("counted", [True, False])
def test_a_case_that_is_left_out_whole_is_found_by_the_ledger_alone_unless_it_is_counted(counted: bool, world: World, copy: Path) -> None:
    name = pq.read_table(copy / "data" / "comparisons" / "test.parquet").to_pylist()[0]["pair_id"]
    without(copy, "comparisons", lambda row: row["pair_id"] == name, cases=lambda count: count if counted else count - 1)
    if counted:
        assert f"says {TURNS} turns or dialogues, but the rows cover {TURNS - 1}" in said(copy)
    else:
        assert f"has no row of {name}, which the ledger answers" in world.answers(copy, "warmer")


def test_the_request_keys_of_two_rows_are_not_exchanged_unseen(world: World, copy: Path) -> None:
    def exchange(found: list[dict[str, Any]]) -> None:
        one = next(row for row in found if row["rubric"] == "teacher")
        other = next(row for row in found if row["rubric"] == "teacher" and row["request_key"] != one["request_key"])
        one["request_key"], other["request_key"] = other["request_key"], one["request_key"]

    forged(copy, "annotations", exchange)
    assert "where the rows of judges give" in said(copy)


def renamed(folder: Path, also: Callable[[dict[str, Any]], object] = lambda one: None) -> None:
    """Whoever judged by ``teacher`` goes by another name in rows, requests and manifest."""
    for split in SPLITS:
        changed(folder / "data" / "annotations" / f"{split}.parquet", "rubric", {"teacher"}, teacher="another")
    keys = {row["request_key"] for row in rows(folder, "annotations") if row["rubric"] == "teacher"}
    changed(folder / "provenance.parquet", "request_key", keys, model="another")
    resealed(folder, lambda manifest: [(one.update(teacher="another"), also(one)) for one in [entry_of(manifest, "teacher")]])


def changed(path: Path, name: str, values: set[str], **to: Any) -> None:
    """The rows of a file that have one of these values."""
    table = pq.read_table(path)
    found = [row | to if row[name] in values else row for row in table.to_pylist()]
    pq.write_table(pa.Table.from_pylist(found, schema=table.schema), path)


def entry_of(manifest: dict[str, Any], rubric: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in manifest["annotations"] if one["rubric"] == rubric)
    return found


def test_a_judge_that_goes_by_another_name_is_found(world: World, copy: Path) -> None:
    renamed(copy)
    assert 'names the judge "another", but the judge that was asked is "judge"' in said(copy)
    resealed(copy, lambda manifest: entry_of(manifest, "teacher")["judge"].update(model="another"))
    assert "another, teacher: none of the given ledgers holds its answers" in world.answers(copy, "teacher")


def unfit(folder: Path) -> str:
    """What is wrong with rows of judges by the rows alone: verify says it once files and papers are as they are described."""
    return "\n".join(map(str, annotation_faults(folder, manifest_of(folder))))


@pytest.mark.parametrize("change", ["model", "method", "pair_id"])
def test_a_request_of_a_judge_that_the_provenance_tells_otherwise_is_found(change: str, copy: Path) -> None:
    key = rows(copy, "annotations")[-1]["request_key"]
    changed(copy / "provenance.parquet", "request_key", {key}, **{change: "003-seed-t01" if change == "pair_id" else "people"})
    assert "where the rows of judges give" in unfit(copy)


def otherwise(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """The rubric ``teacher`` says something else, wherever its hash stands."""
    says = entry_of(manifest_of(folder), "teacher")["says"]
    change(says)
    hashed = rubric_of(says).hash
    for split in SPLITS:
        changed(folder / "data" / "annotations" / f"{split}.parquet", "rubric", {"teacher"}, rubric_hash=hashed)
    resealed(folder, lambda manifest: entry_of(manifest, "teacher").update(says=says, rubric_hash=hashed))


def test_a_rubric_that_asks_something_else_with_all_its_hashes_made_anew_is_found_by_the_ledger(world: World, copy: Path) -> None:
    otherwise(copy, lambda says: says.update(persona="You are easily pleased."))
    assert "judge, teacher: none of the given ledgers holds its answers" in world.answers(copy, "teacher")


def test_what_no_request_holds_of_a_rubric_is_told_where_it_is_not_that_of_its_name(world: World, copy: Path) -> None:
    otherwise(copy, lambda says: says["criteria"][0].update(better="low"))
    (told,) = verify(copy, fast=True, ledgers=world.ledgers)
    name = entry_of(manifest_of(copy), "teacher")["says"]["criteria"][0]["name"]
    assert told.severity != "fault" and f"no request holds {name}: better" in str(told)


MANIFESTS: dict[str, tuple[dict[str, Any], str, bool]] = {
    "cases": ({"cases": TURNS - 1}, f"says {TURNS - 1} turns or dialogues, but the rows cover {TURNS}", False),
    "turns": ({"turns": 10}, f"says 10 turns or dialogues, but lists {TURNS}", False),
    "usage": ({"usage": {}}, "usage: says {}, but the ledger gives", True),
    "unannotated": (
        {"unannotated_by_reason": {"rating: x": 3}},
        "unannotated_by_reason: says {'rating: x': 3}, but the ledger gives",
        True,
    ),
    "variants": ({"variants": ["reference"]}, "which the manifest does not name", False),
    "samples": ({"samples": 2}, "none of the given ledgers holds its answers", True),
    "left out": (
        {"left_out": ["001-seed-t01"], "turns": MORE},
        "lists as left out what no judge was asked about, or what the release holds: 001-seed-t01",
        True,
    ),
    "templates": ({"templates": {}}, "was made with other templates than those here", True),
    "counts": ({"counts": {"annotations": 1}}, "says {'annotations': 1} rows, but the data holds", False),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_what_a_manifest_says_of_annotations_and_is_not_so_is_found(name: str, world: World) -> None:
    change, told, by_ledger = MANIFESTS[name]
    manifest = manifest_of(world.judged)
    entry_of(manifest, "teacher").update(change)
    faults = list(annotation_faults(world.judged, manifest))
    assert (faults == []) == by_ledger
    one = manifest | {"annotations": [entry_of(manifest, "teacher")]}
    faults = ledger_faults(world.judged, one, [world.folder / "by-teacher" / "ledger.sqlite"]) if by_ledger else faults
    assert told in "\n".join(map(str, faults))


def test_figures_on_people_that_no_record_is_behind_are_found(copy: Path) -> None:
    figure = {"value": 0.9, "low": 0.8, "high": 1.0, "items": 10, "signature": "x", "why": None}
    one = {"kappa": figure, "spearman": figure}
    tags = {"rows": [{"strategy": "Offer Hope", "by": "people", "judged": 3, "right": 3, "instead": {"Clarification": 1}}], "right": {}}
    people = {"judges": {"judge/teacher": {"charm": one}, "nobody/teacher": {"guidance": one}}, "tags": tags}
    resealed(copy, lambda manifest: manifest.update(judges_and_people=people))
    found = said(copy)
    assert (
        "judges_and_people: needs both reviews and annotations" in found
        and "tags: Offer Hope: has counts of right and other tags that do not add up" in found
    )
    assert "judge/teacher: names charm, which" in found and "nobody/teacher: names guidance, which no judge" in found


def test_a_folder_that_was_forged_before_its_release_is_found_by_the_ledger_alone(world: World, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(world.annotations[0], tmp_path / "a"))
    cases = [json.loads(line) for line in (folder / "outcomes.jsonl").read_text().splitlines()]
    for one in [one for case in cases for one in case["ratings"] if one["variant"] == "empathetic"]:
        one["value"] = 1.0
    (folder / "outcomes.jsonl").write_text("".join(f"{json.dumps(case)}\n" for case in cases))
    header = json.loads((folder / "build.json").read_text())
    (folder / "build.json").write_text(json.dumps(header | {"outcomes": digest_file(folder / "outcomes.jsonl")}))
    release(world.build, tmp_path / "r", "0.2.0", annotations=[folder])
    assert "value: says 1.0, but the answer says 0.0" in world.answers(tmp_path / "r", "teacher")


def test_a_text_that_was_changed_under_its_annotations_is_found_by_the_ledger(world: World, tmp_path: Path) -> None:
    other = Path(shutil.copytree(world.judged, tmp_path / "r"))
    name = pq.read_table(other / "data" / "comparisons" / "test.parquet").to_pylist()[0]["pair_id"]

    def swap(found: list[dict[str, Any]]) -> None:
        for row in found:
            if row["pair_id"] == name:
                row["near_empathetic"] += " "

    forged(other, "controls", swap)
    assert f"{name}: the ledger has no answer about this text" in said(other, world.ledgers) or "preferences_near" in said(other)


UNFIT: dict[str, tuple[str, Callable[[dict[str, Any]], object], str]] = {
    "winner": ("comparisons", lambda row: row.update(winner=None if row["winner"] else row["variant_1"]), "its winner is"),
    "order": ("comparisons", lambda row: row.update(variant_1=row["variant_2"], variant_2=row["variant_1"]), "compares"),
    "ideal": ("strategies", lambda row: row.update(ideal=[0.5] * 15), "its ideal distribution adds up to 7.5, not to 1"),
    "short": ("strategies", lambda row: row.update(ideal=[1.0]), "ideal"),
    "named": ("strategies", lambda row: row.update(named="Kindness"), '"Kindness" is not a strategy'),
    "value": ("annotations", lambda row: row.update(value=7.0), "is not between 0 and 1"),
    "nan": ("annotations", lambda row: row.update(value=float("nan")), "nan is not between 0 and 1"),
    "criterion": ("annotations", lambda row: row.update(criterion="charm"), '"charm" is not a criterion of the rubric'),
    "teacher": ("annotations", lambda row: row.update(teacher="another"), 'names no annotations by "another"'),
    "pair": ("comparisons", lambda row: row.update(pair_id=row["pair_id"][:-2] + "99"), "is not a pair of the release"),
    "split": ("comparisons", lambda row: row.update(pair_id="001-seed-t01"), "belongs to the split train by its id"),
    "key": ("comparisons", lambda row: row.update(request_key_12="s1-" + "0" * 64), "where the rows of judges give"),
    "null": ("annotations", lambda row: row.update(teacher=None), "teacher"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_row_that_does_not_fit_is_named_without_a_ledger(name: str, copy: Path) -> None:
    config, change, told = UNFIT[name]
    whole = name in ("winner", "null")
    forged(copy, config, lambda found: change(found[0]), seal=whole)
    found = said(copy) if whole else unfit(copy)
    # The requests of judges are derived for the provenance.
    place = "provenance.parquet: row" if name == "key" else f"{config}/test.parquet: row 0"
    assert told in found and place in found


def test_a_row_that_is_there_twice_and_counts_that_do_not_fit_are_named(copy: Path) -> None:
    forged(copy, "comparisons", lambda found: found.append(found[0]))
    resealed(copy, lambda manifest: manifest["counts"]["comparisons"].update(test=manifest["counts"]["comparisons"]["test"] + 1))
    found = said(copy)
    assert "is a second row of the same judgement" in found and "rows, but the data holds" in found


def test_a_config_that_the_manifest_does_not_count_is_named(copy: Path) -> None:
    resealed(copy, lambda manifest: manifest["counts"].pop("strategies"))
    assert "is named by the manifest, but no release has such a file" in said(copy)


def test_a_rubric_that_was_changed_in_the_manifest_is_named(copy: Path) -> None:
    resealed(copy, lambda manifest: manifest["annotations"][1]["says"].update(persona="You are easily pleased."))
    assert "does not match its hash" in said(copy)


def test_annotations_of_other_texts_are_refused_with_both_releases_named(world: World, tmp_path: Path) -> None:
    other = Path(shutil.copytree(world.plain, tmp_path / "other"))
    path = other / "data" / "pairs" / "test.parquet"
    table = pq.read_table(path)
    changed = [{**row, "empathetic": row["empathetic"] + " Truly."} for row in table.to_pylist()]
    pq.write_table(pa.Table.from_pylist(changed, schema=table.schema), path)
    resealed(other)
    judged = tmp_path / "judged"
    annotate(other, judged, rubric="warmer", model=Judge(), turns=TURNS)
    with pytest.raises(InputError) as error:
        release(world.build, tmp_path / "r", "0.3.0", annotations=[judged])
    told = str(error.value)
    assert f"annotates demo 0.1.0 (seal {manifest_of(other)['seal']})" in told and "empathy-eval-demo 0.3.0 has other texts at " in told
    assert not (tmp_path / "r").exists()


def test_annotations_of_the_build_itself_are_taken_as_those_of_its_release(world: World, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(world.annotations[1], tmp_path / "before")) / "ledger.sqlite"
    judged = world.annotated("warmer", str(tmp_path / "judged"), of=world.build, turns=TURNS, ways={"ledger": folder, "offline": True})
    made = release(world.build, tmp_path / "r", "0.2.0", annotations=[judged]).manifest
    assert rows(tmp_path / "r", "comparisons") == rows(world.judged, "comparisons") and verify(tmp_path / "r", fast=True) == []
    (said_of_it,) = made["annotations"]
    assert said_of_it["release"] == {"name": "demo", "outcomes": digest_file(world.build / "outcomes.jsonl")}
    with pytest.raises(InputError, match="release --annotations takes annotations of a build"):
        annotations_in([judged], tmp_path / "r")
    assert said(tmp_path / "r", [folder, world.ledgers[0]]) == ""


def test_annotations_of_a_dialogue_that_was_withdrawn_are_left_out_and_named(world: World, tmp_path: Path, prompts: Prompts) -> None:
    gone = rows(world.judged, "comparisons")[0]["pair_id"][:8]
    withdrawn = [{"dialogue_id": gone, "kind": "error", "reason": "a test", "date": "2026-02-01"}]
    config = load_configuration(demo_file(tmp_path, report=REPORT, withdrawn=withdrawn))
    build(Recipe(config, load_catalogue(world.folder / "scenarios"), prompts), tmp_path / "b")
    made = release(tmp_path / "b", tmp_path / "r", "0.3.0", annotations=world.annotations).manifest
    for one in made["annotations"]:
        assert all(name.startswith(gone) for name in one["left_out"])
        assert one["cases"] + len(one["left_out"]) == (len(SOME) if one["rubric"] == "whole" else TURNS)
    assert not any(row["pair_id"].startswith(gone) for row in rows(tmp_path / "r", "comparisons"))
    assert said(tmp_path / "r", world.ledgers) == ""
    found = diff(world.judged, tmp_path / "r").annotations
    assert found["comparisons"]["removed"] > 0 == found["comparisons"]["added"] == found["comparisons"]["changed"]


def test_a_ledger_that_was_filled_for_more_is_no_fault_and_a_smaller_sample_is_taken_whole(world: World, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(world.annotations[1], tmp_path / "a"))
    annotate(world.plain, folder, rubric="warmer", model=Judge(), turns=MORE)
    assert said(world.judged, [folder / "ledger.sqlite", *(one for one in world.ledgers if one.parent.name != "by-warmer")]) == ""
    release(world.build, tmp_path / "r", "0.3.0", annotations=[folder, *(one for one in world.annotations if one.name != "by-warmer")])
    found = diff(world.judged, tmp_path / "r")
    assert list(found.annotations) == ["comparisons"] and found.annotations["comparisons"]["changed"] == 0
    assert f"rows of comparisons: {found.annotations['comparisons']['added']} added, 0 removed, 0 changed" in str(found)
    assert not diff(world.judged, world.judged).annotations


def test_what_cannot_be_taken_is_refused_all_at_once(world: World, tmp_path: Path) -> None:
    twice = Path(shutil.copytree(world.annotations[0], tmp_path / "twice"))
    broken = Path(shutil.copytree(world.annotations[1], tmp_path / "broken"))
    (broken / "outcomes.jsonl").write_text("")
    with pytest.raises(InputError) as error:
        release(world.build, tmp_path / "r", "0.3.0", annotations=[world.annotations[0], twice, broken, tmp_path / "none"])
    told = str(error.value)
    assert (
        'has the same judge "judge" and rubric "teacher" as' in told and "was changed after" in told and "no finished annotations" in told
    )


def test_a_judge_that_adds_to_its_requests_must_be_named_to_be_taken(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    annotate(world.plain, folder, rubric="warmer", model=Judge(parameters={"temperature": 0}), turns=2)
    with pytest.raises(InputError, match="named as module:name"):
        release(world.build, tmp_path / "r", "0.3.0", annotations=[folder])


def test_a_judge_that_is_code_is_not_run_unless_it_is_trusted(light: Path, tmp_path: Path) -> None:
    folder, named = tmp_path / "a", "tests.doubles.judges:Judge"
    judge = {"kind": named, "parameters": {"parameters": {"temperature": 0}}}
    annotate(light, folder, rubric="warmer", model=judge, turns=2)
    with pytest.raises(InputError, match=f"--trust-judge {named}"):
        release(light.parent / "build", tmp_path / "r", "0.3.0", annotations=[folder])
    made = release(light.parent / "build", tmp_path / "r", "0.3.0", annotations=[folder], trusted=[named])
    assert made.manifest["counts"]["comparisons"]
