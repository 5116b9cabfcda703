"""Personas of seekers and lengths of turns, drawn for a dialogue from ``scenarios/personas.yaml``."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from empathy_eval.base.hashing import derived_random
from empathy_eval.base.schemas import read_yaml
from empathy_eval.design.contrasts import CELLS, NEAR

# The columns of a dialogue's voices: that of its helper and the near variants, and that of the far variants.
VOICES = ("helper_voice", "far_voice")
# A helper says at most so many words, and so many more for each word that the seeker has said: after one word 25.
ANSWER_AT_MOST, ANSWER_PER_WORD = 23, 2
# A far reply has at least so many words where that bound allows it: in fewer there is no room for a strategy and a device.
FAR_FROM = 13


@dataclass(frozen=True)
class Register:
    """How a seeker writes, with the lengths its turns are drawn from, in words, and ages of its own if it has any.

    ``answered_by`` is how many words a helper answers with at most.
    """

    name: str
    definition: str
    words: tuple[int, ...]
    ages: tuple[int, ...] = ()
    answered_by: int | None = None


@dataclass(frozen=True)
class Voice:
    """How a helper writes, whatever their stance."""

    name: str
    definition: str


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
    voices: tuple[Voice, ...] = ()

    def voice(self, name: str | None) -> Voice | None:
        """The voice of that name, if there is one."""
        return next((voice for voice in self.voices if voice.name == name), None)

    def drawn_voices(self, seed: int, scenario_id: int, index: int) -> tuple[str | None, str | None]:
        """The names of the helper's voice and of the far variants' voice, which differ; None each without voices."""
        if not self.voices:
            return None, None
        helper, far = derived_random(seed, "voices", scenario_id, index).sample(self.voices, 2)
        return helper.name, far.name

    def register(self, name: str | None) -> Register | None:
        """The register of that name, if there is one."""
        return next((one for one in self.registers if one.name == name), None)

    def drawn(self, seed: int, scenario_id: int, index: int) -> Persona:
        """The persona of a dialogue: registers by rotation, so that each comes up equally often, the rest by chance."""
        rng = derived_random(seed, "persona", scenario_id, index)
        register = self.registers[(scenario_id + index) % len(self.registers)]
        return Persona(register, rng.choice(register.ages or self.ages), rng.choice(self.places))

    def lengths(self, rng: random.Random, register: Register, role: str, said: int) -> dict[str, int]:
        """By variant the length of a turn in words: ``reference`` is the turn itself; near ones as differences to it.

        ``said`` is how many words the seeker has said since the helper's last turn. Variants of one closeness draw alike, so that of two
        either is the longer equally often.
        """
        if role == "seeker":
            return {"reference": rng.choice(register.words)}
        most = min(register.answered_by or math.inf, ANSWER_AT_MOST + ANSWER_PER_WORD * said)
        some = [words for words in self.helper_words if words <= most] or [min(self.helper_words)]
        far = [words for words in some if words >= FAR_FROM] or some
        return {"reference": rng.choice(some)} | {name: rng.choice(self.near_words if name in NEAR else far) for name in CELLS}


def load_personas(folder: Path) -> Personas | None:
    """Reads ``personas.yaml`` of a scenario folder; None if it has none: personas and lengths are then left to the model.

    Raises:
        InputError: if the file is not valid.
    """
    if not (folder / "personas.yaml").is_file():
        return None
    content = read_yaml(folder / "personas.yaml", "personas")
    registers = tuple(
        Register(**{**one, "words": _whole(one["words"]), "ages": _whole(one.get("ages", ()))}) for one in content["registers"]
    )
    numbers = {name: _whole(content[name]) for name in ("ages", "helper_words", "near_words")}
    voices = tuple(Voice(**voice) for voice in content.get("voices", ()))
    return Personas(places=tuple(content["places"]), registers=registers, voices=voices, **numbers)


def _whole(numbers: Iterable[float]) -> tuple[int, ...]:
    """A whole number may be written as 30.0."""
    return tuple(map(int, numbers))
