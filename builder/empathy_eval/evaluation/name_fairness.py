"""Fairness under an exchange of names: the stance effect of each metric where all given names are others, beside that as released."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import derived_random, digest, signature_line
from empathy_eval.design.contrasts import Contrast
from empathy_eval.evaluation.comparisons import Rated, compared
from empathy_eval.evaluation.corpus import Corpus
from empathy_eval.evaluation.fairness_rows import FairnessRow, Gap
from empathy_eval.evaluation.inversion import Chance, Statistics, duels_of
from empathy_eval.evaluation.names import Names, exchanged_names
from empathy_eval.evaluation.ranking import Duels, effects, shares_won
from empathy_eval.evaluation.resampling import Estimate, Tested
from empathy_eval.evaluation.results import PLACES
from empathy_eval.metrics.protocol import Array, Context, Metric
from empathy_eval.metrics.scoring import Pairs

# Pairs whose texts are looked through for names, and pairs of those with names that are scored, at most.
LOOKED, MOST = 2000, 500


@dataclass(frozen=True)
class Exchanged:
    """Pairs with other names in all that is read of them: which rows of the corpus they are, and over how many was looked."""

    version: str
    rows: list[int]
    pairs: Pairs
    looked: int
    signature: str


def exchanged_pairs(
    corpus: Corpus, looked: tuple[Sequence[int], Sequence[Context]], names: Names, version: str, seed: int, most: int = MOST
) -> Exchanged:  # fmt: skip
    """The pairs of a corpus, of the rows that are looked at (with their contexts), that have names which can be exchanged.

    Names are drawn by the seed and the pair alone: a release that grows keeps those of its pairs.
    """
    rows, contexts, references = list[int](), list[Context](), list[str]()
    variants: dict[str, list[str]] = {name: [] for name in corpus.variants}
    for row, context in zip(*looked, strict=True):
        if len(rows) == most:
            break
        said = [turn["text"] for turn in context]
        texts = [*said, corpus.references[row], *(some[row] for some in corpus.variants.values())]
        made = exchanged_names(texts, derived_random(seed, "names", version, corpus.pair_ids[row]), names, version)
        if made is not None:
            rows.append(row)
            contexts.append([{"role": turn["role"], "text": text} for turn, text in zip(context, made, strict=False)])
            references.append(made[len(said)])
            for name, text in zip(corpus.variants, made[len(said) + 1 :], strict=True):
                variants[name].append(text)
    ids = [corpus.pair_ids[row] for row in rows]
    signature = signature_line(
        names=f"exchanged,{version}", file=names.digest[:16], looked=len(looked[0]), most=most, drawn="sha256", seed=seed,
        texts=digest([ids, contexts, references, variants])[:16],
    )  # fmt: skip
    return Exchanged(version, rows, Pairs(ids, references, variants, contexts), len(looked[0]), signature)


def name_row(
    metric: Metric, before: Statistics, after: Statistics, contrast: Contrast, exchanged: Exchanged, corpus: Corpus, chance: Chance
) -> FairnessRow | None:  # fmt: skip
    """The row of a metric, from its statistics of all pairs of the corpus and of those with other names; None where none was scored twice.

    p-values are not corrected here for standing together.
    """
    here = duels_of(metric, after, contrast)
    there = duels_of(metric, {name: one[exchanged.rows] for name, one in before.items()}, contrast)
    mask = np.isin(np.arange(len(corpus)), exchanged.rows)
    # Rows are looked at in an order of their own; those of the clusters go up.
    order = np.argsort(exchanged.rows)
    clusters = corpus.clusters.take(mask)
    rated = {
        "exchanged": Rated(_in_order(here, order), f"{metric.signature}|{exchanged.signature}"),
        "released": Rated(_in_order(there, order), metric.signature),
    }
    found = compared(contrast.name, rated, clusters, chance) if exchanged.rows else []
    if not found:
        return None
    (one,) = found
    both = ~np.isnan(rated["exchanged"].duels.won()) & ~np.isnan(rated["released"].duels.won())
    sums = [_sums(some.duels, both) for some in rated.values()]
    dialogues = len(clusters.take(both))
    why = None if dialogues > 1 else "all pairs with names are of one dialogue"
    accuracy, effect = _gap(sums, shares_won, one.accuracy), _gap(sums, effects, one.effect)
    return FairnessRow(
        metric.name, exchanged.version, contrast.name, one.pairs, exchanged.looked, dialogues, accuracy, effect, one.signature, why
    )


def _in_order(duels: Duels, order: NDArray[np.intp]) -> Duels:
    return Duels([(kind[order], cold[order]) for kind, cold in duels.sides])


def _sums(duels: Duels, rows: NDArray[np.bool_]) -> Array:
    """The sums that figures are made of, over some pairs."""
    sums: Array = Duels([(kind[rows], cold[rows]) for kind, cold in duels.sides]).sums().sum(axis=0, keepdims=True)
    return sums


def _gap(sums: Sequence[Array], rate: Callable[[Array], Array], difference: Tested | None) -> Gap | None:
    here, there = (float(rate(one)[0]) for one in sums)
    if difference is None or not np.isfinite([here, there]).all():
        return None
    return Gap(Estimate(round(here, PLACES)), Estimate(round(there, PLACES)), difference)
