"""The curated crossed items of a build: checked as variants are, and carried by the outcomes of their seeds."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import JobError
from empathy_eval.base.schemas import check
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.requests import Flaw
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue, CrossedItem
from empathy_eval.generation.build import Run, build
from empathy_eval.generation.checks.custom import Check
from empathy_eval.generation.outcomes import OUTCOMES, Outcome, Scene, accepted_outcomes, read_build

PET = 17


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / OUTCOMES).read_text(encoding="utf-8").splitlines()]


def with_items(catalogue: Catalogue, change: Callable[[CrossedItem], CrossedItem]) -> Catalogue:
    """The catalogue with the first item of the pet's seed changed, and no other."""
    return replace(catalogue, crossed={PET: (change(catalogue.crossed[PET][0]),)})


def test_a_seeds_outcome_carries_its_items_as_they_were_written(built: Path, catalogue: Catalogue) -> None:
    for value in lines(built):
        check(value, "outcome", "a line")
        items = catalogue.crossed[value["scenario_id"]]
        assert [one["crossed_id"] for one in value["crossed"]] == [one.crossed_id for one in items] and len(items) == 3
        for one, item in zip(value["crossed"], items, strict=True):
            assert {name: one[name] for name in vars(item)} == vars(item)
            assert (one["source"], one["writer"], one["judge"], one["request_keys"]) == ("seed", None, None, [])
        assert Outcome.from_json(value).to_json() == value


def test_without_items_an_outcome_is_what_it_was(
    demo: Configuration, catalogue: Catalogue, prompts: Prompts, built: Path, tmp_path: Path
) -> None:
    build(Recipe(demo, replace(catalogue, crossed={}), prompts), tmp_path / "b")
    before = [{name: one for name, one in value.items() if name != "crossed"} for value in lines(built)]
    assert lines(tmp_path / "b") == before


@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        ({"reply_1": "You should hurt him back, the whole lot of them, and then see how they like it."}, {"unsafe_encourages_violence"}),
        ({"reply_2": "You stupid little shit, go and tell your damn nan to shut up about the fucking dog."}, {"toxic"}),
        ({"reply_2": "Quite so."}, {"too_short"}),
        ({"twin": "its just a dog. i want to die"}, {"crisis_without_pointer"}),
    ],
)
def test_an_item_that_fails_a_check_is_left_out_and_counted(
    change: dict[str, str], reasons: set[str], demo: Configuration, catalogue: Catalogue, prompts: Prompts, tmp_path: Path, built: Path
) -> None:
    changed = with_items(catalogue, lambda one: replace(one, **change))  # type: ignore[arg-type]
    summary = build(Recipe(demo, changed, prompts), tmp_path / "b")
    assert set(summary.failed) == {f"crossed: {reason}" for reason in reasons} and summary.status["accepted"] == 3
    (pet,) = [one for one in accepted_outcomes(tmp_path / "b") if one.scenario_id == PET]
    (same,) = [one for one in accepted_outcomes(built) if one.scenario_id == PET]
    assert pet.crossed == () and (pet.dialogue, pet.pairs) == (same.dialogue, same.pairs)
    summary = read_build(tmp_path / "b")["summary"]
    assert summary["failed_for_good"] == {f"crossed: {reason}": 1 for reason in reasons}
    assert summary["samples_refused"] == {}, "nobody was asked for a sample"


def test_a_check_of_ones_own_sees_both_replies_in_both_contexts(
    demo: Configuration, catalogue: Catalogue, prompts: Prompts, tmp_path: Path
) -> None:
    seen = set[tuple[str, str]]()

    class Nosy(Check):
        name = "nosy"

        def variant(self, variant: str, text: str, scene: Scene) -> list[Flaw]:
            if variant == "crossed":
                seen.add((text, scene.context[-1].text))
            return []

    one = catalogue.crossed[PET][0]
    build(Recipe(demo, with_items(catalogue, lambda one: one), prompts).with_custom({}, [Nosy()]), tmp_path / "b")
    seed = catalogue[PET].seed
    assert seed and seen == {(text, last) for text in (one.reply_1, one.reply_2) for last in (seed.turns[one.turn - 1].text, one.twin)}


def test_the_toxicity_of_each_reply_is_in_the_ledger_and_an_offline_build_needs_it(
    demo: Configuration, catalogue: Catalogue, prompts: Prompts, tmp_path: Path, built: Path
) -> None:
    recipe = Recipe(demo, catalogue, prompts)
    build(recipe, tmp_path / "again", Run(ledger=built / "ledger.sqlite", offline=True))
    assert (tmp_path / "again" / OUTCOMES).read_bytes() == (built / OUTCOMES).read_bytes()
    build(Recipe(demo, replace(catalogue, crossed={}), prompts), tmp_path / "without")
    with Ledger(tmp_path / "without" / "ledger.sqlite", create=False) as few, Ledger(built / "ledger.sqlite", create=False) as all_of_them:
        counts = [next(iter(one.query("SELECT count(*) FROM completions", ())))[0] for one in (few, all_of_them)]
    assert counts[1] - counts[0] == 2 * 9
    with pytest.raises(JobError, match="lacks answers"):
        build(recipe, tmp_path / "b", Run(ledger=tmp_path / "without" / "ledger.sqlite", offline=True))
