"""Which strategies a judge sees where, beside the planned ones: what it calls the reference, and what it would have chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.tabular import table_batches
from empathy_eval.design.dataset import files_of, pair_id
from empathy_eval.design.taxonomy import Taxonomy, load_taxonomy
from empathy_eval.evaluation.descriptives import PARTS, part_of
from empathy_eval.raters.agreement.bootstrap import Measure
from empathy_eval.raters.judges.folder import Folder
from empathy_eval.raters.judges.reckoning import Reckoning
from empathy_eval.raters.judges.tag_audit import REFERENCE

# What a turn is called by, and how that came about, in the signature.
SEEN = {"named": "named-of-the-reference", "likely": "most-likely-before-a-reply,first-of-equals"}


@dataclass(frozen=True)
class Seen:
    """What a judge said of a turn in one sample, by abbreviation; ``named`` is None where the reference was not judged."""

    pair_id: str
    planned: str
    named: str | None
    likely: str


@dataclass(frozen=True)
class Turns:
    """Of every turn of a release that is planned: its strategy by abbreviation, and the part of the dialogue that it is in."""

    planned: Mapping[str, str]
    part: Mapping[str, int]


def turns_of(release_dir: Path) -> Turns:
    """The helper turns of a release."""
    by_name = {one.name: one.abbreviation for one in load_taxonomy().strategies}
    planned, part = dict[str, str](), dict[str, int]()
    for path in files_of(release_dir, "dialogues"):
        for batch in table_batches(path, ["dialogue_id", "turns"]):
            for row in batch.to_pylist():
                helped = [(place, turn["strategy"]) for place, turn in enumerate(row["turns"]) if turn["role"] == "helper"]
                for number, (place, strategy) in enumerate(helped):
                    name = pair_id(row["dialogue_id"], place)
                    part[name] = part_of(number, len(helped))
                    if strategy in by_name:
                        planned[name] = by_name[strategy]
    return Turns(planned, part)


def over_dialogues(folder: Folder, turns: Turns, reckoning: Reckoning) -> dict[str, Any]:
    """How far a judge's tags are the planned ones, and how often each strategy is planned, named and most likely, part by part.

    Both are over the turns that were judged, each sample once.
    """
    taxonomy = load_taxonomy()
    seen = _seen(folder, turns)
    return {
        "turns": len({one.pair_id for one in seen}),
        "agreement": {name: _agreement(seen, name, taxonomy, reckoning) for name in SEEN},
        "strategies": _counted(seen, turns, taxonomy),
    }


def _seen(folder: Folder, turns: Turns) -> list[Seen]:
    found: dict[tuple[str, int], Seen] = {}
    for case in folder.cases:
        name = case.pair_id or ""
        for one in case.strategies:
            if name in turns.planned:
                before = found.get((name, one.sample))
                named = one.named if one.variant == REFERENCE else before.named if before else None
                likely = max(one.ideal, key=lambda strategy, ideal=one.ideal: ideal[strategy])  # type: ignore[misc]
                found[name, one.sample] = Seen(name, turns.planned[name], named, likely)
    return [found[key] for key in sorted(found)]


def _agreement(seen: Sequence[Seen], which: str, taxonomy: Taxonomy, reckoning: Reckoning) -> dict[str, Any]:
    """The share that equals the plan, and Cohen's kappa with it."""
    codes = {one.abbreviation: place for place, one in enumerate(taxonomy.strategies)}
    rows = [(one.pair_id, one.planned, said) for one in seen if (said := getattr(one, which))]
    names = [row[0] for row in rows]
    planned, said = (np.array([codes[row[place]] for row in rows], dtype=np.int64) for place in (1, 2))
    settings = {"tags": SEEN[which], "with": "planned"}
    found: dict[str, Measure] = {
        **reckoning.shares({"equal": (planned == said).tolist()}, names, share="equal", **settings),
        "kappa": reckoning.kappa((said, planned), range(len(codes)), names, "plain", **settings),
    }
    return {name: asdict(one) for name, one in found.items()}


def _counted(seen: Sequence[Seen], turns: Turns, taxonomy: Taxonomy) -> list[dict[str, Any]]:
    """A row a strategy that occurs: its counts by part of the dialogue, as planned, named and most likely."""
    counts = {name: {one.abbreviation: [0] * PARTS for one in taxonomy.strategies} for name in ("planned", *SEEN)}
    for one in seen:
        for name, by_strategy in counts.items():
            if said := getattr(one, name):
                by_strategy[said][turns.part[one.pair_id]] += 1
    rows = [
        {"name": one.name, "phase": one.phase, **{name: found[one.abbreviation] for name, found in counts.items()}}
        for one in taxonomy.strategies
    ]
    return [row for row in rows if any(any(row[name]) for name in counts)]
