"""What comparisons and named strategies are worth: places that win, flips, and agreement with the plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import input_error
from empathy_eval.design.contrasts import FAR
from empathy_eval.design.dataset import column
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.raters.agreement import Measure
from empathy_eval.raters.judges.annotations import Comparison, Judged
from empathy_eval.raters.judges.folder import Folder, Scored, both
from empathy_eval.raters.judges.reckoning import Reckoning

# Beside the variants: all of them, and no text at all.
ALL, NEITHER = "all", "neither"


def compared(folder: Folder) -> Iterator[tuple[str, Comparison]]:
    """All comparisons of annotations, each with its pair."""
    yield from ((case.pair_id or "", one) for case in folder.cases for one in case.comparisons)


def preferences(folder: Folder, reckoning: Reckoning) -> dict[str, Any]:
    """How often the text that is shown first wins, how often the other order has another winner, and who wins which comparison.

    Of each two variants: the share of comparisons that either won in both orders, and that neither did.
    """
    rows = list(compared(folder))
    # Both orders of a comparison are asked: of two answers none, one or both name the first place.
    first = [((one.winner_12 == one.variant_1) + (one.winner_21 == one.variant_2)) / 2 for _, one in rows]
    sides: dict[str, list[tuple[str, Comparison]]] = defaultdict(list)
    for name, one in rows:
        sides[both(one.variant_1, one.variant_2)].append((name, one))
    names = [name for name, _ in rows]
    return {
        **reckoning.shares({"first": first}, names, share="orders-that-the-first-place-won"),
        **reckoning.shares({"flipped": [not one.consistent for _, one in rows]}, names, share="comparisons-with-another-winner-by-order"),
        "won": {two: _winners(some, reckoning) for two, some in sorted(sides.items())},
    }


def _winners(rows: list[tuple[str, Comparison]], reckoning: Reckoning) -> dict[str, Measure]:
    one = rows[0][1]
    outcomes = {one.variant_1: one.variant_1, one.variant_2: one.variant_2, NEITHER: None}
    columns = {said: [found.winner == winner for _, found in rows] for said, winner in outcomes.items()}
    return reckoning.shares(columns, [name for name, _ in rows], share="comparisons-won-in-both-orders")


def decided(scored: Scored, preferring: Folder, reckoning: Reckoning) -> Measure:
    """How often the winner of a consistent comparison is the one with the better mean value, ties half."""
    merits, names, won = scored.merits, list[str](), list[float]()
    for name, one in compared(preferring):
        if one.consistent and {(name, one.variant_1), (name, one.variant_2)} <= merits.keys():
            gap = merits[name, one.variant_1] - merits[name, one.variant_2]
            names.append(name)
            won.append((1 + (1 if one.winner == one.variant_1 else -1) * float(np.sign(gap))) / 2)
    rubric = preferring.header["configuration"]["rubric_hash"]
    settings = {"sign": "winner-has-the-better-mean,ties-half", "decisions_of": preferring.teacher, "decisions_by": rubric}
    return reckoning.shares({"": won}, names, **settings)[""]


def strategies(folder: Folder, release_dir: Path, reckoning: Reckoning) -> dict[str, Any]:
    """How far named strategies are the planned ones, by variant and over all; and how likely the planned one was thought before a reply.

    Planned of a far text is the strategy that it was to be written with, of any other that of the turn.
    """
    taxonomy = load_taxonomy()
    codes = {one.abbreviation: place for place, one in enumerate(taxonomy.strategies)}
    by_name = {one.name: one.abbreviation for one in taxonomy.strategies}
    ids = column(release_dir, "pairs", "pair_id")
    near, far = (dict(zip(ids, column(release_dir, "pairs", name), strict=True)) for name in ("strategy", "empathetic_strategy"))
    if strange := sorted({*near.values(), *far.values()} - by_name.keys()):
        raise input_error(release_dir, f'"{strange[0]}" is not a strategy of the taxonomy', "name a release of this taxonomy")
    rows: dict[str, list[tuple[str, str, str]]] = {ALL: []}
    before: dict[tuple[str, int], float] = {}
    for name, one in _named(folder):
        planned = by_name[(far if one.variant in FAR else near)[name]]
        for key in (ALL, one.variant):
            rows.setdefault(key, []).append((name, one.named, planned))
        before[name, one.sample] = one.ideal[by_name[near[name]]]
    return {
        "named": {key: _as_planned(some, codes, reckoning) for key, some in rows.items()},
        **reckoning.shares({"ideal": list(before.values())}, [name for name, _ in before], mean="probability-of-the-planned-strategy"),
    }


def _named(folder: Folder) -> Iterator[tuple[str, Judged]]:
    yield from ((case.pair_id or "", one) for case in folder.cases for one in case.strategies)


def _as_planned(rows: list[tuple[str, str, str]], codes: dict[str, int], reckoning: Reckoning) -> dict[str, Measure]:
    names = [name for name, _, _ in rows]
    named, planned = (np.array([codes[row[place]] for row in rows], dtype=np.int64) for place in (1, 2))
    return {
        **reckoning.shares({"accuracy": (named == planned).tolist()}, names, share="named-as-planned"),
        "kappa": reckoning.kappa((named, planned), range(len(codes)), names, "plain", of="named,planned"),
    }
