"""The audit of strategy tags: what people and judges make of the plan, as one table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.hashing import signature_line
from empathy_eval.design.dataset import column, pair_id
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.evaluation.inversion import Chance
from empathy_eval.raters.agreement.bootstrap import Measure
from empathy_eval.raters.agreement.tags import Tag, TagAudit, tag_rows
from empathy_eval.raters.judges.folder import Folder
from empathy_eval.raters.judges.reckoning import Reckoning

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


def signed_by(folder: Folder) -> str:
    """What a figure about the strategies that a judge named is signed with."""
    made = folder.header["configuration"]
    return signature_line(
        teacher=folder.teacher, rubric=folder.rubric, rubric_hash=made["rubric_hash"], samples=made["samples_of_a_text"], text=REFERENCE
    )


def signed_by_people(records: Collection[Mapping[str, Any]]) -> str:
    """The same of what raters said."""
    raters = {(one["review"], one["rater"]) for record in records for one in record["judgements"] if one.get("tags")}
    return signature_line(raters=len(raters), tags="as-shown,without-planted")


def tag_audit(given: Mapping[str, tuple[str, Sequence[Tag]]], chance: Chance) -> TagAudit:
    """The audit of tags by who judged them, each with what its figures are signed with; of whom judged none there is nothing."""
    there = {by: (line, tags) for by, (line, tags) in given.items() if tags}
    right = {by: _share(tags, Reckoning(line, chance)) for by, (line, tags) in there.items()}
    return TagAudit(tag_rows({by: tags for by, (_, tags) in there.items()}), right)


def _share(tags: Sequence[Tag], reckoning: Reckoning) -> Measure:
    """The share of tags that were held right, with its interval where there are draws."""
    settings, won = {"share": "tags-held-right"}, [one.right for one in tags]
    if not reckoning.chance.resamples:
        return replace(reckoning.count(sum(won) / len(won), len(won), **settings), why="no interval: no resamples")
    return reckoning.shares({"": won}, [one.pair_id for one in tags], **settings)[""]


def audit_json(audit: TagAudit) -> dict[str, Any]:
    """An audit as JSON values."""
    return {"rows": [asdict(one) for one in audit.rows], "right": {by: asdict(one) for by, one in audit.right.items()}}
