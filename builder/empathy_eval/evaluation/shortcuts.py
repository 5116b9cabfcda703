"""The shortcut audit: how often something that understands nothing tells the kind text of a pair from the cold one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from empathy_eval.base.errors import input_error, job_error
from empathy_eval.base.hashing import digest_bytes, signature_line
from empathy_eval.base.tabular import WHOLE
from empathy_eval.base.text import words
from empathy_eval.design.contrasts import APATHETIC, CELLS, FAR, NEAR, PAIR_VARIANTS, RAW, STANCE_FAR, STANCE_NEAR
from empathy_eval.design.dataset import cells, read_manifest
from empathy_eval.evaluation.bag_of_words import Characters, Counts, LengthAndMarks, Lexicon, Reading, WordPairs, Words
from empathy_eval.evaluation.closed_forms import FORMS, UNIT, Learned, Learner, Sides
from empathy_eval.evaluation.corpus import Corpus, read_corpus
from empathy_eval.evaluation.inversion import Chance, accuracies
from empathy_eval.evaluation.ranking import wins
from empathy_eval.evaluation.resampling import CONFIDENCE
from empathy_eval.evaluation.results import PLACES
from empathy_eval.evaluation.shortcut_rows import Audit, ContrastAudit, Margin, Shortcut, Telltale
from empathy_eval.metrics.length import Length
from empathy_eval.metrics.protocol import Array, Context
from empathy_eval.metrics.scoring import PLAIN, Pairs, Scoring, statistics_of
from empathy_eval.metrics.vader import Vader

FOLDS, TELLTALE, EXTREMES = 5, 20, 5
BY = ("dialogue", "scenario")
REFERENCE, WORDS_ALONE = "reference", "words alone"
# (contrast, config, kind variant, cold variant); the reference is the kind text of its contrast.
AUDITED = (
    (RAW, "pairs", *PAIR_VARIANTS[::-1]), (STANCE_NEAR, "controls", *NEAR), (STANCE_FAR, "controls", *FAR),
    ("reference - apathetic", "pairs", REFERENCE, APATHETIC),
)  # fmt: skip
ECHO = signature_line(share="words-of-the-reply-that-the-seeker-said-before", tok="empathy-eval", version=1)


def audit(release_dir: Path, *, by: str = "dialogue", scoring: Scoring = PLAIN) -> Audit:
    """Audits all pairs of a release; ``by`` says whether folds are of dialogues or of whole scenarios.

    Raises:
        InputError: if the folder is no release, or ``by`` is neither.
    """
    if by not in BY:
        raise input_error("by", f'"{by}" is not known', f"use one of these: {', '.join(BY)}")
    configuration = read_manifest(release_dir)["configuration"]
    chance, lexicon = Chance(configuration["report"]["bootstrap"], 0, configuration["seed"]), Lexicon()
    texts = {
        config: _read(release_dir, config, variants, lexicon, scoring)
        for config, variants in (("pairs", PAIR_VARIANTS), ("controls", CELLS))
    }
    learners = {
        WORDS_ALONE: Learner(Words(lexicon), ("log-odds", "mean-over-spread")),
        "words and pairs of words": Learner(WordPairs(lexicon), ("log-odds",)),
        "characters": Learner(Characters(), ("log-odds",)),
        "length and punctuation": Learner(LengthAndMarks(), ("standardised",)),
    }
    found = []
    for name, config, kind, cold in AUDITED:
        one = _Contrast(texts[config], kind, cold, by, chance)
        found.append(one.audited(name, config, learners, lexicon))
    return Audit(by, tuple(found))


@dataclass(frozen=True)
class _Texts:
    """The pairs of a config, the readings of their texts by variant, and by untrained shortcut its signature and scores by variant."""

    corpus: Corpus
    readings: Mapping[str, list[Reading]]
    untrained: Mapping[str, tuple[str, Mapping[str, Array]]]


def _read(release_dir: Path, config: str, variants: Sequence[str], lexicon: Lexicon, scoring: Scoring) -> _Texts:
    corpus = read_corpus(release_dir, config, variants)
    texts = corpus.variants | {REFERENCE: corpus.references}
    vader = statistics_of([Vader()], Pairs(corpus.pair_ids, corpus.references, texts), scoring)[Vader.name]
    if vader.fault:
        raise job_error(vader.fault.where, vader.fault.what, "install vaderSentiment anew")
    readings = {name: [lexicon.read(text) for text in some] for name, some in texts.items()}
    lengths = {name: np.array([len(one.codes) for one in some], dtype=np.float64) for name, some in readings.items()}
    untrained = {
        "VADER": (Vader.signature, {name: np.round(one[:, 0], PLACES) for name, one in vader.rows.items()}),
        "echo": (ECHO, _echoes(release_dir, config, texts)),
        "length": (Length.signature, lengths),
    }
    return _Texts(corpus, readings, untrained)


def _echoes(release_dir: Path, config: str, texts: Mapping[str, Sequence[str]]) -> dict[str, Array]:
    """By variant and pair the share of a reply's words that the seeker's turns before it have."""
    found: dict[str, list[float]] = {name: [] for name in texts}
    # Contexts are many times what replies are: they are read a part at a time.
    for row, context in enumerate(cells(release_dir, config, "context")):
        if any(turn is None or None in turn.values() for turn in context):
            raise input_error(release_dir, f'a turn of the column "context" of {config} is empty', WHOLE)
        said = _said(context)
        for name, some in texts.items():
            own = words(some[row])
            found[name].append(sum(word in said for word in own) / len(own) if own else 0.0)
    return {name: np.array(one, dtype=np.float64) for name, one in found.items()}


def _said(context: Context) -> set[str]:
    return {word for turn in context if turn["role"] == "seeker" for word in words(turn["text"])}


def folds_of(units: Sequence[str], seed: int) -> Counts:
    """The fold of each pair, from the dialogue (or scenario) that it is of: these are dealt out in the order of their SHA-256.

    There are ``FOLDS`` folds, and fewer where there are fewer dialogues.
    """
    order = sorted(set(units), key=lambda one: digest_bytes(f"{seed}:{one}".encode()))
    fold = {unit: number % FOLDS for number, unit in enumerate(order)}
    return np.array([fold[one] for one in units], dtype=np.int64)


class _Contrast:
    """Two variants of all pairs of a config."""

    def __init__(self, texts: _Texts, kind: str, cold: str, by: str, chance: Chance) -> None:
        self.texts, self.kind, self.cold, self.by, self.chance = texts, kind, cold, by, chance
        self.corpus, self.pairs = texts.corpus, len(texts.corpus)
        units = self.corpus.dialogues if by == "dialogue" else [str(one) for one in self.corpus.scenario_ids]
        self.sides = Sides(texts.readings[kind], texts.readings[cold], folds_of(units, chance.seed))

    def audited(self, name: str, config: str, learners: Mapping[str, Learner], lexicon: Lexicon) -> ContrastAudit:
        """All shortcuts: those that learn, then the untrained ones."""
        learned = {one: learner.learn(self.sides) for one, learner in learners.items()} if self.sides.number > 1 else {}
        won = {one: found.won for one, found in learned.items()}
        won |= {one: wins(scores[self.kind], scores[self.cold]) for one, (_, scores) in self.texts.untrained.items() if self.pairs}
        accuracy = dict(zip(won, accuracies(list(won.values()), self.corpus.clusters, self.chance), strict=True))
        signatures = {one: self._learned(learner, learned.get(one)) for one, learner in learners.items()}
        signatures |= {one: f"{how}|right:more-is-kind" for one, (how, _) in self.texts.untrained.items()}
        few = f"all pairs are of one {self.by}: there is no other to learn from" if self.pairs else "there are no pairs"
        rows = [
            Shortcut(one, one in learners, self.pairs, accuracy.get(one), None if one in accuracy else few, f"{how}|{self._interval()}")
            for one, how in signatures.items()
        ]
        counts = self.pairs, len(self.corpus.clusters), self.sides.number
        found = ContrastAudit(name, config, self.kind, self.cold, *counts, tuple(rows))
        return self._explained(found, learned[WORDS_ALONE], lexicon) if learned else found

    def _learned(self, learner: Learner, learned: Learned | None) -> str:
        """The settings of a shortcut that learns."""
        form = FORMS[learned.form].signature if learned else "none"
        return signature_line(
            counts=learner.features.signature, form=form, of=",".join(learner.forms), scored="out-of-fold", folds=self.sides.number,
            by=self.by, dealt="sha256",
        )  # fmt: skip

    def _interval(self) -> str:
        """The settings of an interval."""
        return signature_line(
            interval="bootstrap,Rao-Wu,percentile", level=CONFIDENCE, resamples=self.chance.resamples, unit="dialogue",
            strata="scenario,singles-pooled", dialogues=len(self.corpus.clusters), seed=self.chance.seed, numpy=np.__version__,
        )  # fmt: skip

    def _explained(self, found: ContrastAudit, learned: Learned, lexicon: Lexicon) -> ContrastAudit:
        """The audit with the words that give the kind and the cold stance away, and the easiest and the hardest pairs."""
        weights, whole, known = learned.weights, learned.whole, lexicon.words

        def telltale(sign: int) -> tuple[Telltale, ...]:
            best = sorted(np.flatnonzero(sign * weights > 0).tolist(), key=lambda place: (-sign * weights[place], known[place]))[:TELLTALE]
            return tuple(Telltale(known[at], float(weights[at]) / UNIT, int(whole.kind[at]), int(whole.cold[at])) for at in best)

        def extreme(sign: int) -> tuple[Margin, ...]:
            ids, margins = self.corpus.pair_ids, learned.margins
            rows = sorted(range(self.pairs), key=lambda row: (-sign * margins[row], ids[row]))[:EXTREMES]
            return tuple(Margin(ids[row], float(margins[row]) / UNIT) for row in rows)

        return replace(found, telltale_kind=telltale(1), telltale_cold=telltale(-1), easiest=extreme(1), hardest=extreme(-1))
