"""Strategy tags that were judged: how many held right, and what the others were called instead."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.raters.agreement.bootstrap import Measure

# Of a tag that was found wrong, when nobody said what it should be.
NOT_SAID = "not said"


@dataclass(frozen=True)
class Tag:
    """One judgement of the planned strategy of a turn: what it was ``called``, which is the strategy itself where it was held right.

    None is called nothing: found wrong without a better one.
    """

    pair_id: str
    strategy: str
    called: str | None

    @property
    def right(self) -> bool:
        """Whether the tag was held right."""
        return self.called == self.strategy


@dataclass(frozen=True)
class TagRow:
    """How often one judged the tags of a strategy: how many were held right, and what each other was called, most frequent first."""

    strategy: str
    by: str
    judged: int
    right: int
    instead: dict[str, int]


@dataclass(frozen=True)
class TagAudit:
    """The rows by strategy, in the taxonomy's order, and who judged; ``right`` is the share of tags held right by who judged."""

    rows: tuple[TagRow, ...]
    right: dict[str, Measure]


def tag_rows(given: Mapping[str, Iterable[Tag]]) -> tuple[TagRow, ...]:
    """The rows of tags by who judged them."""
    called: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for by, tags in given.items():
        for one in tags:
            called[one.strategy, by][one.called or NOT_SAID] += 1
    names = [one.name for one in load_taxonomy().strategies]
    order = [(name, by) for name in [*names, *sorted({name for name, _ in called} - {*names})] for by in given]
    return tuple(_row(*key, called[key], [*names, NOT_SAID]) for key in order if key in called)


def _row(strategy: str, by: str, called: Counter[str], names: Sequence[str]) -> TagRow:
    others = sorted((name for name in called if name != strategy), key=lambda name: (-called[name], names.index(name)))
    return TagRow(strategy, by, called.total(), called[strategy], {name: called[name] for name in others})
