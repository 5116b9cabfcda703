"""Audit of strategy tags: agreement of people and judges with the plan, as one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from empathy_eval.base.hashing import signature_line
from empathy_eval.design.contrasts import APATHETIC, EMPATHETIC, FAR, NEAR, RAW, REFERENCE, STANCE_FAR, STANCE_NEAR
from empathy_eval.design.dataset import column, pair_id
from empathy_eval.design.taxonomy import Taxonomy, load_taxonomy
from empathy_eval.evaluation.corpus.descriptives import PARTS, part_of
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.raters.agreement.agree import TagAudit, TagJudgement, tag_rows
from empathy_eval.raters.judges.annotations import AnnotationFolder, criterion_scores
from empathy_eval.raters.judges.cases import TEXTS
from empathy_eval.raters.judges.estimator import Estimator, signed_by
from empathy_eval.raters.review.record import rater_count
from empathy_eval.raters.review.sample import rows_of
from empathy_eval.statistics.estimate import Estimate

PEOPLE = "people"


def tags_of_people(record: Mapping[str, Any], contents: Mapping[str, str] | None = None) -> Iterator[TagJudgement]:
    """Raters' judgements of tags in a record, without attention checks.

    With ``contents`` (content hash by dialogue) only of dialogues that still have the text that was read.
    """
    for judgement in record["judgements"]:
        if contents is None or contents.get(judgement.get("dialogue_id", "")) == judgement.get("content"):
            for tag in judgement.get("tags", []):
                if "planted" not in tag:
                    called = tag["tag"] if tag["right"] else tag.get("strategy")
                    yield TagJudgement(pair_id(judgement["dialogue_id"], tag["turn"]), tag["tag"], called)


def tags_of_judge(folder: AnnotationFolder, planned: Mapping[str, str]) -> Iterator[TagJudgement]:
    """A judge's tags of the references of the turns in ``planned``; each sample is a judgement."""
    taxonomy = load_taxonomy()
    for case in folder.cases:
        name = case.pair_id or ""
        for judged in case.strategies if name in planned else ():
            if judged.variant == REFERENCE:
                yield TagJudgement(name, planned[name], taxonomy[judged.named].name)


def planned_in(release_dir: Path) -> dict[str, str]:
    """Planned strategy of each turn of a release that is a pair, by the pair's id."""
    return dict(zip(column(release_dir, "pairs", "pair_id"), column(release_dir, "pairs", "strategy"), strict=True))


def audit_of(
    records: Collection[Mapping[str, Any]], folders: Sequence[AnnotationFolder], release_dir: Path | None, chance: ResamplingSettings,
    contents: Mapping[str, str] | None = None,
) -> TagAudit:  # fmt: skip
    """Audit of the tags of all records, as people's (``contents`` as for :func:`tags_of_people`), and of each judge of a release."""
    people = [tag for record in records for tag in tags_of_people(record, contents)]
    raters = rater_count(judgement for record in records for judgement in record["judgements"] if judgement.get("tags"))
    signature = signature_line(raters=raters, tags="as-shown,without-planted")
    judgements: dict[str, tuple[str, Sequence[TagJudgement]]] = {PEOPLE: (signature, people)}
    planned = planned_in(release_dir) if folders and release_dir else {}
    judgements |= {folder.name: (signed_by(folder, text=REFERENCE), list(tags_of_judge(folder, planned))) for folder in folders}
    return tag_audit(judgements, chance)


def tag_audit(judgements: Mapping[str, tuple[str, Sequence[TagJudgement]]], chance: ResamplingSettings) -> TagAudit:
    """Audit of tags by rater, each with the signature of its figures; raters without tags are left out."""
    given_tags = {by: (line, tags) for by, (line, tags) in judgements.items() if tags}
    right = {by: _share(tags, Estimator(line, chance)) for by, (line, tags) in given_tags.items()}
    return TagAudit(tag_rows({by: tags for by, (_, tags) in given_tags.items()}), right)


