"""Replies that need no model: texts of the release, an echo, one sympathy for all, and the nearest helper turn by BM25."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.text import ENGLISH, words
from empathy_eval.design.contrasts import PAIR_VARIANTS
from empathy_eval.design.language import Language, Rules, load_language
from empathy_eval.raters.systems.contexts import Drawn, all_turns, controls_of

REFERENCE, NEAR_EMPATHETIC = "reference", "near_empathetic"
ECHO, CANNED, BM25 = "echo", "canned", "bm25"
BASELINES = (REFERENCE, "empathetic", NEAR_EMPATHETIC, "apathetic", ECHO, CANNED, BM25)
REPLIES, REFUSALS = "replies", "refusals"


@dataclass(frozen=True)
class ReplyTexts:
    """The file ``replies.yaml`` of a language: the sympathy for all, and the patterns of refusals beside the other rules."""

    canned: str | None
    language: Language


def reply_texts(code: str, folder: Path | None = None) -> ReplyTexts:
    """The rules of a language with the patterns of refusals among them; what a language has no file for is not there.

    Raises:
        InputError: if the folder is none, or a file in it is not valid.
    """
    language = load_language(code, folder)
    packaged = data_folder("rules")
    path = (folder or (packaged if code == ENGLISH else packaged / code)) / f"{REPLIES}.yaml"
    if not path.is_file():
        return ReplyTexts(None, language)
    said: dict[str, Any] = read_yaml(path, "reply_texts")
    refusals = Rules(digest(said[REFUSALS]), str(path), said[REFUSALS])
    return ReplyTexts(said["canned"], Language(code, {**language.rules, REFUSALS: refusals}))


def baseline_texts(release_dir: Path, found: Drawn, texts: ReplyTexts) -> dict[str, dict[str, str]]:
    """By baseline and pair what it replies to the contexts that were drawn; a control that a pair has not is not there.

    Raises:
        InputError: if the language has no sympathy for all.
    """
    if texts.canned is None:
        what = f'there is no {REPLIES}.yaml in the language "{texts.language.code}", which holds a sympathy for all contexts'
        raise input_error("--baselines", what, "write one, have a speaker review it, and name its folder with --rules DIR")
    near = controls_of(release_dir, NEAR_EMPATHETIC)
    made = {
        REFERENCE: {one.pair_id: one.reference for one in found.contexts},
        **{name: {one.pair_id: found.corpus.variants[name][row] for row, one in found.by_row} for name in PAIR_VARIANTS},
        NEAR_EMPATHETIC: {one.pair_id: near[one.pair_id] for one in found.contexts if one.pair_id in near},
        ECHO: {one.pair_id: one.last for one in found.contexts},
        CANNED: {one.pair_id: texts.canned for one in found.contexts},
        BM25: dict(_nearest(release_dir, found, texts.language.code)),
    }
    return {name: made[name] for name in BASELINES}


def _nearest(release_dir: Path, found: Drawn, language: str) -> Iterator[tuple[str, str]]:
    """By pair the helper turn of another split whose seeker says what is nearest to the last message."""
    turns = list(all_turns(release_dir))
    search = Search([words(message, language) for _, _, message, _ in turns])
    split, dialogue = (np.array([turn[place] for turn in turns]) for place in (0, 1))
    for one in found.contexts:
        allowed = (split != one.split) & (dialogue != one.dialogue_id)
        place = search.best(words(one.last, language), allowed)
        if place is not None:
            yield one.pair_id, turns[place][3]


class Search:
    """BM25 over documents of words.

    A document's score is the sum over the words of a query of idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * dl / avdl)), from Robertson and
    Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond", equation 3.15, whose k1 + 1 changes no order. The idf is
    ln(1 + (N - n + 0.5) / (n + 0.5)): that of equation 3.3 with 1 added, so that it is never below 0. A word that a query has twice counts
    twice.
    """

    def __init__(self, documents: Sequence[Sequence[str]], k1: float = 1.2, b: float = 0.75) -> None:
        self._size = len(documents)
        lengths = np.array([len(one) for one in documents], dtype=np.float64)
        self._norm = k1 * (1 - b + b * lengths / max(lengths.mean() if len(lengths) else 1.0, 1e-12))
        self._k1, postings = k1, defaultdict[str, tuple[list[int], list[int]]](lambda: ([], []))
        for place, one in enumerate(documents):
            for word, count in Counter(one).items():
                postings[word][0].append(place)
                postings[word][1].append(count)
        self._postings = {word: (np.array(places), np.array(counts, dtype=np.float64)) for word, (places, counts) in postings.items()}

    def scores(self, query: Sequence[str]) -> Any:
        """The score of each document, shape (documents,)."""
        found = np.zeros(self._size)
        for word, times in Counter(query).items():
            if word in self._postings:
                places, tf = self._postings[word]
                idf = math.log(1 + (self._size - len(places) + 0.5) / (len(places) + 0.5))
                found[places] += times * idf * tf * (self._k1 + 1) / (tf + self._norm[places])
        return found

    def best(self, query: Sequence[str], allowed: Any) -> int | None:
        """The first of the allowed documents with the highest score; None if none is allowed."""
        return int(np.argmax(np.where(allowed, self.scores(query), -1.0))) if allowed.any() else None
