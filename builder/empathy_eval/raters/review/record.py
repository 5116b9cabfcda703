"""The record of reviews: what raters decided, what they rated, and what follows for the next release."""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.files import data_folder, write_whole
from empathy_eval.base.hashing import derived_random, digest, digest_file, signature_line
from empathy_eval.base.schemas import read_json, read_yaml
from empathy_eval.design.contrasts import CELLS, PAIR_VARIANTS
from empathy_eval.raters.agreement import Measure, Table, agree
from empathy_eval.raters.agreement.table import RATING_COLUMNS

CRITERIA = ("coherence", "helpfulness", "empathy")
# What is rated of each sample.
RATED = {"pairs": PAIR_VARIANTS, "cells": CELLS}
LEVEL, PLACES = 0.95, 4
TAG_COLUMNS = ("dialogue_id", "turn", "tag", "should_be", "raters", "of")
TABLE_COLUMNS = {"ratings": RATING_COLUMNS, "decisions": RATING_COLUMNS, "tags": TAG_COLUMNS}
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
    strategy: str
    raters: int
    of: int


def read_record(path: Path) -> dict[str, Any]:
    """A record written by ``review import``.

    Raises:
        InputError: if it is missing, not JSON, or not valid.
    """
    return read_json(path, "reviews", "name the file that review import wrote, or import the raters' files anew into another")


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


def _tags(record: dict[str, Any]) -> Iterator[tuple[Judgement, dict[str, Any]]]:
    """Every judgement of a tag, beside the judgement of its dialogue."""
    yield from ((one, tag) for one in record["judgements"] for tag in one.get("tags", []))