def _share(tags: Sequence[TagJudgement], estimator: Estimator) -> Estimate:
    """Share of tags held right, with its interval if there are draws."""
    settings, won = {"share": "tags-held-right"}, [tag.right for tag in tags]
    if not estimator.chance.resamples:
        return replace(estimator.count(sum(won) / len(won), len(won), **settings), reason="no interval: no resamples")
    return estimator.shares({"": won}, [tag.pair_id for tag in tags], **settings)[""]


def audit_json(audit: TagAudit) -> dict[str, Any]:
    """An audit as JSON values."""
    return {"rows": [asdict(row) for row in audit.rows], "right": {by: measure.to_json() for by, measure in audit.right.items()}}


# Where a judge's strategy of a turn comes from, for the signature.
SEEN = {"named": "named-of-the-reference", "likely": "most-likely-before-a-reply,first-of-equals"}
# Which strategies a kind text uses more often than a cold one: at equal closeness, where both were planned with the same one, and as
# released.
DELTAS = {STANCE_NEAR: NEAR, STANCE_FAR: FAR, RAW: (EMPATHETIC, APATHETIC)}


@dataclass(frozen=True)
class TurnStrategies:
    """Strategies of a turn according to one sample of a judge, by abbreviation; ``named`` is None if the reference was not judged."""

    pair_id: str
    planned: str
    named: str | None
    likely: str


@dataclass(frozen=True)
class PlannedTurns:
    """Planned turns of a release: their strategy by abbreviation, and the part of the dialogue that they are in."""

    planned: Mapping[str, str]
    part: Mapping[str, int]


def turns_of(release_dir: Path) -> PlannedTurns:
    """Helper turns of a release."""
    by_name = {strategy.name: strategy.abbreviation for strategy in load_taxonomy().strategies}
    planned, part = dict[str, str](), dict[str, int]()
    for row in rows_of(release_dir, "dialogues", ["dialogue_id", "turns"]):
        helped = [(index, turn["strategy"]) for index, turn in enumerate(row["turns"]) if turn["role"] == "helper"]
        for number, (index, strategy) in enumerate(helped):
            name = pair_id(row["dialogue_id"], index)
            part[name] = part_of(number, len(helped))
            if strategy in by_name:
                planned[name] = by_name[strategy]
    return PlannedTurns(planned, part)


def over_dialogues(folder: AnnotationFolder, turns: PlannedTurns, estimator: Estimator) -> dict[str, Any]:
    """Agreement of a judge's tags with the plan, and counts of planned, named and most likely strategies by part of the dialogue.

    Both are over the turns that were judged, each sample once.
    """
    taxonomy = load_taxonomy()
    strategies = _turn_strategies(folder, turns)
    named = _named(folder, turns)
    return {
        "turns": len({turn.pair_id for turn in strategies}),
        "agreement": {name: _agreement(strategies, name, taxonomy, estimator) for name in SEEN},
        "strategies": _counted(strategies, turns, taxonomy),
        "variants": {variant: _named_by_part(some, turns, taxonomy) for variant, some in named.items()},
        "deltas": {name: deltas for name, sides in DELTAS.items() if (deltas := _deltas(named, sides, taxonomy, estimator))},
    }


def _named(folder: AnnotationFolder, turns: PlannedTurns) -> dict[str, dict[tuple[str, int], str]]:
    """By variant, in the order of the contract, what a judge called each text of it, by pair and sample."""
    named: dict[str, dict[tuple[str, int], str]] = {}
    for case in folder.cases:
        for strategy in case.strategies if case.pair_id in turns.part else ():
            named.setdefault(strategy.variant, {})[str(case.pair_id), strategy.sample] = strategy.named
    return {variant: named[variant] for variant in TEXTS if variant in named}


def _named_by_part(named: Mapping[tuple[str, int], str], turns: PlannedTurns, taxonomy: Taxonomy) -> list[dict[str, Any]]:
    """A row a strategy that was named: its counts by part of the dialogue."""
    counts = Counter((key, turns.part[name]) for (name, _), key in named.items())
    rows = [(strategy, [counts[strategy.abbreviation, part] for part in range(PARTS)]) for strategy in taxonomy.strategies]
    return [{"name": key.name, "phase": key.phase, "named": some} for key, some in rows if any(some)]


