"""What a judge's answers are held against: shortcuts, comparisons, people and the plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
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
from empathy_eval.evaluation.corpus.pairs import read_corpus
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.evaluation.shortcuts.bag_of_words import Lexicon, WordFeatures
from empathy_eval.evaluation.shortcuts.linear_classifiers import PairSides
from empathy_eval.evaluation.shortcuts.shortcuts import WORDS_ALONE, folds_of, words_alone
from empathy_eval.metrics.length import Length
from empathy_eval.metrics.protocol import Array
from empathy_eval.raters.agreement import Measure
from empathy_eval.raters.judges.annotations import PLACES, Comparison, Folder, Scored, Text, both, scored_of
from empathy_eval.raters.judges.estimator import Estimator, reckoning_of
from empathy_eval.raters.review.record import CRITERIA, content_hash
from empathy_eval.raters.review.sample import rows_of
from empathy_eval.raters.review.sheets import text_hash
from empathy_eval.statistics.ranking import wins

JUDGE, LENGTH = "judge", "length"
# (pair, kind variant): which text of which duel.
Duel = tuple[str, str]


@dataclass(frozen=True)
class Shortcuts:
    """What shortcuts win of the duels of a release: the longer text, and words alone as the other folds of all its pairs teach them."""

    release_dir: Path
    seed: int
    language: str = ENGLISH

    @property
    def signatures(self) -> dict[str, str]:
        """What shortcuts add to the signature."""
        learned = signature_line(scored="out-of-fold", of="all-pairs", by="dialogue", dealt="sha256")
        return {
            LENGTH: f"|shortcut:{Length(self.language).signature}|more-is-kind",
            WORDS_ALONE: f"|shortcut:{WordFeatures(Lexicon(self.language)).signature}|{learned}",
        }

    @cached_property
    def won(self) -> dict[str, dict[Duel, float]]:
        """By shortcut and duel 1 where it is right, one half for a tie; words alone need two dialogues to learn from."""
        corpus, lexicon = read_corpus(self.release_dir, "controls", CELLS), Lexicon(self.language)
        readings = {name: lexicon.read(texts) for name, texts in corpus.variants.items()}
        folds = folds_of(corpus.dialogues, self.seed)
        found: dict[str, dict[Duel, float]] = {LENGTH: {}, WORDS_ALONE: {}}
        for kind, cold in (NEAR, FAR):
            sides = PairSides(readings[kind], readings[cold], folds)
            lengths = wins(sides.kind.lengths.astype(np.float64), sides.cold.lengths.astype(np.float64))
            learned: Array | None = words_alone(lexicon).learn(sides).won if sides.number > 1 else None
            for name, won in ((LENGTH, lengths), (WORDS_ALONE, learned)):
                if won is not None:
                    found[name] |= zip(((pair, kind) for pair in corpus.pair_ids), won.tolist(), strict=True)
        return found


def at_equal_closeness(scored: Scored, shortcuts: Shortcuts, reckoning: Estimator) -> dict[str, Measure]:
    """How often the judge, and each shortcut, is right where the two texts are equally close, ties half; empty without such texts."""
    won = duels_won(scored)
    if not won:
        return {}
    names = [pair for pair, _ in won]
    columns = {JUDGE: list(won.values())}
    columns |= {name: [some[duel] for duel in won] for name, some in shortcuts.won.items() if won.keys() <= some.keys()}
    found = reckoning.shares(columns, names, right="kind-over-cold,ties-half", duels="near,far")
    return {name: replace(one, signature=f"{one.signature}{shortcuts.signatures.get(name, '')}") for name, one in found.items()}


def duels_won(scored: Scored) -> dict[Duel, float]:
    """What the judge won of each duel of a kind text with the cold one that is equally close: 1, 0, or one half for a tie."""
    merits, won = scored.merits, dict[Duel, float]()
    for pair in dict.fromkeys(name for name, _ in merits):
        for kind, cold in (NEAR, FAR):
            compared = merits.get((pair, both(kind, cold)))
            if compared is not None:
                won[pair, kind] = compared if kind < cold else 1 - compared
            elif (pair, kind) in merits and (pair, cold) in merits:
                won[pair, kind] = (np.sign(merits[pair, kind] - merits[pair, cold]).item() + 1) / 2
    return won


# Beside the variants: all of them, and no text at all.
ALL, NEITHER = "all", "neither"


def compared(folder: Folder) -> Iterator[tuple[str, Comparison]]:
    """All comparisons of annotations, each with its pair."""
    yield from ((case.pair_id or "", one) for case in folder.cases for one in case.comparisons)


def preferences(folder: Folder, reckoning: Estimator) -> dict[str, Any]:
    """How often the text that is shown first wins, how often the other order has another winner, and who wins which comparison.

    Of each two variants: the share of comparisons that either won in both orders, and that neither did.
    """
    rows = list(compared(folder))
    # Both orders of a comparison are asked: of two answers none, one or both name the first place.
    first = [((one.winner_12 == one.variant_1) + (one.winner_21 == one.variant_2)) / 2 for _, one in rows]
    sides: dict[str, list[tuple[str, Comparison]]] = defaultdict(list)
    for name, one in rows:
        sides[both(one.variant_1, one.variant_2)].append((name, one))
    names = [name for name, _ in rows]
    return {
        **reckoning.shares({"first": first}, names, share="orders-that-the-first-place-won"),
        **reckoning.shares({"flipped": [not one.consistent for _, one in rows]}, names, share="comparisons-with-another-winner-by-order"),
        "won": {two: _winners(some, reckoning) for two, some in sorted(sides.items())},
    }


def _winners(rows: list[tuple[str, Comparison]], reckoning: Estimator) -> dict[str, Measure]:
    one = rows[0][1]
    outcomes = {one.variant_1: one.variant_1, one.variant_2: one.variant_2, NEITHER: None}
    columns = {said: [found.winner == winner for _, found in rows] for said, winner in outcomes.items()}
    return reckoning.shares(columns, [name for name, _ in rows], share="comparisons-won-in-both-orders")


def decided(scored: Scored, preferring: Folder, reckoning: Estimator) -> Measure:
    """How often the winner of a consistent comparison is the one with the better mean value, ties half."""
    merits, names, won = scored.merits, list[str](), list[float]()
    for name, one in compared(preferring):
        if one.consistent and {(name, one.variant_1), (name, one.variant_2)} <= merits.keys():
            gap = merits[name, one.variant_1] - merits[name, one.variant_2]
            names.append(name)
            won.append((1 + (1 if one.winner == one.variant_1 else -1) * float(np.sign(gap))) / 2)
    rubric = preferring.header["configuration"]["rubric_hash"]
    settings = {"sign": "winner-has-the-better-mean,ties-half", "decisions_of": preferring.teacher, "decisions_by": rubric}
    return reckoning.shares({"": won}, names, **settings)[""]


def strategies(folder: Folder, release_dir: Path, reckoning: Estimator) -> dict[str, Any]:
    """How far named strategies are the planned ones, by variant and over all; and how likely the planned one was thought before a reply.

    Planned of a far text is the strategy that it was to be written with, of any other that of the turn.
    """
    taxonomy = load_taxonomy()
    by_name = {one.name: one.abbreviation for one in taxonomy.strategies}
    ids = column(release_dir, "pairs", "pair_id")
    near, far = (dict(zip(ids, column(release_dir, "pairs", name), strict=True)) for name in ("strategy", "empathetic_strategy"))
    if strange := sorted({*near.values(), *far.values()} - by_name.keys()):
        raise input_error(release_dir, f'"{strange[0]}" is not a strategy of the taxonomy', "name a release of this taxonomy")
    rows: dict[str, list[tuple[str, str, str]]] = {ALL: []}
    before: dict[tuple[str, int], float] = {}
    for name, one in ((case.pair_id or "", one) for case in folder.cases for one in case.strategies):
        planned = by_name[(far if one.variant in FAR else near)[name]]
        for key in (ALL, one.variant):
            rows.setdefault(key, []).append((name, one.named, planned))
        before[name, one.sample] = one.ideal[by_name[near[name]]]
    settings = {"share": "named-as-planned"}, {"of": "named,planned"}
    named = {key: reckoning.as_planned(some, taxonomy, *settings) for key, some in rows.items()}
    return {
        "named": {key: {"accuracy": share, "kappa": kappa} for key, (share, kappa) in named.items()},
        **reckoning.shares({"ideal": list(before.values())}, [name for name, _ in before], mean="probability-of-the-planned-strategy"),
    }


# The scale that people rate on.
LOWEST, STEPS = 1, 3


def rated_by_people(reviews: Mapping[str, Any] | None, release_dir: Path) -> dict[str, dict[Text, float]]:
    """By criterion and text the mean rating of people; nothing without a record."""
    if reviews is None:
        return {}
    hashes: dict[Text, str] = {}
    for config, variants in (("pairs", PAIR_VARIANTS), ("controls", CONTROLS)):
        names = column(release_dir, config, "pair_id")
        for variant in variants:
            texts = column(release_dir, config, variant)
            hashes |= {(name, variant): text_hash(text) for name, text in zip(names, texts, strict=True)}
    given: dict[str, dict[Text, list[int]]] = {name: defaultdict(list) for name in CRITERIA}
    for one in reviews["judgements"]:
        if one["kind"] == "variant" and "attempt" not in one and hashes.get((one["pair_id"], one["variant"])) == one["text"]:
            for name in CRITERIA:
                given[name][one["pair_id"], one["variant"]].append(one[name])
    return {name: {text: round(sum(some) / len(some), PLACES) for text, some in found.items()} for name, found in given.items()}


def contents_in(release_dir: Path) -> dict[str, str]:
    """The hash of the text of each dialogue, as raters' judgements of dialogues have it."""
    return {row["dialogue_id"]: content_hash(row["turns"]) for row in rows_of(release_dir, "dialogues", ["dialogue_id", "turns"])}


