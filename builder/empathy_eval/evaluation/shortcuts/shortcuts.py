"""The shortcut audit: how often shortcuts, which understand nothing, identify the empathetic text of a pair."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import input_error, nearest
from empathy_eval.base.hashing import digest_bytes, signature_line
from empathy_eval.base.stages import advance, stage
from empathy_eval.base.tabular import table_batches
from empathy_eval.design.configuration import language_of
from empathy_eval.design.contrasts import APATHETIC, CELLS, FAR, NEAR, PAIR_VARIANTS, RAW, STANCE, STANCE_FAR, STANCE_NEAR
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.provenance import Provenance
from empathy_eval.design.word_list import NOT_CHOSEN, TOLD_BY, ContrastWeights, WordList
from empathy_eval.evaluation.corpus.pairs import Corpus, candidate_rows
from empathy_eval.evaluation.inversion.evaluation import Evaluation
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings, accuracies
from empathy_eval.evaluation.inversion.rows import (
    ContrastAudit,
    FeatureDirection,
    FirstSamples,
    IndicativeWord,
    Shortcut,
    ShortcutAudit,
    WordMargin,
)
from empathy_eval.evaluation.shortcuts.linear_classifiers import (
    FORMS,
    UNIT,
    CharacterFeatures,
    Counts,
    FeatureClassifier,
    FittedClassifier,
    LengthFeatures,
    Lexicon,
    PairSides,
    WordFeatures,
    WordPairFeatures,
)
from empathy_eval.evaluation.shortcuts.texts import NAME as EMBEDDING
from empathy_eval.evaluation.shortcuts.texts import (
    REFERENCE,
    VOICE,
    AuditInput,
    Embedding,
    TokenizedPairs,
    counted_texts,
    embedding_of,
    feature_directions,
    read_texts,
    ridge_margins,
    voice_wins,
)
from empathy_eval.metrics.protocol import Array
from empathy_eval.metrics.scoring import PLAIN, Scoring
from empathy_eval.statistics.estimate import wins


def first_samples(inputs: AuditInput) -> AuditInput | None:
    """Returns the inputs with the first accepted candidate in place of each chosen one; None where nothing was chosen.

    Raises:
        InputError: if the candidates of the release are none.
    """
    path = inputs.folder / "candidates.parquet"
    batches = table_batches(path, ["reasons"]) if path.is_file() else ()
    if not any([NOT_CHOSEN] in batch.column(0).to_pylist() for batch in batches):
        return None
    first = _firsts(inputs.folder)

    def with_first(corpus: Corpus) -> Corpus:
        texts = {name: zip(corpus.pair_ids, some, strict=True) for name, some in corpus.variants.items()}
        return replace(corpus, variants={name: [first.get((pair, name), text) for pair, text in some] for name, some in texts.items()})

    return replace(inputs, pairs=with_first(inputs.pairs), controls=with_first(inputs.controls), known={})


def count_differing(corpus: Corpus, other: Corpus, variants: Sequence[str]) -> int:
    """Returns in how many pairs two corpora of the same pairs differ in one of these variants."""
    columns = [zip(corpus.variants[name], other.variants[name], strict=True) for name in variants if name in corpus.variants]
    return sum(any(a != b for a, b in row) for row in zip(*columns, strict=True))


def _firsts(release_dir: Path) -> dict[tuple[str, str], str]:
    """Returns by pair and variant the first accepted text, where another one was released."""
    first_texts = dict[tuple[str, str], str]()
    for place, rows in itertools.groupby(candidate_rows(release_dir), lambda row: (row["pair_id"], row["variant"])):
        for number, row in enumerate(rows, 1):
            if row["attempt"] != number:
                break
            if row["reasons"] == [NOT_CHOSEN]:
                first_texts[place] = row["text"]
                break
    return first_texts


FOLDS, TELLTALE, EXTREMES = 5, 20, 5
BY = ("dialogue", "scenario")
WORDS_ALONE = "words alone"
FIRST_SAMPLES = f"{WORDS_ALONE}, first samples"
# (contrast, config, kind variant, cold variant); the reference is the kind text of its contrast.
AUDITED = (
    (RAW, "pairs", *PAIR_VARIANTS[::-1]), (STANCE_NEAR, "controls", *NEAR), (STANCE_FAR, "controls", *FAR),
    ("reference - apathetic", "pairs", REFERENCE, APATHETIC),
)  # fmt: skip


def audit(release_dir: Path, *, by: str = "dialogue", without: Collection[str] = (), scoring: Scoring = PLAIN) -> ShortcutAudit:
    """Audits all pairs of a release; ``by`` says whether folds are of dialogues or of whole scenarios.

    The embedding is among the shortcuts where the manifest asks for it and neither that nor the caller leaves it out.

    Raises:
        InputError: if the folder is no release, ``by`` is neither, or the packages of the embedding are not installed.
    """
    if by not in BY:
        raise input_error("by", f'"{by}" is not known', f"use one of these: {', '.join(BY)}{nearest(by, BY)}")
    if strange := [name for name in without if name != EMBEDDING]:
        raise input_error("--without", f'"{strange[0]}" cannot be left out of the audit', f"leave out {EMBEDDING}, or nothing")
    manifest = read_manifest(release_dir)
    configuration = manifest["configuration"]
    embedding = embedding_of(configuration["report"], [*without, *manifest.get("without", ())])
    chance = ResamplingSettings(configuration["report"]["bootstrap"], 0, configuration["seed"])
    texts = AuditInput.of(release_dir, language_of(configuration))
    result = audit_texts(texts, chance, by=by, embedding=embedding, scoring=scoring)
    counts = len(texts.pairs), len(texts.controls)
    settings: dict[str, Any] = {"by": by, "without": sorted(without), "embedding": embedding is not None}
    return result.of(Provenance.of(release_dir, counts=counts, **settings, resamples=chance.resamples, seed=chance.seed))


def audit_texts(
    inputs: AuditInput, chance: ResamplingSettings, *, by: str = "dialogue", embedding: Embedding | None = None, scoring: Scoring = PLAIN
) -> ShortcutAudit:
    """Audits the given pairs, such as those of a report; known scores are not computed again."""
    stage("reading texts for the shortcut audit")
    lexicon = Lexicon(inputs.pairs.language)
    texts = read_texts(inputs, lexicon, scoring, embedding, chance.seed)
    learners = {
        WORDS_ALONE: words_alone(lexicon),
        "words and pairs of words": FeatureClassifier(WordPairFeatures(lexicon), ("log-odds",)),
        "characters": FeatureClassifier(CharacterFeatures(), ("log-odds",)),
        "length and punctuation": FeatureClassifier(LengthFeatures(), ("standardised",)),
    }
    audits, known = dict[str, ContrastAudit](), lexicon.words
    won, word_margins = dict[str, dict[str, _ShortcutResult]](), dict[str, float]()
    stage("shortcut audit", len(AUDITED), "contrasts")
    for name, config, kind, cold in AUDITED:
        pairs = _ContrastPairs(texts[config], kind, cold, assign_folds(fold_units(texts[config].corpus, by), chance.seed), by)
        won[name], learned = pairs.won(learners, embedding)
        rows = pairs.judged(won[name], chance)
        advance()
        audits[name] = ContrastAudit(name, config, kind, cold, *pairs.counts, rows, directions=pairs.directions(chance))
        if learned:
            audits[name] = _explained(audits[name], pairs.texts.corpus.pair_ids, learned, known)
            if name == RAW:
                margins = (learned.margins / UNIT).tolist()
                word_margins = dict(zip(pairs.texts.corpus.pair_ids, margins, strict=True))
    near, far = audits[STANCE_NEAR], audits[STANCE_FAR]
    both = _ContrastPairs(texts["controls"], "", "", assign_folds(fold_units(texts["controls"].corpus, by), chance.seed), by)
    sides = " and ".join((near.kind, far.kind)), " and ".join((near.cold, far.cold))
    rows = both.judged(_at_equal_closeness(won[STANCE_NEAR], won[STANCE_FAR]), chance)
    stance = ContrastAudit(STANCE, "controls", *sides, *both.counts, rows)
    return ShortcutAudit(by, (*audits.values(), stance), word_margins, tuple(_first(inputs, chance, by)))


def _first(inputs: AuditInput, chance: ResamplingSettings, by: str) -> Iterator[FirstSamples]:
    """Yields the accuracy of words alone over first samples by contrast, trained and folded as over the chosen ones."""
    if (first := first_samples(inputs)) is None:
        return
    lexicon, won = Lexicon(first.pairs.language), dict[str, dict[str, _ShortcutResult]]()
    texts, learners = counted_texts(first, lexicon), {FIRST_SAMPLES: words_alone(lexicon)}
    for name, config, kind, cold in (*AUDITED, (STANCE, "controls", "", "")):
        pairs = _ContrastPairs(texts[config], kind, cold, assign_folds(fold_units(texts[config].corpus, by), chance.seed), by)
        won[name] = _at_equal_closeness(won[STANCE_NEAR], won[STANCE_FAR]) if name == STANCE else pairs.won(learners, None)[0]
        (row,) = pairs.judged(won[name], chance)
        yield FirstSamples(name, count_differing(getattr(inputs, config), pairs.texts.corpus, (kind, cold) if kind else CELLS), row)


def words_alone(lexicon: Lexicon) -> FeatureClassifier:
    """Returns the shortcut that reads only which words a text has."""
    return FeatureClassifier(WordFeatures(lexicon), ("log-odds", "mean-over-spread", "mean-over-variance"))


def audit_evaluation(evaluation: Evaluation, embedding: Embedding | None = None) -> ShortcutAudit:
    """Audits the pairs of an evaluation."""
    inputs = AuditInput(evaluation.folder, evaluation.pairs, evaluation.controls, evaluation.splits, evaluation.known)
    return audit_texts(inputs, evaluation.chance, embedding=embedding, scoring=evaluation.scoring)


def fold_units(corpus: Corpus, by: str) -> Sequence[str]:
    """Returns the unit of folds of each pair."""
    return corpus.dialogues if by == "dialogue" else [str(scenario) for scenario in corpus.scenario_ids]


def assign_folds(units: Sequence[str], seed: int) -> Counts:
    """Returns the fold of each pair, by its dialogue (or scenario); these are dealt in the order of their SHA-256.

    There are ``FOLDS`` folds, and fewer where there are fewer dialogues.
    """
    order = sorted(set(units), key=lambda unit: digest_bytes(f"{seed}:{unit}".encode()))
    fold = {unit: number % FOLDS for number, unit in enumerate(order)}
    return np.array([fold[unit] for unit in units], dtype=np.int64)


@dataclass(frozen=True)
class _ShortcutResult:
    """Wins of a shortcut by pair, or by pair of a sample (None where not defined), and its settings."""

    signature: str
    trained: bool
    won: Array | None
    sample: Counts | None = None


def _at_equal_closeness(near: Mapping[str, _ShortcutResult], far: Mapping[str, _ShortcutResult]) -> dict[str, _ShortcutResult]:
    """Returns by pair the mean of the wins of each shortcut near and far."""

    def mean(first: _ShortcutResult, second: _ShortcutResult) -> _ShortcutResult:
        both = [first.signature] if first.signature == second.signature else [f"near({first.signature})", f"far({second.signature})"]
        won = None if first.won is None or second.won is None else (first.won + second.won) / 2
        return replace(first, signature="|".join(["mean:near,far", *both]), won=won)

    return {name: mean(result, far[name]) for name, result in near.items()}


@dataclass(frozen=True)
class _ContrastPairs:
    """Two variants of all pairs of a config, with the fold of each pair."""

    texts: TokenizedPairs
    kind: str
    cold: str
    folds: Counts
    by: str

    @property
    def number(self) -> int:
        """The number of folds."""
        return int(self.folds.max(initial=-1)) + 1

    @property
    def counts(self) -> tuple[int, int, int]:
        """The numbers of pairs, dialogues and folds."""
        return len(self.texts.corpus), len(self.texts.corpus.clusters), self.number

    def directions(self, chance: ResamplingSettings) -> tuple[FeatureDirection, ...]:
        """Returns the direction of each plain feature; empty without pairs, and in another language than English."""
        shares, clusters = self.texts.shares, self.texts.corpus.clusters
        return feature_directions(shares[self.kind], shares[self.cold], clusters, chance) if shares and len(clusters) else ()

    def won(
        self, learners: Mapping[str, FeatureClassifier], embedding: Embedding | None
    ) -> tuple[dict[str, _ShortcutResult], FittedClassifier | None]:
        """Returns the wins of each shortcut, trained ones first; and the fitted classifier of words alone."""
        texts, results, of_words = self.texts, dict[str, _ShortcutResult](), None
        sides = PairSides(texts.readings[self.kind], texts.readings[self.cold], self.folds)
        for name, learner in learners.items():
            learned = learner.learn(sides) if self.number > 1 else None
            of_words = learned if name == WORDS_ALONE else of_words
            form = FORMS[learned.form].signature if learned else "none"
            how = signature_line(counts=learner.features.signature, form=form, of=",".join(learner.forms))
            results[name] = _ShortcutResult(f"{how}|{self._dealt()}", True, learned.won if learned else None)
        for name, (how, scores) in texts.untrained.items():
            won = wins(scores[self.kind], scores[self.cold]) if len(texts.corpus) else None
            results[name] = _ShortcutResult(f"{how}|right:more-is-kind", False, won)
        if texts.untrained and self.number > 1 and (voices := texts.voices(self.kind, self.cold)):
            results[VOICE] = _ShortcutResult(f"one-hot|log-odds:+1|{self._dealt()}", True, voice_wins(voices[0], voices[1], self.folds))
        if embedding:
            some = None
            if self.number > 1:
                margins = ridge_margins(texts.embedded[self.kind], texts.embedded[self.cold], self.folds[texts.sample])
                some = wins(margins, np.zeros(len(margins)))
            results[EMBEDDING] = _ShortcutResult(f"{embedding.signature}|{self._dealt()}", True, some, texts.sample)
        return results, of_words

    def _dealt(self) -> str:
        return signature_line(scored="out-of-fold", folds=self.number, by=self.by, dealt="sha256")

    def judged(self, won: Mapping[str, _ShortcutResult], chance: ResamplingSettings) -> tuple[Shortcut, ...]:
        """Returns the accuracy of each shortcut."""
        corpus = self.texts.corpus
        whole = {name: result.won for name, result in won.items() if result.won is not None and result.sample is None}
        right = dict(zip(whole, accuracies(list(whole.values()), corpus.clusters, chance), strict=True)) if whole else {}
        few = f"all pairs are of one {self.by}: there is no other to learn from" if len(corpus) else "there are no pairs"
        rows = list[Shortcut]()
        for name, result in won.items():
            pairs, clusters = len(corpus), corpus.clusters
            if result.sample is not None:
                pairs, clusters = len(result.sample), clusters.take(np.isin(np.arange(pairs), result.sample))
                if result.won is not None:
                    right |= {name: accuracies([result.won], clusters, chance)[0]}
            signature = f"{result.signature}|{chance.of_intervals(clusters)}"
            rows.append(Shortcut(name, result.trained, pairs, right.get(name), None if name in right else few, signature))
        return tuple(rows)


def _explained(contrast_audit: ContrastAudit, ids: Sequence[str], learned: FittedClassifier, known: Sequence[str]) -> ContrastAudit:
    """Returns the audit with indicative words of both stances, and the easiest and the hardest pairs."""
    weights, whole, margins = learned.weights, learned.whole, learned.margins

    def telltale(sign: int) -> tuple[IndicativeWord, ...]:
        best = sorted(np.flatnonzero(sign * weights > 0).tolist(), key=lambda place: (-sign * weights[place], known[place]))[:TELLTALE]
        return tuple(IndicativeWord(known[at], float(weights[at]) / UNIT, int(whole.kind[at]), int(whole.cold[at])) for at in best)

    def extreme(sign: int) -> tuple[WordMargin, ...]:
        rows = sorted(range(len(ids)), key=lambda row: (-sign * margins[row], ids[row]))[:EXTREMES]
        return tuple(WordMargin(ids[row], float(margins[row]) / UNIT) for row in rows)

    return replace(contrast_audit, telltale_kind=telltale(1), telltale_cold=telltale(-1), easiest=extreme(1), hardest=extreme(-1))


# The contrasts by which variants are told.
TOLD = {RAW, *TOLD_BY.values()}


def learn_word_list(release_dir: Path, *, by: str = "dialogue") -> WordList:
    """Learns the weights of *words alone* by contrast from all pairs of a release, as for the indicative words of its audit.

    ``by`` says what folds are made of, by which the better of two forms is found. A contrast without pairs is not in the list.

    Raises:
        InputError: if the folder is no release, or all its pairs are of one dialogue (or scenario).
    """
    manifest = read_manifest(release_dir)
    inputs = AuditInput.of(release_dir, language_of(manifest["configuration"]))
    weights = dict(_learned(inputs, manifest["configuration"]["seed"], by))
    if RAW not in weights:
        raise input_error(release_dir, f"has no pairs of two different {by}s, so no word list can be learned", "name a larger release")
    release = {name: str(manifest[name]) for name in ("name", "version", "seal")}
    return WordList(release, inputs.pairs.language, weights)


def _learned(inputs: AuditInput, seed: int, by: str) -> Iterator[tuple[str, ContrastWeights]]:
    for name, config, kind, cold in AUDITED:
        corpus, lexicon = getattr(inputs, config), Lexicon(inputs.pairs.language)
        folds = assign_folds(fold_units(corpus, by), seed)
        if name not in TOLD or folds.max(initial=0) < 1:
            continue
        learner = words_alone(lexicon)
        sides = PairSides(lexicon.read(corpus.variants[kind]), lexicon.read(corpus.variants[cold]), folds)
        learned, known = learner.learn(sides), lexicon.words
        weights = learned.weights
        words = {known[place]: int(weights[place]) for place in np.flatnonzero(weights).tolist()}
        form = FORMS[learned.form].signature
        how = signature_line(counts=learner.features.signature, form=form, of=",".join(learner.forms), learned="all-pairs", by=by)
        if words:
            yield name, ContrastWeights(kind, cold, len(corpus), how, dict(sorted(words.items())))
