"""Texts to score that are no pairs: replies of one's own from a file, or texts of a release by their names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error
from empathy_eval.base.hashing import digest
from empathy_eval.base.tabular import json_rows
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import SPLITS
from empathy_eval.evaluation.corpus.pairs import read_corpus
from empathy_eval.evaluation.external.score_file import raise_at_most, row_problems
from empathy_eval.metrics.protocol import Context, Segments, context_of, reply_of
from empathy_eval.metrics.scoring import Pairs

SUFFIX = ".jsonl"
# What a file of texts calls the text of an item, where a release has variants.
REPLY = "reply"
# The two replies of a line of preferences, which are its systems.
SIDES = ("chosen", "rejected")


@dataclass(frozen=True)
class CustomTexts:
    """Texts column by column, all of one length.

    ``keys`` say what a text is of: an item and ``reply``, or a pair and its variant. Texts of one name in ``contexts_of`` answer the same
    turns; those of one name in ``units`` are drawn together. A text without a system or a split has "", one without a reference None; all
    are of one ``language``. ``splits`` may be left out where nobody asks for them.
    """

    where: str
    items: Sequence[str]
    keys: Sequence[tuple[str, str]]
    systems: Sequence[str]
    contexts_of: Sequence[str]
    units: Sequence[str]
    contexts: Sequence[Context]
    references: Sequence[str | None]
    replies: Sequence[str]
    language: str = ENGLISH
    splits: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.items)

    def take(self, rows: Sequence[int]) -> CustomTexts:
        """The texts of those rows."""
        names = (
            "items",
            "keys",
            "systems",
            "contexts_of",
            "units",
            "contexts",
            "references",
            "replies",
            *(["splits"] if self.splits else []),
        )
        some: dict[str, Any] = {name: [getattr(self, name)[row] for row in rows] for name in names}
        return replace(self, **some)

    @property
    def pairs(self) -> Pairs:
        """All texts as the one variant of so many pairs, for metrics."""
        return Pairs(self.items, [one or "" for one in self.references], {REPLY: self.replies}, self.contexts)

    @property
    def segments(self) -> Segments:
        """All texts as segments."""
        return Segments(self.replies, [one or "" for one in self.references], self.contexts)


def read_texts(path: Path) -> CustomTexts:
    """The texts of a JSONL file, under the schema ``own_text``; a text without an item is called by its line, ``line 3``.

    A line of preferences (``prompt``, ``chosen``, ``rejected``) is two texts, of the systems ``chosen`` and ``rejected``.

    Raises:
        InputError: for a file that cannot be read or holds no text, lines that break the schema, items that come twice, and a system in
            some lines only; all at once.
    """
    problems, rows, lines = list[Problem](), list[dict[str, Any]](), dict[str, int]()
    for number, row in json_rows(path):
        where = f"{path}: line {number}"
        if isinstance(row, Problem):
            problems.append(row)
            continue
        form = "own_preference" if row.keys() & {"prompt", *SIDES} else "own_text"
        found = row_problems(row, form, where)
        for text in [] if found else _texts_of(row, f"line {number}"):
            if (first := lines.setdefault(text["item"], number)) != number:
                found.append(Problem(where, f'"{text["item"]}" is also the item of line {first}', "give each text a name of its own"))
            rows.append(text)
        problems += found
    if not problems and len({"system" in row for row in rows}) > 1:
        without = [lines[row["item"]] for row in rows if "system" not in row]
        what = f"{len(without)} of {len(rows)} lines have no system, first line {without[0]}"
        problems.append(Problem(str(path), what, "write the system into every line, or into none"))
    if not rows and not problems:
        fix = 'write a line {"context": …, "reply": …} for each, or {"prompt": …, "chosen": …, "rejected": …}'
        problems.append(Problem(str(path), "holds no text", fix))
    raise_at_most(problems, path)
    return _texts(path, rows)


def _texts_of(row: dict[str, Any], line: str) -> list[dict[str, Any]]:
    """The texts of a valid line: one, or the chosen reply and the rejected one."""
    if "reply" in row:
        return [{"item": line, **row}]
    name, split = row.get("item", row.get("pair_id", line)), {"split": row["split"]} if "split" in row else {}
    return [{"item": f"{name}:{side}", "system": side, "context": row["prompt"], "reply": reply_of(row[side]), **split} for side in SIDES]


def _texts(path: Path, rows: Sequence[dict[str, Any]]) -> CustomTexts:
    contexts = [context_of(row["context"]) for row in rows]
    names = [digest([[turn["role"], turn["text"]] for turn in context]) for context in contexts]
    items = [row["item"] for row in rows]
    return CustomTexts(
        str(path), items, [(item, REPLY) for item in items], [row.get("system", "") for row in rows], names, names, contexts,
        [row.get("reference") for row in rows], [row["reply"] for row in rows], splits=[row.get("split", "") for row in rows],
    )  # fmt: skip


def texts_of_release(release_dir: Path, wanted: Collection[str], splits: Sequence[str] = SPLITS) -> CustomTexts:
    """Those texts of a release whose names, ``pair_id:variant``, are wanted; a variant is a system, and a dialogue is drawn together.

    Raises:
        InputError: if it is no release.
    """
    rows = list[Any]()
    for config, compared in (("pairs", PAIR_VARIANTS), ("controls", CONTROLS)):
        corpus = read_corpus(release_dir, config, PAIR_VARIANTS if config == "pairs" else CELLS, contexts=True, splits=splits)
        for place, pair_id in enumerate(corpus.pair_ids):
            shared = pair_id, corpus.dialogues[place], corpus.contexts[place], corpus.references[place]
            texts = {"reference": corpus.references, **corpus.variants} if config == "pairs" else corpus.variants
            for variant in ("reference", *compared) if config == "pairs" else compared:
                if f"{pair_id}:{variant}" in wanted:
                    rows.append(((pair_id, variant), *shared, texts[variant][place]))
    if not rows:
        raise input_error(
            release_dir, f"holds none of the texts in {', '.join(splits)}", "leave --split out, or name the release that was rated"
        )
    keys, pairs, dialogues, contexts, references, replies = (list(one) for one in zip(*rows, strict=True))
    items = [f"{pair_id}:{variant}" for pair_id, variant in keys]
    return CustomTexts(str(release_dir), items, keys, [variant for _, variant in keys], pairs, dialogues, contexts, references, replies)
