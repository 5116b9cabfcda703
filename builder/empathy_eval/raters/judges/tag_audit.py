"""The audit of strategy tags: what people and judges make of the plan, as one table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.hashing import signature_line
from empathy_eval.design.dataset import column, pair_id
from empathy_eval.design.taxonomy import Taxonomy, load_taxonomy
from empathy_eval.evaluation.corpus.descriptives import PARTS, part_of
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.raters.agreement.agree import Tag, TagAudit, tag_rows
from empathy_eval.raters.judges.annotations import Folder
from empathy_eval.raters.judges.estimator import Estimator, signed_by
from empathy_eval.raters.review.sample import rows_of
from empathy_eval.statistics.estimate import Measure

REFERENCE, PEOPLE = "reference", "people"


def tags_of_people(record: Mapping[str, Any], contents: Mapping[str, str] | None = None) -> Iterator[Tag]:
    """What raters of a record said of tags, but for those where a wrong one was planted.

    With ``contents`` (the hash of its text by dialogue) only of dialogues that still have the text that was read.
    """
    for one in record["judgements"]:
        if contents is None or contents.get(one.get("dialogue_id", "")) == one.get("content"):
            for tag in one.get("tags", []):
                if "planted" not in tag:
                    called = tag["tag"] if tag["right"] else tag.get("strategy")
                    yield Tag(pair_id(one["dialogue_id"], tag["turn"]), tag["tag"], called)


def tags_of_judge(folder: Folder, planned: Mapping[str, str]) -> Iterator[Tag]:
    """What a judge called the references of the turns that ``planned`` has; each sample is a judgement."""
    taxonomy = load_taxonomy()
    for case in folder.cases:
        name = case.pair_id or ""
        for one in case.strategies if name in planned else ():
            if one.variant == REFERENCE:
                yield Tag(name, planned[name], taxonomy[one.named].name)


def planned_in(release_dir: Path) -> dict[str, str]:
    """The planned strategy of each turn of a release that is a pair, by the pair's id."""
    return dict(zip(column(release_dir, "pairs", "pair_id"), column(release_dir, "pairs", "strategy"), strict=True))


def audit_of(
    records: Collection[Mapping[str, Any]], folders: Sequence[Folder], release_dir: Path | None, chance: ResamplingSettings,
    contents: Mapping[str, str] | None = None,
) -> TagAudit:  # fmt: skip
    """The audit of the tags of all records, as people's (``contents`` as for :func:`tags_of_people`), and of each judge of a release."""
    people = [tag for record in records for tag in tags_of_people(record, contents)]
    raters = {(one["review"], one["rater"]) for record in records for one in record["judgements"] if one.get("tags")}
    given: dict[str, tuple[str, Sequence[Tag]]] = {PEOPLE: (signature_line(raters=len(raters), tags="as-shown,without-planted"), people)}
    planned = planned_in(release_dir) if folders and release_dir else {}
    given |= {one.name: (signed_by(one, text=REFERENCE), list(tags_of_judge(one, planned))) for one in folders}
    return tag_audit(given, chance)


def tag_audit(given: Mapping[str, tuple[str, Sequence[Tag]]], chance: ResamplingSettings) -> TagAudit:
    """The audit of tags by who judged them, each with what its figures are signed with; of whom judged none there is nothing."""
    there = {by: (line, tags) for by, (line, tags) in given.items() if tags}
    right = {by: _share(tags, Estimator(line, chance)) for by, (line, tags) in there.items()}
    return TagAudit(tag_rows({by: tags for by, (_, tags) in there.items()}), right)


def _share(tags: Sequence[Tag], reckoning: Estimator) -> Measure:
    """The share of tags that were held right, with its interval where there are draws."""
    settings, won = {"share": "tags-held-right"}, [one.right for one in tags]
    if not reckoning.chance.resamples:
        return replace(reckoning.count(sum(won) / len(won), len(won), **settings), why="no interval: no resamples")
    return reckoning.shares({"": won}, [one.pair_id for one in tags], **settings)[""]


def audit_json(audit: TagAudit) -> dict[str, Any]:
    """An audit as JSON values."""
    return {"rows": [asdict(one) for one in audit.rows], "right": {by: asdict(one) for by, one in audit.right.items()}}


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
    for row in rows_of(release_dir, "dialogues", ["dialogue_id", "turns"]):
        helped = [(place, turn["strategy"]) for place, turn in enumerate(row["turns"]) if turn["role"] == "helper"]
        for number, (place, strategy) in enumerate(helped):
            name = pair_id(row["dialogue_id"], place)
            part[name] = part_of(number, len(helped))
            if strategy in by_name:
                planned[name] = by_name[strategy]
    return Turns(planned, part)


def over_dialogues(folder: Folder, turns: Turns, reckoning: Estimator) -> dict[str, Any]:
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


def _agreement(seen: Sequence[Seen], which: str, taxonomy: Taxonomy, reckoning: Estimator) -> dict[str, Any]:
    """The share that equals the plan, and Cohen's kappa with it."""
    rows = [(one.pair_id, said, one.planned) for one in seen if (said := getattr(one, which))]
    settings = {"tags": SEEN[which], "with": "planned"}
    share, kappa = reckoning.as_planned(rows, taxonomy, {"share": "equal", **settings}, settings)
    return {"equal": asdict(share), "kappa": asdict(kappa)}


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
