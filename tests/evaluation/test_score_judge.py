"""A judge's annotations on the stand: from the config of a release or from the folder of ``annotate``, without asking a model."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import empathy_eval as ee
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.commands.score_tables import score_table
from empathy_eval.design.contrasts import CONTROLS, RAW, STANCE, STANCE_FAR, STANCE_NEAR
from empathy_eval.design.dataset import OPTIONAL, SPLITS, column, file_of, parts_of, split_of
from empathy_eval.design.rubrics import load_rubric
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.evaluation.external.judges import release_annotations
from empathy_eval.evaluation.inversion.results import MetricRow, ReleaseTables
from empathy_eval.releases.assemble.write import Released

from tests.evaluation.test_score import row_of, write_scores

HASH = load_rubric("teacher").hash
TYPES = {"turn": pa.int64(), "sample": pa.int64(), "value": pa.float64()}
NAMES = (
    "pair_id", "dialogue_id", "turn", "variant", "teacher", "rubric", "rubric_hash", "criterion", "sample", "value", "reason",
    "request_key",
)  # fmt: skip
ANNOTATED = pa.schema([(name, TYPES.get(name, pa.string())) for name in NAMES])
# By pair what a judge gives its texts, and by whom the pair is won: 3 times by the empathetic text, once by nobody, twice by the other.
SAID: list[dict[str, list[float]]] = [
    {"apathetic": [0.2], "empathetic": [0.8], "reference": [0.9]},
    {"apathetic": [0.4], "empathetic": [0.5]},
    # The mean of two samples, 0.5 and 0.6, turns round what the first sample says alone.
    {"apathetic": [0.6, 0.4], "empathetic": [0.3, 0.9]},
    {"apathetic": [0.5], "empathetic": [0.5]},
    {"apathetic": [0.9], "empathetic": [0.1]},
    {"apathetic": [0.7], "empathetic": [0.6]},
]
WON = (3 + 1 / 2) / 6


def rows_of(pair_id: str, texts: dict[str, list[float]], **other: Any) -> list[dict[str, Any]]:
    dialogue, turn = parts_of(pair_id)
    by = {"teacher": "lab/m", "rubric": "teacher", "rubric_hash": HASH, "criterion": "guidance", "reason": "", "request_key": "k"}
    of = {"pair_id": pair_id, "dialogue_id": dialogue, "turn": turn, **by}
    return [
        {**of, "variant": name, "sample": sample, "value": value, **other}
        for name, values in texts.items()
        for sample, value in enumerate(values)
    ]


def annotated(release: Path, folder: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """A copy of a release with annotations in it."""
    shutil.copytree(release, folder)
    rows = list(rows)
    (folder / "data" / "annotations").mkdir()
    for split in SPLITS:
        some = [row for row in rows if split_of(row["dialogue_id"]) == split]
        pq.write_table(pa.Table.from_pylist(some, schema=ANNOTATED), file_of(folder, "annotations", split))
    return folder


@pytest.fixture
def ids(light: Path) -> list[str]:
    return [str(one) for one in column(light, "pairs", "pair_id")]


def scored(*given: Any, **asked: Any) -> ReleaseTables:
    """What the call says of a release."""
    measured = ee.score(*given, **asked)
    assert isinstance(measured, ReleaseTables)
    return measured


def judged(release: Path, *names: str, **more: Any) -> MetricRow:
    measured = scored(release, judges=names, shortcuts=False, cache=False, **more)
    (row,) = measured.inversion
    return row


def test_the_accuracy_of_a_judge_is_that_of_its_mean_values(light: Path, ids: list[str], tmp_path: Path) -> None:
    release = annotated(light, tmp_path / "r", [row for pair, one in zip(ids, SAID, strict=False) for row in rows_of(pair, one)])
    row = judged(release, "lab/m/teacher:guidance")
    found = row.differences[RAW]
    assert row.metric == "lab/m/teacher:guidance" and (row.pairs, row.left_out) == (6, len(ids) - 6)
    assert found.accuracy and found.accuracy.value == pytest.approx(WON, abs=1e-6)
    assert row.scores == {"apathetic": pytest.approx(3.2 / 6, abs=1e-6), "empathetic": pytest.approx(3.1 / 6, abs=1e-6)}
    assert f"teacher:lab/m|rubric:teacher@{HASH[:16]}|criterion:guidance|samples:2|" in row.signature
    strict = judged(release, "lab/m/teacher", strict=True).differences[RAW].accuracy
    assert strict and strict.value == pytest.approx(3.5 / len(ids), abs=1e-6)


def test_the_strategies_of_a_judge_are_a_row_of_flow(light: Path, ids: list[str], tmp_path: Path) -> None:
    first, second, *_ = (one.name for one in load_taxonomy().strategies)
    by = {"teacher": "lab/m", "rubric": "strategies", "rubric_hash": load_rubric("strategies").hash}
    # Valid by 1 (empathetic) and by 0.3 / 0.6 (apathetic) in the first pair; turned round in the second; the third has a tie.
    named = [(second, first), (first, second), (first, first)]
    said = [
        {**by, "pair_id": pair, "sample": 0, "ideal": [0.3, 0.6, 0.1, *[0.0] * 12], "variant": variant, "named": name}
        for pair, both in zip(ids, named, strict=False)
        for variant, name in zip(("empathetic", "apathetic"), both, strict=True)
    ]
    release = tmp_path / "r"
    shutil.copytree(light, release)
    for split in SPLITS:
        (path := file_of(release, "strategies", split)).parent.mkdir(exist_ok=True)
        some = [row for row in said if split_of(parts_of(str(row["pair_id"]))[0]) == split]
        pq.write_table(pa.Table.from_pylist(some, schema=OPTIONAL["strategies"]), path)
    row = judged(release, "lab/m/strategies")
    found = row.differences[RAW].accuracy
    assert row.metric == "lab/m/strategies:flow" and row.higher_is_better and found and found.value == 0.5
    assert row.scores == {"empathetic": pytest.approx(2 / 3, abs=1e-6), "apathetic": pytest.approx(2 / 3, abs=1e-6)}


def test_where_lower_is_better_the_same_values_prefer_the_other(light: Path, ids: list[str], tmp_path: Path) -> None:
    guide = load_rubric("lend-an-ear")
    by = {"rubric": guide.name, "rubric_hash": guide.hash, "criterion": "advice_giving"}
    assert guide["advice_giving"].better == "low"
    rows = [row for pair, one in zip(ids, SAID, strict=False) for row in rows_of(pair, one, **by)]
    row = judged(annotated(light, tmp_path / "r", rows), "lab/m/lend-an-ear")
    found = row.differences[RAW].accuracy
    assert row.higher_is_better is False and found and found.value == pytest.approx(1 - WON, abs=1e-6)


def test_texts_without_a_value_leave_their_pair_out(light: Path, ids: list[str], tmp_path: Path) -> None:
    rows = [row for pair, one in zip(ids, SAID, strict=False) for row in rows_of(pair, one)]
    alone = rows_of(ids[6], {"apathetic": [0.1], "reference": [0.3]})
    unsaid = [{**row, "value": None} for row in rows_of(ids[7], {"apathetic": [0.1], "empathetic": [0.2]})]
    whole = {**rows_of(ids[0], {"x": [1]})[0], "pair_id": None, "turn": None, "variant": None}
    measured = scored(
        annotated(light, tmp_path / "r", [*rows, *alone, *unsaid, whole]), judges=["lab/m/teacher"], shortcuts=False, cache=False
    )
    row = row_of(measured.inversion, "lab/m/teacher:guidance")
    assert row.pairs == 6 and row.differences[RAW] == judged(annotated(light, tmp_path / "s", rows), "lab/m/teacher").differences[RAW]
    assert measured.controls == [] or all(one.metric != row.metric for one in measured.controls)


def test_the_number_to_report_is_of_the_pairs_with_all_four_cells(light: Path, tmp_path: Path) -> None:
    one, two, three, four = [str(name) for name in column(light, "controls", "pair_id")][:4]
    cells = ("near_empathetic", "apathetic", "empathetic", "far_apathetic")
    rows = [
        *rows_of(one, {name: [value] for name, value in zip(cells, (0.9, 0.1, 0.8, 0.2), strict=True)}),  # near won, far won
        *rows_of(two, {name: [value] for name, value in zip(cells, (0.3, 0.6, 0.8, 0.2), strict=True)}),  # near lost, far won
        *rows_of(three, {name: [value] for name, value in zip(cells, (0.5, 0.5, 0.3, 0.2), strict=True)}),  # near tied, far won
        *rows_of(four, {name: [0.5] for name in cells[:3]}),  # a control without a value
    ]
    measured = scored(annotated(light, tmp_path / "r", rows), judges=["lab/m/teacher"], shortcuts=False, cache=False)
    row = row_of(measured.controls, "lab/m/teacher:guidance")
    right = {name: row.differences[name].accuracy for name in (STANCE, STANCE_NEAR, STANCE_FAR)}
    assert row.pairs == 3 and measured.inversion[0].pairs == 4
    assert {name: one and one.value for name, one in right.items()} == {STANCE: 0.75, STANCE_NEAR: 0.5, STANCE_FAR: 1.0}


@pytest.mark.e2e
def test_a_judge_is_shown_as_a_file_of_its_values_would_beside_metrics_and_the_shortcut_line(
    light: Path, ids: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    controls = {str(one) for one in column(light, "controls", "pair_id")}

    def value(pair: str, name: str) -> float:
        return float(int(hashlib.sha256(f"{pair}{name}".encode()).hexdigest(), 16) % 5)

    whole = {pair: {name: [value(pair, name)] for name in (*SAID[0], *(CONTROLS if pair in controls else ()))} for pair in ids}
    release = annotated(light, tmp_path / "r", [row for pair, one in whole.items() for row in rows_of(pair, one)])
    file = write_scores(tmp_path / "judge.csv", [[pair, name, values[0]] for pair, one in whole.items() for name, values in one.items()])
    measured = scored(release, ["length"], [file], judges=["lab/m/teacher"], cache=False)
    assert measured.audit and measured.audit.contrasts
    told = score_table(measured)
    assert re.search(r"^lab/m/teacher:guidance .* (above|at|below)$", told, re.MULTILINE)
    assert re.search(r"^shortcut line .* by ", told, re.MULTILINE)
    one, other = (row_of(measured.inversion, name) for name in ("judge", "lab/m/teacher:guidance"))
    assert (one.scores, one.differences) == (other.scores, other.differences)
    assert [(two.first, two.other) for two in measured.comparisons if two.contrast == RAW][-1] == ("judge", "lab/m/teacher:guidance")
    assert main(["score", str(release), "--metric", "length", "--judge", "lab/m/teacher:guidance", "--no-shortcuts", "--no-cache"]) == 0
    assert "lab/m/teacher:guidance, pairs, " in capsys.readouterr().out


def test_the_criteria_of_one_judge_are_corrected_together(light: Path, ids: list[str], tmp_path: Path) -> None:
    rows = [row for pair in ids for row in rows_of(pair, {"apathetic": [0.1], "empathetic": [0.9]})]
    release = annotated(light, tmp_path / "r", [*rows, *({**row, "criterion": "safety"} for row in rows)])
    alone = judged(release, "lab/m/teacher:safety").differences[RAW]
    both = scored(release, judges=["lab/m/teacher"], shortcuts=False, cache=False).inversion
    assert alone.p is not None and [one.differences[RAW].p_corrected for one in both] == [pytest.approx(2 * alone.p, abs=1e-6)] * 2


def test_what_is_no_judge_of_a_release_is_said_with_those_that_are(
    light: Path, ids: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", str(light), "--judge", "lab/m/teacher"]) == 2
    assert "holds no annotations\n  Fix: annotate the release" in capsys.readouterr().err
    release = annotated(light, tmp_path / "r", rows_of(ids[0], SAID[0]))
    for name in ("lab/n/teacher", "lab/m/warmth", "lab/m/teacher:warmth", "teacher", "lab/m"):
        with pytest.raises(InputError) as caught:
            judged(release, name)
        assert f'there is no judge "{name}" in its annotations' in str(caught.value), name
        assert "Fix: name one of lab/m/teacher (:guidance)" in str(caught.value)


def test_annotations_that_cannot_be_scored_are_refused(light: Path, ids: list[str], tmp_path: Path) -> None:
    rows = rows_of(ids[0], SAID[0])
    cases = {
        "has the same sample of a text twice": [*rows, rows[0]],
        '"059-00001-t03" is annotated, but is not a pair of this release': [*rows, *rows_of("059-00001-t03", SAID[0])],
        '"kind" is annotated, but is not a text of a pair': [*rows, {**rows[0], "variant": "kind"}],
        "the value of an annotation is not between -1e+12 and 1e+12": [{**rows[0], "value": float("nan")}],
        "of an annotation is not between": [{**rows[0], "value": 1e308}],
        "does not match the data contract": [{**rows[0], "teacher": None}],
        "with more than one version of its rubric": [*rows, {**rows[0], "rubric_hash": "s1-other"}],
        "it is not known which values of": [{**row, "rubric_hash": "s1-other"} for row in rows],
        "holds no score of a pair": rows[:1],
    }
    for number, (what, some) in enumerate(cases.items()):
        with pytest.raises(InputError, match=re.escape(what)):
            judged(annotated(light, tmp_path / str(number), some), "lab/m/teacher")
    (tmp_path / "0" / "data" / "annotations" / "test.parquet").unlink()
    with pytest.raises(InputError, match="is not there"):
        release_annotations(tmp_path / "0").criteria()


class Judge(ee.TextModel):
    """Rates by what it is given, in some way that never changes."""

    name = "lab/own"

    def answer(self, messages: list[Any], answer_schema: dict[str, Any]) -> str:
        criteria = re.findall(r'"criterion": "([^"]+)"', messages[0]["content"])
        value = int(hashlib.sha256(messages[-1]["content"].encode()).hexdigest(), 16) % 5 + 1
        return json.dumps({"analysis": "", "ratings": [{"criterion": name, "value": value} for name in criteria]})


def own_rubric(path: Path) -> Path:
    path.write_text(
        "name: coldness\ntitle: Coldness\nsource: our own\nkind: rating\nunit: reply\nstyle: plain\ntogether: true\ncriteria:\n"
        "  - {name: cold, question: How cold is it?, scale: {from: 1, to: 5, whole: true}, better: low,\n"
        "     anchors: [{value: 1, text: Warm.}, {value: 5, text: Cold.}]}\n"
    )
    return path


@pytest.mark.e2e
def test_a_folder_of_annotations_is_scored_as_the_release_that_holds_it(light: Path, tmp_path: Path) -> None:
    folder = tmp_path / "judged"
    ee.annotate(light, folder, rubric=own_rubric(tmp_path / "cold.yaml"), model=Judge(), turns=None)
    measured = scored(light, annotations=[folder], shortcuts=False, cache=False)
    (row,) = measured.inversion
    assert row.metric == "lab/own/coldness:cold" and row.higher_is_better is False and not row.left_out
    lines = [json.loads(line) for line in (folder / "outcomes.jsonl").read_text().splitlines()]
    values = {(case["pair_id"], one["variant"]): one["value"] for case in lines for one in case["ratings"]}
    won = [
        (cold > kind) + (cold == kind) / 2
        for (pair, name), cold in values.items()
        if name == "apathetic"
        for kind in [values[pair, "empathetic"]]
    ]
    accuracy = row.differences[RAW].accuracy
    assert accuracy and accuracy.value == pytest.approx(sum(won) / len(won), abs=1e-6)
    assert scored(light, judges=["lab/own/coldness:cold"], annotations=[folder], shortcuts=False, cache=False) == measured


def test_annotations_of_another_release_are_refused(released: tuple[Path, Released], light: Path, tmp_path: Path) -> None:
    ee.annotate(released[0], tmp_path / "judged", rubric=own_rubric(tmp_path / "cold.yaml"), model=Judge(), turns=1)
    with pytest.raises(InputError, match="holds annotations of another release"):
        scored(light, annotations=[tmp_path / "judged"])
    with pytest.raises(InputError, match="holds no finished annotations"):
        scored(light, annotations=[tmp_path])
