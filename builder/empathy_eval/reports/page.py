"""Report page: one self-contained file without a script, from the templates in ``release/report/``."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from empathy_eval.base.errors import plain
from empathy_eval.base.files import data_folder
from empathy_eval.base.json_text import json_text
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.templates import environment
from empathy_eval.base.text import counted, listed, percent
from empathy_eval.design.contrasts import CLOSENESS, RAW, STANCE
from empathy_eval.evaluation.inversion.results import RANKED, MetricRow, ReleaseTables
from empathy_eval.reports import claims as of_claims
from empathy_eval.reports.charts import Chart, Mark, accuracy_chart, by_scenario, panels_of, phases_named
from empathy_eval.reports.claims import ABOVE, AT, BELOW, PLACES_OF, UNTESTED, claims, sides, whom
from empathy_eval.statistics.estimate import Estimate

JUDGE = "judge"
# Keys that are left out of the name of a figure.
UNNAMED_KEYS = ("worth", "criteria")


@dataclass(frozen=True)
class JudgeHeadline:
    """One criterion of a judge at equal closeness: its figures, the shortcut line, and its place relative to it (None without a line).

    Its pairs are dialogues where it is ``whole``; the line is then what shortcuts reach in the same comparisons.
    """

    judge: str
    criterion: str
    of: Mapping[str, Any]
    line: tuple[float, str] | None
    whole: bool = False

    @property
    def place(self) -> str | None:
        """Where it stands beside the line."""
        return of_claims.compare_with_line(_estimate(self.right), self.line[0]) if self.line else None

    @property
    def right(self) -> Mapping[str, Any]:
        """Accuracy of the judge."""
        estimate: Mapping[str, Any] = self.of["stance"][JUDGE]
        return estimate


@dataclass(frozen=True)
class JudgeVerdict:
    """Answer to "is this judge fooled?", and its reason."""

    judge: str
    answer: str
    reason: str


def equal_closeness_line(measured: ReleaseTables) -> tuple[float, str] | None:
    """Returns the accuracy of the best shortcut at equal closeness, over all pairs with controls, and its name."""
    audit = of_claims.contrast_audit(measured, STANCE)
    best = audit.line if audit else None
    return (best.accuracy.number, best.name) if best and best.accuracy else None


def judge_headlines(judges: Mapping[str, Any] | None, measured: ReleaseTables) -> list[JudgeHeadline]:
    """Returns the criteria of all judges that have judged both texts of a comparison at equal closeness."""
    line = equal_closeness_line(measured)
    return [
        JudgeHeadline(judge, name, criterion, _line_of(criterion["stance"]) if whole else line, whole)
        for judge, quality in (judges["worth"] if judges else {}).items()
        for whole in [quality.get("unit") == "dialogue"]
        for name, criterion in quality["criteria"].items()
        if (right := criterion["stance"].get(JUDGE)) and right["value"] is not None
    ]


def _line_of(stance: Mapping[str, Any]) -> tuple[float, str] | None:
    """Accuracy of the best shortcut in the comparisons of a judge, and its name; the first of equals."""
    shortcuts = [(share["value"], name) for name, share in stance.items() if name != JUDGE and share["value"] is not None]
    return max(shortcuts, key=lambda shortcut: shortcut[0], default=None)


def judge_verdicts(judges: Mapping[str, Any], measured: ReleaseTables) -> list[JudgeVerdict]:
    """Returns the verdict on each judge with an accuracy at equal closeness."""
    headlines = dict[str, list[JudgeHeadline]]()
    for headline in judge_headlines(judges, measured):
        headlines.setdefault(headline.judge, []).append(headline)
    return [_judge_verdict(judge, some) for judge, some in headlines.items()]


def _judge_verdict(judge: str, some: list[JudgeHeadline]) -> JudgeVerdict:
    line = max((headline.line for headline in some if headline.line), default=None)
    ends = sorted(headline.right["value"] for headline in some)
    shares = " to ".join(dict.fromkeys(percent(end) for end in (ends[0], ends[-1])))
    count = max(headline.of["pairs"] for headline in some)
    result = f"its accuracy over {counted(count, 'whole dialogue' if some[0].whole else 'pair')} is {shares}"
    if line is None:
        return JudgeVerdict(judge, "not known", f"{result}; no shortcut was measured to compare it with.")
    counts = Counter(headline.place for headline in some)
    places = [place for place in (ABOVE, AT, BELOW, UNTESTED) if counts[place]]
    parts = [f"{counts[place]} {'is' if counts[place] == 1 else 'are'} {PLACES_OF[place]}" for place in places]
    of = counted(len(some), "criterion", "criteria")
    reason = f"{result}. Compared with the shortcut line ({line[1]}, {percent(line[0])}), of {of} {listed(parts)}."
    if counts[UNTESTED]:
        return JudgeVerdict(judge, "not known, because there are no intervals", reason)
    if counts[ABOVE] == len(some):
        return JudgeVerdict(judge, "no", reason)
    if counts[ABOVE]:
        return JudgeVerdict(judge, "by some criteria", reason)
    return JudgeVerdict(judge, "yes" if counts[BELOW] == len(some) else "not shown either way", reason)


def judges_charts(judges: Mapping[str, Any] | None, measured: ReleaseTables) -> list[Chart]:
    """Returns charts of the accuracies of judges at equal closeness, of replies and of whole dialogues; none without one."""
    headlines, charts = judge_headlines(judges, measured), list[Chart | None]()
    for name, whole in (("judges", False), ("judges_of_dialogues", True)):
        some = [headline for headline in headlines if headline.whole is whole]
        rows = [(f"{row.judge}: {row.criterion}", [Mark(STANCE, _estimate(row.right))]) for row in some]
        line = max((headline.line for headline in some if headline.line), default=None)
        charts.append(accuracy_chart(name, rows, line) if rows else None)
    return [chart for chart in charts if chart]


def _estimate(measure: Mapping[str, Any]) -> Estimate:
    return Estimate(measure["value"], measure["low"], measure["high"])


def judge_values(judges: Mapping[str, Any] | None, measured: ReleaseTables) -> dict[str, Any]:
    """Returns the template values on judges, besides their figures; empty without judges."""
    if not judges:
        return {}
    why = dict.fromkeys(estimate["why"] for _, estimate in _figures(judges["worth"], ()) if estimate["value"] is None)
    return {
        "verdicts": judge_verdicts(judges, measured), "headlines": judge_headlines(judges, measured),
        "line": equal_closeness_line(measured), "why": list(why), "signatures": signatures(judges),
    }  # fmt: skip


def signatures(judges: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns (names, signature) of all figures of judges, grouped by signature in the order of the tables."""
    names_by_signature: dict[str, list[str]] = {}
    for path, figure in _figures(judges, ()):
        names_by_signature.setdefault(figure["signature"], []).append(": ".join(path))
    return [(listed(names), signature) for signature, names in names_by_signature.items()]


