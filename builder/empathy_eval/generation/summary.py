"""Summary and progress of a build: the fate of its items and what they used."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from empathy_eval.base.stopping import AT_ONCE, Stopped
from empathy_eval.completions.asker import Asker
from empathy_eval.completions.budget import Budget, Spent
from empathy_eval.completions.models.custom import GuardedModel
from empathy_eval.completions.requests import Notice
from empathy_eval.design.kinds import CROSSED
from empathy_eval.generation.outcomes import Outcome

if TYPE_CHECKING:
    from empathy_eval.completions.models.endpoint_health import EndpointHealth


# Items after which a run stops if all of them came to nothing.
FIRST = 20
STATUSES = ("accepted", "rejected", "missing")
T = TypeVar("T")


@dataclass
class Summary:
    """Counts over the outcomes so far; ``budget`` knows the cost of all answers in the ledger."""

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
    failed_status: ClassVar[str] = "rejected"

    @property
    def requests(self) -> int:
        """The requests that its items took."""
        return sum(row["requests"] for row in list(self.usage.values()))

    @property
    def fruitful(self) -> bool:
        """Whether any item succeeded."""
        return self.status["accepted"] > 0

    @property
    def fruitless(self) -> bool:
        """Whether the first items all failed, and more would follow."""
        return not self.fruitful and self.status[self.failed_status] >= FIRST and sum(self.status.values()) < self.total

    @property
    def failure_reasons(self) -> Counter[str]:
        """The reasons why items failed."""
        return self.reasons

    def add(self, outcome: Outcome) -> None:
        """Counts one outcome."""
        self.pairs += len(outcome.pairs)
        self.controls += sum(pair.near_empathetic is not None for pair in outcome.pairs)
        self.crossed += len(outcome.crossed)
        self.reasons.update(outcome.reasons if outcome.status != "missing" else ())
        self._tally(outcome, outcome.dialogue_id)

    def _tally(self, outcome: Any, name: str) -> None:
        """Counts what every result of a job has: why it is missing, its failures, its usage."""
        if outcome.status == "missing":
            self.missing.append(f"{name}: {outcome.reasons[0]}")
        self.status[outcome.status] += 1
        self.failed.update(f"{failure.kind}: {reason}" for failure in outcome.failures if failure.final for reason in failure.reasons)
        # A text by rules is a sample too; a crossed item that nobody was asked for is none.
        samples = [failure for failure in outcome.failures if failure.request_key or failure.kind != CROSSED.name]
        self.refused.update(f"{sample.kind}: {reason}" for sample in samples for reason in sample.reasons)
        for model, row in outcome.usage.items():
            self.usage.setdefault(model, Counter()).update(row)

    def to_json(self) -> dict[str, Any]:
        """The summary as sorted JSON values; the same for every replay of a build."""
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
        """The common end of all summaries as JSON values; ``failed`` is the key of final failures."""
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
        """Refusals with reasons, cost, and missing items, as lines."""
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
class HandedOut:
    """Requests to be answered elsewhere, by file or batch; the build is done if there are none.

    ``summary`` is None if nothing was replayed; ``reasons`` counts requests that batches returned without an answer. ``beside`` are the
    summaries, by name, of jobs done along with this one.
    """

    summary: Summary | None
    requests: dict[str, int]
    reasons: Counter[str] = field(default_factory=Counter)
    beside: dict[str, Summary] = field(default_factory=dict)

    @property
    def has_missing(self) -> bool:
        """Whether any of the jobs has missing items."""
        return any(summary.missing for summary in (self.summary, *self.beside.values()) if summary)

    def to_json(self) -> dict[str, Any]:
        """Summaries, requests to be answered elsewhere, and reasons, as JSON values."""
        beside = {name: summary.to_json() for name, summary in self.beside.items()}
        return {**(self.summary.to_json() if self.summary else {}), **beside, "requests": self.requests, "reasons": dict(self.reasons)}

    def __str__(self) -> str:
        return "\n".join([str(self.summary), *(f"{name}: {summary}" for name, summary in self.beside.items())])


@dataclass
class RunProgress:
    """The progress of a run. Another thread may read it at any moment.

    ``batch`` is how many requests of open batches are done, and their total; ``remote_counts`` and ``notices`` come from other processes.
    """

    summary: Summary | None = None
    asker: Asker | None = None
    batch: tuple[int, int] = (0, 0)
    remote_counts: Counter[str] = field(default_factory=Counter)
    notices: tuple[Notice, ...] = ()
    spent: Spent = field(default_factory=Spent)
    # How the endpoints of batches receive what is sent to them.
    endpoints: tuple[EndpointHealth, ...] = ()
    # Of the items that are begun: how many, and how many requests they take as far as that is known.
    _begun: int = 0
    _expected: int = 0
    _leasts: deque[int] = field(default_factory=deque)
    _taken: int = 0

    def follow(self, summary: Summary, asker: Asker) -> None:
        """Follows some work from now on: a whole run, or a round of batches."""
        self._begun = self._expected = self._taken = 0
        self._leasts.clear()
        self.summary, self.asker, self.notices = summary, asker, ()

    def begun(self, items: Iterable[T], least: Callable[[T], int]) -> Iterator[T]:
        """Passes items through, counting each as begun with its minimum number of requests."""
        for item in items:
            self._leasts.append(least(item))
            self._begun += 1
            self._expected += self._leasts[-1]
            yield item

    def ended(self) -> None:
        """Records that the next item has ended and is in the summary: now its requests are known."""
        if self.summary:
            took, least = self.summary.requests - self._taken, self._leasts.popleft()
            self._taken += took
            # What is missing was not answered: it takes what it was to take, in another run.
            self._expected += took - least if took else 0

    def counts(self) -> Counter[str]:
        """By name: items by status, those ``begun``, their ``expected`` requests, and ``answered``, ``replayed`` and ``refused`` ones.

        Counts of several processes can be added.
        """
        if self.summary is None or self.asker is None:
            return Counter(self.remote_counts)
        here = Counter({name: self.summary.status[name] for name in STATUSES})
        return here + self.asker.tally + Counter(begun=self._begun, expected=self._expected)

    def expected(self) -> int:
        """The estimated requests of the whole run, at the rate of the items begun so far."""
        counts, planned = self.counts(), self.summary.total if self.summary else 0
        return max(counts["answered"], round(counts["expected"] / counts["begun"] * planned)) if counts["begun"] else 0

    def cost(self) -> Spent:
        """The cost of all answers in the ledger so far."""
        return self.summary.budget.spent if self.summary and self.summary.budget else self.spent

    def retrying(self, at: float) -> tuple[int, str]:
        """How many requests wait to be retried although others are answered, and the latest reason."""
        waiting = [reception for reception in self._receptions() if reception.reason and reception.again and not reception.notice(at)]
        return sum(len(reception.again) for reception in waiting), waiting[0].reason if waiting else ""

    def notices_at(self, at: float) -> list[Notice]:
        """The notices at a time of the clock: a stop that waits for answers, and endpoints that do not answer."""
        notices = [Notice("stop", self._stopping())] if self._stopping() else []
        notices += [notice for reception in self._receptions() if (notice := reception.notice(at))]
        return [*notices, *self.notices]

    def _stopping(self) -> str:
        """The notice of a stopped run that waits for answers; empty otherwise."""
        error = self.asker.stopped if self.asker else None
        if self.asker is None or error is None:
            return ""
        own = {id(model): model.sending for model in self.asker.models.values() if isinstance(model, GuardedModel)}
        waits = sum(own.values()) + sum(reception.sending for reception in self._receptions())
        why = error.problems[0].what.partition("\n")[0]
        # After another error the first Ctrl-C is but heard.
        hint = f"; {AT_ONCE}" if isinstance(error, Stopped) else ""
        return f"{why}: waiting for {waits:,} {'answers' if waits > 1 else 'answer'} under way{hint}" if waits else ""

    def _receptions(self) -> list[EndpointHealth]:
        models = self.asker.models.values() if self.asker else ()
        own = {id(reception): reception for model in models if (reception := getattr(model, "reception", None))}
        return [*own.values(), *self.endpoints]
