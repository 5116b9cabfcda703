"""Breakdowns by manner: fractions by hand, what is made by rules apart, and nothing where no manner is known."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.cli import main
from empathy_eval.design.contrasts import CELLS, RAW, STANCE, STANCE_FAR, STANCE_NEAR
from empathy_eval.design.dataset import FAR_WAY, GROUPINGS, WAYS
from empathy_eval.design.personas import VOICES
from empathy_eval.evaluation.corpus.descriptives import AS_RELEASED, MANNERS
from empathy_eval.evaluation.corpus.pairs import read_corpus, sort_labels
from empathy_eval.evaluation.inversion.results import ReleaseTables
from empathy_eval.evaluation.measure import score
from empathy_eval.reports.report import report

from tests.releases.test_verify import rewritten

# Near manner, far manner, and the scores of near-empathetic, apathetic, empathetic and far-apathetic.
FOUR = (
    ("hurrying", "advising", (2, 1, 2, 1)),
    ("hurrying", "hurrying", (1, 2, 3, 3)),
    (None, "hurrying", (2, 1, 0, 1)),
    ("analysing", "zeal", (0, 1, 1, 0)),
)


def with_ways(folder: Path, copy: Path, near: Mapping[str, str | None], far: Mapping[str, str | None], rest: str | None) -> Path:
    """A copy of a release whose pairs have these manners by their id, and ``rest`` where there is none; no manner: by rules."""

    def changed(table: Any) -> Any:
        ids = table.column("pair_id").to_pylist()
        new = {WAYS[0]: [near.get(one, rest) for one in ids], FAR_WAY: [far.get(one, rest) for one in ids]}
        new["apathetic_method"] = ["rules" if one in near and near[one] is None else "model" for one in ids]
        for name in new.keys() & set(table.column_names):
            table = table.set_column(table.column_names.index(name), name, pa.array(new[name], pa.string()))
        return table

    return rewritten(folder, copy, changed)


@pytest.fixture(scope="module")
def judged(light: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A release whose first four pairs with controls are ``FOUR``, and the file of a judge of these."""
    folder = tmp_path_factory.mktemp("manners")
    ids = read_corpus(light, "controls", CELLS).pair_ids[:4]
    near = {pair: one[0] for pair, one in zip(ids, FOUR, strict=True)}
    far = {pair: one[1] for pair, one in zip(ids, FOUR, strict=True)}
    lines = [f"{pair},{name},{value}" for pair, one in zip(ids, FOUR, strict=True) for name, value in zip(CELLS, one[2], strict=True)]
    (folder / "judge.csv").write_text("\n".join(["pair_id,variant,score", *lines]) + "\n")
    return with_ways(light, folder / "release", near, far, "criticising"), folder / "judge.csv"


@pytest.fixture(scope="module")
def measured(judged: tuple[Path, Path]) -> ReleaseTables:
    return score(judged[0], (), [judged[1]], shortcuts=False)


def told(measured: ReleaseTables, contrast: str) -> dict[str, tuple[int, Fraction]]:
    """By manner the number of comparisons and the accuracy."""
    found = {}
    for name, rows in measured.groups[MANNERS[contrast]].items():
        for row in rows:
            accuracy = row.differences[contrast].accuracy
            assert accuracy and list(row.differences) == [contrast]
            found[name] = (row.pairs, Fraction(accuracy.number).limit_denominator(16))
    return found


@pytest.mark.parametrize(
    ("contrast", "wanted"),
    [
        # Of hurrying: near won and lost, far tied and lost.
        (STANCE, {"analysing": (1, 0), "hurrying": (4, Fraction(3, 8)), "advising": (1, 1), "zeal": (1, 1), "made by rules": (1, 1)}),
        (STANCE_NEAR, {"analysing": (1, 0), "hurrying": (2, Fraction(1, 2)), "made by rules": (1, 1)}),
        (STANCE_FAR, {"hurrying": (2, Fraction(1, 4)), "advising": (1, 1), "zeal": (1, 1)}),
        (RAW, {"analysing": (1, Fraction(1, 2)), "hurrying": (2, 1), "made by rules": (1, 0)}),
    ],
)
def test_each_comparison_is_in_the_row_of_its_apathetic_text(
    contrast: str, wanted: Mapping[str, tuple[int, Fraction | int]], measured: ReleaseTables
) -> None:
    found = told(measured, contrast)
    assert found == wanted and list(found) == list(wanted)


def test_the_rows_by_manner_make_up_the_accuracy_at_equal_closeness(measured: ReleaseTables) -> None:
    headline = measured.equal_closeness["judge"]
    parts = told(measured, STANCE).values()
    assert headline.accuracy and sum(count * share for count, share in parts) / 8 == Fraction(headline.accuracy.number) == Fraction(9, 16)
    rows = [rows[0] for rows in measured.groups["manner"].values() if rows]
    assert sum(row.pairs * row.differences[STANCE].number for row in rows) / 8 == headline.number


