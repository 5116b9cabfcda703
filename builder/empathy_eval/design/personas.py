"""Personas of seekers and lengths of turns, drawn for a dialogue from ``scenarios/personas.yaml``."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from empathy_eval.base.hashing import derived_random
from empathy_eval.base.schemas import read_yaml
from empathy_eval.design.contrasts import CELLS, NEAR


@dataclass(frozen=True)
class Register:
    """How a seeker writes, with the lengths its turns are drawn from, in words, and ages of its own if it has any."""

    name: str
    definition: str
    words: tuple[int, ...]
    ages: tuple[int, ...] = ()


@dataclass(frozen=True)
class Persona:
    """Who the seeker of a dialogue is; of a seed dialogue only the register is known."""

    register: Register
    age: int | None = None
    place: str | None = None


@dataclass(frozen=True)
class Personas:
    """All that personas and lengths are drawn from.

    ``helper_words`` are lengths of helper turns and of far variants, ``near_words`` differences of a near variant to what it edits.
    """

    ages: tuple[int, ...]
    places: tuple[str, ...]
    registers: tuple[Register, ...]
    helper_words: tuple[int, ...]
    near_words: tuple[int, ...]

    def register(self, name: str | None) -> Register | None:
        """The register of that name, if there is one."""
        return next((one for one in self.registers if one.name == name), None)

    def drawn(self, seed: int, scenario_id: int, index: int) -> Persona:
        """The persona of a dialogue: registers by rotation, so that each comes up equally often, the rest by chance."""
        rng = derived_random(seed, "persona", scenario_id, index)
        register = self.registers[(scenario_id + index) % len(self.registers)]
        return Persona(register, rng.choice(register.ages or self.ages), rng.choice(self.places))

    def lengths(self, rng: random.Random, register: Register, role: str) -> dict[str, int]:
        """By variant the length of a turn in words: ``reference`` is the turn itself; near ones as differences to it.

        Variants of one closeness draw alike, so that of two either is the longer equally often.
        """
        own = {"reference": rng.choice(register.words if role == "seeker" else self.helper_words)}
        if role == "seeker":
            return own
        return own | {name: rng.choice(self.near_words if name in NEAR else self.helper_words) for name in CELLS}


def load_personas(folder: Path) -> Personas | None:
    """Reads ``personas.yaml`` of a scenario folder; None if it has none: personas and lengths are then left to the model.

    Raises:
        InputError: if the file is not valid.
    """
    if not (folder / "personas.yaml").is_file():
        return None
    content = read_yaml(folder / "personas.yaml", "personas")
    registers = (
        Register(one["name"], one["definition"], _whole(one["words"]), _whole(one.get("ages", ()))) for one in content["registers"]
    )
    numbers = {name: _whole(content[name]) for name in ("ages", "helper_words", "near_words")}
    return Personas(places=tuple(content["places"]), registers=tuple(registers), **numbers)


def _whole(numbers: Iterable[float]) -> tuple[int, ...]:
    """A whole number may be written as 30.0."""
    return tuple(map(int, numbers))
