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
from empathy_eval.design.contrasts import PAIR_VARIANTS, REFERENCE
from empathy_eval.design.dataset import SPLITS, column, parts_of, read_manifest, split_of
from empathy_eval.design.errata import original_id
from empathy_eval.design.language import Language, Rules, load_language
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.evaluation.corpus.pairs import Contexts, read_contexts
from empathy_eval.raters.judges.cases import Conversation, read_conversation, spread_out

ALL = "all"
PERSONAS = "personas.yaml"
# Columns of pairs that a context has.
COLUMNS = ("pair_id", "dialogue_id", "scenario_id", "scenario", "phase", "reference")


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


def draw_contexts(release_dir: Path, sample: ContextSample) -> tuple[tuple[Context, ...], int]:
    """The contexts of a sample in its order, and the number of turns that are none, as the helper has just spoken.

    The first N are a sample of N: a larger one only appends.

    Raises:
        InputError: if the folder is no release, or holds no context in the split.
    """
    manifest, splits = read_manifest(release_dir), SPLITS if sample.split == ALL else (sample.split,)
    columns = {name: column(release_dir, "pairs", name, splits) for name in COLUMNS}
    conversations = read_contexts(release_dir, "pairs", splits)
    row_of = {columns["pair_id"][row]: row for row in rows_of_seekers(conversations)}
    strata = {pair: (columns["scenario_id"][row], columns["phase"][row]) for pair, row in row_of.items()}
    pairs = spread_out(strata, sample.seed)[: sample.contexts]
    if not pairs:
        fix = "name another --split, or all"
        raise input_error(release_dir, f'holds no context in "{sample.split}" that a seeker ends', fix)
    catalogue, contexts = load_catalogue(), list[Context]()
    known = manifest["scenario_files"].get(PERSONAS) == catalogue.files.get(PERSONAS)
    # Contexts of one dialogue share its turns in memory.
    shared: dict[tuple[str, str], tuple[str, str]] = {}
    for pair in pairs:
        cells: dict[str, Any] = {name: values[row_of[pair]] for name, values in columns.items()}
        register = _register(cells["dialogue_id"], catalogue) if known else None
        turns = tuple(shared.setdefault(turn, turn) for turn in read_conversation(conversations[row_of[pair]]))
        contexts.append(Context(**cells, turn=parts_of(pair)[1], register=register, split=split_of(cells["dialogue_id"]), turns=turns))
    return tuple(contexts), len(conversations) - len(row_of)


def rows_of_seekers(contexts: Contexts) -> list[int]:
    """The rows whose context ends with a turn of the seeker."""
    return [row for row, role in enumerate(contexts.last_roles) if role == "seeker"]


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


def baseline_texts(release_dir: Path, contexts: Sequence[Context], language: str, canned: str | None) -> dict[str, dict[str, str]]:
    """By baseline and pair its reply to the contexts; a pair without a control has none.

    Raises:
        InputError: if the language has no fixed reply.
    """
    if canned is None:
        what = f'there is no {REPLIES}.yaml in the language "{language}", which holds a sympathy for all contexts'
        raise input_error("--baselines", what, "write one, have a speaker review it, and name its folder with --rules DIR")

    def variant(config: str, name: str) -> dict[str, str]:
        texts = dict(zip(column(release_dir, config, "pair_id"), column(release_dir, config, name), strict=True))
        return {context.pair_id: texts[context.pair_id] for context in contexts if context.pair_id in texts}

    return {
        **{name: variant("pairs", name) for name in (REFERENCE, *PAIR_VARIANTS)},
        NEAR_EMPATHETIC: variant("controls", NEAR_EMPATHETIC),
        ECHO: {context.pair_id: context.last for context in contexts},
        CANNED: {context.pair_id: canned for context in contexts},
        BM25: dict(_nearest(release_dir, contexts, language)),
    }


def read_turns(release_dir: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yields (split, dialogue, the seeker's message before, the reply) of every helper turn of a release."""
    for split in SPLITS:
        dialogues, references = (column(release_dir, "pairs", name, [split]) for name in ("dialogue_id", REFERENCE))
        contexts = read_contexts(release_dir, "pairs", [split])
        for row in rows_of_seekers(contexts):
            yield split, dialogues[row], contexts[row][-1]["text"], references[row]


def _nearest(release_dir: Path, contexts: Sequence[Context], language: str) -> Iterator[tuple[str, str]]:
    """By pair the helper turn of another split that answered the message nearest to its last one."""
    turns = list(read_turns(release_dir))
    search = Search([words(message, language) for _, _, message, _ in turns])
    split, dialogue = (np.array([turn[place] for turn in turns]) for place in (0, 1))
    for context in contexts:
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
