"""The page of a report: one self-contained file without a script, made from the templates in ``release/report/``."""

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
from empathy_eval.design.contrasts import CLOSENESS, RAW, STANCE
from empathy_eval.evaluation.inversion.results import RANKED, MetricRow, ReleaseTables
from empathy_eval.evaluation.wording import counted, listed, percent, sides, whom
from empathy_eval.reports.charts import Chart, Mark, accuracy_chart, by_scenario, panels_of, phases_named
from empathy_eval.reports.claims import ABOVE, AT, BELOW, PLACES_OF, UNTESTED, audited, claims, line_of, place_beside, ranked
from empathy_eval.statistics.estimate import Estimate

JUDGE = "judge"
# Parts of the tables that no figure is called by.
HIDDEN = ("worth", "criteria")


@dataclass(frozen=True)
class JudgeHeadline:
    """One criterion of a judge at equal closeness: its figures, the shortcut line and where it stands beside it (None without a line).

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
        return place_beside(_estimate(self.right), self.line[0]) if self.line else None

    @property
    def right(self) -> Mapping[str, Any]:
        """How often the judge is right."""
        found: Mapping[str, Any] = self.of["stance"][JUDGE]
        return found


@dataclass(frozen=True)
class JudgeVerdict:
    """Whether a judge is fooled, in a word or two, and what that rests on."""

    judge: str
    answer: str
    said: str


def judges_line(measured: ReleaseTables) -> tuple[float, str] | None:
    """What the best shortcut reaches at equal closeness, over all pairs with controls, and which it is."""
    audit = audited(measured, STANCE)
    best = audit.line if audit else None
    return (best.accuracy.number, best.name) if best and best.accuracy else None


def standings(judges: Mapping[str, Any] | None, measured: ReleaseTables) -> list[JudgeHeadline]:
    """The criteria of all judges that have judged both texts of a comparison at equal closeness."""
    line = judges_line(measured)
    return [
        JudgeHeadline(judge, name, one, _line_of(one["stance"]) if (whole := worth.get("unit") == "dialogue") else line, whole)
        for judge, worth in (judges["worth"] if judges else {}).items()
        for name, one in worth["criteria"].items()
        if (right := one["stance"].get(JUDGE)) and right["value"] is not None
    ]


def _line_of(stance: Mapping[str, Any]) -> tuple[float, str] | None:
    """What the best shortcut reaches in the comparisons of a judge, and which it is; the first of equals."""
    found = [(one["value"], name) for name, one in stance.items() if name != JUDGE and one["value"] is not None]
    return max(found, key=lambda one: one[0], default=None)


def fooled(judges: Mapping[str, Any], measured: ReleaseTables) -> list[JudgeVerdict]:
    """The answer of each judge that can be asked this."""
    found = dict[str, list[JudgeHeadline]]()
    for one in standings(judges, measured):
        found.setdefault(one.judge, []).append(one)
    return [_fooled(judge, some) for judge, some in found.items()]


def _fooled(judge: str, some: list[JudgeHeadline]) -> JudgeVerdict:
    line = max((one.line for one in some if one.line), default=None)
    ends = sorted(one.right["value"] for one in some)
    shares = " to ".join(dict.fromkeys(percent(one) for one in (ends[0], ends[-1])))
    count = max(one.of["pairs"] for one in some)
    said = f"its accuracy over {counted(count, 'whole dialogue' if some[0].whole else 'pair')} is {shares}"
    if line is None:
        return JudgeVerdict(judge, "not known", f"{said}; no shortcut was measured to compare it with.")
    places = Counter(one.place for one in some)
    parts = [f"{places[one]} {'is' if places[one] == 1 else 'are'} {PLACES_OF[one]}" for one in (ABOVE, AT, BELOW, UNTESTED) if places[one]]
    of = counted(len(some), "criterion", "criteria")
    told = f"{said}. Compared with the shortcut line ({line[1]}, {percent(line[0])}), of {of} {listed(parts)}."
    if places[UNTESTED]:
        return JudgeVerdict(judge, "not known, because there are no intervals", told)
    if places[ABOVE] == len(some):
        return JudgeVerdict(judge, "no", told)
    if places[ABOVE]:
        return JudgeVerdict(judge, "by some criteria", told)
    return JudgeVerdict(judge, "yes" if places[BELOW] == len(some) else "not shown either way", told)


def judges_charts(judges: Mapping[str, Any] | None, measured: ReleaseTables) -> list[Chart]:
    """How often each criterion of each judge is right at equal closeness; none where none can be."""
    found, charts = standings(judges, measured), list[Chart | None]()
    for name, whole in (("judges", False), ("judges_of_dialogues", True)):
        some = [one for one in found if one.whole is whole]
        rows = [(f"{one.judge}: {one.criterion}", [Mark(STANCE, _estimate(one.right))]) for one in some]
        line = max((one.line for one in some if one.line), default=None)
        charts.append(accuracy_chart(name, rows, line) if rows else None)
    return [one for one in charts if one]


def _estimate(measure: Mapping[str, Any]) -> Estimate:
    return Estimate(measure["value"], measure["low"], measure["high"])


def judged(judges: Mapping[str, Any] | None, measured: ReleaseTables) -> dict[str, Any]:
    """All that the page says of judges beside the figures themselves; empty without judges."""
    if not judges:
        return {}
    why = dict.fromkeys(one["why"] for _, one in _figures(judges["worth"], ()) if one["value"] is None)
    return {
        "fooled": fooled(judges, measured), "standings": standings(judges, measured), "line": judges_line(measured),
        "why": list(why), "signatures": signatures(judges),
    }  # fmt: skip


def signatures(judges: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(what, settings) of all figures on judges, in the order of the tables; those that share their settings are named together."""
    found: dict[str, list[str]] = {}
    for path, figure in _figures(judges, ()):
        found.setdefault(figure["signature"], []).append(": ".join(path))
    return [(listed(names), signature) for signature, names in found.items()]


