"""Attacks on a scorer: what makes a reply worse, or no better, and may make its score rise all the same.

Each is a pure function of a reply and of a draw. What they say to a judge is text to be scored, and nothing that is obeyed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from empathy_eval.base.text import ENGLISH, joined, spaced
from empathy_eval.evaluation.fairness.names import GivenNames, exchanged_names
from empathy_eval.metrics.protocol import Context

# So many words at the end of a reply are said so many times more.
LAST_WORDS, TIMES = 4, 3
# One word in so many has a typing error, of those with so many letters.
TYPED, LETTERS = 6, 4
# Pieces of a seeker's turn that are echoed, at most.
ECHOED = 30


@dataclass(frozen=True)
class Reply:
    """A reply to attack: its text, the turns before it, oldest first, the reply of another dialogue, and the code of their language.

    ``other`` is None where there is no other dialogue.
    """

    text: str
    context: Context
    other: str | None = None
    language: str = ENGLISH


class Attack(Protocol):
    """One way to change a reply."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    @property
    def version(self) -> object:
        """What stands in the signature; another one whenever other texts come out."""
        ...

    def attacked(self, reply: Reply, draw: Random) -> str | None:
        """The attacked text; None where the reply is not eligible, as one without a name is not for an exchange of names.

        All chance comes from ``draw``, which is seeded by the seed, the attack, the pair and the variant.
        """
        ...


def _pieces(text: str, language: str) -> list[str]:
    """A text cut at white space, and round the characters of scripts that write none."""
    return spaced(text, language).split()


class ShuffledWords:
    """The words of the reply in another order."""

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
    """The last words of the reply said again and again."""

    name, version = "repeated", 1

    def attacked(self, reply: Reply, draw: Random) -> str | None:
        """The reply, and its last words so many times more."""
        last = _pieces(reply.text, reply.language)[-LAST_WORDS:]
        return joined([reply.text, *last * TIMES], reply.language) if last else None


class DoubledReply:
    """The whole reply said twice."""

    name, version = "doubled", 1

    def attacked(self, reply: Reply, draw: Random) -> str | None:
        """The reply, and the reply."""
        return joined([reply.text, reply.text], reply.language) if reply.text.strip() else None


class SeekerEcho:
    """The seeker's own words after the reply: the first ones of the last turn."""

    name, version = "echo", 1

    def attacked(self, reply: Reply, draw: Random) -> str | None:
        """None where the seeker has said nothing."""
        said = [_pieces(turn["text"], reply.language) for turn in reply.context if turn["role"] == "seeker"]
        return joined([reply.text, *said[-1][:ECHOED]], reply.language) if said and said[-1] else None


@dataclass(frozen=True)
class AppendedText:
    """A fixed text after the reply, one of several: a flattering ending, or an instruction to the judge."""

    name: str
    texts: Sequence[str]
    version: int = 1

    def attacked(self, reply: Reply, draw: Random) -> str | None:
        """The reply and the text that is drawn; None where it ends so already."""
        text = draw.choice(self.texts)
        return None if reply.text.rstrip().endswith(text) else joined([reply.text, text], reply.language)


@dataclass(frozen=True)
class ExchangedNames:
    """Other names in the reply than the seeker gave: each for one of another group that nobody has said."""

    names: GivenNames
    name: str = "names"
    version: int = 1

    def attacked(self, reply: Reply, draw: Random) -> str | None:
        """None where the reply has no name, or it is not plain what is one."""
        found = exchanged_names([reply.text, *(turn["text"] for turn in reply.context)], draw, self.names)
        return found[0] if found and found[0] != reply.text else None


class TypingErrors:
    """Typing errors: in one word of six, of those with four letters or more, two letters exchanged, one left out, or one twice."""

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
    """The piece with an error in its letters, the first one left alone."""
    places = [place for place, sign in enumerate(piece) if sign.isalpha()][1:]
    differ = [place for place in places if piece[place - 1 : place].isalpha() and piece[place - 1] != piece[place]]
    how = draw.choice(("exchanged", "left out", "twice"))
    if how == "exchanged" and differ:
        at = draw.choice(differ)
        return piece[: at - 1] + piece[at] + piece[at - 1] + piece[at + 1 :]
    at = draw.choice(places)
    return piece[:at] + (piece[at] * 2 if how == "twice" else "") + piece[at + 1 :]
