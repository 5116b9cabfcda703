"""The record of reviews: what raters decided, what they rated, and what follows for the next release."""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from empathy_eval.base.files import write_whole
from empathy_eval.base.hashing import digest
from empathy_eval.base.schemas import read_json
from empathy_eval.raters.agreement.table import RATING_COLUMNS

CRITERIA = ("coherence", "helpfulness", "empathy")
CHECK_COLUMNS = ("rater", "training_done", "training_right", "training_of", "attention_found", "attention_of")
Judgement = dict[str, Any]


@dataclass(frozen=True)
class Decision:
    """What the raters of a dialogue decided: it is removed if at least half of them say so (a tie removes: safety first)."""

    dialogue_id: str
    content: str
    remove: int
    keep: int
    reasons: tuple[str, ...]

    @property
    def removed(self) -> bool:
        """Whether the dialogue is left out of the next release."""
        return self.remove >= self.keep

    def to_json(self) -> dict[str, Any]:
        """What a manifest says of it."""
        return {"dialogue_id": self.dialogue_id, "remove": self.remove, "keep": self.keep, "reasons": list(self.reasons)}


@dataclass(frozen=True)
class Correction:
    """A strategy tag that raters found wrong: how many say what it should be."""

    dialogue_id: str
    turn: int
    tag: str
    should_be: str
    raters: int
    of: int


def read_record(path: Path) -> dict[str, Any]:
    """A record written by ``review import``.

    Raises:
        InputError: if it is missing, not JSON, or not valid.
    """
    return read_json(path, "reviews", "name the file that review import wrote, or import the raters' files again into another")


def of_releases(record: dict[str, Any]) -> dict[str, Any]:
    """The record without what was said of replies of systems, and without reviews that were of nothing else."""
    judgements = [one for one in record["judgements"] if one["kind"] != "reply"]
    there = {one["review"] for one in judgements}
    reviews = {name: one for name, one in record["reviews"].items() if name in there or "replies" not in one["settings"]}
    return {**record, "reviews": reviews, "judgements": judgements}


def content_hash(turns: Iterable[Mapping[str, Any]]) -> str:
    """12 hex digits that stand for the roles and texts of a dialogue, so that a decision never meets another text of the same id."""
    return digest([[turn["role"], turn["text"]] for turn in turns])[3:15]


def decisions(record: dict[str, Any]) -> list[Decision]:
    """The decision on every dialogue and content that was judged, by id."""
    found: dict[tuple[str, str], list[Judgement]] = defaultdict(list)
    for one in record["judgements"]:
        if one["kind"] == "dialogue":
            found[one["dialogue_id"], one["content"]].append(one)
    return [
        Decision(name, content, remove, len(votes) - remove, tuple(vote["reason"] for vote in votes if vote["decision"] == "remove"))
        for (name, content), votes in sorted(found.items())
        for remove in [sum(vote["decision"] == "remove" for vote in votes)]
    ]


def corrections(record: dict[str, Any]) -> list[Correction]:
    """The strategy tags that at least one rater found wrong, with the strategy each would be; none where another tag was planted."""
    judged: dict[tuple[str, int, str], list[str | None]] = defaultdict(list)
    for one, tag in _tags(record):
        if "planted" not in tag:
            judged[one["dialogue_id"], tag["turn"], tag["tag"]].append(tag.get("strategy"))
    return [
        Correction(*place, strategy, said.count(strategy), len(said))
        for place, said in sorted(judged.items())
        for strategy in sorted({one for one in said if one})
    ]


