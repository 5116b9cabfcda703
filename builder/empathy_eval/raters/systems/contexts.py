"""Contexts that systems reply to, a seeded sample of the helper turns of a release, and the replies of baselines to them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.text import ENGLISH, words
from empathy_eval.design.configuration import language_of
from empathy_eval.design.contrasts import PAIR_VARIANTS, REFERENCE
from empathy_eval.design.dataset import SPLITS, column, parts_of, read_manifest, split_of
from empathy_eval.design.errata import original_id
from empathy_eval.design.language import Language, Rules, load_language
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.evaluation.corpus.pairs import Corpus, read_corpus
from empathy_eval.raters.judges.cases import Conversation, read_conversation, spread_out

ALL = "all"
PERSONAS = "personas.yaml"


def turns_json(turns: Conversation) -> list[dict[str, str]]:
    """Turns as JSON values."""
    return [{"role": role, "text": text} for role, text in turns]


@dataclass(frozen=True)
class Context:
    """A helper turn of a release: the turns before it, their dialogue, and the reply of the release."""

    pair_id: str
    dialogue_id: str
    turn: int
    scenario_id: int
    scenario: str
    phase: str
    register: str | None
    split: str
    reference: str
    turns: Conversation = field(metadata={"name": "context", "json": turns_json})

    @property
    def last(self) -> str:
        """The seeker's last message."""
        return self.turns[-1][1]


@dataclass(frozen=True)
class ContextSample:
    """The split of the contexts, or all; how many, None for all; and the seed of their order."""

    split: str = "test"
    contexts: int | None = 200
    seed: int = 0


@dataclass(frozen=True)
class SampledContexts:
    """The contexts of a sample in its order, with their rows of the corpus; in ``left_out`` turns the helper has just spoken."""

    contexts: tuple[Context, ...]
    rows: tuple[int, ...]
    left_out: int
    corpus: Corpus


def draw_contexts(release_dir: Path, sample: ContextSample, variants: Sequence[str] = ()) -> SampledContexts:
    """The contexts of a release: the first N are a sample of N, and a larger one only appends. The corpus has the named variants.

    Raises:
        InputError: if the folder is no release, or holds no context in the split.
    """
    manifest = read_manifest(release_dir)
    splits = SPLITS if sample.split == ALL else (sample.split,)
    corpus = read_corpus(release_dir, "pairs", variants, contexts=True, splits=splits, language=language_of(manifest["configuration"]))
    row_of = {corpus.pair_ids[row]: row for row in rows_of_seekers(corpus)}
    strata = {name: (corpus.scenario_ids[row], corpus.groups["phase"][row]) for name, row in row_of.items()}
    rows = tuple(row_of[name] for name in spread_out(strata, sample.seed)[: sample.contexts])
    if not rows:
        fix = "name another --split, or all"
        raise input_error(release_dir, f'holds no context in "{sample.split}" that a seeker ends', fix)
    catalogue = load_catalogue()
    known = manifest["scenario_files"].get(PERSONAS) == catalogue.files.get(PERSONAS)
    # Contexts of one dialogue share its turns in memory.
    shared: dict[tuple[str, str], tuple[str, str]] = {}
    contexts = tuple(_context(corpus, row, catalogue if known else None, shared) for row in rows)
    return SampledContexts(contexts, rows, len(corpus) - len(row_of), corpus)


def rows_of_seekers(corpus: Corpus) -> list[int]:
    """The rows of the pairs whose context ends with a turn of the seeker."""
    roles: list[str | None] = corpus.contexts.last_roles  # type: ignore[attr-defined]  # contexts of read_corpus have it
    return [row for row, role in enumerate(roles) if role == "seeker"]


def _context(corpus: Corpus, row: int, catalogue: Catalogue | None, shared: dict[tuple[str, str], tuple[str, str]]) -> Context:
    pair_id, dialogue = corpus.pair_ids[row], corpus.dialogues[row]
    return Context(
        pair_id, dialogue, parts_of(pair_id)[1], corpus.scenario_ids[row], corpus.groups["scenario"][row], corpus.groups["phase"][row],
        _register(dialogue, catalogue) if catalogue else None, split_of(dialogue),
        corpus.references[row], tuple(shared.setdefault(turn, turn) for turn in read_conversation(corpus.contexts[row])),
    )  # fmt: skip


def _register(dialogue_id: str, catalogue: Catalogue) -> str | None:
    """The register of the seeker of a dialogue, as planned or curated; None if it is not known."""
    number, _, index = original_id(dialogue_id).partition("-")
    if catalogue.personas is None:
        return None
    if index == "seed":
        return next((scenario.seed.register for scenario in catalogue.scenarios if scenario.number == int(number) and scenario.seed), None)
    return catalogue.personas.rotated(int(number), int(index)).name


