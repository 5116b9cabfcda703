"""Attacks by name (built-in, installed, or ``module:name``), and their application to a reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Protocol

from empathy_eval.base import plugins
from empathy_eval.base.errors import Problem, collecting, input_error, job_error, refuse
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import derived_random
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.text import ENGLISH, joined, spaced
from empathy_eval.design.language import BRING
from empathy_eval.evaluation.fairness.names import GivenNames, exchange_names, load_names
from empathy_eval.metrics.protocol import Context

# So many words at the end of a reply are said so many times more.
LAST_WORDS, TIMES = 4, 3
# One word in so many has a typing error, of those with so many letters.
TYPED, LETTERS = 6, 4
# Pieces of a seeker's turn that are echoed, at most.
ECHOED = 30


@dataclass(frozen=True)
class Reply:
    """A reply to attack, with the turns before it (oldest first), the reply of another dialogue, and the code of the language.

    ``other`` is None where there is no other dialogue.
    """

    text: str
    context: Context
    other: str | None = None
    language: str = ENGLISH


class Attack(Protocol):
    """The attack protocol: one way to change a reply."""

    @property
    def name(self) -> str:
        """The name in tables."""
        ...

    @property
    def version(self) -> object:
        """The version in the signature; it changes whenever the texts change."""
        ...

    def attacked(self, reply: Reply, draw: Random) -> str | None:
        """Returns the attacked text; None where the reply is not eligible, as one without a name for an exchange of names.

        All chance comes from ``draw``, which is seeded by the seed, the attack, the pair and the variant.
        """
        ...


def _pieces(text: str, language: str) -> list[str]:
    """Splits a text at white space, and between characters of scripts without spaces."""
    return spaced(text, language).split()


class ShuffledWords:
    """The words of the reply in a random order."""

    name, version = "shuffled", 1

    def attacked(self, reply: Reply, draw: Random) -> str | None:
        """None where every order is the same."""
        before = _pieces(reply.text, reply.language)
        if len(set(before)) < 2:
            return None
        after = draw.sample(before, len(before))
        # Turned by one, words that are not all alike stand otherwise.
        return joined(after if after != before else [*before[1:], before[0]], reply.language)


class UnrelatedReply:
    """The reply of another dialogue, of the same variant."""

    name, version = "other-dialogue", 1

    def attacked(self, reply: Reply, draw: Random) -> str | None:
        """None where there is no other dialogue."""
        return reply.other


class RepeatedEnding:
    """The reply with its last words repeated."""

    name, version = "repeated", 1

    def attacked(self, reply: Reply, draw: Random) -> str | None:
        """The reply, and its last words so many times more."""
        last = _pieces(reply.text, reply.language)[-LAST_WORDS:]
        return joined([reply.text, *last * TIMES], reply.language) if last else None


class DoubledReply:
    """The whole reply twice."""

    name, version = "doubled", 1

    def attacked(self, reply: Reply, draw: Random) -> str | None:
        """The reply, and the reply."""
        return joined([reply.text, reply.text], reply.language) if reply.text.strip() else None


class SeekerEcho:
    """The reply with the first words of the seeker's last turn after it."""

    name, version = "echo", 1

    def attacked(self, reply: Reply, draw: Random) -> str | None:
        """None where the seeker has said nothing."""
        messages = [_pieces(turn["text"], reply.language) for turn in reply.context if turn["role"] == "seeker"]
        return joined([reply.text, *messages[-1][:ECHOED]], reply.language) if messages and messages[-1] else None


@dataclass(frozen=True)
class AppendedText:
    """The reply with one of several fixed texts after it: a flattering ending, or an instruction to the judge."""

    name: str
    texts: Sequence[str]
    version: int = 1

    def attacked(self, reply: Reply, draw: Random) -> str | None:
        """The reply and the text that is drawn; None where it ends so already."""
        text = draw.choice(self.texts)
        return None if reply.text.rstrip().endswith(text) else joined([reply.text, text], reply.language)


@dataclass(frozen=True)
class ExchangedNames:
    """The reply with other names, each from another group of names and not used in the conversation."""

    names: GivenNames
    name: str = "names"
    version: int = 1

    def attacked(self, reply: Reply, draw: Random) -> str | None:
        """None where the reply has no name, or it is not plain what is one."""
        texts = exchange_names([reply.text, *(turn["text"] for turn in reply.context)], draw, self.names)
        return texts[0] if texts and texts[0] != reply.text else None


