"""Planted tags: wrong strategies that raters are shown on purpose, to see who looks. The key alone says which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import derived_random
from empathy_eval.design.taxonomy import load_taxonomy


def plant(dialogues: Mapping[str, list[dict[str, Any]]], count: int, seed: int) -> None:
    """Notes under ``planted`` of so many helper turns a strategy that is not theirs: the same for all who see the dialogue.

    It is of another phase than the turn's own, so that nobody can hold it for right. No dialogue gets a second one before each has one.

    Raises:
        InputError: if the dialogues have fewer helper turns.
    """
    if not count:
        return
    places: list[tuple[int, float, str, int]] = []
    for name, turns in dialogues.items():
        rng = derived_random(seed, "planted", name)
        tagged = [place for place, turn in enumerate(turns) if turn["strategy"]]
        places += [(rank, rng.random(), name, place) for rank, place in enumerate(rng.sample(tagged, len(tagged)))]
    if count > len(places):
        what = f'"{count}" is too many: the dialogues that are drawn have {len(places)} turns with a tag'
        raise input_error("--planted", what, f"give {len(places)} or less, or ask for more --dialogues")
    strategies = load_taxonomy().strategies
    phase = {one.name: one.phase for one in strategies}
    for _, _, name, place in sorted(places)[:count]:
        turn = dialogues[name][place]
        others = [one.name for one in strategies if one.phase != phase[turn["strategy"]]]
        turn["planted"] = derived_random(seed, "planted as", name, place).choice(others)