NEAR_EMPATHETIC, ECHO, CANNED, BM25 = "near_empathetic", "echo", "canned", "bm25"
BASELINES = (REFERENCE, "empathetic", NEAR_EMPATHETIC, "apathetic", ECHO, CANNED, BM25)
REPLIES, REFUSALS = "replies", "refusals"


def load_reply_rules(code: str, folder: Path | None = None) -> tuple[Language, str | None]:
    """The rules of a language, with the patterns of refusals of its ``replies.yaml``, and the fixed reply in it; None without that file.

    Raises:
        InputError: if the folder does not exist, or a file in it is not valid.
    """
    language, packaged = load_language(code, folder), data_folder("rules")
    path = (folder or (packaged if code == ENGLISH else packaged / code)) / f"{REPLIES}.yaml"
    if not path.is_file():
        return language, None
    rules: dict[str, Any] = read_yaml(path, "reply_texts")
    refusals = Rules(digest(rules[REFUSALS]), str(path), rules[REFUSALS])
    return Language(code, {**language.rules, REFUSALS: refusals}), rules["canned"]


def baseline_texts(release_dir: Path, sampled: SampledContexts, language: str, canned: str | None) -> dict[str, dict[str, str]]:
    """By baseline and pair its reply to the contexts; a pair without a control has none.

    Raises:
        InputError: if the language has no fixed reply.
    """
    if canned is None:
        what = f'there is no {REPLIES}.yaml in the language "{language}", which holds a sympathy for all contexts'
        raise input_error("--baselines", what, "write one, have a speaker review it, and name its folder with --rules DIR")
    near = dict(zip(column(release_dir, "controls", "pair_id"), column(release_dir, "controls", NEAR_EMPATHETIC), strict=True))
    variants = {REFERENCE: sampled.corpus.references, **{name: sampled.corpus.variants[name] for name in PAIR_VARIANTS}}
    rows = dict(zip([context.pair_id for context in sampled.contexts], sampled.rows, strict=True))
    return {
        **{name: {pair: texts[row] for pair, row in rows.items()} for name, texts in variants.items()},
        NEAR_EMPATHETIC: {pair: near[pair] for pair in rows if pair in near},
        ECHO: {context.pair_id: context.last for context in sampled.contexts},
        CANNED: dict.fromkeys(rows, canned),
        BM25: dict(_nearest(release_dir, sampled, language)),
    }


def read_turns(release_dir: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yields (split, dialogue, the seeker's message before, the reply) of every helper turn of a release."""
    for split in SPLITS:
        corpus = read_corpus(release_dir, "pairs", (), contexts=True, splits=[split])
        for row in rows_of_seekers(corpus):
            yield split, corpus.dialogues[row], corpus.contexts[row][-1]["text"], corpus.references[row]


def _nearest(release_dir: Path, sampled: SampledContexts, language: str) -> Iterator[tuple[str, str]]:
    """By pair the helper turn of another split that answered the message nearest to its last one."""
    turns = list(read_turns(release_dir))
    search = Search([words(message, language) for _, _, message, _ in turns])
    split, dialogue = (np.array([turn[place] for turn in turns]) for place in (0, 1))
    for context in sampled.contexts:
        allowed = (split != context.split) & (dialogue != context.dialogue_id)
        if (place := search.best(words(context.last, language), allowed)) is not None:
            yield context.pair_id, turns[place][3]


class Search:
    """BM25 over documents of words.

    A document's score is the sum over the words of a query of idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * dl / avdl)), from Robertson and
    Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond", equation 3.15, whose k1 + 1 changes no order. The idf is
    ln(1 + (N - n + 0.5) / (n + 0.5)): that of equation 3.3 with 1 added, so that it is never below 0. A word that a query has twice counts
    twice.
    """

    def __init__(self, documents: Sequence[Sequence[str]], k1: float = 1.2, b: float = 0.75) -> None:
        lengths = np.array([len(document) for document in documents], dtype=np.float64)
        self._size, self._k1 = len(documents), k1
        self._norm = k1 * (1 - b + b * lengths / max(lengths.mean() if len(lengths) else 1.0, 1e-12))
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for place, document in enumerate(documents):
            for word, count in Counter(document).items():
                postings[word].append((place, count))
        self._postings = {word: np.array(pairs).T for word, pairs in postings.items()}

    def scores(self, query: Sequence[str]) -> Any:
        """The score of each document, shape (documents,)."""
        scores = np.zeros(self._size)
        for word, times in Counter(query).items():
            if word in self._postings:
                places, tf = self._postings[word]
                idf = math.log(1 + (self._size - len(places) + 0.5) / (len(places) + 0.5))
                scores[places] += times * idf * tf * (self._k1 + 1) / (tf + self._norm[places])
        return scores

    def best(self, query: Sequence[str], allowed: Any) -> int | None:
        """The first of the allowed documents with the highest score; None if none is allowed."""
        return int(np.argmax(np.where(allowed, self.scores(query), -1.0))) if allowed.any() else None