def _figures(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yields each figure of judges with its path."""
    if isinstance(value, Mapping) and "signature" in value:
        yield path, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _figures(item, path if name in UNNAMED_KEYS else (*path, name.replace("_", " ")))


def glossary_terms() -> dict[str, str]:
    """Returns the terms of the glossary with their meanings, in the order of pages."""
    glossary: dict[str, str] = read_yaml(data_folder("release") / "glossary.yaml", "glossary")
    return glossary


MINUS = "\N{MINUS SIGN}"


def page(measured: ReleaseTables, about: dict[str, Any], sections: dict[str, Any], charts: Sequence[Chart]) -> str:
    """Returns the page as HTML; equal reports give equal pages. All but our own style is escaped."""
    folder = data_folder("release") / "report"
    templates = environment(folder)
    templates.filters |= FILTERS
    templates.globals["figures_of_contrasts"] = RANKED
    return templates.get_template("page.html.j2").render(
        measured=measured, about=about, sections=sections, charts={chart.name: chart for chart in charts}, claims=claims(measured),
        line=of_claims.shortcut_line(measured), ranked=of_claims.headline_differences(measured), closeness=closeness(measured),
        raw=RAW, stance=STANCE,
        by_scenario=by_scenario(measured), panels=panels_of(sections), named=phases_named(sections),
        judged=judge_values(sections.get("judges"), measured), terms=glossary_terms(),
        style=(folder / "page.css").read_text(encoding="utf-8"),
    ) + "\n"  # fmt: skip


def render_page(name: str, filters: Mapping[str, Any], **values: Any) -> str:
    """Renders the templates in ``release/name/`` with the styles of the report and their own."""
    folder = data_folder("release")
    templates = environment(folder)
    templates.filters |= filters
    style = "\n".join((folder / name_ / "page.css").read_text(encoding="utf-8") for name_ in ("report", name))
    return templates.get_template(f"{name}/page.html.j2").render(**values, style=style) + "\n"


def round_step(least: float) -> float:
    """Returns the smallest round number that is at least ``least``, as the step of an axis."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= least * (1 - 1e-9))


def closeness(measured: ReleaseTables) -> dict[str, Any]:
    """Compares the effects of closeness and stance on reference-based metrics.

    ``times`` is the smallest and the largest ratio of both effects (the largest is None if an effect of stance may be 0). ``uneven`` says
    whether edit size or length differ between stances, None without intervals.
    """
    forced = {row.metric for row in measured.inversion if row.differences[RAW].forced and row.higher_is_better is not None}
    alone = [row for row in measured.controls if row.metric in forced]
    times = [abs(row.differences[CLOSENESS].number / value) for row in alone if (value := row.differences[STANCE].value)]
    # If a denominator may be 0, the ratio has no upper bound.
    unsure = any(difference.low is not None and not difference.decided for difference in (row.differences[STANCE] for row in alone))
    even = [difference for row in measured.balance for name, difference in row.differences.items() if name.startswith(STANCE)]
    return {
        "of": len(alone),
        "times": (min(times), None if unsure else max(times)) if times and len(times) == len(alone) else None,
        "uneven": any(difference.decided for difference in even) if all(difference.low is not None for difference in even) else None,
    }


def number(value: float, places: int = 4) -> str:
    """Formats a number with a typographic minus sign."""
    return f"{value:.{places}f}".replace("-", MINUS)


def signed(value: float, places: int = 4) -> str:
    """Formats a number with its sign, without a sign if it rounds to zero."""
    text = f"{value:+.{places}f}"
    return f"{0:.{places}f}" if not float(text) else text.replace("-", MINUS)


def times(value: float) -> str:
    """Formats a ratio: whole from ten on, with one decimal below."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


def axis_position(value: float, span: tuple[float, float]) -> str:
    """Returns the position of a value on a drawing in percent, with a margin at both ends."""
    return f"{6.5 + 87 * (value - span[0]) / (span[1] - span[0]):.2f}%"


def ends(rows: Sequence[tuple[str, MetricRow]]) -> tuple[tuple[str, float], tuple[str, float]]:
    """Returns the groups with the smallest and the largest accuracy, the first of equals."""
    values = [(name, accuracy.number) for name, row in rows if (accuracy := row.only.accuracy)]
    return min(values, key=lambda value: value[1]), max(values, key=lambda value: value[1])


def peak(phase: dict[str, Any], course: dict[str, Any]) -> tuple[int, float]:
    """Returns the part of a dialogue where a phase has its largest share of turns, and that share; the first of equals."""
    totals = [sum(column) for column in zip(*(part["counts"] for part in course["phases"]), strict=True)]
    shares = [count / total if total else 0.0 for count, total in zip(phase["counts"], totals, strict=True)]
    return shares.index(max(shares)), max(shares)


def without_controls(text: str) -> str:
    """Writes out control characters of a text; joiners and direction marks stay."""
    return "".join(plain(sign) if unicodedata.category(sign) == "Cc" else sign for sign in text)


FILTERS: dict[str, Any] = {
    "number": number, "signed": signed, "percent": percent, "times": times, "counted": counted, "place": axis_position, "pretty": json_text,
    "listed": listed, "sides": sides, "whom": whom, "ends": ends, "peak": peak, "shift": Chart.shift, "beside": PLACES_OF.get,
}  # fmt: skip
