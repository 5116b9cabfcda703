"""The tables of a report: every doctored number in them is found."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.releases.assemble.write import Released
from empathy_eval.releases.verify.report import COSINES, SHORTCUTS, TOLERANCE, disagreements, select_comparable

from tests.doubles.on_the_page import unseen

ALL = {
    "inversion", "controls", "matched", "groups", "balance", "lengths", "ways", "course", "depth", "examples", "making", "about",
    "shortcuts", "comparisons", "smallest",
}  # fmt: skip


def numbers(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every number in a JSON value."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from numbers(one, (*way, name))
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from numbers(one, (*way, place))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield way


@pytest.mark.e2e
def test_equal_tables_have_no_disagreement_and_every_doctored_number_has_one(released: tuple[Path, Released]) -> None:
    tables = released[1].report.to_json()
    assert list(disagreements(copy.deepcopy(tables), tables)) == []
    ways = list(numbers(tables))
    assert len(ways) > 2000 and {way[0] for way in ways} >= ALL
    # What is found of one number depends on nothing that is told beside it: all at once, and as many are found.
    everything = copy.deepcopy(tables)
    for way in ways:
        doctored(everything, way)
    assert len(list(disagreements(everything, tables))) == len(ways)
    for way in {way[0]: way for way in ways}.values():
        alone = copy.deepcopy(tables)
        doctored(alone, way)
        assert len(list(disagreements(alone, tables))) == 1, way


def doctored(tables: Any, way: tuple[Any, ...]) -> None:
    """Adds to the number that is there."""
    loose = way[0] == "smallest"
    for step in way[:-1]:
        tables = tables[step]
        names = {tables.get(part) for part in ("metric", "one", "other", "name", "shortcut")} if isinstance(tables, dict) else set()
        loose = loose or bool(names & {*TOLERANCE, *COSINES, *SHORTCUTS})
    # Where an embedding decides, one text of a few may be decided otherwise.
    tables[way[-1]] += 1.01 if loose else 0.01


def test_what_is_missing_and_what_is_too_much_is_named() -> None:
    told = {"a": 1, "rows": [{"metric": "M", "scores": {"x": 0.5}}], "text": "x", "more": 1}
    found = {"a": 1, "rows": [{"metric": "M", "scores": {"x": 0.6, "y": 0.1}}, {"metric": "N"}], "text": "y"}
    assert list(disagreements(told, found)) == [
        ("rows", "has 1 entries, but the data gives 2"),
        ("rows: M: scores: x", "says 0.5, but the data gives 0.6"),
        ("rows: M: scores: y", "is missing"),
        ("text", "says x, but the data gives y"),
        ("more", "is not in the data"),
    ]


def test_bertscore_may_differ_as_machines_do_and_nothing_else_may() -> None:
    def row(metric: str, value: float, p: float) -> dict[str, Any]:
        return {"metric": metric, "scores": {"x": value}, "differences": {"stance": {"p": p, "forced": False, "low": None}}}

    assert not list(disagreements(row("BERTScore F1", 0.5001, 0.0505), row("BERTScore F1", 0.5, 0.05)))
    assert [where for where, _ in disagreements(row("BERTScore F1", 0.5003, 0.07), row("BERTScore F1", 0.5, 0.05))] == [
        "scores: x",
        "differences: stance: p",
    ]
    assert len(list(disagreements(row("BLEU-4", 0.5001, 0.0505), row("BLEU-4", 0.5, 0.05)))) == 2


def test_of_few_texts_a_jump_is_one_of_them_and_no_more() -> None:
    def attacked(metric: str, rises: float, part: float, effect: float = 0.1) -> dict[str, Any]:
        few = {"eligible": 4, "rises": {"value": part}}
        row = {"metric": metric, "attack": "names", "eligible": 11, "rises": {"value": rises}, "effect": {"value": effect}}
        return {"attacks": {"pairs": 250, "rows": [{**row, "by_variant": {"empathetic": few}}]}}

    for metric in ("BERTScore F1", "BERTScore F1, last turn"):
        assert not list(disagreements(attacked(metric, 1 / 11, 0.25), attacked(metric, 0, 0)))
        found = list(disagreements(attacked(metric, 2 / 11, 0.5, 0.15), attacked(metric, 0, 0)))
        assert [where.rsplit(": ", 2)[-2] for where, _ in found] == ["rises", "effect", "rises"]
    assert len(list(disagreements(attacked("ROUGE-L", 1 / 11, 0.25), attacked("ROUGE-L", 0, 0)))) == 2


def test_of_few_crossed_items_one_may_be_decided_otherwise_where_cosines_or_embeddings_decide() -> None:
    def crossed(metric: str, value: float) -> dict[str, Any]:
        return {"crossed": {"shortcuts": [{"metric": metric, "items": 20, "both_right": {"value": value}, "own_ties": value}]}}

    for metric in ("cosine, last turn", "cosine, whole context", "BERTScore F1, last turn"):
        assert not list(disagreements(crossed(metric, 0.55), crossed(metric, 0.5)))
        assert len(list(disagreements(crossed(metric, 0.56), crossed(metric, 0.5)))) == 2
    assert len(list(disagreements(crossed("length", 0.55), crossed("length", 0.5)))) == 2


def test_an_embedding_may_differ_as_machines_do_and_no_other_shortcut_may() -> None:
    def audit(name: str, value: float) -> dict[str, Any]:
        accuracy = {"value": value, "low": value - 0.1, "high": None}
        line = {"shortcut": name, **accuracy}
        return {"shortcuts": {"contrasts": [{"contrast": "x", "shortcuts": [{"name": name, "accuracy": accuracy}], "line": line}]}}

    assert not list(disagreements(audit("embedding", 0.502), audit("embedding", 0.5)))
    assert len(list(disagreements(audit("embedding", 0.5021), audit("embedding", 0.5)))) == 4
    assert len(list(disagreements(audit("characters", 0.50001), audit("characters", 0.5)))) == 4


def test_what_bertscore_is_compared_with_may_differ_as_far_as_a_jump_and_other_comparisons_may_not() -> None:
    def compared(one: str, value: float) -> dict[str, Any]:
        return {"comparisons": [{"one": one, "other": "BLEU-4", "accuracy": {"value": value, "p": value}, "effect": None}]}

    assert not list(disagreements(compared("BERTScore F1", 0.504), compared("BERTScore F1", 0.5)))
    assert len(list(disagreements(compared("BERTScore F1", 0.506), compared("BERTScore F1", 0.5)))) == 2
    assert len(list(disagreements(compared("ROUGE-L", 0.50001), compared("ROUGE-L", 0.5)))) == 2


def test_beside_metrics_that_were_not_run_their_comparisons_and_what_depends_on_all_are_left_out(released: tuple[Path, Released]) -> None:
    tables = released[1].report.to_json()
    names = {row["metric"] for row in tables["inversion"]} - {"BLEU-4"}
    told, anew, others = select_comparable(tables, tables, names)
    assert others == ["BLEU-4"] and told == anew and "smallest" not in told
    assert {one["one"] for one in tables["comparisons"]} - {one["one"] for one in told["comparisons"]} == {"BLEU-4"}
    assert told["comparisons"] and not any("holm" in one["accuracy"] for one in told["comparisons"])


def test_no_number_and_false_are_not_zero() -> None:
    for told, found in ((None, 0), (0, None), (False, 0), (0, False), (True, 1)):
        assert len(list(disagreements([told], [found]))) == 1


def test_all_scores_and_differences_stand_on_the_page(released: tuple[Path, Released]) -> None:
    tables = released[1].report.to_json()
    page = (released[0] / "report" / "index.html").read_text()
    assert list(unseen(tables, page)) == []
    missing = list(unseen(tables, ""))
    assert len(missing) > 500 and any(where.startswith("shortcuts: stance: ") for where, _ in missing)
