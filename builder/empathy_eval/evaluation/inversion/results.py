"""The tables of a release: rows of scores and differences, all tables as one result, and their long form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, TypeVar

from empathy_eval.base.json_text import HIDDEN, OPTIONAL, TEXTS, fields_json
from empathy_eval.design.contrasts import APATHETIC, CELLS, EMPATHETIC, STANCE
from empathy_eval.design.provenance import KEYS, LongForm
from empathy_eval.evaluation.inversion.rows import FIGURES, AttackTable, CrossedTable, Failures, FairnessTable, ShortcutAudit
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.statistics.estimate import SIGNED, TESTED, Estimate, holm_corrected

PLACES = 6
Row = TypeVar("Row")


# The figures of a contrast beside its difference, each with its title and its format in a terminal (empty where it is shown elsewhere):
# fields of :class:`Difference` which JSON, CSV, terminal, papers and pages have in this order.
RANKED = {"accuracy": ("accuracy", ".3f"), "auc": ("AUC", ".3f"), "effect": ("effect", "")}


@dataclass(frozen=True)
class Difference(Estimate):
    """The difference of variants' scores in a contrast.

    ``accuracy`` is how often the kind text of a duel is rated better, ties half; ``effect`` by how many standard deviations of the
    scores in a cell; ``ties`` the share of duels with two equal scores: None where the contrast is no comparison of stances.
    ``auc`` is the accuracy for texts drawn anywhere, only where two variants are compared. ``forced`` says that the checks force
    the sign.
    """

    accuracy: Estimate | None = None
    auc: Estimate | None = None
    forced: bool = False
    higher_is_better: bool | None = True
    effect: Estimate | None = None
    ties: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the figure, its interval and p-values, and the figures beside it."""
        return self.written(*SIGNED)

    @property
    def prefers(self) -> str:
        """The preferred stance: ``neither`` where the interval holds 0; marked where there is no interval."""
        up = self.number > 0 if self.higher_is_better is not False else self.number < 0
        way = EMPATHETIC if up else APATHETIC
        way = f"more in {way}" if self.higher_is_better is None else way
        if self.low is None:
            return f"{way} (no interval)"
        return way if self.decided else "neither"


@dataclass(frozen=True)
class MetricRow:
    """One metric over one set of pairs: scores by variant, contrasts by name, and the settings of both.

    ``pairs`` have scores, ``left_out`` have none; ``strict`` if accuracies are over all of them.
    """

    metric: str
    signature: str
    interval_signature: str | None
    scores: dict[str, float]
    differences: dict[str, Difference]
    pairs: int
    higher_is_better: bool | None = True
    left_out: int = field(default=0, metadata=HIDDEN)
    strict: bool = field(default=False, metadata=HIDDEN)

    @property
    def only(self) -> Difference:
        """The one contrast of a row of a breakdown."""
        (difference,) = self.differences.values()
        return difference

    @property
    def of(self) -> int:
        """The number of pairs it could have been measured over."""
        return self.pairs + self.left_out

    @property
    def coverage(self) -> str:
        """How many pairs it is measured over, in words."""
        if not self.left_out:
            return f"{self.pairs} pairs"
        return f"{self.pairs} of {self.of} pairs; {self.left_out} left out{', wrong in accuracy' if self.strict else ''}"

    def to_json(self) -> dict[str, Any]:
        """The row as JSON values."""
        return {**fields_json(self), "coverage": {"pairs": self.pairs, "of": self.of, "left_out": self.left_out}}


@dataclass(frozen=True)
class DetectableEffect:
    """The smallest accuracy and effect that so many pairs could have shown, with its settings; see ``detectable_effect``."""

    pairs: int
    accuracy: float
    effect: float
    signature: str


@dataclass(frozen=True)
class MetricComparison:
    """Two metrics over the pairs that both have scores of: the first minus the second.

    ``accuracy`` and ``effect`` are differences of these two of a contrast, with p-values and their correction over all comparisons
    of that contrast; ``effect`` is None where a metric's scores have no spread.
    """

    first: str = field(metadata={"name": "one"})
    other: str
    contrast: str
    pairs: int
    accuracy: Estimate = field(metadata=TESTED)
    effect: Estimate | None = field(metadata=TESTED)
    signature: str


