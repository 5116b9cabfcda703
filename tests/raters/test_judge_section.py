"""Section on judges in a report: figures of a release against those of the folders, and against hand-derived ones."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.commands.annotate import annotate
from empathy_eval.design.dataset import column, pair_id, parts_of, read_manifest
from empathy_eval.design.rubrics import load_rubric
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.raters.judges.agreeing import agreement_of
from empathy_eval.raters.judges.annotations import Annotated, AnnotationFolder, NamedStrategy, Rating, read_annotations
from empathy_eval.raters.judges.estimator import estimator_of
from empathy_eval.raters.judges.judge_quality import ComparedWith, judge_quality
from empathy_eval.raters.judges.judge_section import _other_folders, released_annotations
from empathy_eval.raters.judges.tag_audit import over_dialogues, planned_in, tag_audit, tags_of_judge, tags_of_people, turns_of, understood
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.verify.verify import verify

from tests.doubles import made_once
from tests.doubles.judges import Judge
from tests.doubles.on_the_page import unseen
from tests.doubles.papers_anew import told_anew

RUBRICS = ("teacher", "warmer", "strategies")


@pytest.fixture(scope="module")
def made(light: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with annotations by each rubric, and a release with all of them."""

    def make(folder: Path) -> None:
        for name in RUBRICS:
            annotate(light, folder / name, rubric=name, model=Judge(), turns=20)
        release(light.parent / "build", folder / "release", "0.2.0", annotations=[folder / name for name in RUBRICS])

    return made_once.copied(tmp_path_factory, "told", make)[0]


@pytest.fixture(scope="module")
def folders(made: Path) -> list[Path]:
    return [made / name for name in RUBRICS]


@pytest.fixture(scope="module")
def judged(made: Path) -> Path:
    return made / "release"


def tables(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "report" / "tables.json").read_text())
    return found


def test_the_report_has_the_figures_that_annotate_prints(light: Path, folders: list[Path], judged: Path) -> None:
    told = tables(judged)["judges"]["worth"]
    read = dict(zip(RUBRICS, map(read_annotations, folders), strict=True))
    assert list(told) == ["judge/strategies", "judge/teacher", "judge/warmer"]
    for name, beside in (("teacher", (read["warmer"],)), ("warmer", ()), ("strategies", ())):
        printed = json.loads(json.dumps(judge_quality(read[name], light, ComparedWith(beside)).to_json()))
        for key in ("together", "preferences", "strategies", "unannotated"):
            assert told[f"judge/{name}"][key] == printed[key]
        for row in printed["criteria"]:
            found = told[f"judge/{name}"]["criteria"][row["name"]]
            assert {key: found[key] for key in row} == row and found["pairs"] > 0


def test_the_page_answers_first_whether_the_judge_is_fooled(judged: Path) -> None:
    page = (judged / "report" / "index.html").read_text()
    section = page[page.index('<section id="judges"') : page.index('<section id="lengths"')]
    text = re.sub(r"<[^>]+>", "", section)
    assert (
        text.index("Is judge/teacher fooled?")
        < text.index("Accuracy of each judge at equal closeness")
        < text.index("Quality of the judges' answers")
    )
    for name, one in tables(judged)["judges"]["worth"]["judge/teacher"]["criteria"].items():
        right = one["stance"]["judge"]
        assert f"judge/teacher: {name}" in text and f"{100 * right['value']:.1f}\N{NO-BREAK SPACE}%" in text
        assert right["signature"] in text and one["with_itself"]["signature"] in text
    assert '<title id="judges-title">' in section and 'href="#judges"' in page
    assert {"judges.svg", "judges.png"} <= {path.name for path in (judged / "report" / "figures").iterdir()}


def test_a_release_without_annotations_says_nothing_of_judges(light: Path) -> None:
    assert "judges" not in tables(light) and "#judges" not in (light / "report" / "index.html").read_text()
    assert not (light / "report" / "figures" / "judges.svg").exists()


@pytest.mark.e2e
def test_verify_finds_changed_figures(judged: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(judged, tmp_path / "r"))
    found = tables(copy)
    right = found["judges"]["worth"]["judge/teacher"]["criteria"]["flow"]["stance"]["judge"]
    page = (copy / "report" / "index.html").read_text()
    assert not list(unseen(found, page))
    assert [where for where, _ in unseen(found, page.replace(f"{100 * right['value']:.1f}", "x")) if where == "judges: judge/teacher: flow"]
    right["value"] += 0.01
    found["judges"]["course"]["judge/strategies"]["strategies"][0]["planned"][0] += 1
    found["judges"]["tags"]["rows"][0]["right"] += 1
    told_anew(copy, found)
    said = "\n".join(map(str, verify(copy)))
    for where in (
        "worth: judge/teacher: criteria: flow: stance: judge: value",
        "course: judge/strategies: strategies: 0: planned: 0",
        "tags: ",
    ):
        assert f"judges: {where}" in said


