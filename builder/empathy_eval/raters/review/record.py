"""Record of reviews: raters' decisions and ratings, and the tables derived from them."""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from operator import itemgetter
from pathlib import Path
from typing import Any

from empathy_eval.base.files import write_whole
from empathy_eval.base.hashing import digest
from empathy_eval.base.schemas import read_json
from empathy_eval.raters.agreement.table import RATING_COLUMNS

CRITERIA = ("coherence", "helpfulness", "empathy")
CHECK_COLUMNS = ("rater", "training_done", "training_right", "training_of", "attention_found", "attention_of")
Judgement = dict[str, Any]
# A row of ratings as :class:`RatingTable` takes it.
TABLE_ROW = itemgetter("item", "rater", "rating", "criterion")


@dataclass(frozen=True)
class Decision:
    """Decision on a dialogue: it is removed if at least half of its raters say so (a tie removes: safety first)."""

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
        """The decision as in a manifest."""
        return {"dialogue_id": self.dialogue_id, "remove": self.remove, "keep": self.keep, "reasons": list(self.reasons)}


@dataclass(frozen=True)
class Correction:
    """A strategy tag that raters found wrong, and how many name which strategy instead."""

    dialogue_id: str
    turn: int
    tag: str
    should_be: str
    raters: int
    of: int


def read_record(path: Path) -> dict[str, Any]:
    """Read a record written by ``review import``.

    Raises:
        InputError: if it is missing, not JSON, or not valid.
    """
    return read_json(path, "reviews", "name the file that review import wrote, or import the raters' files again into another")


def without_replies(record: dict[str, Any]) -> dict[str, Any]:
    """The record without judgements of systems' replies, and without reviews of nothing else."""
    judgements = [judgement for judgement in record["judgements"] if judgement["kind"] != "reply"]
    remaining = {judgement["review"] for judgement in judgements}
    reviews = {name: review for name, review in record["reviews"].items() if name in remaining or "replies" not in review["settings"]}
    return {**record, "reviews": reviews, "judgements": judgements}


def content_hash(turns: Iterable[Mapping[str, Any]]) -> str:
    """12 hex digits of the roles and texts of a dialogue, so that a decision is never applied to another text of the same id."""
    return digest([[turn["role"], turn["text"]] for turn in turns])[3:15]


def decisions(record: dict[str, Any]) -> list[Decision]:
    """Decisions on every dialogue and content that was judged, by id."""
    votes_on: dict[tuple[str, str], list[Judgement]] = defaultdict(list)
    for judgement in record["judgements"]:
        if judgement["kind"] == "dialogue":
            votes_on[judgement["dialogue_id"], judgement["content"]].append(judgement)
    return [
        Decision(name, content, remove, len(votes) - remove, tuple(vote["reason"] for vote in votes if vote["decision"] == "remove"))
        for (name, content), votes in sorted(votes_on.items())
        for remove in [sum(vote["decision"] == "remove" for vote in votes)]
    ]


def corrections(record: dict[str, Any]) -> list[Correction]:
    """Strategy tags that at least one rater found wrong, with each strategy named instead; attention checks are excluded."""
    judged: dict[tuple[str, int, str], list[str | None]] = defaultdict(list)
    for judgement, tag in _tags(record):
        if "planted" not in tag:
            judged[judgement["dialogue_id"], tag["turn"], tag["tag"]].append(tag.get("strategy"))
    return [
        Correction(*key, strategy, corrected.count(strategy), len(corrected))
        for key, corrected in sorted(judged.items())
        for strategy in sorted({name for name in corrected if name})
    ]


