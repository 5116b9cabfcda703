"""The rows of crossed items: how often each scorer prefers the reply that fits, and how far shortcuts get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from empathy_eval.evaluation.resampling import Estimate

FIGURES = ("fitting", "both_right", "own_context")


@dataclass(frozen=True)
class CrossedRow:
    """What a scorer makes of crossed items, ``items`` of which it has scores of, while it has none of ``left_out``.

    ``fitting`` is how often it scores the reply that fits a context above the one that passes it by, ties half; ``both_right`` in how many
    items it does so in both contexts, a tie being wrong; ``own_context`` how often it scores a reply higher in its own context than in the
    other, ties half. ``ties`` and ``own_ties`` are the shares of equal scores in the first and the last. All are None where the scorer
    cannot be asked, and ``why`` says why.
    """

    metric: str
    items: int
    left_out: int
    fitting: Estimate | None
    both_right: Estimate | None
    own_context: Estimate | None
    ties: float | None
    own_ties: float | None
    why: str | None
    signature: str

    @property
    def figures(self) -> dict[str, Estimate | None]:
        """The three figures, by name."""
        return {name: getattr(self, name) for name in FIGURES}


@dataclass(frozen=True)
class Crossed:
    """Crossed items of a release: how many there are by source, what metrics make of them, and what shortcuts do."""

    items: int
    dialogues: int
    sources: Mapping[str, int]
    metrics: tuple[CrossedRow, ...]
    shortcuts: tuple[CrossedRow, ...]

    @property
    def line(self) -> CrossedRow | None:
        """The shortcut that most often prefers the reply that fits, the first of equals; None without any."""
        return max((one for one in self.shortcuts if one.fitting), key=lambda one: one.fitting.value if one.fitting else 0, default=None)

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return {**asdict(self), **{name: [asdict(one) for one in getattr(self, name)] for name in ("metrics", "shortcuts")}}


def crossed_records(crossed: Mapping[str, Any]) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """(group, scorer, figure, values) of the JSON values of crossed items; one without a figure for a scorer that cannot be asked."""
    for group in ("metrics", "shortcuts"):
        for row in crossed[group]:
            of = row["items"] + row["left_out"]
            about = {"pairs": row["items"], "of": of, "left_out": row["left_out"], "signature": row["signature"], "told": row["why"] or ""}
            ties = {"fitting": row["ties"], "own_context": row["own_ties"]}
            found = [(name, {**about, "accuracy": row[name], "ties": ties.get(name)}) for name in FIGURES if row[name]]
            yield from ((group, row["metric"], name, values) for name, values in found or [("", about)])
