"""A taxonomy of one's own: in other words, and otherwise refused before anything is planned by it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.planning import drawn_plan
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.design.taxonomy import PhaseRules, Taxonomy, _packaged, breaches, load_taxonomy
from empathy_eval.generation.build import build
from empathy_eval.generation.outcomes import accepted_outcomes

from tests.conftest import demo_file

HUG = {"abbreviation": "Hug", "name": "Offer Hopes", "definition": "a hug in words"}
GERMAN = ("Erkundung", "Trost", "Tat")


def changed(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    value = yaml.safe_load((data_folder("scenarios") / "taxonomy.yaml").read_text())
    change(value)
    folder.mkdir(exist_ok=True)
    (folder / "taxonomy.yaml").write_text(yaml.safe_dump(value, sort_keys=False))
    return folder


def in_german(value: dict[str, Any]) -> None:
    for phase, name in zip(value["phases"], GERMAN, strict=True):
        phase["name"] = name
        for strategy in phase["strategies"]:
            strategy["name"] = f"{strategy['name']} auf Deutsch"


def refused(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_taxonomy(folder)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_phases_and_strategies_in_other_words_are_planned_built_and_keep_their_order(world: Path, prompts: Prompts, tmp_path: Path) -> None:
    catalogue = load_catalogue(changed(world, in_german))
    assert catalogue.taxonomy.phases == GERMAN
    for index in range(20):
        plan = drawn_plan(1, 3, index, catalogue, PhaseRules())
        assert not breaches(plan.turns, catalogue.taxonomy, PhaseRules())
    shortened = [turn for turn in plan.turns if turn.strategy not in catalogue.taxonomy.in_phase("Tat")]
    said = [(one.what, one.fix) for one in breaches([*shortened, *shortened], catalogue.taxonomy, PhaseRules(1, 99))]
    assert ('no helper turn of the phase "Tat"', "give at least one helper turn a strategy of it") in said
    assert any("in one of the last two helper turns" in what and fix == "use a strategy of Tat there" for what, fix in said)
    build(Recipe(load_configuration(demo_file(tmp_path)), catalogue, prompts), tmp_path / "b")
    assert len(list(accepted_outcomes(tmp_path / "b"))) == 3


def test_the_first_helper_turn_is_of_the_first_phase_by_whatever_name(taxonomy: Taxonomy) -> None:
    renamed = replace(
        taxonomy,
        phases=GERMAN,
        strategies=tuple(replace(one, phase=GERMAN[taxonomy.phases.index(one.phase)]) for one in taxonomy.strategies),
    )
    turns = drawn_plan(1, 3, 0, load_catalogue(), PhaseRules()).turns
    late = [turn for turn in turns if turn.strategy not in ("RS", "Cla")]
    assert "first_helper_turn" in {one.reason for one in breaches(late, renamed, PhaseRules(1, 99))}
    assert "first_helper_turn" not in {one.reason for one in breaches(turns, renamed, PhaseRules(1, 99))}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda value: value["phases"].pop(), "phases: has 2 entries, at least 3 are taken"),
        (lambda value: value["phases"].append({**value["phases"][2], "name": "closing"}), "phases: has 4 entries, at most 3 are taken"),
        (lambda value: value["phases"].reverse(), 'strategy "SO" is not a strategy of this phase in a release ("exploration" there)'),
        (
            lambda value: value["phases"][1]["strategies"][0].update(abbreviation="Hug"),
            'strategy "Hug" is not a strategy of this phase in a release',
        ),
        (lambda value: value["phases"][0]["strategies"].pop(), "phases[0]: strategies: has 1 entries, at least 2 are taken"),
        (lambda value: value["phases"][0]["strategies"].append(value["phases"][0]["strategies"][0]), 'strategies: has "RS" twice'),
        (lambda value: value["phases"][1].update(name="exploration"), 'phases: has "exploration" twice'),
        (lambda value: value["manners"].append(value["manners"][0]), 'manners: has "criticising" twice'),
        (lambda value: value["devices"].append(value["devices"][0]), 'devices: has "plain company" twice'),
    ],
)
def test_what_no_release_could_hold_is_refused_in_words(change: Callable[[dict[str, Any]], object], said: str, tmp_path: Path) -> None:
    told = refused(changed(tmp_path, change))
    assert f"{tmp_path / 'taxonomy.yaml'}: " in told and said in told and "Fix: " in told


def test_the_fix_names_the_phases_that_are_needed(tmp_path: Path) -> None:
    assert "first exploring, then comforting, then acting" in refused(changed(tmp_path, lambda value: value["phases"].pop()))


def enumerated(said: Any, name: str) -> Iterator[list[str]]:
    """Every list of a schema that holds a name."""
    if isinstance(said, dict):
        if name in (listed := said.get("enum") or ()):
            yield list(listed)
        for one in said.values():
            yield from enumerated(one, name)
    elif isinstance(said, list):
        for one in said:
            yield from enumerated(one, name)


def test_every_schema_that_lists_strategies_or_phases_lists_those_of_the_taxonomy(taxonomy: Taxonomy) -> None:
    strategies, phases = [one.name for one in taxonomy.strategies], list(taxonomy.phases)
    said = [json.loads(path.read_text()) for path in sorted(data_folder("schemas").glob("*/*.json"))]
    for wanted in (strategies, phases):
        found = [listed for one in said for listed in enumerated(one, wanted[0])]
        assert len(found) > 3 and all(listed == wanted for listed in found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda value: value["phases"][1]["strategies"].append(HUG), 'strategy "Offer Hopes" is not known to the schemas'),
        (lambda value: value["phases"][1].update(name="consoling"), 'phase "consoling" is not known to the schemas'),
    ],
)
def test_what_the_projects_own_taxonomy_has_and_no_schema_knows_is_refused_before_anything_is_asked(
    change: Callable[[dict[str, Any]], object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(tmp_path, change)
    monkeypatch.setattr("empathy_eval.design.taxonomy.data_folder", lambda name: tmp_path)
    _packaged.cache_clear()
    try:
        told = refused(tmp_path)
        with pytest.raises(InputError, match=said):
            load_taxonomy()
    finally:
        _packaged.cache_clear()
    assert said in told and "use some of " in told
    if "Offer" in said:
        assert "Avoid Judgment and Criticism, " in told and 'did you mean "Offer Hope"?' in told
