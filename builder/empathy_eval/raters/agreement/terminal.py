"""The figures of agreement as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from empathy_eval.raters.agreement.against_median import AgainstMedian
from empathy_eval.raters.agreement.benchmark import Benchmark, Pair, Standing

if TYPE_CHECKING:
    from empathy_eval.raters.agreement.agree import Agreement, Criterion

# Of more pairs only the spread is shown; JSON has them all.
PAIRS_SHOWN = 45
NO_INTERVAL = "(no interval): no resamples, or the figure is not defined in too many of them; --json says which"


def shown(agreement: Agreement) -> str:
    """All figures, a block a criterion, each block with the settings of its intervals."""
    judges = f"; judges: {', '.join(agreement.judges)}" if agreement.judges else ""
    lines = [f"{len(agreement.experts)} experts{judges}"]
    for criterion in agreement.criteria:
        lines += ["", *_criterion(criterion)]
    factors = [f"  {name}  {measure}" for name, measure in agreement.inflation.items()]
    settings = next(iter(agreement.inflation.values())).signature
    lines += ["", "variance inflation factor of each criterion", *factors, f"  {settings}"]
    text = "\n".join(lines)
    return f"{text}\n\n{NO_INTERVAL}" if "(no interval)" in text else text


def _criterion(one: Criterion) -> Iterator[str]:
    values = " ".join(f"{value:g}" for value in one.scale)
    yield f"{one.criterion}: {one.ratings} ratings of {one.items} items, values {values}"
    for level, measure in one.alpha.items():
        yield f"  Krippendorff's alpha, {level}  {measure}"
    yield f"  Fleiss' kappa over {one.fleiss.items} items  {one.fleiss}"
    yield from _pairs("expert with expert", one.benchmark.pairs)
    yield f"  benchmark: median {one.benchmark.weights} kappa of pairs of experts  {one.benchmark.median}"
    for judge in one.benchmark.judges:
        yield from _standing(judge, one.benchmark)
    if one.against_median:
        yield "  with the median of the other experts"
        yield from (f"    {_against(rater, one.benchmark.weights)}" for rater in one.against_median)
    yield f"  {one.signature}"


def _standing(judge: Standing, benchmark: Benchmark) -> Iterator[str]:
    yield from _pairs(f"{judge.judge} with expert", judge.pairs)
    yield f"  {judge.judge}: median {benchmark.weights} kappa with the experts  {judge.median}"
    if judge.reached is not None:
        yield f"  {judge.judge}: that minus the benchmark  {judge.difference}"
        yield f"  {judge.judge}: no lower than {judge.reached} of {judge.of} pairs of experts"


def _pairs(title: str, pairs: tuple[Pair, ...]) -> Iterator[str]:
    if len(pairs) > PAIRS_SHOWN:
        yield f"  Cohen's kappa, {title}: {len(pairs)} pairs, too many to show; --json has them"
    elif pairs:
        yield f"  Cohen's kappa, {title}"
        for pair in pairs:
            some = next(iter(pair.kappa.values()))
            figures = f"{some}" if some.value is None else _joined((name, measure) for name, measure in pair.kappa.items())
            yield f"    {' - '.join(pair.raters)}, {some.items} items: {figures}"


def _against(rater: AgainstMedian, weights: str) -> str:
    if rater.macro_f1.value is None:
        return f"{rater.rater}: {rater.macro_f1}"
    binary = ((f"F1 of >={threshold:g}", measure) for threshold, measure in rater.binary_f1)
    figures = _joined([(f"{weights} kappa", rater.kappa[weights]), ("macro F1", rater.macro_f1), *binary])
    return f"{rater.rater}, {rater.macro_f1.items} items: {figures}"


def _joined(figures: Iterable[tuple[str, object]]) -> str:
    return "; ".join(f"{name} {measure}" for name, measure in figures)
