"""Texts of a release for the shortcut audit: tokenised, scored by untrained shortcuts, embedded; and what of them reveals a stance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import InputError, job_error, missing_package
from empathy_eval.base.hashing import digest_file, signature_line
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.contrasts import CELLS, CONTROLS, FAR, PAIR_VARIANTS
from empathy_eval.design.dataset import SPLITS
from empathy_eval.design.personas import VOICES
from empathy_eval.evaluation.corpus.pairs import UNPLANNED, Corpus, draw_rows, known_before, read_corpus
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings, estimate
from empathy_eval.evaluation.inversion.results import PLACES
from empathy_eval.evaluation.inversion.rows import FeatureDirection
from empathy_eval.evaluation.shortcuts.linear_classifiers import Counts, Lexicon, TokenizedTexts
from empathy_eval.metrics.bertscore import FILE, PACKAGED, Embedder, folder_of
from empathy_eval.metrics.bertscore import PLACES as VECTOR_PLACES
from empathy_eval.metrics.lexical import UNIT, Echo, FeatureCounter, Length, Shares, Vader, word_lists
from empathy_eval.metrics.protocol import Array, Pairs, Segments
from empathy_eval.metrics.scoring import Scoring, statistics_of
from empathy_eval.statistics.estimate import Clusters

NAME = "embedding"
LAYER = 6
# So many pairs at most are embedded.
MOST = 5000
# What is added to the squares of each dimension, so that few pairs do not fit it to themselves.
RIDGE = 10.0


class Embedding(Embedder):
    """The packaged model as BERTScore loads it; a text is the mean of its tokens' vectors, normalised to length 1."""

    def __init__(self, loaded: Iterable[object] = ()) -> None:
        """Loads the model, or takes that of one of the loaded metrics.

        Raises:
            InputError: if its packages are not installed.
        """
        try:
            super().__init__(PACKAGED, LAYER, loaded)
        except InputError as error:
            raise missing_package(f"report: shortcuts: {NAME}", "bertscore", f"leave it out with --without {NAME}") from error
        versions = {name: metadata.version(name) for name in ("bert-score", "transformers", "torch", "numpy")}
        weights = digest_file(folder_of(PACKAGED) / FILE)[:12]
        vectors = {"model": PACKAGED, "layer": LAYER, "weights": weights, "pooled": "mean,normalised", "places": VECTOR_PLACES}
        sample = {"sample": MOST, "drawn": "sha256", **versions}
        self.signature = signature_line(**vectors, form="ridge-of-differences", ridge=RIDGE, **sample)
        # What is said of cosines, where nothing is learned.
        self.of_cosines = signature_line(**vectors, **sample)


def embedding_of(settings: Mapping[str, Any], without: Collection[str] = (), loaded: Iterable[object] = ()) -> Embedding | None:
    """Returns the embedding, if the part ``report`` of a configuration has it and it is not left out.

    Raises:
        InputError: if its packages are not installed.
    """
    return Embedding(loaded) if NAME in settings.get("shortcuts", {}) and NAME not in without else None


def sample_pairs(pair_ids: Sequence[str], seed: int) -> Counts:
    """Returns the rows of at most ``MOST`` pairs, in their order, drawn by the SHA-256 of their ids."""
    return np.array(draw_rows(pair_ids, NAME, seed, MOST), dtype=np.int64)


def ridge_margins(kind: Array, cold: Array, folds: Counts) -> Array:
    """Returns by pair the distance of its two texts along the ridge direction of the pairs of the other folds.

    That is (X'X + ridge)^-1 X'1, where X are the differences of those pairs.
    """
    difference = kind - cold
    margins = np.zeros(len(difference))
    for fold in np.unique(folds).tolist():
        own = folds == fold
        rest = difference[~own]
        squares = rest.T @ rest + RIDGE * np.eye(difference.shape[1])
        margins[own] = difference[own] @ np.linalg.solve(squares, rest.sum(axis=0))
    return margins


def count_features(texts: Sequence[str]) -> Shares:
    """Returns the plain features of texts in millionths, shape (texts, features); without contexts the echo is 0."""
    return FeatureCounter(word_lists()).of(Segments(texts, [""] * len(texts)))


