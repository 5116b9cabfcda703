"""A report from its tables: what a page, a card and figures are made from, as a release tells it."""

from __future__ import annotations

import collections.abc
import json
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from empathy_eval.evaluation.inversion.results import Measured, MetricRow
from empathy_eval.evaluation.inversion.rows import AttackRow, Audit, Change, FairnessTable, Shortcut
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.reports.report import Report

FAULT = re.compile(r"metric (.+?): (?:(\d+) of (\d+) texts, first )?(.+?): (.*)\n  Fix: .*", re.DOTALL)
# Under what name the tables have a part of what was measured.
CALLED = {"audit": "shortcuts"}


def retold(tables: Mapping[str, Any]) -> Report:
    """The report that these tables tell, without the scores of single texts and without the word margins of pairs.

    Raises:
        ValueError: if they are not the tables of a report: made again from it they would say something else.
    """
    try:
        measured = _made(Measured, {name: tables[called] for name, called in _parts() if called in tables})
        about = tables["about"]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"they lack or misuse a part of a report: {error}") from error
    known = {"about", *(called for _, called in _parts())}
    found = Report(measured, about, {name: value for name, value in tables.items() if name not in known})
    if json.loads(json.dumps(found.to_json())) != tables:
        raise ValueError("they hold other or more values than the tables of a report")
    return found


def _parts() -> list[tuple[str, str]]:
    return [(one.name, CALLED.get(one.name, one.name)) for one in fields(Measured)]


def _made(kind: Any, told: Any) -> Any:
    """A value of a type from its JSON value."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if told is None else _made(next(one for one in inner if one is not types.NoneType), told)
    if form := FORMS.get(kind):
        return form(told)
    if is_dataclass(kind):
        return _of_fields(kind, told)
    if origin is tuple and len(inner) == 2 and inner[1] is Ellipsis:
        return tuple(_made(inner[0], one) for one in told)
    if origin in (list, collections.abc.Sequence):
        return [_made(inner[0], one) for one in told]
    if origin in (dict, collections.abc.Mapping):
        return {name: _made(inner[1], one) for name, one in told.items()}
    return told


def _of_fields(kind: Any, told: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    return kind(**{one.name: _made(hints[one.name], told[one.name]) for one in fields(kind) if one.name in told})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _row(told: Mapping[str, Any]) -> MetricRow:
    found: MetricRow = _of_fields(MetricRow, {**told, "left_out": told["coverage"]["left_out"]})
    return found


def _attack(told: Mapping[str, Any]) -> AttackRow:
    found: AttackRow = _of_fields(AttackRow, {**told, "whole": {one.name: told[one.name] for one in fields(Change)}})
    return found


def _audit(told: Mapping[str, Any]) -> Audit:
    first = [{**one, "shortcut": {part.name: one[part.name] for part in fields(Shortcut)}} for one in told.get("first_samples", ())]
    found: Audit = _of_fields(Audit, {**told, "first": first})
    return found


def _fairness(told: Mapping[str, Any]) -> FairnessTable:
    found: FairnessTable = _of_fields(FairnessTable, {name: value for name, value in told.items() if name != "definitions"})
    return FairnessTable(found.groups, found.names, found.told, list(told["definitions"].items()))


def _fault(told: str) -> MetricFault:
    if not (found := FAULT.fullmatch(told)):
        raise TypeError(f'"{told[:80]}" is not a fault of a metric')
    metric, texts, of, where, what = found.groups()
    return MetricFault(metric, where, what, int(texts or 0), int(of or 0))


# What does not stand in the tables as it is.
FORMS: dict[Any, Callable[[Any], Any]] = {MetricRow: _row, AttackRow: _attack, Audit: _audit, FairnessTable: _fairness, MetricFault: _fault}
