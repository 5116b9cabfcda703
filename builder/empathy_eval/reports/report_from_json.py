"""A report from its tables: what a page, a card and figures are made from, as a release tells it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from empathy_eval.base.json_text import fields_from_json, json_name
from empathy_eval.evaluation.inversion.results import MetricRow, ReleaseTables
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.reports.report import Report

FAULT = re.compile(r"metric (.+?): (?:(\d+) of (\d+) texts, first )?(.+?): (.*)\n  Fix: .*", re.DOTALL)


def retold(tables: Mapping[str, Any]) -> Report:
    """The report that these tables tell, without the scores of single texts and without the word margins of pairs.

    Raises:
        ValueError: if they are not the tables of a report: made again from it they would say something else.
    """
    try:
        measured: ReleaseTables = fields_from_json(ReleaseTables, tables, FORMS)
        about = tables["about"]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"they lack or misuse a part of a report: {error}") from error
    known = {"about", *map(json_name, fields(ReleaseTables))}
    found = Report(measured, about, {name: value for name, value in tables.items() if name not in known})
    if json.loads(json.dumps(found.to_json())) != tables:
        raise ValueError("they hold other or more values than the tables of a report")
    return found


def _row(told: Mapping[str, Any]) -> MetricRow:
    found: MetricRow = fields_from_json(MetricRow, {**told, "left_out": told["coverage"]["left_out"]}, FORMS)
    return found


def _fault(told: str) -> MetricFault:
    if not (found := FAULT.fullmatch(told)):
        raise TypeError(f'"{told[:80]}" is not a fault of a metric')
    metric, texts, of, where, what = found.groups()
    return MetricFault(metric, where, what, int(texts or 0), int(of or 0))


# What does not stand in the tables as it is.
FORMS: dict[Any, Callable[[Any], Any]] = {MetricRow: _row, MetricFault: _fault}
