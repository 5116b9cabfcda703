"""Comparison of judges with shortcuts, preferences, people and the plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import signature_line
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.contrasts import CELLS, CONTROLS, FAR, NEAR, PAIR_VARIANTS
from empathy_eval.design.dataset import column
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.evaluation.corpus.pairs import Corpus, read_corpus, read_dialogues
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.evaluation.shortcuts.linear_classifiers import Lexicon, PairSides, WordFeatures
from empathy_eval.evaluation.shortcuts.shortcuts import WORDS_ALONE, assign_folds, words_alone
from empathy_eval.metrics.lexical import Length
from empathy_eval.metrics.protocol import Array
from empathy_eval.raters.agreement import Estimate
from empathy_eval.raters.judges.annotations import (
    PLACES,
    AnnotationFolder,
    CriterionScores,
    JudgeComparison,
    TextKey,
    criterion_scores,
    dialogue_of,
    pair_name,
)
from empathy_eval.raters.judges.estimator import Estimator, estimator_of
from empathy_eval.raters.review.record import CRITERIA, content_hash
from empathy_eval.raters.review.sample import rows_of
from empathy_eval.raters.review.sheets import text_hash
from empathy_eval.statistics.estimate import wins

JUDGE, LENGTH = "judge", "length"
# (pair, empathetic variant): a comparison with the equally close apathetic variant.
StancePair = tuple[str, str]


@dataclass(frozen=True)
class Shortcuts:
    """Accuracy of shortcuts on a release: the longer text, and words alone as learned from the other folds of its pairs."""

    release_dir: Path
    seed: int
    language: str = ENGLISH

    def signatures(self, *, whole: bool) -> dict[str, str]:
        """What shortcuts add to the signature of a figure on pairs, or on whole dialogues."""
        learned = signature_line(scored="out-of-fold", of="all-dialogues" if whole else "all-pairs", by="dialogue", dealt="sha256")
        joined = "|text:helper-turns-joined" if whole else ""
        return {
            LENGTH: f"|shortcut:{Length(self.language).signature}|more-is-kind{joined}",
            WORDS_ALONE: f"|shortcut:{WordFeatures(Lexicon(self.language)).signature}|{learned}{joined}",
        }

    @cached_property
    def won(self) -> dict[str, dict[StancePair, float]]:
        """By shortcut and duel 1 where it is right, one half for a tie; words alone need two dialogues to learn from."""
        return self._won(read_corpus(self.release_dir, "controls", CELLS))

    @cached_property
    def won_of_dialogues(self) -> dict[str, dict[StancePair, float]]:
        """The same of whole dialogues, by all words of the helper."""
        return self._won(read_dialogues(self.release_dir, CELLS, language=self.language))

    def _won(self, corpus: Corpus) -> dict[str, dict[StancePair, float]]:
        lexicon = Lexicon(self.language)
        readings = {name: lexicon.read(texts) for name, texts in corpus.variants.items()}
        folds = assign_folds(corpus.dialogues, self.seed)
        by_shortcut: dict[str, dict[StancePair, float]] = {LENGTH: {}, WORDS_ALONE: {}}
        for empathetic, apathetic in (NEAR, FAR):
            sides = PairSides(readings[empathetic], readings[apathetic], folds)
            lengths = wins(sides.kind.lengths.astype(np.float64), sides.cold.lengths.astype(np.float64))
            learned: Array | None = words_alone(lexicon).learn(sides).won if sides.number > 1 else None
            for name, won in ((LENGTH, lengths), (WORDS_ALONE, learned)):
                if won is not None:
                    by_shortcut[name] |= zip(((pair, empathetic) for pair in corpus.pair_ids), won.tolist(), strict=True)
        return by_shortcut


def at_equal_closeness(scored: CriterionScores, shortcuts: Shortcuts, estimator: Estimator) -> dict[str, Estimate]:
    """How often the judge, and each shortcut, is right where the two texts are equally close, ties half; empty without such texts.

    Of a judge of whole dialogues the texts are these.
    """
    won = empathetic_wins(scored)
    if not won:
        return {}
    names = [pair for pair, _ in won]
    columns = {JUDGE: list(won.values())}
    whole = dialogue_of(names[0]) == names[0]
    outcomes_of = shortcuts.won_of_dialogues if whole else shortcuts.won
    columns |= {name: [outcomes[duel] for duel in won] for name, outcomes in outcomes_of.items() if won.keys() <= outcomes.keys()}
    shares = estimator.shares(columns, names, right="kind-over-cold,ties-half", duels="near,far")
    added = shortcuts.signatures(whole=whole)
    return {name: replace(share, signature=f"{share.signature}{added.get(name, '')}") for name, share in shares.items()}


def empathetic_wins(scored: CriterionScores) -> dict[StancePair, float]:
    """Whether the judge prefers each empathetic text to the equally close apathetic one: 1, 0, or one half for a tie."""
    merits, won = scored.merits, dict[StancePair, float]()
    for pair in dict.fromkeys(name for name, _ in merits):
        for empathetic, apathetic in (NEAR, FAR):
            compared = merits.get((pair, pair_name(empathetic, apathetic)))
            if compared is not None:
                won[pair, empathetic] = compared if empathetic < apathetic else 1 - compared
            elif (pair, empathetic) in merits and (pair, apathetic) in merits:
                won[pair, empathetic] = (np.sign(merits[pair, empathetic] - merits[pair, apathetic]).item() + 1) / 2
    return won


# Keys besides the variants: all of them, and no winner.
ALL, NEITHER = "all", "neither"


def compared(folder: AnnotationFolder) -> Iterator[tuple[str, JudgeComparison]]:
    """All comparisons of annotations, each with its pair."""
    yield from ((case.pair_id or "", comparison) for case in folder.cases for comparison in case.comparisons)


def preferences(folder: AnnotationFolder, estimator: Estimator) -> dict[str, Any]:
    """How often the first text shown wins, how often the order changes the winner, and who wins which comparison.

    For each pair of variants: the share of comparisons that either won in both orders, and that neither did.
    """
    rows = list(compared(folder))
    # A comparison has an answer in each order: none, one or both prefer the text shown first.
    first = [((row.winner_12 == row.variant_1) + (row.winner_21 == row.variant_2)) / 2 for _, row in rows]
    sides: dict[str, list[tuple[str, JudgeComparison]]] = defaultdict(list)
    for name, comparison in rows:
        sides[pair_name(comparison.variant_1, comparison.variant_2)].append((name, comparison))
    names = [name for name, _ in rows]
    return {
        **estimator.shares({"first": first}, names, share="orders-that-the-first-place-won"),
        **estimator.shares(
            {"flipped": [not comparison.consistent for _, comparison in rows]}, names, share="comparisons-with-another-winner-by-order"
        ),
        "won": {two: _winners(compared_rows, estimator) for two, compared_rows in sorted(sides.items())},
    }


def _winners(rows: list[tuple[str, JudgeComparison]], estimator: Estimator) -> dict[str, Estimate]:
    comparison = rows[0][1]
    outcomes = {comparison.variant_1: comparison.variant_1, comparison.variant_2: comparison.variant_2, NEITHER: None}
    columns = {name: [row.winner == winner for _, row in rows] for name, winner in outcomes.items()}
    return estimator.shares(columns, [name for name, _ in rows], share="comparisons-won-in-both-orders")


def decided(scored: CriterionScores, preferring: AnnotationFolder, estimator: Estimator) -> Estimate:
    """How often the winner of a consistent comparison has the better mean value, ties half."""
    merits, names, won = scored.merits, list[str](), list[float]()
    for name, comparison in compared(preferring):
        if comparison.consistent and {(name, comparison.variant_1), (name, comparison.variant_2)} <= merits.keys():
            gap = merits[name, comparison.variant_1] - merits[name, comparison.variant_2]
            names.append(name)
            won.append((1 + (1 if comparison.winner == comparison.variant_1 else -1) * float(np.sign(gap))) / 2)
    rubric = preferring.rubric_hash
    settings = {"sign": "winner-has-the-better-mean,ties-half", "decisions_of": preferring.teacher, "decisions_by": rubric}
    return estimator.shares({"": won}, names, **settings)[""]


def strategies(folder: AnnotationFolder, release_dir: Path, estimator: Estimator) -> dict[str, Any]:
    """Agreement of named strategies with the planned ones, by variant and overall; and the probability given to the planned one.

    The plan of a far text is the strategy it was to be written with, that of any other the turn's.
    """
    taxonomy = load_taxonomy()
    by_name = {strategy.name: strategy.abbreviation for strategy in taxonomy.strategies}
    ids = column(release_dir, "pairs", "pair_id")
    near, far = (dict(zip(ids, column(release_dir, "pairs", name), strict=True)) for name in ("strategy", "empathetic_strategy"))
    if strange := sorted({*near.values(), *far.values()} - by_name.keys()):
        raise input_error(release_dir, f'"{strange[0]}" is not a strategy of the taxonomy', "name a release of this taxonomy")
    rows: dict[str, list[tuple[str, str, str]]] = {ALL: []}
    before: dict[tuple[str, int], float] = {}
    for name, judged in ((case.pair_id or "", judged) for case in folder.cases for judged in case.strategies):
        planned = by_name[(far if judged.variant in FAR else near)[name]]
        for key in (ALL, judged.variant):
            rows.setdefault(key, []).append((name, judged.named, planned))
        before[name, judged.sample] = judged.ideal[by_name[near[name]]]
    settings = {"share": "named-as-planned"}, {"of": "named,planned"}
    named = {key: estimator.as_planned(group, taxonomy, *settings) for key, group in rows.items()}
    return {
        "named": {key: {"accuracy": share, "kappa": kappa} for key, (share, kappa) in named.items()},
        **estimator.shares({"ideal": list(before.values())}, [name for name, _ in before], mean="probability-of-the-planned-strategy"),
    }


# People's rating scale.
LOWEST, STEPS = 1, 3


def rated_by_people(reviews: Mapping[str, Any] | None, release_dir: Path) -> dict[str, dict[TextKey, float]]:
    """By criterion and text the mean rating of people; empty without a record."""
    if reviews is None:
        return {}
    hashes: dict[TextKey, str] = {}
    for config, variants in (("pairs", PAIR_VARIANTS), ("controls", CONTROLS)):
        names = column(release_dir, config, "pair_id")
        for variant in variants:
            texts = column(release_dir, config, variant)
            hashes |= {(name, variant): text_hash(text) for name, text in zip(names, texts, strict=True)}
    ratings_of: dict[str, dict[TextKey, list[int]]] = {name: defaultdict(list) for name in CRITERIA}
    for judgement in reviews["judgements"]:
        if judgement["kind"] == "variant" and "attempt" not in judgement:
            text = judgement["pair_id"], judgement["variant"]
            for name in CRITERIA if hashes.get(text) == judgement["text"] else ():
                ratings_of[name][text].append(judgement[name])
    return {name: {text: round(sum(values) / len(values), PLACES) for text, values in texts.items()} for name, texts in ratings_of.items()}


def contents_in(release_dir: Path) -> dict[str, str]:
    """Content hash of each dialogue, as in raters' judgements of dialogues."""
    return {row["dialogue_id"]: content_hash(row["turns"]) for row in rows_of(release_dir, "dialogues", ["dialogue_id", "turns"])}