def _deltas(
    named: Mapping[str, Mapping[tuple[str, int], str]], sides: tuple[str, str], taxonomy: Taxonomy, estimator: Estimator
) -> dict[str, Any]:
    """By strategy how much more often it is named of the kind text than of the cold one of the same turns, as a difference of shares."""
    kind, cold = (named.get(side, {}) for side in sides)
    both = [key for key in kind if key in cold]
    used = [strategy for strategy in taxonomy.strategies if any(strategy.abbreviation in (kind[key], cold[key]) for key in both)]
    columns = {
        strategy.name: [float(kind[key] == strategy.abbreviation) - float(cold[key] == strategy.abbreviation) for key in both]
        for strategy in used
    }
    settings = {"difference": "shares-named-of-the-same-turns", "of": ",".join(sides)}
    estimates = estimator.shares(columns, [name for name, _ in both], **settings) if both else {}
    return {name: estimate.to_json() for name, estimate in estimates.items()}


# What is rated where it is told how deeply the helper goes into what the seeker says, part by part.
UNDERSTANDING = "understanding"


def understood(folder: AnnotationFolder, turns: PlannedTurns) -> dict[str, Any]:
    """By variant and part of a dialogue the mean rating of understanding, over so many texts; empty where a judge rated no such thing.

    The mean is over the means of texts over their samples.
    """
    rated = next((score for score in criterion_scores(folder) if score.name == UNDERSTANDING), None)
    values_by_part: dict[str, list[list[float]]] = {variant: [[] for _ in range(PARTS)] for variant in TEXTS}
    for (name, variant), value in rated.means.items() if rated else ():
        if name in turns.part:
            values_by_part[variant][turns.part[name]].append(value)
    rows = [
        {"variant": variant, "texts": [*map(len, parts)], "means": [round(fmean(some), 4) if some else None for some in parts]}
        for variant, parts in values_by_part.items()
        if any(parts)
    ]
    return {"signature": signed_by(folder, criterion=UNDERSTANDING, mean="of-texts", parts=PARTS), "variants": rows} if rows else {}


def _turn_strategies(folder: AnnotationFolder, turns: PlannedTurns) -> list[TurnStrategies]:
    by_turn: dict[tuple[str, int], TurnStrategies] = {}
    for case in folder.cases:
        name = case.pair_id or ""
        for judged in case.strategies:
            if name in turns.planned:
                before = by_turn.get((name, judged.sample))
                named = judged.named if judged.variant == REFERENCE else before.named if before else None
                likely = max(judged.ideal, key=lambda strategy, ideal=judged.ideal: ideal[strategy])  # type: ignore[misc]
                by_turn[name, judged.sample] = TurnStrategies(name, turns.planned[name], named, likely)
    return [by_turn[key] for key in sorted(by_turn)]


def _agreement(strategies: Sequence[TurnStrategies], which: str, taxonomy: Taxonomy, estimator: Estimator) -> dict[str, Any]:
    """Share equal to the plan, and Cohen's kappa with it."""
    rows = [(turn.pair_id, strategy, turn.planned) for turn in strategies if (strategy := getattr(turn, which))]
    settings = {"tags": SEEN[which], "with": "planned"}
    share, kappa = estimator.as_planned(rows, taxonomy, {"share": "equal", **settings}, settings)
    return {"equal": share.to_json(), "kappa": kappa.to_json()}


def _counted(strategies: Sequence[TurnStrategies], turns: PlannedTurns, taxonomy: Taxonomy) -> list[dict[str, Any]]:
    """A row for each strategy that occurs: its counts by part of the dialogue, as planned, named and most likely."""
    counts = {name: {strategy.abbreviation: [0] * PARTS for strategy in taxonomy.strategies} for name in ("planned", *SEEN)}
    for turn in strategies:
        for name, by_strategy in counts.items():
            if strategy := getattr(turn, name):
                by_strategy[strategy][turns.part[turn.pair_id]] += 1
    rows = ((strategy, {name: row[strategy.abbreviation] for name, row in counts.items()}) for strategy in taxonomy.strategies)
    return [{"name": strategy.name, "phase": strategy.phase, **row} for strategy, row in rows if any(map(any, row.values()))]