@dataclass(frozen=True)
class DialogueTable:
    """Results of judges of whole dialogues, beside length; all helper turns of a dialogue are of one variant.

    ``inversion`` compares the variants of a pair over so many ``dialogues``; ``controls`` all four cells over those ``with_controls``.
    The pairs of its rows are dialogues.
    """

    dialogues: int
    with_controls: int
    inversion: list[MetricRow]
    controls: list[MetricRow]


# The long form has a record a contrast, comparison, shortcut, first sample, attack, stance effect, gap, note or fault. JSON alone has the
# figures of attacks by variant, what a gap is elsewhere, what the groups are, and what attacks, fairness and judges tell in words.
Values = Mapping[str, Any]
_FIRST, _LATER = tuple(RANKED)[:2], tuple(RANKED)[2:]
_BOUNDS = tuple(f"{name}_{end}" for name in RANKED for end in ("low", "high"))
_SCORES = ("reference", *CELLS)
NUMBERS = ("pairs", "value", "low", "high", "p", "holm", *RANKED, "of", "left_out", *_BOUNDS, "ties", *_SCORES)
COLUMNS = (
    "table", "group", "metric", "contrast", "pairs", "value", "low", "high", "p", "holm", *_FIRST, "forced", "signature", "of", "left_out",
    "other", *_LATER, *_BOUNDS, "ties", "better", *_SCORES, "told",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class ReleaseTables(LongForm):
    """All tables of a release.

    ``matched`` and ``groups`` hold rows of pairs of equal length, and by scenario, phase, strategy, manner: at equal closeness, or of
    released pairs where the name ends with ``, as released``; ``smallest`` by contrast what so many pairs could have shown; ``audit`` what
    shortcuts reach; ``attacks`` how scores change when replies are attacked; ``fairness`` whether scorers do as well in each group of
    scenarios, and where names are others; ``crossed`` what is made of crossed items, where there are some; ``dialogues`` what judges of
    whole dialogues make of these; ``notes`` what is said of the pairs that are measured;
    ``failures`` the texts that scorers place furthest apart.
    """

    columns: ClassVar[tuple[str, ...]] = (*KEYS, *COLUMNS)
    numbers: ClassVar[tuple[str, ...]] = NUMBERS
    inversion: list[MetricRow]
    controls: list[MetricRow] = field(default_factory=list)
    candidates: list[MetricRow] = field(default_factory=list)
    balance: list[MetricRow] = field(default_factory=list)
    matched: dict[str, list[MetricRow]] = field(default_factory=dict)
    groups: dict[str, dict[str, list[MetricRow]]] = field(default_factory=dict)
    comparisons: list[MetricComparison] = field(default_factory=list)
    smallest: dict[str, DetectableEffect] = field(default_factory=dict)
    audit: ShortcutAudit | None = field(default=None, metadata={"name": "shortcuts"})
    faults: list[MetricFault] = field(default_factory=list, metadata=TEXTS)
    attacks: AttackTable | None = field(default=None, metadata=OPTIONAL)
    fairness: FairnessTable | None = field(default=None, metadata=OPTIONAL)
    crossed: CrossedTable | None = field(default=None, metadata=OPTIONAL)
    dialogues: DialogueTable | None = field(default=None, metadata=OPTIONAL)
    notes: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    failures: Failures | None = field(default=None, metadata=OPTIONAL)

    @property
    def equal_closeness(self) -> dict[str, Difference]:
        """By metric with a better direction its stance contrast: the accuracy of it is the number to report."""
        rows = [row for row in self.controls if row.higher_is_better is not None]
        return {row.metric: difference for row in rows if (difference := row.differences[STANCE]).accuracy}

    @property
    def headline(self) -> dict[str, Estimate]:
        """By metric the number to report: the accuracy at equal closeness, with its interval."""
        return {metric: difference.accuracy for metric, difference in self.equal_closeness.items() if difference.accuracy}

    @property
    def word_margins(self) -> Mapping[str, float]:
        """By pair the margin of words alone, as the audit says; empty without one."""
        return self.audit.word_margins if self.audit else {}

    def to_json(self) -> dict[str, Any]:
        """The tables as JSON values."""
        return self._with_provenance(fields_json(self))

    def _records(self) -> Iterator[dict[str, Any]]:
        return records(self.to_json())


STANCE_EFFECT = "stance effect"
_TABLES = {"inversion": "pairs", "controls": "2x2", "candidates": "before contrast checks", "balance": "balance"}


def records(tables: Values) -> Iterator[dict[str, Any]]:
    """Yields the records of the JSON values of all tables, with the columns of ``COLUMNS`` that have a value."""
    for table, group, row in rows(tables):
        for name, difference in row["differences"].items():
            yield _record(
                table, group, row["metric"], name, **row["coverage"], **_flat(difference), **row["scores"],
                signature=f"{row['signature']}|{row['interval_signature'] or ''}",
            )  # fmt: skip
    for row in tables["comparisons"]:
        about = {"other": row["other"], "pairs": row["pairs"], "signature": row["signature"]}
        for name in ("accuracy", "effect"):
            yield _record("comparisons", name, row["one"], row["contrast"], **about, **_flat(row[name]))
    for name, row in tables["smallest"].items():
        yield _record("smallest", "", "", name, **row)
    for contrast in tables["shortcuts"]["contrasts"] if tables["shortcuts"] else ():
        yield from _shortcuts(contrast, tables["shortcuts"]["by"])
    for row in tables["shortcuts"].get("first_samples", ()) if tables["shortcuts"] else ():
        yield _shortcut(row, row["contrast"], f"another text in {row['others']} of all pairs")
    yield from _crossed(tables.get("crossed") or {"metrics": (), "shortcuts": ()})
    yield from _attacks(tables.get("attacks") or {"rows": ()})
    yield from _fairness(tables.get("fairness") or {"groups": (), "names": ()})
    yield from (_record(table, "", "", "", told=row) for table in ("notes", "faults") for row in tables.get(table, ()))


def _attacks(table: Values) -> Iterator[dict[str, Any]]:
    """Yields a record of each stance effect, and one per figure under each attack: ``pairs`` are eligible replies, ``of`` all."""
    for row in {row["metric"]: row for row in reversed(table["rows"])}.values():
        bounds = {name: row["effect"][name] for name in ("value", "low", "high")}
        note = "; ".join(filter(None, [row["effect"]["over"], row["effect"]["why"]]))
        yield _record("attacks", STANCE_EFFECT, row["metric"], "", **bounds, signature=row["signature"], told=note)
    for row in table["rows"]:
        for name in ("rises", "falls", "change", "in_effects"):
            about = {"pairs": row["eligible"], "of": row["replies"], "signature": row["signature"]}
            note = row["effect"]["why"] or "" if name == "in_effects" else ""
            yield _record("attacks", name, row["metric"], row["attack"], **about, **(row[name] or {}), told=note)


def _fairness(tables: Values) -> Iterator[dict[str, Any]]:
    """Yields a record per figure (``other``) of each scorer by group and by exchange: the gap, beside the value in the first set."""
    for table, part in (("fairness by group", "groups"), ("fairness by names", "names")):
        for row in tables[part]:
            about = {"pairs": row["pairs"], "of": row["of"], "signature": row["signature"], "told": row["why"] or ""}
            for name in ("accuracy", "effect"):
                if gap := row[name]:
                    figures = _flat(gap["difference"] | {name: gap["here"]})
                    yield _record(table, row["name"], row["metric"], row["contrast"], other=name, **about, **figures)


def _crossed(table: Values) -> Iterator[dict[str, Any]]:
    """Yields a record per figure of each scorer of crossed items; one without a figure for a scorer that cannot score them."""
    for group in ("metrics", "shortcuts"):
        for row in table[group]:
            about = {name: row[name] for name in ("left_out", "signature")} | {"told": row["why"] or "", "pairs": row["items"]}
            about["of"] = row["items"] + row["left_out"]
            ties = {"fitting": row["ties"], "own_context": row["own_ties"]}
            figures = {name: {"ties": ties.get(name), **_flat({"accuracy": row[name]})} for name in FIGURES if row[name]}
            for name, values in (figures or {"": {}}).items():
                yield _record("crossed", group, row["metric"], name, **about, **values)


def rows(tables: Values) -> Iterator[tuple[str, str, Values]]:
    """Yields (table, group, row) of all rows of metrics."""
    whole = [(name, "", row) for name in ("inversion", "controls") for row in tables[name]]
    matched = [("equal length", name, row) for name, table in tables["matched"].items() for row in table]
    rest = [(name, "", row) for name in ("candidates", "balance") for row in tables[name]]
    dialogues = tables.get("dialogues") or {}
    rest += [(f"whole dialogues, {_TABLES[name]}", "", row) for name in ("inversion", "controls") for row in dialogues.get(name, ())]
    groups = [(name, group, row) for name, table in tables["groups"].items() for group, some in table.items() for row in some]
    yield from ((_TABLES.get(table, table), group, row) for table, group, row in (*whole, *matched, *rest, *groups))


def _record(table: str, group: str, metric: str, contrast: str, **values: Any) -> dict[str, Any]:
    return {"table": table, "group": group, "metric": metric, "contrast": contrast, "forced": False} | values


def _flat(difference: Values | None) -> dict[str, Any]:
    """Returns a difference with its estimates side by side."""
    fields = difference or {}
    flat = {name: value for name, value in fields.items() if name not in (*RANKED, "higher_is_better")}
    if "higher_is_better" in fields:
        flat["better"] = {True: "higher", False: "lower", None: "neither"}[fields["higher_is_better"]]
    for name in RANKED:
        if estimate := fields.get(name):
            flat |= {name: estimate["value"], f"{name}_low": estimate["low"], f"{name}_high": estimate["high"]}
    return flat


def _shortcut(shortcut: Values, contrast: str, over: str) -> dict[str, Any]:
    note = f"{'trained' if shortcut['trained'] else 'untrained'}; {over}{shortcut['why'] and '; ' + shortcut['why'] or ''}"
    about = {"pairs": shortcut["pairs"], "signature": shortcut["signature"], "told": note}
    return _record("shortcuts", "", shortcut["name"], contrast, **about, **_flat({"accuracy": shortcut["accuracy"]}))


def _shortcuts(contrast: Values, by: str) -> Iterator[dict[str, Any]]:
    name = contrast["contrast"]
    texts = f"{contrast['kind']} against {contrast['cold']}; {contrast['config']}"
    over = f"{texts}: {contrast['dialogues']} dialogues, {contrast['folds']} folds by {by}"
    for record in contrast["shortcuts"]:
        yield _shortcut(record, name, over)
    for record in contrast["directions"]:
        yield _record("directions", record["what"], record["feature"], name, **(record["difference"] or {}), signature=record["signature"])
    for side in ("kind", "cold"):
        for word in contrast[f"telltale_{side}"]:
            counts = {contrast[end]: word[end] for end in ("kind", "cold")}
            yield _record("telltale words", contrast[side], word["word"], name, value=word["weight"], **counts)
    for end in ("easiest", "hardest"):
        yield from (_record(f"{end} pairs", "", record["pair_id"], name, value=record["margin"]) for record in contrast[end])


def correct_p_values(rows: Iterable[Row], families: Mapping[str, str] = {}) -> list[Row]:  # noqa: B006
    """Returns rows with Holm-corrected p-values; those of a family of scorers, by name, are corrected among themselves."""
    result = list(rows)
    family_of = [families.get(getattr(row, "metric", ""), "") for row in result]
    for family in dict.fromkeys(family_of):
        indices = [index for index, name in enumerate(family_of) if name == family]
        for index, row in zip(indices, _together([result[index] for index in indices]), strict=True):
            result[index] = row
    return result


def _together(rows: list[Row]) -> list[Row]:
    """Returns the rows with all their p-values corrected."""
    estimates = list[Estimate]()

    def collect(estimate: Estimate) -> Estimate:
        estimates.append(estimate)
        return estimate

    _each_tested(rows, collect)
    values = iter(holm_corrected(estimates, PLACES))
    changed: list[Row] = _each_tested(rows, lambda estimate: next(values))
    return changed


def _each_tested(value: Any, change: Callable[[Estimate], Estimate]) -> Any:
    """Returns a value with ``change`` applied to each estimate in it that has a p-value, in their order."""
    if isinstance(value, Estimate):
        return value if value.p is None else change(value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{item.name: _each_tested(getattr(value, item.name), change) for item in fields(value)})
    if isinstance(value, dict):
        return {name: _each_tested(item, change) for name, item in value.items()}
    return [_each_tested(item, change) for item in value] if isinstance(value, list) else value


def merge_faults(known: Sequence[MetricFault], *more: Iterable[MetricFault]) -> list[MetricFault]:
    """Returns known faults, and new ones (the last of each) of metrics without a known fault."""
    known_metrics, new = {fault.metric for fault in known}, {fault.metric: fault for faults in more for fault in faults}
    return [*known, *(fault for metric, fault in new.items() if metric not in known_metrics)]