def test_a_release_that_does_not_hold_what_it_should_is_refused_in_words(judged: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(judged, tmp_path / "r"))
    for path in (copy / "data" / "strategies").iterdir():
        table = pq.read_table(path)
        place = table.schema.get_field_index("named")
        pq.write_table(table.set_column(place, table.schema.field(place), pa.array(["Kindness"] * len(table), pa.string())), path)
    with pytest.raises(InputError, match="does not hold what the data contract says"):
        released_annotations(copy, read_manifest(copy))


def naming(release_dir: Path, rows: list[tuple[str, str, str, str]]) -> AnnotationFolder:
    """Strategies from (pair, variant, named, most likely)."""
    taxonomy = [one.abbreviation for one in load_taxonomy().strategies]
    cases = [
        Annotated(name[:8], int(name[-2:]), name, "accepted", strategies=(NamedStrategy(variant, 0, named, "k", shares, "k"),))
        for name, variant, named, likely in rows
        for shares in [{one: 0.3 if one == likely else 0.05 for one in taxonomy}]
    ]
    configuration = {
        "judge": {"kind": "openai", "model": "m"}, "rubric": "strategies", "rubric_hash": "s1-0", "samples_of_a_text": 1,
        "release": {"name": "demo", "version": "0.1.0", "seal": read_manifest(release_dir)["seal"]},
    }  # fmt: skip
    return AnnotationFolder(Path("m"), {"configuration": configuration, "rubric": {"kind": "strategies"}, "summary": {}}, tuple(cases))


def test_judged_strategies_are_compared_with_planned_ones_part_by_part(light: Path) -> None:
    taxonomy = load_taxonomy()
    names = dict.fromkeys(name.rpartition("-t")[0] for name in column(light, "pairs", "pair_id"))
    planned = planned_in(light)
    first, second = (next(one for one in planned if one.startswith(name)) for name in list(names)[:2])
    codes = {one.name: one.abbreviation for one in taxonomy.strategies}
    other = next(code for code in codes.values() if code not in (codes[planned[first]], codes[planned[second]]))
    rows = [(first, "reference", codes[planned[first]], other), (second, "reference", other, codes[planned[second]])]
    # What a variant is called is no tag of the turn.
    folder = naming(light, [*rows, (first, "apathetic", other, other)])
    turns = turns_of(light)
    assert {name: codes[one] for name, one in planned.items()}.items() <= turns.planned.items()
    found = over_dialogues(folder, turns, estimator_of(folder, ResamplingSettings(10, 0, 1)))
    assert found["turns"] == 2
    for name in ("named", "likely"):
        assert (found["agreement"][name]["equal"]["value"], found["agreement"][name]["equal"]["items"]) == (0.5, 2)
        assert found["agreement"][name]["kappa"]["signature"]
    by_name = {one["name"]: one for one in found["strategies"]}
    assert sum(by_name[planned[first]]["planned"]) >= 1 and by_name[taxonomy[other].name]["planned"] == [0] * 10
    assert by_name[taxonomy[other].name]["named"][turns.part[second]] == 1
    assert by_name[taxonomy[other].name]["likely"][turns.part[first]] == 1


def test_named_strategies_of_variants_are_compared_turn_by_turn(light: Path) -> None:
    taxonomy, turns = load_taxonomy(), turns_of(light)
    names = dict.fromkeys(name.rpartition("-t")[0] for name in column(light, "pairs", "pair_id"))
    first, second = (next(one for one in turns.part if one.startswith(f"{name}-")) for name in list(names)[:2])
    one, two, three = [strategy.abbreviation for strategy in taxonomy.strategies][:3]
    said = {"near_empathetic": (one, two), "apathetic": (one, three), "empathetic": (two, two), "far_apathetic": (three, None)}
    rows = [
        (pair, variant, code, one) for variant, codes in said.items() for pair, code in zip((first, second), codes, strict=True) if code
    ]
    folder = naming(light, rows)
    found = over_dialogues(folder, turns, estimator_of(folder, ResamplingSettings(10, 0, 1)))
    assert list(found["variants"]) == ["apathetic", "empathetic", "near_empathetic", "far_apathetic"]
    by_name = {row["name"]: row["named"] for row in found["variants"]["near_empathetic"]}
    assert set(by_name) == {taxonomy[one].name, taxonomy[two].name}
    assert by_name[taxonomy[two].name][turns.part[second]] == 1 == sum(by_name[taxonomy[two].name])
    deltas = {series: {name: (row["value"], row["items"]) for name, row in some.items()} for series, some in found["deltas"].items()}
    assert deltas == {
        "stance, near": {taxonomy[one].name: (0, 2), taxonomy[two].name: (0.5, 2), taxonomy[three].name: (-0.5, 2)},
        # Of the second turn one of the two texts was not judged.
        "stance, far": {taxonomy[two].name: (1, 1), taxonomy[three].name: (-1, 1)},
        "empathetic - apathetic": {taxonomy[one].name: (-0.5, 2), taxonomy[two].name: (1, 2), taxonomy[three].name: (-0.5, 2)},
    }
    assert all(row["signature"] for some in found["deltas"].values() for row in some.values())


