"""Claims of a report, each bounded by the next: forced preferences, equal closeness, shortcut line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from empathy_eval.base.text import listed, percent
from empathy_eval.design.contrasts import PAIR_VARIANTS, RAW, STANCE
from empathy_eval.evaluation.inversion.results import Difference, ReleaseTables
from empathy_eval.evaluation.inversion.rows import ContrastAudit
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
    """A claim: heading, key figure, and text."""

    name: str
    figure: str
    text: str


@dataclass(frozen=True)
class ShortcutLine:
    """The shortcut line of a contrast: the best shortcut, its accuracy, and the accuracy of words alone.

    ``places`` is by metric: ``above`` or ``below`` the line only with its whole interval, ``at`` it if the
    interval holds it, ``untested`` if there is none.
    """

    contrast: str
    shortcut: str
    accuracy: Estimate
    words: Estimate | None
    places: dict[str, str]


def contrast_audit(measured: ReleaseTables, contrast: str) -> ContrastAudit | None:
    """Returns the audit of a contrast; None without one."""
    return next((row for row in measured.audit.contrasts if row.contrast == contrast), None) if measured.audit else None


def shortcut_line(measured: ReleaseTables) -> ShortcutLine | None:
    """Returns the shortcut line of the headline contrast; None if it was not measured."""
    contrast, differences = headline_differences(measured)
    audit = contrast_audit(measured, contrast)
    best = audit.line if audit else None
    if audit is None or best is None or best.accuracy is None:
        return None
    words = next((shortcut.accuracy for shortcut in audit.shortcuts if shortcut.name == WORDS_ALONE), None)
    places = {
        name: compare_with_line(row.accuracy, best.accuracy.number) for name, row in differences.items() if row.accuracy and not row.forced
    }
    return ShortcutLine(contrast, best.name, best.accuracy, words, places)


def headline_differences(measured: ReleaseTables) -> tuple[str, dict[str, Difference]]:
    """Returns the headline contrast and its differences by metric: at equal closeness or, without controls, as released."""
    if differences := measured.equal_closeness:
        return STANCE, differences
    rows = [row for row in measured.inversion if row.higher_is_better is not None]
    return RAW, {row.metric: difference for row in rows if (difference := row.differences[RAW]).accuracy}


def compare_with_line(accuracy: Estimate, line: float) -> str:
    """Returns the place of an accuracy: ``above`` or ``below`` the line only with its whole interval."""
    if accuracy.low is None or accuracy.high is None:
        return UNTESTED
    return ABOVE if accuracy.low > line else BELOW if accuracy.high < line else AT


def claims(measured: ReleaseTables) -> list[Claim]:
    """Returns the claims of page, card and terminal, in order; a single one if one dialogue allows no claim."""
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
    sentence = f"As released, {how_many(cold, of, 'reference-based', 'prefer')} the apathetic reply."
    why = "The checks force this: that reply is a near-copy of the reference. This alone says nothing about empathy."
    return Claim(name, f"{cold} of {of}", f"{sentence} {why}" if cold else sentence)


def _left(measured: ReleaseTables, reading: Mapping[str, Difference]) -> Claim:
    name, differences = "At equal closeness", measured.equal_closeness
    if not differences:
        words = "This release has no controls, so it cannot show whether a metric measures stance or closeness."
        return Claim(name, "", "No metric could be measured on the pairs with controls." if measured.balance else words)
    of_them = {metric: difference for metric, difference in differences.items() if metric in reading}
    some, what = (of_them, "reference-based metric") if of_them else (differences, "metric")
    counts = sides(some.values())
    words = whom(counts, what if len(some) == 1 else f"{what}s")
    sentence = f"{words[0].upper()}{words[1:]}."
    if counts["untested"] == len(some):
        return Claim(name, "", sentence)
    values = sorted(difference.accuracy.number for difference in some.values() if difference.accuracy)
    ends = list(dict.fromkeys(percent(value) for value in (values[0], values[-1])))
    figure = "\N{EN DASH}".join(dict.fromkeys(percent(value, 0).rstrip("\N{NO-BREAK SPACE}%") for value in (values[0], values[-1])))
    whose = "Its accuracy is" if len(some) == 1 else "Their accuracies range from" if len(ends) > 1 else "Their accuracy is"
    words = f"{whose} {' to '.join(ends)}; chance is {percent(0.5, 0)}."
    return Claim(name, f"{figure}\N{NO-BREAK SPACE}%", f"{sentence} {words}")


def _reached(measured: ReleaseTables) -> Claim:
    name, line = "Shortcut line", shortcut_line(measured)
    if line is None:
        what = "was measured" if measured.audit is None else "could be measured"
        return Claim(name, "", f"No shortcut {what}, so it is not known whether a metric does better than words alone.")
    reach, bag = percent(line.accuracy.number), "a bag-of-words classifier without the context"
    if line.shortcut == WORDS_ALONE:
        sentence = f"{bag} reaches {reach}; no other shortcut reaches more."
    elif line.words:
        sentence = f"{bag} reaches {percent(line.words.number)}, the best shortcut ({line.shortcut}) {reach}."
    else:
        sentence = f"the best shortcut ({line.shortcut}) reaches {reach}."
    return Claim(name, reach, " ".join(filter(None, [f"{WHERE[line.contrast]}, {sentence}", line_summary(line)])))


def line_summary(line: ShortcutLine) -> str:
    """Counts metrics above, at and below the shortcut line, in words; empty if none can be compared."""
    counts = Counter(line.places.values())
    of, what = len(line.places) - counts[UNTESTED], "with an accuracy" if line.contrast == STANCE else "that the checks do not force"
    if not of:
        return "One dialogue is too few to compare metrics with this line." if line.places else ""
    rest = [f"{counts[place]} {'is' if counts[place] == 1 else 'are'} {PLACES_OF[place]}" for place in (AT, BELOW) if counts[place]]
    if of == 1:
        sentence = f"The one metric {what} is {next(place for place in (ABOVE, AT, BELOW) if counts[place])} this line."
    elif counts[ABOVE] == of:
        sentence = f"All {of} metrics {what} are above this line."
    elif counts[ABOVE]:
        sentence = f"{counts[ABOVE]} of the {of} metrics {what} {'is' if counts[ABOVE] == 1 else 'are'} above this line; {listed(rest)}."
    else:
        rest_words = f"all are {PLACES_OF[BELOW if counts[BELOW] else AT]}" if len(rest) == 1 else listed(rest)
        sentence = f"None of the {of} metrics {what} is above this line; {rest_words}."
    return sentence + (" A metric below this line has not shown that it measures empathy." if counts[BELOW] else "")


def sides(differences: Iterable[Difference]) -> dict[str, int]:
    """How many differences prefer the apathetic, the empathetic and neither side, and how many have no interval to tell."""
    counts = Counter("untested" if difference.low is None else difference.prefers for difference in differences)
    return {name: counts[name] for name in (*PAIR_VARIANTS, "neither", "untested")}


def whom(counts: Mapping[str, int], what: str = "") -> str:
    """``all 5 prefer the empathetic reply``, or how many prefer which; ``what`` is what they are called."""
    of = sum(counts.values())
    all_of_them, verb = (f"the one {what}" if what else "it", "prefers") if of == 1 else (f"all {of} {what}".rstrip(), "prefer")
    for side in PAIR_VARIANTS:
        if counts[side] == of:
            return f"{all_of_them} {verb} the {side} reply"
    if counts["untested"] == of:
        return "one dialogue is too few to tell"
    if counts["neither"] == of:
        return f"{all_of_them} shows no clear preference" if of == 1 else f"none of the {f'{of} {what}'.rstrip()} shows a clear preference"
    parts = [
        f"{counts[side]} {'prefers' if counts[side] == 1 else 'prefer'} the {side} reply" for side in PAIR_VARIANTS[::-1] if counts[side]
    ]
    parts += [f"{counts['neither']} {'shows' if counts['neither'] == 1 else 'show'} no clear preference"] if counts["neither"] else []
    parts += [f"{counts['untested']} {'has' if counts['untested'] == 1 else 'have'} no interval"] if counts["untested"] else []
    return (f"of the {of} {what}, " if what else "") + listed(parts)


def how_many(count: int, of: int, what: str, verb: str) -> str:
    """``all 5 reference-based metrics prefer``: how many of how many."""
    if of == 1:
        return f"the one {what} metric {verb + 's' if count else 'does not ' + verb}"
    if count == of:
        return f"all {of} {what} metrics {verb}"
    if count == 0:
        return f"none of the {of} {what} metrics {verb}s"
    return f"{count} of the {of} {what} metrics {verb}{'s' if count == 1 else ''}"
