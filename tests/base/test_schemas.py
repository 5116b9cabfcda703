"""The border: what is valid passes quickly, and only that."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterator
from functools import reduce
from operator import getitem
from typing import Any

import pytest
from empathy_eval.base import schemas
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import check, schema, validator, violations
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.endpoints import DELIVERY
from hypothesis import given, settings
from hypothesis import strategies as st

NAMES = sorted(path.name.removesuffix(".schema.json") for path in data_folder("schemas").glob("*/*.schema.json"))
# What the rules of two validators could take differently: white space, digits, line ends, numbers, empty things.
ODD = st.sampled_from(
    [None, True, 0, 1, -1, 1.0, 2.5, 10**20, "", " ", "\x1c", "\x85", "\ufeff", "a\n", "２", [], [1, True, 1.0], {}, {"": None}]
)


# By part of a schema, which is held beside it: what is made of a part once is not made again for each of its values.
MADE: dict[int, tuple[Any, st.SearchStrategy[Any]]] = {}


def near(part: Any, whole: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that mostly fit a schema, here and there with something odd in their place."""
    if isinstance(part, bool):
        return ODD
    if id(part) not in MADE:
        MADE[id(part)] = part, _near(part, whole)
    return MADE[id(part)][1]


def _near(part: Any, whole: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "$ref" in part:
        file, _, way = part["$ref"].partition("#")
        whole = schema(file.rpartition("/")[2].removesuffix(".schema.json")) if file else whole
        part = reduce(getitem, way.split("/")[1:], whole)
    fits = st.deferred(lambda: fitting(part, whole))
    return st.integers(0, 39).flatmap(lambda dice: ODD if dice == 0 else fits)


def fitting(part: dict[str, Any], whole: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that fit what a schema says of type, bounds and parts."""
    if together := part.get("allOf"):
        return near(together[0], whole)
    if choices := part.get("anyOf"):
        return st.one_of([near(one, whole) for one in choices])
    if "const" in part or "enum" in part:
        return st.sampled_from(part.get("enum", [part.get("const")]))
    kinds = part.get("type", "object")
    low, high, least = part.get("minimum", 0), part.get("maximum", 100), part.get("minItems", 0)
    properties = {name: near(one, whole) for name, one in part.get("properties", {}).items()}
    required = {name: properties.pop(name) for name in part.get("required", ()) if name in properties}
    return st.sampled_from([kinds] if isinstance(kinds, str) else kinds).flatmap(
        lambda kind: {
            "object": st.fixed_dictionaries(required, optional=properties),
            "array": st.lists(near(part.get("items", True), whole), min_size=least, max_size=least + 1),
            "string": st.from_regex(part.get("pattern", ""), fullmatch=False),
            "integer": st.integers(low, high),
            "number": st.floats(low, high),
            "boolean": st.booleans(),
            "null": st.none(),
        }[kind]
    )


@pytest.mark.e2e
@pytest.mark.sampled
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=100 if "LONG" in os.environ else 4)
@given(st.data())
def test_the_quick_answer_is_that_of_the_validator_that_names_what_is_wrong(name: str, data: st.DataObject) -> None:
    value = data.draw(near(schema(name), schema(name)))
    assert schemas._plainly_valid(value, name) == validator(name).is_valid(value)


def test_what_json_does_not_have_is_told_and_no_traceback() -> None:
    for value in (datetime.date(2026, 1, 1), {7: "seven"}, {1}, "\ud800", 10**400):
        with pytest.raises(InputError, match="here: score"):
            check({"score": value}, "score_answer", "here")


def test_what_models_are_told_holds_no_guess_for_it_is_part_of_requests() -> None:
    value = {"score": 0.3, "reson": "x"}
    assert not any("did you mean" in fix for _, _, fix in violations(value, "score_answer"))
    assert any('did you mean "score"?' in fix for _, _, fix in violations({"scor": 0.3}, "score_answer", by_hand=True))


def test_a_valid_value_has_no_violations_and_every_breach_is_named() -> None:
    assert not list(violations({"score": 0.3}, "score_answer"))
    told = [what for _, what, _ in violations({"score": 3, "reason": "x"}, "score_answer")]
    assert told == ['has unknown "reason"', "3 is out of range (maximum 1)"]


@pytest.mark.parametrize(("item", "valid"), [("a", True), ("\ufeff", True), ("\x1c", False), ("\x85", False), ("", False)])
def test_white_space_is_what_python_takes_for_it(item: str, valid: bool) -> None:
    row = {"item": item, "rater": "rater-01", "criterion": "warmth", "rating": 1}
    assert schemas._plainly_valid(row, "ratings_row") is valid
    # A byte order mark is no white space, and nobody sees it.
    assert bool(list(violations(row, "ratings_row"))) is (not valid or item == "\ufeff")


def test_a_published_configuration_is_a_configuration_without_delivery(demo: Configuration) -> None:
    assert not list(violations(demo.published, "published_configuration"))
    endpoint = {"kind": "openai", "model": "m", "endpoint": "e", "max_tokens": 100}
    for name in DELIVERY:
        value = {**demo.published, "models": dict.fromkeys(("self_chat", "near", "far"), {**endpoint, name: 1})}
        assert any("delivered" in fix for _, _, fix in violations(value, "published_configuration")), name
    told = list(violations({**demo.published, "command": "id", "report": {"bootstrap": 10**9, "o:s": "id"}}, "published_configuration"))
    assert [what for _, what, _ in told] == [
        'has unknown "command"',
        "1000000000 is out of range (maximum 100000)",
        '"id" is not of type object',
    ]


def numbers(part: Any, way: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """(way, rule) of each place of a schema that takes a number and not whatever JSON has."""
    if isinstance(part, dict):
        kinds = part.get("type", ())
        if {"integer", "number"} & {*([kinds] if isinstance(kinds, str) else kinds)} and "object" not in kinds:
            yield way, part
        for name, one in part.items():
            yield from numbers(one, f"{way}/{name}")
    elif isinstance(part, list):
        for place, one in enumerate(part):
            yield from numbers(one, f"{way}/{place}")


BORDER = [path.name.removesuffix(".schema.json") for path in sorted(data_folder("schemas").glob("input/*.schema.json"))]


def test_every_number_of_a_strangers_file_has_bounds_that_are_said() -> None:
    found = [(f"{name}{way}", rule) for name in BORDER for way, rule in numbers(schema(name))]
    assert len(found) > 60
    assert not [way for way, rule in found if "maximum" not in rule]
    assert not [way for way, rule in found if not {"minimum", "exclusiveMinimum"} & rule.keys()]
    assert not [way for way, rule in found if "errorMessage" in rule and f"{rule['maximum']:,}" not in rule["errorMessage"]]


@pytest.mark.parametrize("huge", [10**30, 1e300])
def test_a_number_beyond_its_bound_is_told_with_the_bound(huge: float) -> None:
    told = list(violations({"dialogues": huge, "turns": {"min": 8, "max": huge}}, "configuration"))
    assert ("dialogues", f"{json.dumps(huge)} is out of range (maximum 10000000)", "use a whole number from 1 to 10,000,000") in told
    assert ("turns: max", f"{json.dumps(huge)} is out of range (maximum 200)", "use a whole number from 8 to 200") in told


def keys_of(part: dict[str, Any], known: frozenset[str] = frozenset()) -> Iterator[tuple[str, Any]]:
    """(key, rule) of each key that a schema has; a branch that only narrows a ``known`` key of the same object adds none."""
    for key, rule in part.get("properties", {}).items():
        if key not in known and isinstance(rule, dict):
            yield key, rule
            yield from keys_of(rule)
    here = known | part.get("properties", {}).keys()
    for one in (part.get("then"), part.get("else"), *(branch for name in ("allOf", "anyOf", "oneOf") for branch in part.get(name, ()))):
        yield from keys_of(one, here) if isinstance(one, dict) else ()
    for one in (part.get("items"), part.get("additionalProperties"), *part.get("$defs", {}).values()):
        yield from keys_of(one) if isinstance(one, dict) else ()


@pytest.mark.parametrize("border", ["release", "build", "review"])
def test_every_key_of_a_schema_that_no_model_sees_is_described_in_a_short_sentence(border: str) -> None:
    paths = sorted(data_folder("schemas").glob(f"{border}/*.schema.json"))
    found = [(f"{path.name}: {key}", rule.get("description", "")) for path in paths for key, rule in keys_of(json.loads(path.read_text()))]
    assert len(found) > 150
    assert not [f"{where} {text}" for where, text in found if not text.endswith(".") or len(text.split()) > 30]