class TypingErrors:
    """Typing errors in one of six words with four letters or more: two letters swapped, one omitted, or one doubled."""

    name, version = "typing-errors", 1

    def attacked(self, reply: Reply, draw: Random) -> str | None:
        """None where no word is long enough."""
        pieces = _pieces(reply.text, reply.language)
        fit = [place for place, piece in enumerate(pieces) if sum(map(str.isalpha, piece)) >= LETTERS]
        if not fit:
            return None
        for place in draw.sample(fit, max(1, len(fit) // TYPED)):
            pieces[place] = _mistyped(pieces[place], draw)
        return joined(pieces, reply.language)


def _mistyped(piece: str, draw: Random) -> str:
    """Returns the piece with an error in its letters; the first letter is unchanged."""
    places = [place for place, sign in enumerate(piece) if sign.isalpha()][1:]
    differ = [place for place in places if piece[place - 1 : place].isalpha() and piece[place - 1] != piece[place]]
    how = draw.choice(("exchanged", "left out", "twice"))
    if how == "exchanged" and differ:
        at = draw.choice(differ)
        return piece[: at - 1] + piece[at] + piece[at - 1] + piece[at + 1 :]
    at = draw.choice(places)
    return piece[:at] + (piece[at] * 2 if how == "twice" else "") + piece[at + 1 :]


GROUP = "empathy_eval.attacks"
HERE = "empathy_eval.evaluation.attacks.registry"
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
    """Attacks with the code of their language, and notes on attacks without texts in that language.

    ``every`` is true where none was named, and so all are meant.
    """

    some: tuple[Attack, ...]
    language: str = ENGLISH
    notes: tuple[str, ...] = ()
    every: bool = False


def find_attacks(names: Sequence[Any] = (), language: str = ENGLISH, rules: Path | None = None, hint: str = BRING) -> Attacks:
    """Finds attacks by the names that the user typed (none: all built-in ones); an attack object may stand among them.

    ``rules`` is a folder with an ``attacks.yaml`` and a ``names.yaml`` for the texts' language. A language without one goes without what
    needs it, and that is told, with a ``hint`` at what to do.

    Raises:
        InputError: for names that are unknown or offered twice, what cannot be made or is no attack, and faults of the file; all at once.
    """
    problems, attacks, lacking = list[Problem](), list[Attack](), list[str]()
    chosen = [name for place, name in enumerate(names or BUILT_IN) if name not in list(names)[:place]]
    if rules is not None and not rules.is_dir():
        raise input_error(rules, "is not a folder", "name a folder of rules with --rules")
    for name in chosen:
        with collecting(problems):
            settings = _settings(name, language, rules) if isinstance(name, str) and name in FILES else {}
            if settings is None:
                lacking.append(name)
            else:
                attacks.append(_checked(name, plugins.load(GROUP, name, settings, BUILT_IN) if isinstance(name, str) else name))
    called = [attack.name for attack in attacks]
    twice = sorted({name for name in called if called.count(name) > 1})
    problems += [Problem(f'attack "{name}"', "is the name of more than one attack", "leave out all but one") for name in twice]
    refuse(dict.fromkeys(problems))
    notes = tuple(f'{name}: left out, as there is no {FILES[name]} in the language "{language}"; {hint}' for name in lacking)
    return Attacks(tuple(attacks), language, notes, not names)


def _settings(name: str, language: str, rules: Path | None) -> dict[str, Any] | None:
    """Returns the settings of an attack from the file of its language; None without a file."""
    if name == "names":
        names = load_names(language, rules)
        return {"names": names} if names else None
    packaged = data_folder("rules")
    path = (rules or (packaged if language == ENGLISH else packaged / language)) / FILES[name]
    texts = read_yaml(path, "attack_texts") if path.is_file() else None
    return texts and {"name": name, "texts": tuple(texts[name])}


def _checked(name: object, thing: Any) -> Attack:
    """Returns the object, if it is an attack."""
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


def apply_attack(attack: Attack, reply: Reply, key: tuple[str, str], seed: int) -> str | None:
    """Applies an attack to the reply of a ``key`` (pair, variant); None where the reply is not eligible or unchanged.

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


def assign_other_replies(dialogues: Sequence[str], keys: Sequence[str], seed: int) -> list[int | None]:
    """Returns by row the row of another dialogue whose reply replaces its own; None where all rows are of one dialogue.

    All rows, by the key of their pair, stand on a ring in an order drawn by the seed; each takes the next one of another dialogue, so that
    a row that comes or goes changes few others.
    """
    ring = sorted(range(len(keys)), key=lambda row: (derived_random(seed, "ring", keys[row]).random(), keys[row]))
    assigned: list[int | None] = [None] * len(keys)
    if len(set(dialogues)) < 2:
        return assigned
    # Backwards, twice round: the nearest one behind whose dialogue is another.
    near = far = -1
    for row in reversed(ring * 2):
        if near >= 0 and dialogues[near] != dialogues[row]:
            far = near
        near = row
        assigned[row] = far if far >= 0 else None
    return assigned
