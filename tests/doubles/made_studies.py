"""Studies between subjects from what each rater gave, and simulated ones whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from empathy_eval.raters.study.ratings import StudyTable
from empathy_eval.statistics.estimate import Codes, Floats


def study_of(
    counts: Sequence[Sequence[int]] | Codes, group: Sequence[int] | Codes, block: Sequence[int] | Codes | None = None
) -> StudyTable:
    """A study of raters who gave each category so many times, shape (raters, categories); every rating is of an item of its own."""
    given, groups = np.asarray(counts), np.asarray(group)
    raters, categories = given.shape
    flat = np.repeat(np.arange(given.size), given.ravel())
    return StudyTable(
        tuple("abcdefghij"[: groups.max() + 1]), tuple(f"r{one:05}" for one in range(raters)), tuple(map(str, range(len(flat)))),
        ("Bad", "Okay", "Good", "Best")[:categories], groups, None if block is None else np.asarray(block),
        flat // categories, np.arange(len(flat)), flat % categories,
    )  # fmt: skip


def severities(rng: np.random.Generator, share: float, icc: float, shape: tuple[int, ...]) -> Floats:
    """With which probability raters give a category, whose share it is, so that ratings of a rater have this intraclass correlation."""
    return rng.beta(share * (1 / icc - 1), (1 - share) * (1 / icc - 1), shape)
