"""Personas of seekers and lengths of turns, drawn for each dialogue from ``scenarios/personas.yaml``."""

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
    """How a seeker writes: the lengths of its turns in words, and its own ages if any. ``answered_by`` is the longest answer of a helper,
    in words.
    """

    name: str
    definition: str
    words: tuple[int, ...]
    ages: tuple[int, ...] = ()
    answered_by: int | None = None


@dataclass(frozen=True)
class Voice:
    """How a helper writes, whatever the stance."""

    name: str
    definition: str


@dataclass(frozen=True)
class Persona:
    """The seeker of a dialogue; for a seed dialogue only the register is known."""

    register: Register
    age: int | None = None
    place: str | None = None


@dataclass(frozen=True)
class Personas:
    """The lists that personas and lengths are drawn from.

    ``helper_words`` are lengths of helper turns and far variants, ``near_words`` differences between a near variant and the reference.
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

    def draw_voices(self, seed: int, scenario_id: int, index: int) -> tuple[str | None, str | None]:
        """The names of the helper's voice and of the far variants' voice, which differ; None without voices."""
        if not self.voices:
            return None, None
        helper, far = derived_random(seed, "voices", scenario_id, index).sample(self.voices, 2)
        return helper.name, far.name

    def register(self, name: str | None) -> Register | None:
        """The register of that name, if there is one."""
        return next((register for register in self.registers if register.name == name), None)

    def rotated(self, scenario_id: int, index: int) -> Register:
        """The register of the dialogue with that number in its scenario."""
        return self.registers[(scenario_id + index) % len(self.registers)]

    def draw(self, seed: int, scenario_id: int, index: int) -> Persona:
        """The persona of a dialogue: registers rotate, so that each is equally frequent; the rest is random."""
        rng = derived_random(seed, "persona", scenario_id, index)
        register = self.rotated(scenario_id, index)
        return Persona(register, rng.choice(register.ages or self.ages), rng.choice(self.places))

    def draw_lengths(self, rng: random.Random, register: Register, role: str, words_said: int) -> dict[str, int]:
        """By variant the length of a turn in words: ``reference`` is the turn itself; near ones are differences to it.

        ``words_said`` counts the seeker's words since the helper's last turn. Variants of one closeness are drawn alike, so that either is
        longer equally often.
        """
        if role == "seeker":
            return {"reference": rng.choice(register.words)}
        most = min(register.answered_by or math.inf, ANSWER_AT_MOST + ANSWER_PER_WORD * words_said)
        fitting = [words for words in self.helper_words if words <= most] or [min(self.helper_words)]
        far = [words for words in fitting if words >= FAR_FROM] or fitting
        return {"reference": rng.choice(fitting)} | {name: rng.choice(self.near_words if name in NEAR else far) for name in CELLS}


def load_personas(folder: Path) -> Personas | None:
    """Reads ``personas.yaml`` of a scenario folder; None if it is missing: the model then decides on personas and lengths.

    Raises:
        InputError: if the file is not valid.
    """
    if not (folder / "personas.yaml").is_file():
        return None
    content = read_yaml(folder / "personas.yaml", "personas")
    registers = tuple(
        Register(**{**entry, "words": _whole(entry["words"]), "ages": _whole(entry.get("ages", ()))}) for entry in content["registers"]
    )
    numbers = {name: _whole(content[name]) for name in ("ages", "helper_words", "near_words")}
    voices = tuple(Voice(**voice) for voice in content.get("voices", ()))
    return Personas(places=tuple(content["places"]), registers=registers, voices=voices, **numbers)


def _whole(numbers: Iterable[float]) -> tuple[int, ...]:
    """A whole number may be written as 30.0."""
    return tuple(map(int, numbers))
