"""What an import says: who has returned how much, what is to be removed, and what was rated how."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from empathy_eval.raters.review.by_group import group_lines
from empathy_eval.raters.review.record import corrections, crossed_rows, decisions, planted_found, table_path, tables_of, training_results
from empathy_eval.raters.review.take_back import Imported


def facts_of(done: Imported) -> dict[str, Any]:
    """What an import did, and what the record says by now, as JSON values."""
    groups = done.by_group
    judged, chosen = decisions(done.record), [one["rating"] for one in crossed_rows(done.record)]
    return {
        **{name: getattr(done, name) for name in ("new", "known", "replaced")},
        "returned": {rater: {"items": back, "of": of} for rater, (back, of) in done.returned.items()},
        "judgements": len(done.record["judgements"]),
        "dialogues": len(judged),
        "removed": [one.to_json() for one in judged if one.removed],
        "tags_found_wrong": len({(one.dialogue_id, one.turn) for one in corrections(done.record)}),
        "training": training_results(done.record),
        "planted": {rater: {"found": found, "of": of} for rater, (found, of) in planted_found(done.record).items()},
        **({"crossed": {"choices": len(chosen), "fitting": sum(chosen)}} if chosen else {}),
        **({"by_group": groups} if groups else {}),
    }


def told(done: Imported, record: Path) -> str:
    """The same to read; ``record`` is the file."""
    facts = facts_of(done)
    lines = [f"{done.new} new judgements, {done.known} known already, {done.replaced} replaced: {facts['judgements']} in {record}"]
    lines += _returned(done.returned)
    lines.append(
        f"{len(facts['removed'])} of {facts['dialogues']} dialogues to remove, {facts['tags_found_wrong']} strategy tags found wrong"
    )
    lines += [f"  {one['dialogue_id']}: {one['remove']} of {one['remove'] + one['keep']} say remove" for one in facts["removed"]]
    if crossed := facts.get("crossed"):
        lines.append(f"{crossed['fitting']} of {crossed['choices']} choices in crossed items took the reply that fits")
    lines += group_lines(facts["by_group"]) if "by_group" in facts else []
    lines += _checks(facts)
    return "\n".join([*lines, "tables: " + ", ".join(str(table_path(record, name)) for name in tables_of(done.record))])


def _checks(facts: Mapping[str, Any]) -> list[str]:
    """How raters did in the training, and which of the planted tags they found; nothing where nothing is known."""
    training, planted = facts["training"], facts["planted"]
    lines = ["training, by rater:"] if training else []
    for rater, one in training.items():
        lines.append(f"  {rater:<10} {one['right']} of {one['of']} right{'' if one['done'] else ', not finished'}")
    lines += ["attention checks (planted tags found), by rater:"] if planted else []
    return [*lines, *(f"  {rater:<10} {one['found']} of {one['of']}" for rater, one in planted.items())]


def _returned(returned: Mapping[str, tuple[int, int]]) -> list[str]:
    """Who has returned how much of what they were sent, and who nothing."""
    back, sent = (sum(counts[place] for counts in returned.values()) for place in (0, 1))
    lines = [f"{back} of {sent} items have come back so far:"]
    lines += [f"  {rater:<10} {some:>4} of {of}" for rater, (some, of) in returned.items() if some]
    without = [rater for rater, (some, _) in returned.items() if not some]
    return [*lines, f"nothing yet from {', '.join(without)}"] if without else lines
