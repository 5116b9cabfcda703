"""Dist-n: how many of the n-grams of a set of texts are different."""

from __future__ import annotations

from collections.abc import Sequence

from builder.signature import signature_line


class Dist:
    """Distinct n-grams over all n-grams (Li et al. 2016), lower-cased, split at white space. Falls as the corpus grows."""

    def __init__(self, order: int) -> None:
        self.order = order
        self.name = f"Dist-{order}"
        self.signature = signature_line(n=order, case="lower", tok="whitespace", level="corpus")

    def value(self, texts: Sequence[str]) -> float:
        """The share in [0, 1]; 0 if no text is long enough."""
        seen: set[tuple[str, ...]] = set()
        total = 0
        for text in texts:
            tokens = text.lower().split()
            grams = [tuple(tokens[place : place + self.order]) for place in range(len(tokens) - self.order + 1)]
            seen.update(grams)
            total += len(grams)
        return len(seen) / total if total else 0.0
