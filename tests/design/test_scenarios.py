"""The scenario files: what they hold, and what is said of bad ones."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from empathy_eval.base.errors import InputError
from empathy_eval.design.scenarios import load_catalogue

PET = "017-dealing-with-the-loss-of-a-pet.yaml"


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = yaml.safe_load(path.read_text())
    change(value)
    path.write_text(yaml.safe_dump(value, sort_keys=False))


def problems(folder: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_catalogue(folder)
    assert caught.value.exit_code == 2
    return [str(problem) for problem in caught.value.problems]


def test_the_project_has_sixty_scenarios_whose_shares_are_the_papers() -> None:
    scenarios = load_catalogue().scenarios
    assert [one.number for one in scenarios] == list(range(1, 61))
    assert math.isclose(math.fsum(one.share for one in scenarios), 100.05, abs_tol=1e-9)


def test_the_seed_hash_follows_the_content_of_the_seeds(world: Path) -> None:
    before = load_catalogue(world).seed_hash
    edit(world / PET, lambda value: value.update(definition="Another definition."))
    assert load_catalogue(world).seed_hash == before
    edit(world / PET, lambda value: value["seed"]["turns"][0].update(text="Another first turn."))
    assert load_catalogue(world).seed_hash != before


def test_a_file_that_is_not_yaml_is_named_with_its_line(world: Path) -> None:
    (world / PET).write_text("number: 17\nname: Loss: of a pet\n")
    (problem,) = problems(world)
    assert f"{PET}: line 2, column" in problem and "is not YAML" in problem


def test_a_missing_key_is_named(world: Path) -> None:
    edit(world / PET, lambda value: value.pop("definition"))
    (problem,) = problems(world)
    assert f'{PET}: misses "definition"' in problem


def test_a_repeated_number_names_both_files(world: Path) -> None:
    value = yaml.safe_load((world / PET).read_text()) | {"slug": "other"}
    (world / "017-other.yaml").write_text(yaml.safe_dump(value))
    (problem,) = problems(world)
    assert "number 17 is also that of" in problem and PET in problem and "017-other.yaml" in problem


def test_an_unknown_strategy_is_quoted_with_its_turn(world: Path) -> None:
    def change(value: dict[str, Any]) -> None:
        next(turn for turn in value["seed"]["turns"] if turn["role"] == "helper")["strategy"] = "Hug"

    edit(world / PET, change)
    (problem,) = problems(world)
    assert f'{PET}: turn 1: strategy "Hug" is not known' in problem and "use one of RS, Cla" in problem


def test_an_empathetic_strategy_of_another_phase_is_named(world: Path) -> None:
    def change(value: dict[str, Any]) -> None:
        next(turn for turn in value["seed"]["turns"] if turn["role"] == "helper")["empathetic"]["strategy"] = "SM"

    edit(world / PET, change)
    assert 'turn 1: empathetic strategy "SM"' in problems(world)[0]


def helper_turns(value: dict[str, Any]) -> list[dict[str, Any]]:
    return [turn for turn in value["seed"]["turns"] if turn["role"] == "helper"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda value: value["seed"]["turns"].pop(0), "let the seeker speak first"),
        (lambda value: value["seed"]["turns"].__setitem__(slice(None), value["seed"]["turns"][:8]), "8 turns"),
        (lambda value: [value["seed"]["turns"].insert(0, value["seed"]["turns"][0]) for _ in range(2)], "a third turn of the seeker"),
        (lambda value: helper_turns(value)[0].update(strategy="EV"), "explore first"),
        (lambda value: helper_turns(value)[-1].update(strategy="EV"), "use an action strategy there"),
        (lambda value: [turn.update(strategy=name) for turn, name in zip(helper_turns(value)[-4:-2], ("SO", "Cla"), strict=True)],
         "strategy \"Cla\" (exploration) after the first action strategy"),
        (lambda value: [turn.update(strategy="SO") for turn in helper_turns(value)[1:]], 'no helper turn of the phase "comforting"'),
    ],
)  # fmt: skip
def test_a_seed_that_breaks_a_phase_rule_is_refused(change: Callable[[dict[str, Any]], object], said: str, world: Path) -> None:
    edit(world / PET, change)
    assert any(said in problem and PET in problem for problem in problems(world))


def test_the_problems_of_all_files_come_at_once(world: Path) -> None:
    for path in world.glob("0*.yaml"):
        edit(path, lambda value: value.pop("openings"))
    assert len(problems(world)) == 3


def test_a_register_that_is_not_among_the_personas_is_named(world: Path) -> None:
    edit(world / PET, lambda value: value["seed"].update(register="droll"))
    (problem,) = problems(world)
    assert f'{PET}: register "droll" is not known' in problem and "use one of these: plain, rambling" in problem


def test_personas_and_telltale_words_are_checked_and_may_be_left_out(world: Path) -> None:
    edit(world / "personas.yaml", lambda value: (value.update(ages=["old"]), value["registers"][0].pop("words")))
    assert [said.split(": ", 1)[1].split("\n")[0] for said in problems(world)] == [
        'ages[0]: "old" is not of type integer',
        'registers[0]: misses "words"',
    ]
    (world / "personas.yaml").unlink()
    edit(world / "telltale.yaml", lambda value: value.update(words=[]))
    assert "telltale.yaml: words" in problems(world)[0]
    (world / "telltale.yaml").unlink()
    found = load_catalogue(world)
    assert found.personas is None and found.telltale == () and list(found.files) == ["taxonomy.yaml", "crossed"]


def test_a_cold_text_with_a_manner_and_no_text_is_told_what_it_misses(world: Path) -> None:
    edit(world / PET, lambda value: helper_turns(value)[0]["apathetic"].pop("text"))
    (problem,) = problems(world)
    assert 'apathetic: misses "text"' in problem