def _figures(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Each figure on judges, with the words that lead to it."""
    if isinstance(value, Mapping) and "signature" in value:
        yield path, value
    elif isinstance(value, Mapping):
        for name, one in value.items():
            yield from _figures(one, path if name in HIDDEN else (*path, name.replace("_", " ")))


def terms() -> dict[str, str]:
    """Terms with their meanings, in the order in which pages list them."""
    found: dict[str, str] = read_yaml(data_folder("release") / "glossary.yaml", "glossary")
    return found


MINUS = "\N{MINUS SIGN}"


def page(measured: ReleaseTables, about: dict[str, Any], told: dict[str, Any], charts: Sequence[Chart]) -> str:
    """The page as HTML; equal reports give equal pages. Texts of the data stay texts: all is escaped but our own style."""
    folder = data_folder("release") / "report"
    templates = environment(folder)
    templates.filters |= FILTERS
    templates.globals["figures_of_contrasts"] = RANKED
    return templates.get_template("page.html.j2").render(
        measured=measured, about=about, told=told, charts={one.name: one for one in charts}, claims=claims(measured),
        line=line_of(measured), ranked=ranked(measured), closeness=closeness(measured), raw=RAW, stance=STANCE,
        by_scenario=by_scenario(measured), panels=panels_of(told), named=phases_named(told),
        judged=judged(told.get("judges"), measured), terms=terms(),
        style=(folder / "page.css").read_text(encoding="utf-8"),
    ) + "\n"  # fmt: skip


def rendered(name: str, filters: Mapping[str, Any], **values: Any) -> str:
    """The page of the templates in ``release/name/``, in the style of reports and its own."""
    folder = data_folder("release")
    templates = environment(folder)
    templates.filters |= filters
    style = "\n".join((folder / one / "page.css").read_text(encoding="utf-8") for one in ("report", name))
    return templates.get_template(f"{name}/page.html.j2").render(**values, style=style) + "\n"


def round_step(least: float) -> float:
    """The smallest round number that is no less: how far the numbers along an axis are apart."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(one * power for one in (1, 2, 2.5, 5, 10) if one * power >= least * (1 - 1e-9))


def closeness(measured: ReleaseTables) -> dict[str, Any]:
    """How closeness and stance compare, for metrics that read the reference.

    ``times`` is how many times as far closeness moves their scores as stance does, at least and at most (None if stance may not move one
    of them at all); ``uneven`` says whether edit size or length differ between stances, None where no interval can tell.
    """
    forced = {row.metric for row in measured.inversion if row.differences[RAW].forced and row.higher_is_better is not None}
    alone = [row for row in measured.controls if row.metric in forced]
    times = [abs(row.differences[CLOSENESS].number / value) for row in alone if (value := row.differences[STANCE].value)]
    # What may be nothing is no measure: then there is no greatest one.
    unsure = any(one.low is not None and not one.decided for one in (row.differences[STANCE] for row in alone))
    even = [one for row in measured.balance for name, one in row.differences.items() if name.startswith(STANCE)]
    return {
        "of": len(alone),
        "times": (min(times), None if unsure else max(times)) if times and len(times) == len(alone) else None,
        "uneven": any(one.decided for one in even) if all(one.low is not None for one in even) else None,
    }


def number(value: float, places: int = 4) -> str:
    """A number with a true minus sign."""
    return f"{value:.{places}f}".replace("-", MINUS)


def signed(value: float, places: int = 4) -> str:
    """A number that always has its sign; nothing has a sign if it rounds to zero."""
    text = f"{value:+.{places}f}"
    return f"{0:.{places}f}" if not float(text) else text.replace("-", MINUS)


def times(value: float) -> str:
    """How many times: whole from ten on, with one decimal below."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


def place(value: float, span: tuple[float, float]) -> str:
    """Where a value lies on a drawing, a little room at both ends left free."""
    return f"{6.5 + 87 * (value - span[0]) / (span[1] - span[0]):.2f}%"


def ends(rows: Sequence[tuple[str, MetricRow]]) -> tuple[tuple[str, float], tuple[str, float]]:
    """The groups with the smallest and the largest accuracy, the first of equals."""
    values = [(name, found.number) for name, row in rows if (found := row.only.accuracy)]
    return min(values, key=lambda one: one[1]), max(values, key=lambda one: one[1])


def peak(phase: dict[str, Any], course: dict[str, Any]) -> tuple[int, float]:
    """The part of a dialogue where a phase has its largest share of the turns, and that share; the first of equals."""
    totals = [sum(column) for column in zip(*(one["counts"] for one in course["phases"]), strict=True)]
    shares = [count / total if total else 0.0 for count, total in zip(phase["counts"], totals, strict=True)]
    return shares.index(max(shares)), max(shares)


def without_controls(text: str) -> str:
    """A text with control signs written out: nobody would see them. What joins signs, or turns the direction, stays."""
    return "".join(plain(sign) if unicodedata.category(sign) == "Cc" else sign for sign in text)


FILTERS: dict[str, Any] = {
    "number": number, "signed": signed, "percent": percent, "times": times, "counted": counted, "place": place, "pretty": json_text,
    "listed": listed, "sides": sides, "whom": whom, "ends": ends, "peak": peak, "shift": Chart.shift, "beside": PLACES_OF.get,
}  # fmt: skip
