"""How figures about a judge are reckoned: shares, alpha, kappa and correlation, each signed and with an interval over dialogues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.design.taxonomy import Taxonomy
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings, accuracies
from empathy_eval.metrics.protocol import Array
from empathy_eval.raters.judges.annotations import Folder, Text, dialogue_of
from empathy_eval.statistics.agreement import interval_alpha, kappa_measures, kappa_sums, kappas
from empathy_eval.statistics.estimate import Codes, Measure
from empathy_eval.statistics.resampling import Clusters, ItemBootstrap, ratio

# Beneath this a spread is the rounding of values that are all alike.
LEAST = 1e-9


@dataclass(frozen=True)
class Estimator:
    """What figures are signed with, and how chance is reckoned with."""

    signed: str
    chance: ResamplingSettings

    def line(self, items: int, **settings: object) -> str:
        """The signature of a figure over so many items."""
        return "|".join(filter(None, [self.signed, f"n:{items}", signature_line(**settings)]))

    def count(self, value: float, items: int, **settings: object) -> Measure:
        """A figure that says what is there, and leaves nothing to chance."""
        line = self.line(items, **settings)
        return Measure(round(value, 12), None, None, items, None, line) if items else Measure.undefined("there is nothing to count", line)

    def shares(self, won: Mapping[str, Sequence[float]], names: Sequence[str], **settings: object) -> dict[str, Measure]:
        """The mean of each of several columns over the same items, with intervals from the same draws; ``names`` are their pairs."""
        # In the order of the ids, so that draws are the same in whatever order the items come.
        order = sorted(range(len(names)), key=lambda place: names[place])
        clusters = clusters_of([names[place] for place in order])
        line = f"{self.line(len(names), **settings)}|{self.chance.of_intervals(clusters)}"
        if not names:
            return {name: Measure.undefined("there is nothing to compare", line) for name in won}
        found = accuracies([np.array(column, dtype=np.float64)[order] for column in won.values()], clusters, self.chance)
        why = None if len(clusters) > 1 else "no interval: all is of one dialogue"
        return {name: Measure(one.value, one.low, one.high, len(names), why, line) for name, one in zip(won, found, strict=True)}

    def alpha(self, given: Mapping[Text, Sequence[int]], **settings: object) -> Measure:
        """Krippendorff's interval alpha of what raters gave each text, in whole steps of a scale."""
        if not given:
            return Measure.undefined("no item with two ratings", self.line(0, **settings))
        item = np.repeat(np.arange(len(given)), [len(some) for some in given.values()])
        values = np.array([one for some in given.values() for one in some], dtype=np.int64)
        found = interval_alpha(item, values, self._drawn([name for name, _ in given]))
        return replace(found, signature=f"{self.line(found.items, values='hundredths-of-the-scale', **settings)}|{found.signature}")

    def kappa(
        self, columns: tuple[Codes, Codes], scale: Sequence[float], names: Sequence[str], weights: str, **settings: object
    ) -> Measure:
        """Cohen's kappa of two columns of places in a scale."""
        items = len(names)
        if not items:
            return Measure.undefined("no item in common", self.line(0, **settings))
        sample, values = self._drawn(names), np.array(scale, dtype=np.float64)
        sums = sample.resampled(kappa_sums(np.arange(items), *columns, values, sample))
        found = kappa_measures(kappas(sums, values), items, sample.signature)[weights]
        return replace(found, signature=f"{self.line(items, **settings)}|{found.signature}")

    def as_planned(
        self, rows: Sequence[tuple[str, str, str]], taxonomy: Taxonomy, share: Mapping[str, str], kappa: Mapping[str, str]
    ) -> tuple[Measure, Measure]:
        """How far strategies are the planned ones: the share that is, and Cohen's kappa; rows are (pair, strategy, planned one)."""
        codes, names = {one.abbreviation: place for place, one in enumerate(taxonomy.strategies)}, [name for name, _, _ in rows]
        said, planned = (np.array([codes[row[place]] for row in rows], dtype=np.int64) for place in (1, 2))
        agreed = self.shares({"": (said == planned).tolist()}, names, **share)[""]
        return agreed, self.kappa((said, planned), range(len(codes)), names, "plain", **kappa)

    def correlation(self, one: Array, other: Array, names: Sequence[str], *, ranks: bool = False, **settings: object) -> Measure:
        """The correlation of two columns: Pearson's, or Spearman's of ``ranks``, which draws leave as they are."""
        items, kind = len(names), "spearman,ranks-of-all" if ranks else "pearson"
        if not items:
            return Measure.undefined("no item in common", self.line(0, correlation=kind, **settings))
        x, y = (column - column.mean() for column in (map(_ranks, (one, other)) if ranks else (one, other)))
        sample = self._drawn(names)
        columns = np.stack([np.ones(items), x, y, x * x, y * y, x * y])
        n, sx, sy, sxx, syy, sxy = sample.totals(np.arange(items), columns).T
        spread = np.sqrt(np.maximum(n * sxx - sx * sx, 0) * np.maximum(n * syy - sy * sy, 0))
        values = ratio(n * sxy - sx * sy, np.where(spread > LEAST, spread, 0.0))
        line = f"{self.line(items, correlation=kind, **settings)}|{sample.signature}"
        return Measure.of(values, items, "in common", "one of the two is the same for all items", line)

    def _drawn(self, names: Sequence[str]) -> ItemBootstrap:
        """Draws of dialogues with all their items; a single one has no spread, and so no draws."""
        dialogues, unit = np.unique([dialogue_of(name) for name in names], return_inverse=True)
        sample = ItemBootstrap.of(len(dialogues), self.chance.resamples if len(dialogues) > 1 else 0, self.chance.seed)
        return replace(sample, unit=sample.unit[unit], signature=f"drawn:dialogues|{sample.signature}")


def clusters_of(names: Sequence[str]) -> Clusters:
    """The dialogues of pairs, or dialogues themselves, and their scenarios, which ids begin with."""
    dialogues = [dialogue_of(one) for one in names]
    return Clusters.of(dialogues, [int(one[:3]) for one in dialogues])


def chance_of(manifest: Mapping[str, Any]) -> ResamplingSettings:
    """How figures on the judges of a release reckon with chance: as its report does."""
    made = manifest["configuration"]
    return ResamplingSettings(made["report"]["bootstrap"], 0, made["seed"])


def signed_by(folder: Folder, **more: object) -> str:
    """What a figure about a judge is signed with."""
    made = folder.header["configuration"]
    samples, hashed = made["samples_of_a_text"], made["rubric_hash"]
    return signature_line(teacher=folder.teacher, rubric=folder.rubric, rubric_hash=hashed, samples=samples, **more)


def reckoning_of(folder: Folder, chance: ResamplingSettings) -> Estimator:
    """How figures about a judge are signed and reckoned."""
    return Estimator(signed_by(folder), chance)


def _ranks(values: Array) -> Array:
    """Ranks; equal values have the mean of theirs."""
    ordered = np.sort(values)
    ranks: Array = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2
    return ranks
