"""The course of a run: what is done of what there is to do, for whoever shows it while it runs."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from empathy_eval.base.stopping import AT_ONCE, Stopped
from empathy_eval.completions.asker import Asker
from empathy_eval.completions.budget import Spent
from empathy_eval.completions.models.own import OwnModel
from empathy_eval.generation.summary import STATUSES, Summary

if TYPE_CHECKING:
    from empathy_eval.completions.models.reception import Reception

T = TypeVar("T")


@dataclass(frozen=True)
class Notice:
    """Something that is told at once and not again within a minute while its ``key`` is the same."""

    key: str
    words: str


@dataclass
class Course:
    """How a run is going. It is kept where the work is done, and may be read in another thread at any moment.

    ``batch`` is how many requests of the batches under way are done, and how many there are; ``told`` and ``notices`` come from processes
    that do the work elsewhere.
    """

    summary: Summary | None = None
    asker: Asker | None = None
    batch: tuple[int, int] = (0, 0)
    told: Counter[str] = field(default_factory=Counter)
    notices: tuple[Notice, ...] = ()
    spent: Spent = field(default_factory=Spent)
    # How the endpoints of batches receive what is sent to them.
    desks: tuple[Reception, ...] = ()
    # Of the items that are begun: how many, and how many requests they take as far as that is known.
    _begun: int = 0
    _expected: int = 0
    _leasts: deque[int] = field(default_factory=deque)
    _taken: int = 0

    def follow(self, summary: Summary, asker: Asker) -> None:
        """Follows some work from now on: that of a whole run, or of a round of batches."""
        self._begun = self._expected = self._taken = 0
        self._leasts.clear()
        self.summary, self.asker, self.notices = summary, asker, ()

    def begun(self, items: Iterable[T], least: Callable[[T], int]) -> Iterator[T]:
        """The items as they are, each counted as it is begun with the requests that it takes at least."""
        for item in items:
            self._leasts.append(least(item))
            self._begun += 1
            self._expected += self._leasts[-1]
            yield item

    def ended(self) -> None:
        """Notes that the next item has ended and is in the summary: now it is known what it took."""
        if self.summary:
            took, least = self.summary.requests - self._taken, self._leasts.popleft()
            self._taken += took
            # What is missing was not answered: it takes what it was to take, in another run.
            self._expected += took - least if took else 0

    def counts(self) -> Counter[str]:
        """By name: items by status, those ``begun``, the requests ``expected`` of these, ``answered``, ``replayed`` and ``refused`` ones.

        Counts of several processes can be added up.
        """
        if self.summary is None or self.asker is None:
            return Counter(self.told)
        here = Counter({name: self.summary.status[name] for name in STATUSES})
        return here + self.asker.tally + Counter(begun=self._begun, expected=self._expected)

    def expected(self) -> int:
        """The requests of the whole run, about: as many for an item that is not begun as for one that is."""
        counts, planned = self.counts(), self.summary.total if self.summary else 0
        return max(counts["answered"], round(counts["expected"] / counts["begun"] * planned)) if counts["begun"] else 0

    def cost(self) -> Spent:
        """What all answers of the ledger cost so far."""
        return self.summary.budget.spent if self.summary and self.summary.budget else self.spent

    def again(self, at: float) -> tuple[int, str]:
        """How many requests wait to be sent again though others are answered, and why the last of them does."""
        ones = [one for one in self._receptions() if one.reason and one.again and not one.trouble(at)]
        return sum(len(one.again) for one in ones), ones[0].reason if ones else ""

    def notable(self, at: float) -> list[Notice]:
        """What is to be told at a time of the clock: a stop that waits for answers, and endpoints that nothing comes back from."""
        found = [Notice("stop", self._stopping())] if self._stopping() else []
        troubles = (one.trouble(at) for one in self._receptions())
        # Not all the words of a reason: servers put numbers of requests and times into them.
        found += [Notice(f"{one.endpoint}: {one.reason.partition(':')[0]}", f"{one.endpoint}: {one.words}") for one in troubles if one]
        return [*found, *self.notices]

    def _stopping(self) -> str:
        """That the run is stopped and what it waits for, if it does."""
        error = self.asker.stopped if self.asker else None
        if self.asker is None or error is None:
            return ""
        own = {id(one): one.sending for one in self.asker.models.values() if isinstance(one, OwnModel)}
        waits = sum(own.values()) + sum(one.sending for one in self._receptions())
        why = error.problems[0].what.partition("\n")[0]
        # After another error the first Ctrl-C is but heard.
        hint = f"; {AT_ONCE}" if isinstance(error, Stopped) else ""
        return f"{why}: waiting for {waits:,} {'answers' if waits > 1 else 'answer'} under way{hint}" if waits else ""

    def _receptions(self) -> list[Reception]:
        models = self.asker.models.values() if self.asker else ()
        return [*{id(one): one for model in models if (one := getattr(model, "reception", None))}.values(), *self.desks]
