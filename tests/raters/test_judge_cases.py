"""What is judged: a sample that is even over its strata, to which a larger one only appends."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import column, files_of
from empathy_eval.design.rubrics import load_rubric
from empathy_eval.raters.judges.annotating import AnnotationPlan, annotations_of
from empathy_eval.raters.judges.cases import TEXTS, SourceTurn, cases_of, dialogues_of, sample_of, spread_out
from hypothesis import given
from hypothesis import strategies as st

Stratum = tuple[int, str | None]
STRATA = st.tuples(st.integers(1, 4), st.one_of(st.none(), st.sampled_from(["hurrying", "correcting"])))
PLACED = st.builds(SourceTurn, st.text(max_size=6), st.integers(1, 4), st.sampled_from([None, "hurrying", "correcting"]), st.booleans())
NAMES = st.dictionaries(st.text(st.characters(codec="ascii"), max_size=6), STRATA, max_size=60)
JUDGE = {"kind": "openai", "model": "m", "endpoint": "e", "max_tokens": 100}


@given(NAMES, st.randoms(use_true_random=False))
def test_the_order_has_each_name_once_and_is_the_same_however_they_came(names: dict[str, Stratum], rng: Any) -> None:
    order = spread_out(names)
    assert sorted(order) == sorted(names)
    shuffled = list(names.items())
    rng.shuffle(shuffled)
    assert spread_out(dict(shuffled)) == order


@given(NAMES)
def test_every_sample_has_the_share_of_each_stratum_that_all_have(names: dict[str, Stratum]) -> None:
    order, all_of = spread_out(names), Counter(names.values())
    taken: Counter[Stratum] = Counter()
    for number, name in enumerate(order, 1):
        taken[names[name]] += 1
        for stratum, many in all_of.items():
            # Each is rounded to the next whole text, and what that adds up to over all strata is shared by them.
            allowed = 0.5 + 0.5 * len(all_of) * many / len(names)
            assert abs(taken[stratum] - number * many / len(names)) <= allowed + 1e-9


@given(st.integers(1, 30), st.integers(1, 5))
def test_strata_of_one_size_take_turns(size: int, strata: int) -> None:
    names = {f"{number}-{stratum}": (stratum, None) for number in range(size) for stratum in range(strata)}
    order = [names[name] for name in spread_out(names)]
    for start in range(0, len(order), strata):
        assert len(set(order[start : start + strata])) == strata


@given(NAMES, st.sets(st.text(max_size=6), max_size=10), STRATA)
def test_within_a_stratum_the_order_is_its_own(names: dict[str, Stratum], others: set[str], stratum: Stratum) -> None:
    before = [name for name in spread_out(names) if names[name] == stratum]
    more = {**names, **{f"other {name}": (9, None) for name in others}}
    assert [name for name in spread_out(more) if more[name] == stratum] == before


@given(st.lists(PLACED, max_size=60, unique_by=lambda one: one.name), st.randoms(use_true_random=False))
def test_turns_with_controls_come_first_and_both_parts_are_spread_out(turns: list[SourceTurn], rng: Any) -> None:
    order, (with_them, others) = sample_of(turns), ([one for one in turns if one.controls is has] for has in (True, False))
    parts = [spread_out({one.name: one.stratum for one in some}) for some in (with_them, others)]
    assert order == [*parts[0], *parts[1]]
    rng.shuffle(turns)
    assert sample_of(turns) == order


@given(st.lists(PLACED, max_size=60, unique_by=lambda one: one.name))
def test_without_controls_among_the_variants_who_has_them_is_nothing(turns: list[SourceTurn]) -> None:
    order = sample_of(turns, ("reference", *PAIR_VARIANTS))
    assert order == sample_of([one._replace(controls=not one.controls) for one in turns], PAIR_VARIANTS)
    assert order == spread_out({one.name: one.stratum for one in turns})


@pytest.mark.parametrize("variants", [TEXTS, ("reference", "apathetic"), ("near_empathetic",)])
def test_a_larger_sample_of_a_release_where_few_have_controls_only_appends(variants: tuple[str, ...], light: Path, tmp_path: Path) -> None:
    shutil.copytree(light / "data", tmp_path / "data")
    path = tmp_path / "data" / "controls" / "train.parquet"
    pq.write_table((table := pq.read_table(path)).slice(3, 4), path)
    having, turns = set(table["pair_id"].to_pylist()[3:7]), cases_of(tmp_path, None, variants)
    assert len(turns) == 20 and all(cases_of(tmp_path, number, variants) == turns[:number] for number in range(20))
    assert ({str(one.pair_id) for one in turns[:4]} == having) == (not set(CONTROLS).isdisjoint(variants))


def test_a_larger_sample_of_a_release_only_appends(light: Path) -> None:
    turns, dialogues = cases_of(light, None), dialogues_of(light, None)
    for number in range(len(turns) + 2):
        assert cases_of(light, number) == turns[:number]
    for number in range(len(dialogues) + 2):
        assert dialogues_of(light, number) == dialogues[:number]
    assert sorted(str(one.pair_id) for one in turns) == sorted(column(light, "pairs", "pair_id"))
    assert sorted(one.dialogue_id for one in dialogues) == sorted(column(light, "dialogues", "dialogue_id"))


def test_a_case_has_the_texts_of_its_rows_and_what_was_said_before(light: Path) -> None:
    rows = {
        config: [row for path in files_of(light, config) for row in pq.read_table(path).to_pylist()] for config in ("pairs", "controls")
    }
    pairs, controls = ({row["pair_id"]: row for row in some} for some in rows.values())
    for case in cases_of(light, None):
        row = pairs[str(case.pair_id)]
        expected = {name: row[name] for name in ("reference", *PAIR_VARIANTS)}
        expected |= {name: controls[str(case.pair_id)][name] for name in CONTROLS if str(case.pair_id) in controls}
        assert case.texts == expected and (case.dialogue_id, case.turn) == (row["dialogue_id"], row["turn"])
        assert case.conversation == tuple((turn["role"], turn["text"]) for turn in row["context"])
        assert list(case.texts) == [name for name in TEXTS if name in case.texts]


@pytest.mark.parametrize("variants", [("reference",), ("far_apathetic", "apathetic"), ("near_empathetic",)])
def test_variants_choose_texts_and_change_no_sample(variants: tuple[str, ...], light: Path) -> None:
    for whole, some in zip(cases_of(light, 9), cases_of(light, 9, variants), strict=True):
        assert some.pair_id == whole.pair_id and some.texts == {name: text for name, text in whole.texts.items() if name in variants}


def test_a_dialogue_is_judged_from_its_beginning_to_its_end(light: Path) -> None:
    rows = {row["dialogue_id"]: row for path in files_of(light, "dialogues") for row in pq.read_table(path).to_pylist()}
    for case in dialogues_of(light, None):
        assert case.conversation == tuple((turn["role"], turn["text"]) for turn in rows[case.dialogue_id]["turns"])
        assert not case.texts and case.turn is None and case.pair_id is None


def test_what_a_rubric_shows_as_an_example_is_never_judged(light: Path, tmp_path: Path) -> None:
    first, second, third = (str(case.pair_id) for case in cases_of(light, 3))
    example = {"variant": "reference", "values": {"warm": 3}, "reason": "So it is."}
    (tmp_path / "shots.yaml").write_text(
        json.dumps({
            "name": "shots", "title": "Shots", "source": "none", "kind": "rating", "unit": "reply", "style": "shots", "together": True,
            "criteria": [{
                "name": "warm", "question": "Is it warm?", "scale": {"from": 1, "to": 3, "whole": True}, "better": "high",
                "anchors": [{"value": 1, "text": "No."}, {"value": 3, "text": "Yes."}],
            }],
            "examples": [{"pair_id": first, **example}, {"pair_id": third, **example}],
        })
    )  # fmt: skip
    job = annotations_of(light, load_rubric(tmp_path / "shots.yaml"), JUDGE, AnnotationPlan(2))
    assert [case.pair_id for case in job.cases] == [second, str(cases_of(light, 4)[3].pair_id)]
    assert {case.pair_id for case in job.cases}.isdisjoint({first, third})


def test_a_release_that_lacks_a_column_is_reported(light: Path, tmp_path: Path) -> None:
    for path in files_of(light, "pairs"):
        target = tmp_path / path.relative_to(light)
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pq.read_table(path).drop_columns(["scenario_id"]), target)
    with pytest.raises(InputError, match="scenario_id"):
        cases_of(tmp_path, None)
