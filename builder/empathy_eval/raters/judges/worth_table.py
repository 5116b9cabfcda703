"""What a judge is worth, to be read: a line a criterion, and what is said of the whole below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from empathy_eval.base.table_text import lined
from empathy_eval.evaluation.shortcuts import WORDS_ALONE
from empathy_eval.raters.agreement import Measure
from empathy_eval.raters.judges.choices import ALL
from empathy_eval.raters.judges.stance import JUDGE, LENGTH
from empathy_eval.raters.judges.worth import CriterionWorth, Worth

NONE = "–"
# By figure the heading of its column, and what it says where that is not plain.
COLUMNS = {
    "texts": ("texts", ""),
    "itself": ("itself", "Krippendorff's alpha over its samples"),
    "judges": ("judges", "Krippendorff's alpha with the other judges"),
    "decisions": ("decisions", "share of winners with the better value"),
    "kappa": ("people", "quadratic kappa with people"),
    "spearman": ("ranks", "Spearman's correlation with people"),
    "grid": ("on 0.1", "share of values on that grid"),
    "distinct": ("values", "number of different values"),
    "right": ("right", "share of kind texts rated above the equally close cold text"),
    "length": ("length", "the same share by length alone"),
    "words": ("words", "the same share by words alone"),
}


def shown(worth: Worth) -> str:
    """The figures as a short table; those that nothing speaks of have no column."""
    times = "once" if worth.samples == 1 else f"{worth.samples} times"
    lines = [f'quality of the judge "{worth.teacher}" by "{worth.rubric}", asked {times} per text']
    lines += _table({one.name: _cells(one) for one in worth.criteria}) if worth.criteria else []
    if worth.together:
        lines.append(f"correlation of flow with content: {worth.together}")
    lines += _preferences(worth.preferences) if worth.preferences else []
    lines += _strategies(worth.strategies) if worth.strategies else []
    if worth.beside:
        lines.append(f"beside: {'; '.join(worth.beside)}")
    return "\n".join([*lines, f"--json has all figures with their settings, and the reason for each that is not defined ({NONE})"])


def _cells(one: CriterionWorth) -> dict[str, str]:
    decisions = " ".join(map(_plain, one.with_decisions.values()))
    return {
        "texts": f"{one.texts:,}",
        "itself": _plain(one.with_itself),
        "judges": _plain(one.with_judges),
        "decisions": decisions or NONE,
        "kappa": _plain(one.with_people.get("kappa")),
        "spearman": _plain(one.with_people.get("spearman")),
        "grid": _plain(one.on_grid),
        "distinct": f"{one.distinct.value:.0f}" if one.distinct and one.distinct.value is not None else NONE,
        "right": _whole(one.stance.get(JUDGE)),
        "length": _plain(one.stance.get(LENGTH)),
        "words": _plain(one.stance.get(WORDS_ALONE)),
    }


def _plain(measure: Measure | None) -> str:
    # Adding 0 takes the sign off a negative zero.
    return NONE if measure is None or measure.value is None else f"{round(measure.value, 2) + 0.0:.2f}"


def _whole(measure: Measure | None) -> str:
    interval = "" if measure is None or measure.low is None else f" [{measure.low:.2f}, {measure.high:.2f}]"
    return _plain(measure) + interval


def _table(rows: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """A line a criterion, its figures in columns of one width each, and what the columns say; those without a figure are left out."""
    kept = {key: said for key, said in COLUMNS.items() if any(row[key] != NONE for row in rows.values())}
    columns = [["", *rows], *([heading, *(row[key] for row in rows.values())] for key, (heading, _) in kept.items())]
    yield from lined(list(zip(*columns, strict=True)), len(columns))
    yield "; ".join(f"{heading}: {told}" for heading, told in kept.values() if told)


def _preferences(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"first place wins: {found['first']}; flips with the order: {found['flipped']}"
    for two, shares in found["won"].items():
        yield f"  {two}: {_listed(shares)}"


def _strategies(found: Mapping[str, Any]) -> Iterator[str]:
    overall = found["named"][ALL]
    yield f"named as planned: {overall['accuracy']}, kappa {overall['kappa']}"
    for variant, figures in found["named"].items():
        if variant != ALL:
            yield f"  {variant}: {_plain(figures['accuracy'])}, kappa {_plain(figures['kappa'])}"
    yield f"probability of the planned strategy before a reply is seen: {found['ideal']}"


def _listed(shares: Mapping[str, Measure]) -> str:
    parts: Iterable[str] = (f"{name} {_plain(one)}" for name, one in shares.items())
    return ", ".join(parts)