def test_near_and_far_texts_of_a_manner_have_no_spread_and_no_curve_in_common(measured: ReleaseTables) -> None:
    both, near = (measured.groups[MANNERS[name]]["hurrying"][0].differences[name] for name in (STANCE, STANCE_NEAR))
    assert both.value == -0.25 and both.auc is None and both.effect is None and near.auc and near.effect


def test_manners_are_in_the_order_of_the_taxonomy_and_texts_without_one_last(measured: ReleaseTables) -> None:
    # Of the first no pair is scored.
    assert list(measured.groups["manner"]) == ["criticising", "analysing", "hurrying", "advising", "zeal", "made by rules"]
    assert sort_labels(["none planned", "made by rules", "b", "a", "z"], ["z"]) == ["z", "a", "b", "made by rules", "none planned"]


def test_the_long_form_has_a_line_a_manner(judged: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(judged[0]), "--scores", str(judged[1]), "--no-shortcuts", "--csv"]) == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    found = {(one["table"], one["group"], one["contrast"]): (one["pairs"], one["accuracy"]) for one in lines}
    assert found["manner", "hurrying", STANCE] == ("4", "0.375")
    assert found["manner, far", "hurrying", STANCE_FAR] == ("2", "0.25")


def test_where_nothing_but_rules_made_a_text_there_is_no_breakdown(light: Path, tmp_path: Path) -> None:
    every = dict.fromkeys(read_corpus(light, "pairs", ()).pair_ids)
    rules = score(with_ways(light, tmp_path / "rules", every, {}, "advising"), ["length"], shortcuts=False)
    # The far ones have a manner still, and the near ones stand beside them.
    voices = {"voice, near", "voice, far"}
    assert set(rules.groups) == {*GROUPINGS, "manner", "manner, far", *voices}
    assert list(rules.groups["manner"]) == ["advising", "made by rules"]
    nothing = score(with_ways(light, tmp_path / "none", {}, {}, None), ["length"], shortcuts=False)
    assert set(nothing.groups) == {*GROUPINGS, *voices}


def test_scenarios_phases_and_strategies_are_compared_at_equal_closeness_and_make_up_the_number_to_report(light: Path) -> None:
    measured = score(light, ["rouge-l"], shortcuts=False)
    headline = measured.equal_closeness["ROUGE-L"].accuracy
    for name in GROUPINGS:
        rows = [row for (row,) in measured.groups[name].values()]
        assert all(list(row.differences) == [STANCE] and not row.only.forced for row in rows)
        right = sum(row.pairs * row.only.accuracy.number for row in rows if row.only.accuracy) / sum(row.pairs for row in rows)
        assert headline and right == pytest.approx(headline.value, abs=1e-5)
    # As released it is 0 in all of them, by construction.
    assert not any(name.endswith(AS_RELEASED) for name in measured.groups if not name.startswith("manner"))


def test_a_metric_without_scores_of_controls_is_compared_as_released_under_a_name_that_says_so(light: Path, tmp_path: Path) -> None:
    ids = read_corpus(light, "pairs", ()).pair_ids
    lines = [f"{pair},{name},{value}" for pair in ids for name, value in (("apathetic", 0), ("empathetic", 1))]
    (tmp_path / "judge.csv").write_text("\n".join(["pair_id,variant,score", *lines]) + "\n")
    both = score(light, ["rouge-l"], [tmp_path / "judge.csv"], shortcuts=False).groups
    alone = score(light, (), [tmp_path / "judge.csv"], shortcuts=False).groups
    for name in GROUPINGS:
        assert {row.metric for rows in both[name].values() for row in rows} == {"ROUGE-L"} and name not in alone
        for found in (both, alone):
            rows = [row for rows in found[name + AS_RELEASED].values() for row in rows]
            assert {row.metric for row in rows} == {"judge"} and all(list(row.differences) == [RAW] for row in rows)
    assert sum(row.pairs for rows in alone["phase, as released"].values() for row in rows) == len(ids)


@pytest.mark.e2e
def test_without_controls_what_the_checks_force_is_marked(light: Path, tmp_path: Path) -> None:
    bare = rewritten(light, tmp_path / "bare", lambda table: table)
    for path in bare.glob("data/controls/*.parquet"):
        pq.write_table(pq.read_table(path).slice(0, 0), path)
    made = report(bare, tmp_path / "report")
    rows = [row for rows in made.measured.groups["strategy, as released"].values() for row in rows if row.metric == "BLEU-4"]
    assert rows and all(row.only.forced for row in rows) and "strategy" not in made.measured.groups
    page = (tmp_path / "report" / "index.html").read_text()
    assert "By strategy, as released" in page and "By strategy, at equal closeness" not in page


def test_a_release_of_before_there_were_manners_loads_scores_and_is_reported(light: Path, tmp_path: Path) -> None:
    names = (*WAYS, FAR_WAY, *VOICES)
    old = rewritten(light, tmp_path / "old", lambda table: table.drop_columns([one for one in names if one in table.column_names]))
    assert set(score(old, ["length"], shortcuts=False).groups) == set(GROUPINGS)
    made = report(old, tmp_path / "report")
    assert "ways" not in made.sections
    assert "Accuracy by manner of apathy" not in (tmp_path / "report" / "index.html").read_text()
