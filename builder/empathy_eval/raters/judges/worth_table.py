"""What a judge is worth, to be read: a line a criterion, and what is said of the whole below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from empathy_eval.evaluation.shortcuts import WORDS_ALONE
from empathy_eval.raters.agreement import Measure
from empathy_eval.raters.judges.choices import ALL
from empathy_eval.raters.judges.stance import JUDGE, LENGTH
from empathy_eval.raters.judges.worth import CriterionWorth, Worth

NONE = "–"
HEADINGS = {
    "texts": "texts", "itself": "itself", "judges": "judges", "decisions": "decisions", "kappa": "people", "spearman": "ranks",
    "grid": "on 0.1", "distinct": "values", "right": "right at equal closeness", "length": "length", "words": "words",
}  # fmt: skip
LEGEND = (
    "itself, judges: Krippendorff's alpha over samples, over judges; decisions: winners with the better value; people, ranks: quadratic "
    "kappa and Spearman with people; on 0.1, values: values on that grid, different ones; length, words: what they alone reach"
)


def shown(worth: Worth) -> str:
    """The figures as a short table; those that nothing speaks of have no column."""
    texts = "a text" if worth.kind != "strategies" else "a turn"
    lines = [f'what the judge "{worth.teacher}" is worth by "{worth.rubric}", {worth.samples} samples of {texts}']
    if worth.criteria:
        lines += _table([_cells(one) for one in worth.criteria], [one.name for one in worth.criteria])
    if worth.together:
        lines.append(f"flow with content: {worth.together}")
    lines += _preferences(worth.preferences) if worth.preferences else []
    lines += _strategies(worth.strategies) if worth.strategies else []
    if worth.beside:
        lines.append(f"beside: {'; '.join(worth.beside)}")
    return "\n".join([*lines, *([LEGEND] if worth.criteria else []), f"{NONE} not defined; --json says why, and how each figure was made"])


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
    return NONE if measure is None or measure.value is None else f"{measure.value:.2f}"


def _whole(measure: Measure | None) -> str:
    interval = "" if measure is None or measure.low is None else f" [{measure.low:.2f}, {measure.high:.2f}]"
    return _plain(measure) + interval


def _table(rows: list[dict[str, str]], names: list[str]) -> Iterator[str]:
    """Columns of one width each; those without a figure are left out."""
    kept = [key for key in HEADINGS if any(row[key] != NONE for row in rows)]
    columns = [["", *names], *([HEADINGS[key], *(row[key] for row in rows)] for key in kept)]
    widths = [max(map(len, column)) for column in columns]
    for line in zip(*columns, strict=True):
        first, *rest = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        yield "  ".join([first, *rest]).rstrip()


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
