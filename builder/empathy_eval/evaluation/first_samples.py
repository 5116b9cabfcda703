"""First samples: the texts that a release would have, had the first candidate of each variant been taken that passed its checks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from empathy_eval.base.tabular import table_batches
from empathy_eval.design.word_list import NOT_CHOSEN
from empathy_eval.evaluation.corpus import Corpus, candidate_rows
from empathy_eval.evaluation.shortcut_texts import Held


def first_samples(held: Held) -> Held | None:
    """What is held with the first accepted candidate in the place of each chosen one; None where nothing was chosen.

    Raises:
        InputError: if the candidates of the release are none.
    """
    if not _any_chosen(held.folder):
        return None
    first = _firsts(held.folder)
    return replace(held, pairs=_with(held.pairs, first), controls=_with(held.controls, first), known={})


def others(one: Corpus, other: Corpus, variants: Sequence[str]) -> int:
    """In how many pairs two corpora of the same pairs differ in one of these variants."""
    columns = [zip(one.variants[name], other.variants[name], strict=True) for name in variants if name in one.variants]
    return sum(any(a != b for a, b in row) for row in zip(*columns, strict=True))


def _any_chosen(release_dir: Path) -> bool:
    path = release_dir / "candidates.parquet"
    batches = table_batches(path, ["reasons"]) if path.is_file() else ()
    return any([NOT_CHOSEN] in batch.column(0).to_pylist() for batch in batches)


def _firsts(release_dir: Path) -> dict[tuple[str, str], str]:
    """By pair and variant the first accepted text, where that is not the released one: that one's number is none of the others'."""
    found = dict[tuple[str, str], str]()
    for place, rows in itertools.groupby(candidate_rows(release_dir), lambda row: (row["pair_id"], row["variant"])):
        for number, row in enumerate(rows, 1):
            if row["attempt"] != number:
                break
            if row["reasons"] == [NOT_CHOSEN]:
                found[place] = row["text"]
                break
    return found


def _with(corpus: Corpus, first: Mapping[tuple[str, str], str]) -> Corpus:
    def column(name: str, texts: Sequence[str]) -> list[str]:
        return [first.get((pair, name), text) for pair, text in zip(corpus.pair_ids, texts, strict=True)]

    return replace(corpus, variants={name: column(name, texts) for name, texts in corpus.variants.items()})