def feature_directions(kind: Shares, cold: Shares, clusters: Clusters, chance: ResamplingSettings) -> tuple[FeatureDirection, ...]:
    """Returns the direction of each feature, with intervals over two dialogues or more."""
    sides = [shares.astype(np.float64) / UNIT for shares in (kind, cold)]
    sums = np.column_stack([np.ones(len(kind)), *(part for shares in sides for part in (shares, shares**2))])
    totals = clusters.totals(sums)
    values = _standardised(totals.sum(axis=0, keepdims=True))[0]
    drawn = _standardised(clusters.bootstrap(totals, chance.resamples, chance.seed)) if len(clusters) > 1 else None
    lists, result = word_lists(), list[FeatureDirection]()
    settings = signature_line(difference="Cohen's d,mean-of-variances", features=lists.sha256[:12], vader=lists.vader[:12])
    signature = f"{settings}|{chance.of_intervals(clusters)}"
    for place, (value, listed) in enumerate(zip(values.tolist(), lists.features, strict=True)):
        # Where a resample has no spread, no interval is valid.
        difference = estimate(value, None if drawn is None else drawn[:, place])
        result.append(FeatureDirection(listed.name, listed.what, difference, signature))
    return tuple(result)


def _standardised(totals: Array) -> Array:
    """Returns Cohen's d of each feature from rows of sums (count, then sums and sums of squares by side); NaN without spread."""
    count, parts = totals[:, :1], np.split(totals[:, 1:], 4, axis=1)
    means, squares = [parts[0] / count, parts[2] / count], [parts[1] / count, parts[3] / count]
    spread = np.sqrt(np.maximum((squares[0] - means[0] ** 2 + squares[1] - means[1] ** 2) / 2, 0))
    return np.divide(means[0] - means[1], spread, out=np.full_like(spread, np.nan), where=spread > 0)


REFERENCE, VOICE = "reference", "voice"
# What the contrasts of each config compare.
COMPARED = {"pairs": (REFERENCE, *PAIR_VARIANTS), "controls": CELLS}


@dataclass(frozen=True)
class AuditInput:
    """Inputs of an audit: the pairs and controls of some splits, and known statistics of their texts.

    Those are by metric and variant: over the pairs for the two variants of a pair, over the controls for the other two cells.
    """

    folder: Path
    pairs: Corpus
    controls: Corpus
    splits: Sequence[str] = SPLITS
    known: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)

    @classmethod
    def of(cls, release_dir: Path, language: str = ENGLISH) -> AuditInput:
        """Reads all pairs of a release."""
        pairs = read_corpus(release_dir, "pairs", PAIR_VARIANTS, language=language)
        return cls(release_dir, pairs, read_corpus(release_dir, "controls", CELLS, language=language))


@dataclass(frozen=True)
class TokenizedPairs:
    """The pairs of a config: tokenised texts by variant, and by untrained shortcut its signature and scores by variant.

    ``sample`` are the rows of pairs that are embedded, ``embedded`` their embeddings by variant. ``shares`` are the plain
    features by variant, of English texts.
    """

    corpus: Corpus
    readings: Mapping[str, TokenizedTexts]
    untrained: Mapping[str, tuple[str, Mapping[str, Array]]]
    sample: Counts
    embedded: Mapping[str, Array] = field(default_factory=dict)
    shares: Mapping[str, Shares] = field(default_factory=dict)

    def voices(self, *variants: str) -> list[Sequence[str]]:
        """Returns by variant the voice of each text; empty where no voice is planned."""
        columns: list[Sequence[str]] = [self.corpus.groups.get(VOICES[name in FAR], ()) for name in variants]
        return columns if all(columns) and not all({UNPLANNED}.issuperset(column) for column in columns) else []


def voice_wins(kind: Sequence[str], cold: Sequence[str], folds: Counts) -> Array:
    """Returns the wins by pair of the voices of its texts: add-one log-odds of the other folds."""
    won = np.empty(len(folds))
    for fold in set(folds.tolist()):
        rows = [Counter(voice for voice, other in zip(side, folds, strict=True) if other != fold) for side in (kind, cold)]
        for row in np.flatnonzero(folds == fold).tolist():
            odds = [(rows[0][side[row]] + 1) / (rows[1][side[row]] + 1) for side in (kind, cold)]
            won[row] = (np.sign(odds[0] - odds[1]) + 1) / 2
    return won