def with_people(folder: Folder, chance: ResamplingSettings, record: Mapping[str, Any], release_dir: Path) -> dict[str, dict[str, Any]]:
    """How far a judge agrees with the people of a record, by criterion and figure, as JSON values; of criteria that they rated by."""
    people, reckoning = rated_by_people(record, release_dir), reckoning_of(folder, chance)
    rated = [one for one in scored_of(folder) if one.name in people] if folder.header["rubric"]["kind"] == "rating" else []
    found = {one.name: beside_people(one, people[one.name], reckoning) for one in rated}
    return {name: {figure: asdict(one) for figure, one in some.items()} for name, some in found.items()}


def beside_people(scored: Scored, people: Mapping[Text, float], reckoning: Estimator) -> dict[str, Measure]:
    """Kappa of the two ratings rounded, halves up, the judge's on the people's scale; and the correlation of ranks."""
    merits = scored.merits
    texts = [text for text in merits if text in people]
    names = [pair for pair, _ in texts]
    judged = np.array([round(LOWEST + (STEPS - 1) * merits[text], PLACES) for text in texts])
    rated = np.array([people[text] for text in texts])
    rounded = tuple(np.floor(one + 0.5).astype(np.int64) - LOWEST for one in (judged, rated))
    scale, of = range(LOWEST, LOWEST + STEPS), "judge,mean-of-people"
    return {
        "kappa": reckoning.kappa((rounded[0], rounded[1]), scale, names, "quadratic", of=of, rounded="halves-up"),
        "spearman": reckoning.correlation(judged, rated, names, ranks=True, of=of),
    }
