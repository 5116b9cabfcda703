"""Tables that ``study`` prints: groups, tests, gains and detectable effects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from empathy_eval.base.table_text import TableText, aligned, table_text

if TYPE_CHECKING:
    from empathy_eval.raters.study.results import AttentionChecks, Balance, ColumnBalance, Corrected, Gain, StudyPart, StudyReport
    from empathy_eval.statistics.chi_square import ChiSquaredTest


HEAD = ("test", "statistic", "df", "V", "p")
NAMES = {"kruskal-wallis": "Kruskal-Wallis"}


def raters_blocks(studied: StudyReport) -> list[Sequence[str]]:
    """Returns the balance of raters between groups and their attention checks; nothing without a table of raters."""
    blocks = list[Sequence[str]]()
    if studied.balance is not None:
        blocks += _balance(studied.balance, studied.settings["permutations"])
    if studied.attention is not None:
        blocks.append(_attention(studied.attention, studied.settings["permutations"]))
    return blocks


def _balance(balance: Balance, draws: int) -> Iterator[Sequence[str]]:
    rows = [(column.column, *_rater_test(column.test, column.holm, draws)) for column in balance.columns if column.test is not None]
    whys = [f"  {column.column}: {why}" for column in balance.columns if (why := column.why or (column.test and column.test.why))]
    tests = aligned([("raters of the groups by", *HEAD, "p drawn", "Holm"), *rows], 2) if rows else []
    if any(column.test and column.test.permutation for column in balance.columns):
        whys.append("  p drawn: chi-squared, from random tables with the same sums")
    yield [*tests, *whys, *(f"note: {note}" for note in balance.notes)]
    for column in balance.columns:
        if column.cells or any(median is not None for _, median, _ in column.quartiles):
            yield _column(column, balance.groups)


def _column(column: ColumnBalance, groups: Sequence[tuple[str, int]]) -> Sequence[str]:
    if column.cells:
        head = (f"raters by {column.column}", *column.values)
        rows = [(name, *(f"{count:,}" for count in cells)) for (name, _), cells in zip(groups, column.cells, strict=True)]
    else:
        head = (f"raters by {column.column}", "lower quartile", "median", "upper quartile")
        rows = [(name, *map(_figure, quartiles)) for (name, _), quartiles in zip(groups, column.quartiles, strict=True)]
    return aligned([head, *rows], 1)


def _attention(attention: AttentionChecks, draws: int) -> list[str]:
    lines = [f"attention checks: {attention.why}"] if attention.why else []
    if attention.cells:
        rows = [(name, *(f"{count:,}" for count in cells)) for (name, _), cells in zip(attention.groups, attention.cells, strict=True)]
        lines += aligned([("raters by failed attention checks", *attention.values), *rows], 1)
    if attention.without is not None:
        row = ("without raters who failed more than half", *_rater_test(attention.without, None, draws)[:-1])
        lines += aligned([("groups by all categories", *HEAD, "p by rater"), row], 2)
    return [*lines, *(f"note: {note}" for note in attention.notes)]


def _rater_test(test: ChiSquaredTest, holm: float | None, draws: int) -> tuple[str, ...]:
    corrected = p_cell(holm, draws if test.p_by == "permutation" else 0, test.permutation)
    return NAMES.get(test.p_by, "chi-squared"), *_test(test, draws), corrected


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def p_cell(value: float | None, draws: int = 0, of: float | None = None) -> str:
    """Formats a p-value to four places; "<=" marks the smallest p that so many draws can give, and its corrections."""
    from empathy_eval.statistics.estimate import format_p

    return "" if value is None else "".join(format_p(value, draws, of)).removeprefix("=").replace("≤", "<=")


TEST = ("chi-squared", "df", "V", "p", "p by rater")
CORRECTED = ("p", "Holm", "BH", "p by rater", "Holm", "BH")
# Above this number of parts, only the omnibus test is shown; JSON and CSV have the rest.
PARTS_SHOWN = 4
EXPLAINED = """\
p: of the chi-squared test, which assumes that all ratings are independent
p by rater: from {permutations:,} permutations of whole raters{within}; use it if the ratings of a rater resemble each other
<=: so many permutations cannot give a smaller p
Holm, BH (Benjamini-Hochberg): the p to their left, corrected over all pairs, all gains in a category, or all values of a stratum column
*: an expected count is below 5, so use the p by rater; the first Holm and BH correct it"""


def study_table(studied: StudyReport) -> TableText:
    """Returns the results that fit on a terminal."""
    draws = studied.settings["permutations"]
    whole = studied.whole
    blocks: list[Sequence[str]] = [_groups(studied), _tests(studied, whole, "all ratings"), _pairs(whole, draws), _gains(studied, whole)]
    for column, parts in studied.parts.items():
        blocks.append(_parts(column, parts, draws))
        if len(parts) <= PARTS_SHOWN:
            blocks += [_gains(studied, part) for part in parts]
        else:
            blocks.append([f"--json and --csv have the pairs and gains of each {column}"])
    blocks += [_spreads(studied), list(_power(studied)), *raters_blocks(studied), list(_notes(studied))]
    return table_text(line for block in blocks for line in (*block, ""))


def _groups(studied: StudyReport) -> Sequence[str]:
    head = ("group", "raters", "ratings", "items", *studied.labels)
    rows = []
    for place, (group, counts, shares) in enumerate(zip(studied.groups, studied.whole.counts, studied.whole.shares, strict=True)):
        name = f"{group.name} (baseline)" if place == 0 else f"{group.name} (added)" if group.added else group.name
        cells = [f"{count:,} {'' if share is None else f'{100 * share:5.1f} %'}" for count, share in zip(counts, shares, strict=True)]
        rows.append((name, f"{group.raters:,}", f"{group.ratings:,}", f"{group.items:,}", *cells))
    return aligned([head, *rows])


def _tests(studied: StudyReport, part: StudyPart, title: str) -> list[str]:
    draws = studied.settings["permutations"]
    named = [("all categories", part.omnibus), *((label, test) for label, test in zip(studied.labels, part.by_category, strict=True))]
    rows = [(name, *_test(test, draws)) for name, test in named]
    return [*aligned([(f"{title}: groups by", *TEST), *rows]), *_reasons((name, test.why) for name, test in named)]


def _pairs(part: StudyPart, draws: int) -> list[str]:
    named = [(f"{pair.group} - {pair.other}", pair) for pair in part.pairwise]
    rows = [(name, *_test(pair.test, draws)[:3], *_corrected(pair.test, pair.corrected, draws)) for name, pair in named]
    return [*aligned([("pairs of groups", *TEST[:3], *CORRECTED), *rows]), *_reasons((name, pair.test.why) for name, pair in named)]


def _gains(studied: StudyReport, part: StudyPart) -> list[str]:
    title = f"gain over {studied.groups[0].name}" + (f", {part.name}" if part.name is not None else "")
    head = (title, "percent", "95 % interval", "Yates", *CORRECTED)
    rows = [(f"{gain.category}, {gain.group}", *_gain(gain, studied.settings["permutations"])) for gain in part.gains]
    return [*aligned([head, *rows]), *_reasons((f"{gain.category}, {gain.group}", gain.reason) for gain in part.gains)]


def _gain(gain: Gain, draws: int) -> tuple[str, ...]:
    value = "" if gain.value is None else f"{gain.value:+.1f}"
    bounds = "" if gain.low is None or gain.high is None else f"[{gain.low:+.1f}, {gain.high:+.1f}]"
    return value, bounds, _test(gain.test, draws)[0], *_corrected(gain.test, gain.corrected, draws)


def _parts(column: str, parts: Sequence[StudyPart], draws: int) -> list[str]:
    cells = ((*_test(part.omnibus, draws)[:3], *_corrected(part.omnibus, part.corrected, draws)) for part in parts)
    rows = [(part.name or "", f"{part.omnibus.n:,}", *some) for part, some in zip(parts, cells, strict=True)]
    reasons = _reasons((part.name or "", part.omnibus.why) for part in parts)
    return [*aligned([(f"by {column}", "ratings", *TEST[:3], *CORRECTED), *rows]), *reasons]


def _test(test: ChiSquaredTest, draws: int) -> tuple[str, ...]:
    statistic, v = ("" if value is None else f"{value:.{places}f}" for value, places in ((test.statistic, 2), (test.v, 3)))
    star = "*" if test.p_by == "permutation" else ""
    return statistic, "" if test.df is None else str(test.df), v, p_cell(test.p), p_cell(test.permutation, draws) + star


def _corrected(test: ChiSquaredTest, corrected: Corrected, draws: int) -> tuple[str, ...]:
    """Returns both p-values of a test, each with its corrections."""
    *_, p, by_rater = _test(test, draws)
    mixed = draws if test.p_by == "permutation" else 0
    first = (p_cell(value, mixed, test.permutation) for value in (corrected.holm, corrected.benjamini_hochberg))
    second = (p_cell(value, draws, test.permutation) for value in (corrected.holm_by_rater, corrected.benjamini_hochberg_by_rater))
    return p, *first, by_rater, *second


def _reasons(named: Iterable[tuple[str, str | None]]) -> list[str]:
    """Returns one line per reason, with the names of its figures."""
    names_by_reason = dict[str, list[str]]()
    for name, why in named:
        if why:
            names_by_reason.setdefault(why, []).append(name)
    return [f"  {'; '.join(names)}: {why}" for why, names in names_by_reason.items()]


def _spreads(studied: StudyReport) -> list[str]:
    head = ("ratings of one rater", "intraclass correlation", "design effect", "ratings per rater")
    rows = []
    for spread in studied.spreads:
        values = ((spread.icc, 3), (spread.design_effect, 2), (spread.ratings_a_rater, 1))
        rows.append((f"{spread.group}, {spread.category}", *("" if value is None else f"{value:.{places}f}" for value, places in values)))
    return [*aligned([head, *rows]), *_reasons((f"{spread.group}, {spread.category}", spread.why) for spread in studied.spreads)]


def _power(studied: StudyReport) -> Iterator[str]:
    power = studied.power
    aim = f"w = {power.w:g} at alpha {power.alpha:g} and power {power.power_wanted:g}"
    yield f"an effect of {aim} needs {power.needed:,} independent ratings"
    if power.effective_ratings is not None and power.reached is not None:
        effective = f"these {power.ratings:,} are worth {power.effective_ratings:,.0f} (design effect {power.design_effect:.2f})"
        yield f"{effective}: power {power.reached:.3f}, smallest effect w = {power.smallest_w:.3f}"
    if studied.null_point is not None and studied.null_point_if_independent is not None:
        point = f"{studied.null_point:.0f}" if studied.null_point >= 10 else f"{studied.null_point:.1f}"
        point_text = f"when raters are permuted, {100 * power.alpha:.3g}% of omnibus statistics lie above about {point}"
        drawn = f"{studied.settings['permutations']:,} permutations"
        yield f"{point_text} ({drawn}); if ratings were independent and groups equal, above {studied.null_point_if_independent:.1f}"


def _notes(studied: StudyReport) -> Iterator[str]:
    yield from (f"note: {note}" for note in studied.notes)
    if studied.settings["permutations"]:
        within = " within their block" if studied.settings["within"] == "block" else ""
        yield EXPLAINED.format(within=within, permutations=studied.settings["permutations"])
    else:
        yield "p: of the chi-squared test, which assumes that all ratings are independent; no permutation test was run"
    yield studied.signature