def read_texts(inputs: AuditInput, lexicon: Lexicon, scoring: Scoring, embedding: Embedding | None, seed: int) -> dict[str, TokenizedPairs]:
    """Reads the texts by config.

    Raises:
        JobError: if VADER cannot score one of them.
    """
    return {config: _read(inputs, config, lexicon, scoring, (embedding, seed)) for config in COMPARED}


def counted_texts(inputs: AuditInput, lexicon: Lexicon) -> dict[str, TokenizedPairs]:
    """Reads the texts by config, for word counts alone."""
    by_config = {}
    for config in COMPARED:
        corpus, texts = _texts(inputs, config)
        by_config[config] = TokenizedPairs(
            corpus, {name: lexicon.read(some) for name, some in texts.items()}, {}, np.zeros(0, dtype=np.int64)
        )
    return by_config


def _texts(inputs: AuditInput, config: str) -> tuple[Corpus, dict[str, Sequence[str]]]:
    """Returns the pairs of a config, and by variant the texts that its contrasts compare."""
    corpus: Corpus = getattr(inputs, config)
    return corpus, {name: corpus.references if name == REFERENCE else corpus.variants[name] for name in COMPARED[config]}


def _read(inputs: AuditInput, config: str, lexicon: Lexicon, scoring: Scoring, embedded: tuple[Embedding | None, int]) -> TokenizedPairs:
    corpus, texts = _texts(inputs, config)
    readings = {name: lexicon.read(some) for name, some in texts.items()}
    # VADER's lexicon is English: in another language it would count next to nothing.
    vader = {"VADER": (Vader.signature, _vader(inputs, corpus, texts, scoring))} if lexicon.language == ENGLISH else {}
    untrained = vader | {
        "echo": (Echo(lexicon.language).signature, _echoes(inputs, config, readings, lexicon)),
        "length": (Length(lexicon.language).signature, {name: reading.lengths.astype(np.float64) for name, reading in readings.items()}),
    }
    embedding, seed = embedded
    shares = {name: count_features(some) for name, some in texts.items()} if lexicon.language == ENGLISH else {}
    if embedding is None:
        return TokenizedPairs(corpus, readings, untrained, np.zeros(0, dtype=np.int64), shares=shares)
    sample = sample_pairs(corpus.pair_ids, seed)
    vectors = embedding.embedded([some[row] for some in texts.values() for row in sample.tolist()])
    return TokenizedPairs(corpus, readings, untrained, sample, dict(zip(texts, np.split(vectors, len(texts)), strict=True)), shares)


def _vader(inputs: AuditInput, corpus: Corpus, texts: Mapping[str, Sequence[str]], scoring: Scoring) -> dict[str, Array]:
    """Returns scores by variant; known ones are not computed again."""
    known = inputs.known.get(Vader.name, {})
    scores = {name: known[name] for name in texts if name in known and (name in CONTROLS) == (corpus is inputs.controls)}
    left = {name: some for name, some in texts.items() if name not in scores}
    if left:
        result = statistics_of([Vader()], Pairs(corpus.pair_ids, corpus.references, left), scoring)[Vader.name]
        if result.fault:
            raise job_error(result.fault.where, result.fault.what, "install vaderSentiment again")
        scores |= result.rows
    return {name: np.round(values[:, 0], PLACES) for name, values in scores.items()}


def _echoes(inputs: AuditInput, config: str, readings: Mapping[str, TokenizedTexts], lexicon: Lexicon) -> dict[str, Array]:
    """Returns by variant and pair the share of a reply's words that the seeker used before it."""
    shares = {name: np.zeros(len(reading.texts)) for name, reading in readings.items()}
    for row, seeker_words in enumerate(known_before(inputs.folder, config, lexicon.known, inputs.splits)):
        for name, reading in readings.items():
            if own := reading.codes[reading.starts[row] : reading.starts[row + 1]].tolist():
                shares[name][row] = sum(code in seeker_words for code in own) / len(own)
    return shares
