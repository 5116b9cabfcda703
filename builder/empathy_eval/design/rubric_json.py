"""A rubric as it was written down beside what was judged by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.design.rubrics import Criterion, Example, Rubric, Scale


def rubric_of(value: Mapping[str, Any]) -> Rubric:
    """A rubric from the JSON of its fields.

    Raises:
        InputError: for one that is none.
    """
    try:
        criteria = tuple(_criterion(one) for one in value["criteria"])
        lists = {name: tuple(value[name]) for name in ("steps", "lessons")}
        return Rubric(**{**value, **lists, "criteria": criteria, "examples": tuple(Example(**one) for one in value["examples"])})
    except (TypeError, KeyError, ValueError) as error:
        raise input_error("rubric", f"cannot be read: {error}", "annotate again") from error


def _criterion(value: Mapping[str, Any]) -> Criterion:
    anchors = {float(number): text for number, text in value["anchors"].items()}
    return Criterion(**{**value, "scale": value["scale"] and Scale(**value["scale"]), "anchors": anchors})
