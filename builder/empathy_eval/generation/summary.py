"""The summary of a build: what became of its items, what it used, in words and as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, ClassVar

from empathy_eval.completions.budget import Budget
from empathy_eval.design.kinds import CROSSED
from empathy_eval.generation.outcomes import Outcome

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
        self.status[outcome.status] += 1
        self.pairs += len(outcome.pairs)
        self.controls += sum(pair.near_empathetic is not None for pair in outcome.pairs)
        self.crossed += len(outcome.crossed)
        if outcome.status == "missing":
            self.missing.append(f"{outcome.dialogue_id}: {outcome.reasons[0]}")
        else:
            self.reasons.update(outcome.reasons)
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
            "failed_for_good": dict(sorted(self.failed.items())),
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
