"""Judges on the page: whether each is fooled, in words and in a picture; the figures themselves are made where judges are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from empathy_eval.design.contrasts import STANCE
from empathy_eval.evaluation.charts import Chart, Mark, accuracy_chart
from empathy_eval.evaluation.claims import ABOVE, AT, BELOW, PLACES_OF, UNTESTED, place_beside
from empathy_eval.evaluation.resampling import Estimate
from empathy_eval.evaluation.results import Measured
from empathy_eval.evaluation.wording import counted, listed, percent

JUDGE = "judge"
# Parts of the tables that no figure is called by.
HIDDEN = ("worth", "criteria")


@dataclass(frozen=True)
class Standing:
    """One criterion of a judge at equal closeness: its figures, and where it stands beside the shortcut line (None without a line)."""

    judge: str
    criterion: str
    of: Mapping[str, Any]
    place: str | None

    @property
    def right(self) -> Mapping[str, Any]:
        """How often the judge is right."""
        found: Mapping[str, Any] = self.of["stance"][JUDGE]
        return found


@dataclass(frozen=True)
class Fooled:
    """Whether a judge is fooled, in a word or two, and what that rests on."""

    judge: str
    answer: str
    said: str


def judges_line(measured: Measured) -> tuple[float, str] | None:
    """What the best shortcut reaches at equal closeness, over all pairs with controls, and which it is."""
    audited = next((one for one in measured.audit.contrasts if one.contrast == STANCE), None) if measured.audit else None
    best = audited.line if audited else None
    return (best.accuracy.value, best.name) if best and best.accuracy else None


def standings(judges: Mapping[str, Any] | None, measured: Measured) -> list[Standing]:
    """The criteria of all judges that have judged both texts of a comparison at equal closeness."""
    return list(_standings(judges or {"worth": {}}, judges_line(measured)))


def _standings(judges: Mapping[str, Any], line: tuple[float, str] | None) -> Iterator[Standing]:
    for judge, worth in judges["worth"].items():
        for name, one in worth["criteria"].items():
            right = one["stance"].get(JUDGE)
            if right and right["value"] is not None:
                yield Standing(judge, name, one, place_beside(_estimate(right), line[0]) if line else None)


def fooled(judges: Mapping[str, Any], measured: Measured) -> list[Fooled]:
    """The answer of each judge that can be asked this."""
    line, found = judges_line(measured), dict[str, list[Standing]]()
    for one in standings(judges, measured):
        found.setdefault(one.judge, []).append(one)
    return [_fooled(judge, some, line) for judge, some in found.items()]


def _fooled(judge: str, some: list[Standing], line: tuple[float, str] | None) -> Fooled:
    ends = sorted(one.right["value"] for one in some)
    shares = " to ".join(dict.fromkeys(percent(one) for one in (ends[0], ends[-1])))
    count = max(one.of["pairs"] for one in some)
    said = f"its accuracy over {counted(count, 'pair')} is {shares}"
    if line is None:
        return Fooled(judge, "not known", f"{said}; no shortcut was measured to compare it with.")
    places = Counter(one.place for one in some)
    parts = [f"{places[one]} {'is' if places[one] == 1 else 'are'} {PLACES_OF[one]}" for one in (ABOVE, AT, BELOW, UNTESTED) if places[one]]
    of = counted(len(some), "criterion", "criteria")
    told = f"{said}. Compared with the shortcut line ({line[1]}, {percent(line[0])}), of {of} {listed(parts)}."
    if places[UNTESTED]:
        return Fooled(judge, "not known, because there are no intervals", told)
    if places[ABOVE] == len(some):
        return Fooled(judge, "no", told)
    if places[ABOVE]:
        return Fooled(judge, "by some criteria", told)
    return Fooled(judge, "yes" if places[BELOW] == len(some) else "not shown either way", told)


def judges_charts(judges: Mapping[str, Any] | None, measured: Measured) -> list[Chart]:
    """How often each criterion of each judge is right at equal closeness; none where none can be."""
    rows = [(f"{one.judge}: {one.criterion}", [Mark(STANCE, _estimate(one.right))]) for one in standings(judges, measured)]
    chart = accuracy_chart("judges", rows, judges_line(measured))
    return [chart] if chart else []


def _estimate(measure: Mapping[str, Any]) -> Estimate:
    return Estimate(measure["value"], measure["low"], measure["high"])


def judged(judges: Mapping[str, Any] | None, measured: Measured) -> dict[str, Any]:
    """All that the page says of judges beside the figures themselves; empty without judges."""
    if not judges:
        return {}
    return {
        "fooled": fooled(judges, measured), "standings": standings(judges, measured), "line": judges_line(measured),
        "why": list(dict.fromkeys(_undefined(judges["worth"]))), "signatures": signatures(judges),
    }  # fmt: skip


def _undefined(value: Any) -> Iterator[str]:
    """Why figures are not defined."""
    if isinstance(value, Mapping):
        if "signature" in value:
            yield from [value["why"]] if value["value"] is None else []
        else:
            for one in value.values():
                yield from _undefined(one)


def signatures(judges: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(what, settings) of all figures on judges, in the order of the tables; those that share their settings are named together."""
    found: dict[str, list[str]] = {}
    for where, signature in _signed(judges, ()):
        found.setdefault(signature, []).append(where)
    return [(listed(names), signature) for signature, names in found.items()]


def _signed(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        if "signature" in value:
            yield ": ".join(path), value["signature"]
        else:
            for name, one in value.items():
                yield from _signed(one, path if name in HIDDEN else (*path, name.replace("_", " ")))