def attention_results(record: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """By rater (number found wrong, number judged) of the attention checks."""
    results: dict[str, list[bool]] = defaultdict(list)
    for judgement, tag in _tags(record):
        if "planted" in tag:
            results[_rater(record, judgement)].append(not tag["right"])
    return {rater: (sum(results_of), len(results_of)) for rater, results_of in sorted(results.items())}


def training_results(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By rater whether the training is done, and how many answers of its test were right, as in the last of their files.

    Only the page reports a training. A file in which it is done takes precedence.
    """
    results: dict[str, dict[str, Any]] = {}
    for source in record["sources"].values():
        training, name = source.get("training"), _rater(record, source)
        if training and (training["done"] or not results.get(name, {"done": False})["done"]):
            results[name] = {"done": training["done"], "right": training["test_right"], "of": training["test_of"]}
    return dict(sorted(results.items()))


def check_rows(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each rater with a result of the training or of attention checks; unknown values are absent."""
    training, attention = training_results(record), attention_results(record)
    for rater in sorted({*training, *attention}):
        row = {f"training_{name}": int(value) for name, value in training.get(rater, {}).items()}
        yield {"rater": rater, **row, **dict(zip(CHECK_COLUMNS[-2:], attention.get(rater, ()), strict=False))}


def _tags(record: dict[str, Any]) -> Iterator[tuple[Judgement, dict[str, Any]]]:
    """Every judgement of a tag, with the judgement of its dialogue."""
    yield from ((judgement, tag) for judgement in record["judgements"] for tag in judgement.get("tags", []))


def rating_rows(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Ratings of variants and of systems' replies, one a row, in the form that ``agree`` reads: item, rater, criterion, rating."""
    return _rows(record, ("variant", "reply"), lambda judgement: {criterion: judgement[criterion] for criterion in CRITERIA})


def decision_rows(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Decisions on dialogues in the same form: 1 keeps, 0 removes."""
    return _rows(record, ("dialogue",), lambda judgement: {"decision": int(judgement["decision"] == "keep")})


def crossed_rows(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Choices in crossed items in the same form, an item a context: 1 chose the fitting reply, 0 the other."""
    return _rows(record, ("crossed",), lambda judgement: {"fits": int(judgement["decision"] == judgement["fits"])})


def _rows(record: dict[str, Any], kinds: Iterable[str], ratings_of: Callable[[Judgement], Mapping[str, int]]) -> Iterator[dict[str, Any]]:
    for judgement, item in (pair for kind in kinds for pair in _items(record, kind)):
        for criterion, rating in ratings_of(judgement).items():
            yield {"item": item, "rater": _rater(record, judgement), "criterion": criterion, "rating": rating}


def study_rows(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Ratings of raters who saw one group alone, in the form that ``study`` reads: an item is a context, a stratum its scenario.

    Rater names include the review, so that the table of another record can be added.
    """
    for judgement in record["judgements"]:
        if "block" in judgement:
            about = {"item": judgement["pair_id"], "group": group_of(judgement), "rater": _rater_of_review(judgement)}
            end = {"block": judgement["block"], "stratum": int(judgement["pair_id"].partition("-")[0])}
            yield from ({**about, "criterion": criterion, "rating": judgement[criterion], **end} for criterion in CRITERIA)


def rater_count(judgements: Iterable[Judgement]) -> int:
    """Number of raters: ``rater-01`` of another review is another person."""
    return len({(judgement["review"], judgement["rater"]) for judgement in judgements})


def group_of(judgement: Judgement) -> str:
    """The rated variant, or the system whose reply was rated."""
    return str(judgement["system"] if judgement["kind"] == "reply" else judgement["variant"])


def _items(record: dict[str, Any], kind: str) -> Iterator[tuple[Judgement, str]]:
    """Judgements of a kind with their item: an id, plus the hash of the text if the id has another text in another review."""
    judged = [(judgement, *_item_of(judgement)) for judgement in record["judgements"] if judgement["kind"] == kind]
    texts = Counter(name for name, _ in {(name, text) for _, name, text in judged})
    for judgement, name, text in judged:
        yield judgement, f"{name}:{text}" if texts[name] > 1 else name


def _item_of(judgement: Judgement) -> tuple[str, str]:
    """Id and text hash of what was judged."""
    if judgement["kind"] == "dialogue":
        return judgement["dialogue_id"], judgement["content"]
    if judgement["kind"] == "crossed":
        return f"{judgement['crossed_id']}:context-{judgement['context']}", judgement["text"]
    if judgement["kind"] == "reply":  # a second colon, so that a misspelt variant is not taken for a system
        return f"{judgement['pair_id']}::{judgement['system']}", judgement["text"]
    rejected = f":rejected-{judgement['attempt']}" if "attempt" in judgement else ""
    return f"{judgement['pair_id']}:{judgement['variant']}{rejected}", judgement["text"]


def _rater(record: dict[str, Any], judgement: Judgement) -> str:
    """The pseudonym, with the review if the record has several: ``rater-01`` of another review is another person."""
    return str(judgement["rater"]) if len(record["reviews"]) == 1 else _rater_of_review(judgement)


def _rater_of_review(judgement: Judgement) -> str:
    return f"{judgement['rater']}@{judgement['review'][3:11]}"


TABLES: dict[str, tuple[Sequence[str], Callable[[dict[str, Any]], Iterable[dict[str, Any]]]]] = {
    "ratings": (RATING_COLUMNS, rating_rows),
    "decisions": (RATING_COLUMNS, decision_rows),
    "tags": ([field.name for field in fields(Correction)], lambda record: map(asdict, corrections(record))),
    "crossed": (RATING_COLUMNS, crossed_rows),
    "study": (("item", "group", "rater", "criterion", "rating", "block", "stratum"), study_rows),
    "checks": (CHECK_COLUMNS, check_rows),
}


def tables_of(record: dict[str, Any]) -> list[str]:
    """Names of the tables of a record; those of crossed items, studies and checks only if they have rows."""
    return [name for name, (_, rows) in TABLES.items() if name in ("ratings", "decisions", "tags") or any(rows(record))]


def table_path(record_file: Path, name: str) -> Path:
    """``reviews.ratings.csv`` beside ``reviews.json``."""
    return record_file.with_name(f"{record_file.stem}.{name}.csv")


def write_tables(record: dict[str, Any], record_file: Path) -> None:
    """Write the tables of a record as CSV beside it: those for ``agree``, ``study`` for the verb of that name, and ``tags`` to read."""
    for name in tables_of(record):
        text = io.StringIO()
        columns, rows = TABLES[name]
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows(record))
        write_whole(table_path(record_file, name), text.getvalue())


def record_summary(record: dict[str, Any]) -> dict[str, Any]:
    """Summary of a record as JSON values."""
    judged, chosen = decisions(record), [row["rating"] for row in crossed_rows(record)]
    return {
        "judgements": len(record["judgements"]),
        "dialogues": len(judged),
        "removed": [decision.to_json() for decision in judged if decision.removed],
        "tags_found_wrong": len({(correction.dialogue_id, correction.turn) for correction in corrections(record)}),
        "training": training_results(record),
        "planted": {rater: {"found": right, "of": total} for rater, (right, total) in attention_results(record).items()},
        **({"crossed": {"choices": len(chosen), "fitting": sum(chosen)}} if chosen else {}),
    }