def test_understanding_is_the_mean_of_texts_in_each_tenth(light: Path) -> None:
    turns, rubric = turns_of(light), load_rubric("teacher")
    names = [name for name in turns.part if turns.part[name] == turns.part[next(iter(turns.part))]][:2]
    values = {(names[0], "apathetic"): (0.2, 0.4), (names[1], "apathetic"): (0.5, 0.5), (names[0], "empathetic"): (1.0, 0.5)}
    cases = [
        Annotated(*parts_of(name), name, "accepted", ratings=tuple(
            Rating(variant, "understanding", sample, value, "", "k")
            for (of, variant), some in values.items() if of == name for sample, value in enumerate(some)
        ))
        for name in names
    ]  # fmt: skip
    told = {"judge": {"kind": "openai", "model": "m"}, "rubric": "teacher", "rubric_hash": rubric.hash, "samples_of_a_text": 2}
    found = understood(AnnotationFolder(Path("m"), {"configuration": told, "rubric": asdict(rubric), "summary": {}}, tuple(cases)), turns)
    part = turns.part[names[0]]
    rows = {one["variant"]: (one["means"][part], one["texts"][part], sum(one["texts"])) for one in found["variants"]}
    # (0.3 + 0.5) / 2: each text is its mean over samples first.
    assert rows == {"apathetic": (0.4, 2, 2), "empathetic": (0.75, 1, 1)} and rubric.hash[:10] in found["signature"]


def record(pairs: list[tuple[str, str, bool, str | None]]) -> dict[str, Any]:
    """A record of one rater's tags, from (pair, tag, right, strategy)."""
    judgements = [
        {"kind": "dialogue", "review": "s1-0", "rater": "rater-01", "dialogue_id": name[:-4], "content": "c" * 12,
         "tags": [{"turn": int(name[-2:]), "tag": tag, "right": right, **({"strategy": called} if called else {})}]}
        for name, tag, right, called in pairs
    ]  # fmt: skip
    judgements[0]["tags"].append({"turn": 1, "tag": "Clarification", "planted": "Offer Hope", "right": False})  # type: ignore[attr-defined]
    return {"judgements": judgements, "reviews": {"s1-0": {}}}


def test_people_and_judges_are_in_one_audit_with_what_tags_were_called_instead(light: Path) -> None:
    name = "001-seed-t03"
    said = [(name, "Offer Hope", True, None), (name, "Offer Hope", False, "Clarification"), (name, "Offer Hope", False, None)]
    people = list(tags_of_people(record(said)))
    assert len(people) == 3 and people[0].pair_id == pair_id("001-seed", 3)
    assert list(tags_of_people(record(said), {"001-seed": "other"})) == []
    judge = list(tags_of_judge(naming(light, [(name, "reference", "Aff", "Aff")]), {name: "Offer Hope"}))
    audit = tag_audit({"people": ("raters:1", people), "m": ("teacher:m", judge), "nobody": ("", [])}, ResamplingSettings(10, 0, 1))
    found = [(one.strategy, one.by, one.judged, one.right, one.instead) for one in audit.rows]
    called = load_taxonomy()["Aff"].name
    assert found == [
        ("Offer Hope", "people", 3, 1, {"Clarification": 1, "not said": 1}), ("Offer Hope", "m", 1, 0, {called: 1}),
    ]  # fmt: skip
    assert audit.right["people"].value == pytest.approx(1 / 3, abs=1e-6) and audit.right["people"].n == 3


def test_agree_needs_the_release_that_has_the_plan(light: Path, folders: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agree", str(folders[2])]) == 2
    assert "--release RELEASE" in capsys.readouterr().err
    assert main(["agree", str(folders[2]), "--release", str(light), "--resamples", "0"]) == 0
    said = capsys.readouterr().out
    audit = agreement_of([folders[2]], [], ResamplingSettings(0, 0, 0), "interval", light).tags
    assert audit and re.search(r"judge/strategies +20 +[01]\.", said) and sum(one.judged for one in audit.rows) == 20
    assert all(re.search(rf"{one.strategy} +judge/strategies +{one.judged} +{one.right}\b", said) for one in audit.rows)
    assert main(["agree", str(folders[2]), str(folders[2]), "--release", str(light)]) == 2
    assert "name one of them" in capsys.readouterr().err
    assert main(["agree", str(folders[2]), "--release", str(light), "--judge", "judge"]) == 2
    assert "there are only tags" in capsys.readouterr().err


def test_reward_models_are_compared_with_preferences_and_not_beside_each_other() -> None:
    def judged(kind: str, rubric_hash: str) -> AnnotationFolder:
        return AnnotationFolder(Path(), {"configuration": {"rubric_hash": rubric_hash}, "rubric": {"kind": kind}}, ())

    one, other, warmer, rated = (judged(*what) for what in (("reward", "r"), ("reward", "r"), ("preference", "p"), ("rating", "t")))
    all_of_them = (one, other, warmer, rated)
    others = [_other_folders(folder, all_of_them) for folder in (one, rated, warmer)]
    assert others == [(warmer,), (warmer,), ()]
