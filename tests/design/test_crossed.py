"""The curated crossed items: how they are read, and what is said of bad ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from empathy_eval.base.errors import InputError
from empathy_eval.design.scenarios import CROSSED, changed_words, load_catalogue

ITEM = "017-seed-x1"


def edit(world: Path, change: Callable[[list[dict[str, Any]]], object]) -> Path:
    """The file of scenario 17 with a change."""
    path = world / CROSSED / "017.yaml"
    value = yaml.safe_load(path.read_text())
    change(value)
    path.write_text(yaml.safe_dump(value, sort_keys=False))
    return path


def problems(world: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_catalogue(world)
    assert caught.value.exit_code == 2
    return [str(problem) for problem in caught.value.problems]


def test_items_are_part_of_the_catalogue_by_scenario(world: Path) -> None:
    found = load_catalogue(world)
    assert {number: len(items) for number, items in found.crossed.items()} == {3: 3, 7: 3, 17: 3}
    one = found.crossed[17][0]
    assert (one.crossed_id, one.turn, one.twin) == (ITEM, 5, "hes not just a dog. thats what my nan said")
    assert one.reply_1 and one.reply_2 and one.reason.startswith("The first was told")


def test_their_hash_follows_what_they_say_and_the_seeds_hash_does_not(world: Path) -> None:
    before = load_catalogue(world)
    edit(world, lambda items: items[0].update(reason="Another reason."))
    after = load_catalogue(world)
    assert after.files[CROSSED] != before.files[CROSSED] and after.seed_hash == before.seed_hash


def test_a_scenario_folder_needs_none(world: Path) -> None:
    for path in (world / CROSSED).iterdir():
        path.unlink()
    found = load_catalogue(world)
    assert found.crossed == {} and CROSSED not in found.files


SHORT = "I am here with you."
LONG = " ".join(["word"] * 41)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"turn": 4}, "turn 4 is not a helper's after a seeker's"),
        ({"turn": 99}, "turn 99 is not a helper's after a seeker's"),
        ({"twin": "its just a dog thats what my nan said!"}, 'the twin "its just a dog thats what my nan said!" differs in 0 words'),
        ({"twin": LONG}, "differs in 41 words from the turn before turn 5"),
        ({"reply_1": SHORT}, f'reply_1 "{SHORT}" has 5 words'),
        ({"reply_2": LONG}, "has 41 words"),
        ({"reply_2": " ".join(["so"] * 14)}, "the replies have 37 and 14 words"),
        ({"reply_2": "{reply_1}"}, 'both replies are "She can think that'),
        ({"id": "018-seed-x1"}, "is not an item of scenario 17"),
        ({"id": "017-seed-x2"}, "017-seed-x2: is the id of 2 items"),
        ({"id": "017-seed-1"}, ': 0: id: "017-seed-1" does not match'),
        ({"reason": None}, ': 0: misses "reason"'),
        ({"turn": 0}, "0 is out of range"),
        ({"reply_1": "{quoted}"}, 'from the seed dialogue'),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_item_is_named(change: dict[str, Any], said: str, world: Path) -> None:
    quoted = " ".join(load_catalogue(world)[17].seed.turns[1].text.split()[:20])  # type: ignore[union-attr]

    def apply(items: list[dict[str, Any]]) -> None:
        texts = {"{reply_1}": items[0]["reply_1"], "{quoted}": quoted}
        items[0] = {key: value for key, value in (items[0] | {k: texts.get(v, v) for k, v in change.items()}).items() if value is not None}

    path = edit(world, apply)
    found = problems(world)
    assert any(said in one and str(path) in one for one in found), found


def test_all_problems_of_all_files_come_at_once(world: Path) -> None:
    edit(world, lambda items: (items[0].update(turn=4), items[1].update(reply_1=SHORT)))
    (world / CROSSED / "003.yaml").write_text("- id: 003-seed-x1\n")
    (world / CROSSED / "044.yaml").write_text((world / CROSSED / "007.yaml").read_text())
    (world / CROSSED / "pets.yaml").write_text("")
    scenario = next(world.glob("007-*.yaml"))
    value = yaml.safe_load(scenario.read_text())
    del value["seed"]
    scenario.write_text(yaml.safe_dump(value))
    found = "\n".join(problems(world))
    for said in ("turn 4 is not a helper's", f'"{SHORT}" has 5 words', '003.yaml: 0: misses "turn", "twin"', "there is no scenario 44",
                 "scenario 7 has no seed dialogue", "pets.yaml: is not named by the number of a scenario"):  # fmt: skip
        assert said in found, said


def test_words_are_those_of_the_language() -> None:
    assert changed_words("我没有回家", "我回家了", "zh") == 3 and changed_words("我没有回家", "我回家了") == 1
    assert changed_words("I forgot her", "She forgot me") == 2
