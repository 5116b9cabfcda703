"""The claims of a report, in the order in which each bounds the next: what is forced, what is left of it, and what shortcuts reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from empathy_eval.design.contrasts import RAW, STANCE
from empathy_eval.evaluation.inversion.results import Difference, ReleaseTables
from empathy_eval.evaluation.inversion.rows import ContrastAudit
from empathy_eval.evaluation.wording import how_many, listed, percent, sides, whom
from empathy_eval.statistics.estimate import Estimate

ABOVE, AT, BELOW, UNTESTED = "above", "at", "below", "untested"
# Where a metric stands beside the shortcut line, in words.
PLACES_OF = {ABOVE: "above it", AT: "at it", BELOW: "below it", UNTESTED: "untested"}
WORDS_ALONE = "words alone"
# What a contrast is called in a sentence.
WHERE = {STANCE: "At equal closeness", RAW: "As released"}
NO_CLAIM = "One dialogue has no intervals, so this report makes no claim."


@dataclass(frozen=True)
class Claim:
    """A claim: its heading, the figure that it turns on, and its sentences; it says no more than the figures carry."""

    name: str
    figure: str
    said: str


@dataclass(frozen=True)
class ShortcutLine:
    """The shortcut line of a contrast: the shortcut that is most often right, how often, and the same of words alone.

    ``beside`` is by metric where its accuracy stands: ``above`` or ``below`` the line only with its whole interval, ``at`` it if the
    interval holds it, ``untested`` if there is none.
    """

    contrast: str
    shortcut: str
    accuracy: Estimate
    words: Estimate | None
    beside: dict[str, str]


def audited(measured: ReleaseTables, contrast: str) -> ContrastAudit | None:
    """The audit of a contrast; None where there is none."""
    return next((one for one in measured.audit.contrasts if one.contrast == contrast), None) if measured.audit else None


def line_of(measured: ReleaseTables) -> ShortcutLine | None:
    """The shortcut line of the contrast whose accuracies are to be reported; None where it was not measured."""
    contrast, found = ranked(measured)
    audit = audited(measured, contrast)
    best = audit.line if audit else None
    if audit is None or best is None or best.accuracy is None:
        return None
    words = next((one.accuracy for one in audit.shortcuts if one.name == WORDS_ALONE), None)
    beside = {name: place_beside(one.accuracy, best.accuracy.number) for name, one in found.items() if one.accuracy and not one.forced}
    return ShortcutLine(contrast, best.name, best.accuracy, words, beside)


def ranked(measured: ReleaseTables) -> tuple[str, dict[str, Difference]]:
    """The contrast whose accuracy is the number to report, and by metric that difference: as released where there are no controls."""
    if found := measured.equal_closeness:
        return STANCE, found
    rows = [row for row in measured.inversion if row.higher_is_better is not None]
    return RAW, {row.metric: one for row in rows if (one := row.differences[RAW]).accuracy}


def place_beside(accuracy: Estimate, line: float) -> str:
    """Where an accuracy stands beside a line: ``above`` or ``below`` it only with its whole interval."""
    if accuracy.low is None or accuracy.high is None:
        return UNTESTED
    return ABOVE if accuracy.low > line else BELOW if accuracy.high < line else AT


def claims(measured: ReleaseTables) -> list[Claim]:
    """What the headline, the card and the terminal say, in this order; one sentence alone where one dialogue carries no claim."""
    rows = [row for row in measured.inversion if row.higher_is_better is not None and row.differences[RAW].forced]
    reading = {row.metric: row.differences[RAW] for row in rows}
    if reading and sides(reading.values())["untested"] == len(reading):
        return [Claim("No claim", "", NO_CLAIM)]
    return [_forced(reading), _left(measured, reading), _reached(measured)]


def _forced(reading: Mapping[str, Difference]) -> Claim:
    name, of = "By construction", len(reading)
    if not of:
        return Claim(name, "", "No metric in this report compares a reply with a reference, so the checks force no preference.")
    cold = sides(reading.values())["apathetic"]
    said = f"As released, {how_many(cold, of, 'reference-based', 'prefer')} the apathetic reply."
    why = "The checks force this: that reply is a near-copy of the reference. This alone says nothing about empathy."
    return Claim(name, f"{cold} of {of}", f"{said} {why}" if cold else said)


def _left(measured: ReleaseTables, reading: Mapping[str, Difference]) -> Claim:
    name, found = "At equal closeness", measured.equal_closeness
    if not found:
        told = "This release has no controls, so it cannot show whether a metric measures stance or closeness."
        return Claim(name, "", "No metric could be measured on the pairs with controls." if measured.balance else told)
    of_them = {metric: one for metric, one in found.items() if metric in reading}
    some, what = (of_them, "reference-based metric") if of_them else (found, "metric")
    seen = sides(some.values())
    told = whom(seen, what if len(some) == 1 else f"{what}s")
    said = f"{told[0].upper()}{told[1:]}."
    if seen["untested"] == len(some):
        return Claim(name, "", said)
    values = sorted(one.accuracy.number for one in some.values() if one.accuracy)
    ends = list(dict.fromkeys(percent(one) for one in (values[0], values[-1])))
    figure = "\N{EN DASH}".join(dict.fromkeys(percent(one, 0).rstrip("\N{NO-BREAK SPACE}%") for one in (values[0], values[-1])))
    whose = "Its accuracy is" if len(some) == 1 else "Their accuracies range from" if len(ends) > 1 else "Their accuracy is"
    told = f"{whose} {' to '.join(ends)}; chance is {percent(0.5, 0)}."
    return Claim(name, f"{figure}\N{NO-BREAK SPACE}%", f"{said} {told}")


def _reached(measured: ReleaseTables) -> Claim:
    name, line = "Shortcut line", line_of(measured)
    if line is None:
        what = "was measured" if measured.audit is None else "could be measured"
        return Claim(name, "", f"No shortcut {what}, so it is not known whether a metric does better than words alone.")
    reach, bag = percent(line.accuracy.number), "a bag-of-words classifier without the context"
    if line.shortcut == WORDS_ALONE:
        said = f"{bag} reaches {reach}; no other shortcut reaches more."
    elif line.words:
        said = f"{bag} reaches {percent(line.words.number)}, the best shortcut ({line.shortcut}) {reach}."
    else:
        said = f"the best shortcut ({line.shortcut}) reaches {reach}."
    return Claim(name, reach, " ".join(filter(None, [f"{WHERE[line.contrast]}, {said}", standing(line)])))


def standing(line: ShortcutLine) -> str:
    """How many metrics are above, at and below the shortcut line; empty where none can be held against it."""
    found = Counter(line.beside.values())
    of, what = len(line.beside) - found[UNTESTED], "with an accuracy" if line.contrast == STANCE else "that the checks do not force"
    if not of:
        return "One dialogue is too few to compare metrics with this line." if line.beside else ""
    rest = [f"{found[one]} {'is' if found[one] == 1 else 'are'} {PLACES_OF[one]}" for one in (AT, BELOW) if found[one]]
    if of == 1:
        said = f"The one metric {what} is {next(one for one in (ABOVE, AT, BELOW) if found[one])} this line."
    elif found[ABOVE] == of:
        said = f"All {of} metrics {what} are above this line."
    elif found[ABOVE]:
        said = f"{found[ABOVE]} of the {of} metrics {what} {'is' if found[ABOVE] == 1 else 'are'} above this line; {listed(rest)}."
    else:
        told = f"all are {PLACES_OF[BELOW if found[BELOW] else AT]}" if len(rest) == 1 else listed(rest)
        said = f"None of the {of} metrics {what} is above this line; {told}."
    return said + (" A metric below this line has not shown that it measures empathy." if found[BELOW] else "")
