"""Simulated studies between subjects: raters of known severity in blocks, and a table of what they gave."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

HEADER = "item,group,rater,rating,stratum,valence,block"
GROUPS = ("human", "alpha", "beta", "gamma")
# What a group adds to how a reply is taken; gamma's are never taken for bad.
WARMTH = {"human": 0.0, "alpha": 0.9, "beta": 0.25, "gamma": 0.6}
STRATA = (("joy", "positive"), ("trust", "positive"), ("fear", "negative"), ("grief", "negative"))


def study_rows(
    groups: Sequence[str] = GROUPS, *, blocks: int = 12, items: int = 6, strata: Sequence[tuple[str, str]] = STRATA
) -> list[str]:
    """Lines of a table, a rater of each group a block, all of whom see the block's items and call them 1 (bad), 2 or 3 (good).

    Raters differ in severity. The last group has no rating of 1, and the last stratum only the ratings of the first three blocks' first
    items. Names are given; warmth is that of the place.
    """
    drawn = random.Random(7)
    warmth = list(WARMTH.values())
    rows = [HEADER]
    for block in range(blocks):
        seen = [drawn.gauss(0, 0.4) for _ in range(items)]
        for place, group in enumerate(groups):
            mood = drawn.gauss(0, 0.6) + warmth[place % len(warmth)]
            for item, ease in enumerate(seen):
                small = block < 3 and item == 0
                stratum, valence = strata[-1] if small else strata[(block + item) % (len(strata) - 1)]
                felt = mood + ease + drawn.gauss(0, 1)
                rating = 1 + (felt > -0.5) + (felt > 0.7)
                if place == len(groups) - 1:
                    rating = max(rating, 2)
                rows.append(f"{block}-{item},{group},{group}-{block},{rating},{stratum},{valence},{block}")
    return rows


def write_study(path: Path, rows: Sequence[str] | None = None) -> Path:
    """The table as a file."""
    path.write_text("\n".join(study_rows() if rows is None else rows) + "\n", encoding="utf-8")
    return path
