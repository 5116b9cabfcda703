"""Attacks by name: the built-in ones, those that installed packages add, and ``module:name``; and what they make of a reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base import plugins
from empathy_eval.base.errors import InputError, Problem, input_error, job_error
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import derived_random
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.language import BRING
from empathy_eval.evaluation.attacks.attacks import Attack, Reply
from empathy_eval.evaluation.fairness.names import load_names

GROUP = "empathy_eval.attacks"
HERE = "empathy_eval.evaluation.attacks.attacks"
BUILT_IN = {
    "shuffled": f"{HERE}:ShuffledWords",
    "other-dialogue": f"{HERE}:UnrelatedReply",
    "repeated": f"{HERE}:RepeatedEnding",
    "flattery": f"{HERE}:AppendedText",
    "doubled": f"{HERE}:DoubledReply",
    "echo": f"{HERE}:SeekerEcho",
    "instruction": f"{HERE}:AppendedText",
    "names": f"{HERE}:ExchangedNames",
    "typing-errors": f"{HERE}:TypingErrors",
}
# Attacks that a file of the language is needed for, and which.
FILES = {"flattery": "attacks.yaml", "instruction": "attacks.yaml", "names": "names.yaml"}
PARTS = ("name", "version", "attacked")
FIX = "fix the attack, or leave it out"


@dataclass(frozen=True)
class Attacks:
    """Attacks, the code of the language that they are for, and what is told of those that it lacks the texts of.

    ``every`` is true where none was named, and so all are meant.
    """

    some: tuple[Attack, ...]
    language: str = ENGLISH
    told: tuple[str, ...] = ()
    every: bool = False


def find_attacks(names: Sequence[Any] = (), language: str = ENGLISH, rules: Path | None = None, hint: str = BRING) -> Attacks:
    """The attacks of those names, which the user typed; none named: all built-in ones. One of one's own may stand for itself.

    ``rules`` is a folder with an ``attacks.yaml`` and a ``names.yaml`` for the texts' language. A language without one goes without what
    needs it, and that is told, with a ``hint`` at what to do.

    Raises:
        InputError: for names that are unknown or offered twice, what cannot be made or is no attack, and faults of the file; all at once.
    """
    problems, made, lacking = list[Problem](), list[Attack](), list[str]()
    wanted = [name for place, name in enumerate(names or BUILT_IN) if name not in list(names)[:place]]
    if rules is not None and not rules.is_dir():
        raise input_error(rules, "is not a folder", "name a folder of rules with --rules")
    for name in wanted:
        try:
            settings = _settings(name, language, rules) if isinstance(name, str) and name in FILES else {}
            if settings is None:
                lacking.append(name)
            else:
                made.append(_checked(name, plugins.load(GROUP, name, settings, BUILT_IN) if isinstance(name, str) else name))
        except InputError as error:
            problems += [one for one in error.problems if one not in problems]
    called = [one.name for one in made]
    twice = sorted({name for name in called if called.count(name) > 1})
    problems += [Problem(f'attack "{name}"', "is the name of more than one attack", "leave out all but one") for name in twice]
    if problems:
        raise InputError(problems)
    told = tuple(f'{name}: left out, as there is no {FILES[name]} in the language "{language}"; {hint}' for name in lacking)
    return Attacks(tuple(made), language, told, not names)


def _settings(name: str, language: str, rules: Path | None) -> dict[str, Any] | None:
    """What an attack is made with, of the file of its language; None where there is none."""
    if name == "names":
        names = load_names(language, rules)
        return {"names": names} if names else None
    packaged = data_folder("rules")
    path = (rules or (packaged if language == ENGLISH else packaged / language)) / FILES[name]
    said = read_yaml(path, "attack_texts") if path.is_file() else None
    return said and {"name": name, "texts": tuple(said[name])}


def _checked(name: object, thing: Any) -> Attack:
    """The thing itself, if it is an attack."""
    where = f'attack "{name}"'
    if isinstance(thing, type):
        raise input_error(where, f"{thing.__name__} is a class, not an attack", f"pass an instance instead: {thing.__name__}()")
    missing = [part for part in PARTS if not hasattr(thing, part)]
    if missing:
        raise input_error(where, f"has no {', '.join(missing)}", "see docs/attacks.md for what an attack has")
    if not isinstance(thing.name, str) or not thing.name.isprintable() or not thing.name.strip():
        raise input_error(where, f"has the name {ascii(thing.name)}, which cannot be printed", "give it a printable name")
    attack: Attack = thing
    return attack


def attacked(attack: Attack, reply: Reply, key: tuple[str, str], seed: int) -> str | None:
    """What an attack makes of the reply of a pair and a variant, which are its ``key``; None where it is not eligible or stays as it was.

    Raises:
        JobError: if the attack fails, or gives what is no text.
    """
    try:
        text = attack.attacked(reply, derived_random(seed, "attack", attack.name, *key))
        sound = text is None or (isinstance(text, str) and bool(text.strip()) and bool(text.encode()))
    except Exception as error:  # whatever a stranger's attack raises is a fault of that attack
        what = f"failed: {type(error).__name__}: {str(error)[:200]}"
        raise job_error(f'attack "{attack.name}": {", ".join(key)}', what, FIX, error) from error
    if not sound:
        raise job_error(f'attack "{attack.name}": {", ".join(key)}', f"returned {ascii(text)[:80]}, which is not a text", FIX)
    return None if text == reply.text else text


def others(dialogues: Sequence[str], keys: Sequence[str], seed: int) -> list[int | None]:
    """By row the row of another dialogue whose reply it is attacked with; None where all are of one.

    All rows, by the key of their pair, stand on a ring in an order drawn by the seed; each takes the next one of another dialogue, so that
    a row that comes or goes changes few others.
    """
    ring = sorted(range(len(keys)), key=lambda row: (derived_random(seed, "ring", keys[row]).random(), keys[row]))
    found: list[int | None] = [None] * len(keys)
    if len(set(dialogues)) < 2:
        return found
    # Backwards, twice round: the nearest one behind whose dialogue is another.
    near = far = -1
    for row in reversed(ring * 2):
        if near >= 0 and dialogues[near] != dialogues[row]:
            far = near
        near = row
        found[row] = far if far >= 0 else None
    return found