def planted_found(record: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Of the planted tags that each rater judged, how many they found wrong, and of how many."""
    found: dict[str, list[bool]] = defaultdict(list)
    for one, tag in _tags(record):
        if "planted" in tag:
            found[_rater(record, one)].append(not tag["right"])
    return {rater: (sum(ones), len(ones)) for rater, ones in sorted(found.items())}


def training_results(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By rater whether the training is done, and how many answers of its test were right, of how many: as the last of their files says.

    Only the page reports a training. A file in which it is done counts before one in which it is not.
    """
    found: dict[str, dict[str, Any]] = {}
    for source in record["sources"].values():
        said, name = source.get("training"), _rater(record, source)
        if said and (said["done"] or not found.get(name, {"done": False})["done"]):
            found[name] = {"done": said["done"], "right": said["test_right"], "of": said["test_of"]}
    return dict(sorted(found.items()))


def check_rows(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each rater with a result of the training or of the planted tags; what is not known is empty."""
    training, planted = training_results(record), planted_found(record)
    for rater in sorted({*training, *planted}):
        said = {f"training_{name}": value for name, value in training.get(rater, {}).items()}
        if "training_done" in said:
            said["training_done"] = int(said["training_done"])
        yield {"rater": rater, **said, **dict(zip(CHECK_COLUMNS[-2:], planted.get(rater, ()), strict=False))}


def _tags(record: dict[str, Any]) -> Iterator[tuple[Judgement, dict[str, Any]]]:
    """Every judgement of a tag, beside the judgement of its dialogue."""
    yield from ((one, tag) for one in record["judgements"] for tag in one.get("tags", []))


def rating_rows(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The ratings of variants, and of replies of systems, one a row, in the form that ``agree`` reads.

    That is ``item``, ``rater``, ``criterion``, ``rating``.
    """
    for one, item in (*_items(record, "variant"), *_items(record, "reply")):
        for criterion in CRITERIA:
            yield {"item": item, "rater": _rater(record, one), "criterion": criterion, "rating": one[criterion]}


def decision_rows(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The decisions on dialogues in the same form: 1 keeps, 0 removes."""
    for one, item in _items(record, "dialogue"):
        yield {"item": item, "rater": _rater(record, one), "criterion": "decision", "rating": int(one["decision"] == "keep")}


def crossed_rows(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The choices between the two replies of crossed items in the same form, an item a context: 1 took the one that fits, 0 the other."""
    for one, item in _items(record, "crossed"):
        yield {"item": item, "rater": _rater(record, one), "criterion": "fits", "rating": int(one["decision"] == one["fits"])}


def study_rows(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What raters who saw one group alone gave it, in the form that ``study`` reads: an item is a context, a stratum its scenario.

    A rater is named with the review, so that the table of another record can be added.
    """
    for one in record["judgements"]:
        if "block" in one:
            about = {"item": one["pair_id"], "group": group_of(one), "rater": _at(one)}
            end = {"block": one["block"], "stratum": int(one["pair_id"].partition("-")[0])}
            yield from ({**about, "criterion": criterion, "rating": one[criterion], **end} for criterion in CRITERIA)


def raters_of(judgements: Iterable[Judgement]) -> int:
    """How many raters judgements are of: ``rater-01`` of another review is somebody else."""
    return len({(one["review"], one["rater"]) for one in judgements})


def group_of(one: Judgement) -> str:
    """The variant that was rated, or the system whose reply was."""
    return str(one["system"] if one["kind"] == "reply" else one["variant"])


def _items(record: dict[str, Any], kind: str) -> Iterator[tuple[Judgement, str]]:
    """The judgements of a kind, each with its item: an id, and the hash of the text where the id has another in another review."""
    judged = [(one, *_judged(one)) for one in record["judgements"] if one["kind"] == kind]
    texts = Counter(name for name, _ in {(name, text) for _, name, text in judged})
    for one, name, text in judged:
        yield one, f"{name}:{text}" if texts[name] > 1 else name


def _judged(one: Judgement) -> tuple[str, str]:
    """The id of what was judged, and the hash of its text."""
    if one["kind"] == "dialogue":
        return one["dialogue_id"], one["content"]
    if one["kind"] == "crossed":
        return f"{one['crossed_id']}:context-{one['context']}", one["text"]
    if one["kind"] == "reply":  # a sign more, so that no variant with a slip in its name is taken for a system
        return f"{one['pair_id']}::{one['system']}", one["text"]
    return f"{one['pair_id']}:{one['variant']}" + (f":rejected-{one['attempt']}" if "attempt" in one else ""), one["text"]


def _rater(record: dict[str, Any], one: Judgement) -> str:
    """The pseudonym, with the review where the record has several: ``rater-01`` of another review is somebody else."""
    return str(one["rater"]) if len(record["reviews"]) == 1 else _at(one)


def _at(one: Judgement) -> str:
    return f"{one['rater']}@{one['review'][3:11]}"


TABLES: dict[str, tuple[Sequence[str], Callable[[dict[str, Any]], Iterable[dict[str, Any]]]]] = {
    "ratings": (RATING_COLUMNS, rating_rows),
    "decisions": (RATING_COLUMNS, decision_rows),
    "tags": ([one.name for one in fields(Correction)], lambda record: map(asdict, corrections(record))),
    "crossed": (RATING_COLUMNS, crossed_rows),
    "study": (("item", "group", "rater", "criterion", "rating", "block", "stratum"), study_rows),
    "checks": (CHECK_COLUMNS, check_rows),
}


def tables_of(record: dict[str, Any]) -> list[str]:
    """The names of the tables of a record; those of crossed items, of a study between raters and of checks only where they have rows."""
    return [name for name, (_, rows) in TABLES.items() if name in ("ratings", "decisions", "tags") or any(rows(record))]


def table_path(record_file: Path, name: str) -> Path:
    """``reviews.ratings.csv`` beside ``reviews.json``."""
    return record_file.with_name(f"{record_file.stem}.{name}.csv")


def write_tables(record: dict[str, Any], record_file: Path) -> None:
    """Writes the tables of a record as CSV beside it: those for ``agree``, ``tags`` to read, and ``study`` for the verb of that name."""
    for name in tables_of(record):
        text = io.StringIO()
        columns, rows = TABLES[name]
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows(record))
        write_whole(table_path(record_file, name), text.getvalue())


def facts_in(record: dict[str, Any]) -> dict[str, Any]:
    """What a record says by now, as JSON values."""
    judged, chosen = decisions(record), [one["rating"] for one in crossed_rows(record)]
    return {
        "judgements": len(record["judgements"]),
        "dialogues": len(judged),
        "removed": [one.to_json() for one in judged if one.removed],
        "tags_found_wrong": len({(one.dialogue_id, one.turn) for one in corrections(record)}),
        "training": training_results(record),
        "planted": {rater: {"found": found, "of": of} for rater, (found, of) in planted_found(record).items()},
        **({"crossed": {"choices": len(chosen), "fitting": sum(chosen)}} if chosen else {}),
    }