def rating_rows(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The ratings of variants, one a row, in the form that ``agree`` reads: ``item``, ``rater``, ``criterion``, ``rating``."""
    for one, item in _items(record, "variant"):
        for criterion in CRITERIA:
            yield {"item": item, "rater": _rater(record, one), "criterion": criterion, "rating": one[criterion]}


def decision_rows(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The decisions on dialogues in the same form: 1 keeps, 0 removes."""
    for one, item in _items(record, "dialogue"):
        yield {"item": item, "rater": _rater(record, one), "criterion": "decision", "rating": int(one["decision"] == "keep")}


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
    return f"{one['pair_id']}:{one['variant']}" + (f":rejected-{one['attempt']}" if "attempt" in one else ""), one["text"]


def _rater(record: dict[str, Any], one: Judgement) -> str:
    """The pseudonym, with the review where the record has several: ``rater-01`` of another review is somebody else."""
    return str(one["rater"]) if len(record["reviews"]) == 1 else f"{one['rater']}@{one['review'][3:11]}"


def tag_rows(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The tags found wrong, one a row."""
    for one in corrections(record):
        yield {"should_be": one.strategy, **{name: getattr(one, name) for name in ("dialogue_id", "turn", "tag", "raters", "of")}}


TABLES = {"ratings": rating_rows, "decisions": decision_rows, "tags": tag_rows}


def table_path(record_file: Path, name: str) -> Path:
    """``reviews.ratings.csv`` beside ``reviews.json``."""
    return record_file.with_name(f"{record_file.stem}.{name}.csv")


def write_tables(record: dict[str, Any], record_file: Path) -> None:
    """Writes the tables of a record as CSV beside it: ``ratings`` and ``decisions`` for ``agree``, ``tags`` to read."""
    for name, rows in TABLES.items():
        text = io.StringIO()
        writer = csv.DictWriter(text, TABLE_COLUMNS[name], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows(record))
        write_whole(table_path(record_file, name), text.getvalue())


def review_facts(path: Path, contents: Mapping[str, str], resamples: int, seed: int) -> dict[str, Any]:
    """What a manifest says of a record: decisions, and the human evaluation beside the paper's.

    ``contents`` gives the content hash of the dialogues of the build by id. A dialogue that was to be removed and whose text is another
    now is not removed but named under ``changed_since``.
    """
    record = read_record(path)
    leaving = [one for one in decisions(record) if one.removed and one.dialogue_id in contents]
    paper = read_yaml(data_folder("release") / "paper_ratings.yaml", "paper_ratings")
    return {
        "record": digest_file(path),
        "releases": sorted(
            ({name: one["release"][name] for name in ("name", "version")} for one in record["reviews"].values()),
            key=lambda one: (one["name"], one["version"]),
        ),
        "raters": len({(one["review"], one["rater"]) for one in record["judgements"]}),
        "judgements": len(record["judgements"]),
        "removed": [one.to_json() for one in leaving if contents[one.dialogue_id] == one.content],
        "changed_since": [one.dialogue_id for one in leaving if contents[one.dialogue_id] != one.content],
        "ratings": list(human_evaluation(record, paper, resamples, seed)),
        "kappa": {
            criterion: {
                **{name: getattr(one, name) for name in ("value", "low", "high", "items", "why", "signature")},
                "paper": paper["kappa"][criterion],
            }
            for criterion, one in fleiss_kappas(record, resamples, seed).items()
        },
        "signature": signature_line(
            mean="ratings", interval="percentile", level=LEVEL, resamples=resamples, seed=seed, unit="pair", numpy=np.__version__
        ),
    }


def human_evaluation(record: dict[str, Any], paper: dict[str, Any], resamples: int, seed: int) -> Iterator[dict[str, Any]]:
    """A row for each sample, variant and criterion: the mean rating (1 to 3) with its bootstrap interval over pairs.

    The interval is None for a single pair. Rejected candidates are left out: they are no part of a release.
    """
    for sample, variants in RATED.items():
        for variant in variants:
            judged = [one for one in _of_sample(record, sample) if one["variant"] == variant]
            for criterion in CRITERIA if judged else ():
                ours = _mean([(one["pair_id"], one[criterion]) for one in judged], resamples, (seed, sample, variant, criterion))
                beside = paper[variant][criterion] if sample == "pairs" else None
                raters = len({(one["review"], one["rater"]) for one in judged})
                yield {"sample": sample, "variant": variant, "criterion": criterion, **ours, "raters": raters, "paper": beside}


def _of_sample(record: dict[str, Any], sample: str) -> list[Judgement]:
    """The judgements on the variants of a sample; rejected texts stand beside them and are none of it."""
    return [one for one in record["judgements"] if one["kind"] == "variant" and sample in one["samples"] and "attempt" not in one]


def _mean(ratings: list[tuple[str, int]], resamples: int, parts: tuple[object, ...]) -> dict[str, Any]:
    """The mean of ratings, and its interval by drawing pairs with all their ratings."""
    by_pair: dict[str, list[int]] = defaultdict(list)
    for name, rating in ratings:
        by_pair[name].append(rating)
    sums = np.array([[sum(one), len(one)] for _, one in sorted(by_pair.items())], dtype=float)
    low = high = None
    if len(sums) > 1:
        rng = np.random.default_rng(derived_random(*parts, "ratings").getrandbits(64))
        even = np.full(len(sums), 1 / len(sums))
        drawn = np.array([rng.multinomial(len(sums), even) @ sums for _ in range(resamples)])
        low, high = (round(float(value), PLACES) for value in np.quantile(drawn[:, 0] / drawn[:, 1], [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    mean = round(float(sums[:, 0].sum() / sums[:, 1].sum()), PLACES)
    return {"mean": mean, "low": low, "high": high, "items": len(sums), "ratings": len(ratings)}


def fleiss_kappas(record: dict[str, Any], resamples: int, seed: int) -> dict[str, Measure]:
    """Fleiss' kappa of each criterion over the two variants, as in the paper, with its interval; none where nothing was rated."""
    rated = rating_rows({**record, "judgements": _of_sample(record, "pairs")})
    rows = [(one["item"], one["rater"], one["rating"], one["criterion"]) for one in rated]
    return {one.criterion: one.fleiss for one in agree(Table.of(rows), resamples=resamples, seed=seed).criteria} if rows else {}
