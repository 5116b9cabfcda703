"""The summary of a build: what became of its items, what it used, in words and as JSON."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from empathy_eval.base.stopping import AT_ONCE, Stopped
from empathy_eval.completions.asker import Asker
from empathy_eval.completions.budget import Budget, Spent
from empathy_eval.completions.models.own import OwnModel
from empathy_eval.completions.requests import Notice
from empathy_eval.design.kinds import CROSSED
from empathy_eval.generation.outcomes import Outcome

if TYPE_CHECKING:
    from empathy_eval.completions.models.endpoint_health import EndpointHealth


# Items after which a run stops if all of them came to nothing.
FIRST = 20
STATUSES = ("accepted", "rejected", "missing")


@dataclass
class Summary:
    """Counts over the outcomes so far; ``budget`` tells what all answers of the ledger cost."""

    total: int = 0
    budget: Budget | None = None
    status: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    pairs: int = 0
    controls: int = 0
    crossed: int = 0
    usage: dict[str, Counter[str]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    # What its items are called.
    things: ClassVar[str] = "dialogues"
    # The status of an item that came to nothing.
    came_to_nothing: ClassVar[str] = "rejected"

    @property
    def requests(self) -> int:
        """The requests that its items took."""
        return sum(row["requests"] for row in list(self.usage.values()))

    @property
    def fruitful(self) -> bool:
        """Whether an item came to something."""
        return self.status["accepted"] > 0

    @property
    def fruitless(self) -> bool:
        """Whether the first items all came to nothing, and there are others."""
        return not self.fruitful and self.status[self.came_to_nothing] >= FIRST and sum(self.status.values()) < self.total

    @property
    def why(self) -> Counter[str]:
        """The reasons for which items came to nothing."""
        return self.reasons

    def add(self, outcome: Outcome) -> None:
        """Counts one outcome."""
        self.pairs += len(outcome.pairs)
        self.controls += sum(pair.near_empathetic is not None for pair in outcome.pairs)
        self.crossed += len(outcome.crossed)
        self.reasons.update(outcome.reasons if outcome.status != "missing" else ())
        self._tally(outcome, outcome.dialogue_id)

    def _tally(self, outcome: Any, name: str) -> None:
        """Counts what every result of a job has: why it is missing, its failures, what it used."""
        if outcome.status == "missing":
            self.missing.append(f"{name}: {outcome.reasons[0]}")
        self.status[outcome.status] += 1
        self.failed.update(f"{one.kind}: {reason}" for one in outcome.failures if one.final for reason in one.reasons)
        # A text by rules is a sample too; a crossed item that nobody was asked for is none.
        samples = [one for one in outcome.failures if one.request_key or one.kind != CROSSED.name]
        self.refused.update(f"{one.kind}: {reason}" for one in samples for reason in one.reasons)
        for model, row in outcome.usage.items():
            self.usage.setdefault(model, Counter()).update(row)

    def to_json(self) -> dict[str, Any]:
        """The summary as JSON values in sorted order; the same for every replay of a build."""
        return {
            "planned": self.total,
            **{status: self.status[status] for status in STATUSES},
            "pairs": self.pairs,
            "controls": self.controls,
            **({"crossed": self.crossed} if self.crossed else {}),
            "rejected_by_reason": dict(sorted(self.reasons.items())),
            **self._tallied("failed_for_good"),
        }

    def _tallied(self, failed: str) -> dict[str, Any]:
        """What every summary ends with, as JSON values; ``failed`` is what it calls failures for good."""
        return {
            failed: dict(sorted(self.failed.items())),
            "samples_refused": dict(sorted(self.refused.items())),
            "usage": {model: dict(sorted(row.items())) for model, row in sorted(self.usage.items())},
        }

    def __str__(self) -> str:
        lines = [f"{self.total} planned: " + ", ".join(f"{self.status[name]} {name}" for name in STATUSES)]
        crossed = f", {self.crossed} crossed items" if self.crossed else ""
        lines.append(f"{self.pairs} pairs, {self.controls} with controls{crossed}")
        return "\n".join(lines + self.closing_lines("failed for good"))

    def closing_lines(self, failed: str) -> list[str]:
        """What was refused and why, what was spent, and what is missing."""
        lines = []
        for title, counter in (("rejected because of", self.reasons), (failed, self.failed)):
            if counter:
                lines.append(f"{title}: " + ", ".join(f"{reason} ({count})" for reason, count in sorted(counter.items())))
        if self.budget and self.budget.spent.tokens:
            dollars = f", ${self.budget.spent.dollars:.4f}" if self.budget.priced else ""
            lines.append(f"spent so far: {self.budget.spent.tokens:,} tokens{dollars}")
        if self.missing:
            lines.append(f"missing, asked for again by the same command; the first: {self.missing[0]}")
        return lines


@dataclass(frozen=True)
class Handed:
    """What is to be answered elsewhere: ``requests`` by file or batch; none, and the build is done.

    ``summary`` is None where nothing was replayed; ``reasons`` counts requests of batches that came back without an answer. ``beside`` are
    the summaries, by name, of jobs that were done beside this one.
    """

    summary: Summary | None
    requests: dict[str, int]
    reasons: Counter[str] = field(default_factory=Counter)
    beside: dict[str, Summary] = field(default_factory=dict)

    @property
    def lacking(self) -> bool:
        """Whether items of any of the jobs are missing."""
        return any(one.missing for one in (self.summary, *self.beside.values()) if one)

    def to_json(self) -> dict[str, Any]:
        """The summary, those beside it, what is to be answered elsewhere, and why batches brought nothing, as JSON values."""
        beside = {name: one.to_json() for name, one in self.beside.items()}
        return {**(self.summary.to_json() if self.summary else {}), **beside, "requests": self.requests, "reasons": dict(self.reasons)}

    def __str__(self) -> str:
        return "\n".join([str(self.summary), *(f"{name}: {one}" for name, one in self.beside.items())])


T = TypeVar("T")


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
    desks: tuple[EndpointHealth, ...] = ()
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
        found += [notice for one in self._receptions() if (notice := one.trouble(at))]
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

    def _receptions(self) -> list[EndpointHealth]:
        models = self.asker.models.values() if self.asker else ()
        return [*{id(one): one for model in models if (one := getattr(model, "reception", None))}.values(), *self.desks]
