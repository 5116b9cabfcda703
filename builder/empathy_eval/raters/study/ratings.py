"""The ratings of a study between subjects: who, of which group, put which item into which category, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from empathy_eval.raters.agreement.table import Codes

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Study:
    """The ratings of a study, a place a rating in ``rater``, ``item`` and ``category``; names are sorted, the baseline before other groups.

    ``labels`` are the categories, lowest first. ``group_of`` and ``block_of`` have a place a rater, in ``groups`` and ``blocks``; there
    may be no blocks. ``strata`` has by column ("stratum", "valence") its names and the place of each rating among them; ``added`` are the
    groups that came later.
    """

    groups: tuple[str, ...]
    raters: tuple[str, ...]
    items: tuple[str, ...]
    labels: tuple[str, ...]
    group_of: Codes
    block_of: Codes | None
    rater: Codes
    item: Codes
    category: Codes
    strata: Mapping[str, tuple[tuple[str, ...], Codes]] = field(default_factory=dict)
    blocks: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    def by_rater(self, where: Mask | None = None) -> Codes:
        """How often each rater gave each category, among the ratings ``where`` (all), shape (raters, categories)."""
        return self._counted(self.rater, len(self.raters), where)

    def counts(self, where: Mask | None = None) -> Codes:
        """How often each group was given each category, among the ratings ``where`` (all), shape (groups, categories)."""
        return self._counted(self.group_of[self.rater], len(self.groups), where)

    def _counted(self, of: Codes, number: int, where: Mask | None) -> Codes:
        cells = of * len(self.labels) + self.category
        counted = np.bincount(cells if where is None else cells[where], minlength=number * len(self.labels))
        return counted.reshape(number, len(self.labels))