def with_people(
    folder: AnnotationFolder, chance: ResamplingSettings, record: Mapping[str, Any], release_dir: Path
) -> dict[str, dict[str, Any]]:
    """Agreement of a judge with the people of a record, by shared criterion and figure, as JSON values."""
    people, estimator = rated_by_people(record, release_dir), estimator_of(folder, chance)
    rated = [scored for scored in criterion_scores(folder) if scored.name in people] if folder.kind == "rating" else []
    measures = {scored.name: beside_people(scored, people[scored.name], estimator) for scored in rated}
    return {name: {figure: measure.to_json() for figure, measure in by_figure.items()} for name, by_figure in measures.items()}


def beside_people(scored: CriterionScores, people: Mapping[TextKey, float], estimator: Estimator) -> dict[str, Estimate]:
    """Kappa of the rounded ratings (halves up), the judge's on the people's scale; and the rank correlation."""
    merits = scored.merits
    texts = [text for text in merits if text in people]
    names = [pair for pair, _ in texts]
    judged = np.array([round(LOWEST + (STEPS - 1) * merits[text], PLACES) for text in texts])
    rated = np.array([people[text] for text in texts])
    rounded = tuple(np.floor(values + 0.5).astype(np.int64) - LOWEST for values in (judged, rated))
    scale, raters = range(LOWEST, LOWEST + STEPS), "judge,mean-of-people"
    return {
        "kappa": estimator.kappa((rounded[0], rounded[1]), scale, names, "quadratic", of=raters, rounded="halves-up"),
        "spearman": estimator.correlation(judged, rated, names, ranks=True, of=raters),
    }
