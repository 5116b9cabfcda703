"""Figures about a judge: shares, alpha, kappa and correlation, each with a signature and an interval over dialogues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.design.taxonomy import Taxonomy
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings, accuracies
from empathy_eval.metrics.protocol import Array
from empathy_eval.raters.judges.annotations import AnnotationFolder, TextKey, dialogue_of
from empathy_eval.statistics.agreement import ItemBootstrap, cohen_kappas, interval_alpha, kappa_estimates, kappa_sums, ratio
from empathy_eval.statistics.correlations import midranks
from empathy_eval.statistics.estimate import Clusters, Codes, Estimate

# A smaller spread is the rounding error of equal values.
LEAST = 1e-9


@dataclass(frozen=True)
class Estimator:
    """Estimator of figures about a judge: their signature, and the settings of the bootstrap."""

    signature: str
    chance: ResamplingSettings

    def line(self, items: int, **settings: object) -> str:
        """Signature of a figure over so many items."""
        return "|".join(filter(None, [self.signature, f"n:{items}", signature_line(**settings)]))

    def count(self, value: float, items: int, **settings: object) -> Estimate:
        """A descriptive figure without an interval."""
        line = self.line(items, **settings)
        return Estimate(round(value, 12), n=items, signature=line) if items else Estimate.undefined("there is nothing to count", line)

    def shares(self, won: Mapping[str, Sequence[float]], names: Sequence[str], **settings: object) -> dict[str, Estimate]:
        """Mean of each column over the same items, with intervals from the same draws; ``names`` are their pairs."""
        # Sorted by id, so that draws do not depend on the order of items.
        order = sorted(range(len(names)), key=lambda index: names[index])
        clusters = clusters_of([names[index] for index in order])
        line = f"{self.line(len(names), **settings)}|{self.chance.of_intervals(clusters)}"
        if not names:
            return {name: Estimate.undefined("there is nothing to compare", line) for name in won}
        estimates = accuracies([np.array(column, dtype=np.float64)[order] for column in won.values()], clusters, self.chance)
        reason = None if len(clusters) > 1 else "no interval: all is of one dialogue"
        named = zip(won, estimates, strict=True)
        return {name: replace(share, n=len(names), reason=reason, signature=line) for name, share in named}

    def alpha(self, ratings_of: Mapping[TextKey, Sequence[int]], **settings: object) -> Estimate:
        """Krippendorff's interval alpha of the ratings of each text, in whole steps of a scale."""
        if not ratings_of:
            return Estimate.undefined("no item with two ratings", self.line(0, **settings))
        item = np.repeat(np.arange(len(ratings_of)), [len(values) for values in ratings_of.values()])
        values = np.array([value for values in ratings_of.values() for value in values], dtype=np.int64)
        alpha = interval_alpha(item, values, self._drawn([name for name, _ in ratings_of]))
        return replace(alpha, signature=f"{self.line(alpha.n, values='hundredths-of-the-scale', **settings)}|{alpha.signature}")

    def kappa(
        self, columns: tuple[Codes, Codes], scale: Sequence[float], names: Sequence[str], weights: str, **settings: object
    ) -> Estimate:
        """Cohen's kappa of two columns of indices of a scale."""
        items = len(names)
        if not items:
            return Estimate.undefined("no item in common", self.line(0, **settings))
        sample, values = self._drawn(names), np.array(scale, dtype=np.float64)
        sums = sample.resample(kappa_sums(np.arange(items), *columns, values, sample))
        kappa = kappa_estimates(cohen_kappas(sums, values), items, sample.signature)[weights]
        return replace(kappa, signature=f"{self.line(items, **settings)}|{kappa.signature}")

    def as_planned(
        self, rows: Sequence[tuple[str, str, str]], taxonomy: Taxonomy, share: Mapping[str, str], kappa: Mapping[str, str]
    ) -> tuple[Estimate, Estimate]:
        """Share of strategies equal to the planned ones, and Cohen's kappa; rows are (pair, strategy, planned one)."""
        codes, names = {strategy.abbreviation: index for index, strategy in enumerate(taxonomy.strategies)}, [name for name, _, _ in rows]
        named, planned = (np.array([codes[row[index]] for row in rows], dtype=np.int64) for index in (1, 2))
        agreed = self.shares({"": (named == planned).tolist()}, names, **share)[""]
        return agreed, self.kappa((named, planned), range(len(codes)), names, "plain", **kappa)

    def correlation(self, first: Array, other: Array, names: Sequence[str], *, ranks: bool = False, **settings: object) -> Estimate:
        """Correlation of two columns: Pearson's, or Spearman's if ``ranks``, which are not recomputed by draw."""
        values, line = self.correlated(first, other, names, ranks=ranks, **settings)
        if not names:
            return Estimate.undefined("no item in common", line)
        return Estimate.of_resamples(values, len(names), "in common", "one of the two is the same for all items", line)

    def correlated(self, first: Array, other: Array, names: Sequence[str], *, ranks: bool = False, **settings: object) -> tuple[Array, str]:
        """Correlation of the columns, then of each draw, shape (1 + resamples,), NaN where undefined; and its signature."""
        items, kind = len(names), "spearman,ranks-of-all" if ranks else "pearson"
        if not items:
            return np.array([np.nan]), self.line(0, correlation=kind, **settings)
        x, y = (column - column.mean() for column in (map(midranks, (first, other)) if ranks else (first, other)))
        sample = self._drawn(names)
        columns = np.stack([np.ones(items), x, y, x * x, y * y, x * y])
        n, sx, sy, sxx, syy, sxy = sample.totals(np.arange(items), columns).T
        spread = np.sqrt(np.maximum(n * sxx - sx * sx, 0) * np.maximum(n * syy - sy * sy, 0))
        values = ratio(n * sxy - sx * sy, np.where(spread > LEAST, spread, 0.0))
        return values, f"{self.line(items, correlation=kind, **settings)}|{sample.signature}"

    def _drawn(self, names: Sequence[str]) -> ItemBootstrap:
        """Bootstrap of dialogues with all their items; a single dialogue is not resampled."""
        dialogues, unit = np.unique([dialogue_of(name) for name in names], return_inverse=True)
        sample = ItemBootstrap.of(len(dialogues), self.chance.resamples if len(dialogues) > 1 else 0, self.chance.seed)
        return replace(sample, unit=sample.unit[unit], signature=f"drawn:dialogues|{sample.signature}")


def clusters_of(names: Sequence[str]) -> Clusters:
    """Dialogues of pairs, or dialogues themselves, and their scenarios, which ids begin with."""
    dialogues = [dialogue_of(name) for name in names]
    return Clusters.of(dialogues, [int(dialogue[:3]) for dialogue in dialogues])


def chance_of(manifest: Mapping[str, Any]) -> ResamplingSettings:
    """Bootstrap settings of figures on the judges of a release: those of its report."""
    configuration = manifest["configuration"]
    return ResamplingSettings(configuration["report"]["bootstrap"], 0, configuration["seed"])


def signed_by(folder: AnnotationFolder, **more: object) -> str:
    """Signature of a figure about a judge."""
    configuration = folder.header["configuration"]
    samples, hashed = configuration["samples_of_a_text"], configuration["rubric_hash"]
    return signature_line(teacher=folder.teacher, rubric=folder.rubric, rubric_hash=hashed, samples=samples, **more)


def estimator_of(folder: AnnotationFolder, chance: ResamplingSettings) -> Estimator:
    """Estimator of figures about a judge."""
    return Estimator(signed_by(folder), chance)
