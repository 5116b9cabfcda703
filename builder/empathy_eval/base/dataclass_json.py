"""Dataclasses to and from JSON values, by their fields; the metadata of a field says where its value is written in another way."""

from __future__ import annotations

import collections.abc
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

# Metadata of a field: not written; its own fields in its place; left out where it is empty; a list of texts; under another name.
HIDDEN, INLINE, OPTIONAL, TEXTS = ({"json": form} for form in ("hidden", "inline", "optional", "texts"))


def to_json(value: Any) -> Any:
    """A value as JSON values; a dataclass with a ``to_json`` of its own says itself what it is."""
    if is_dataclass(value) and not isinstance(value, type):
        return value.to_json() if hasattr(value, "to_json") else fields_json(value)
    if isinstance(value, Mapping):
        return {name: to_json(one) for name, one in value.items()}
    return [to_json(one) for one in value] if isinstance(value, list | tuple) else value


def fields_json(value: Any) -> dict[str, Any]:
    """The fields of a dataclass as JSON values, in their order."""
    found: dict[str, Any] = {}
    for one in fields(value):
        form, held = one.metadata.get("json"), getattr(value, one.name)
        if form == "hidden" or (form == "optional" and not held):
            continue
        written: Any = [str(part) for part in held] if form == "texts" else to_json(held)
        found |= written if form == "inline" else {json_name(one): written}
    return found


def from_json(kind: Any, told: Any, forms: Mapping[Any, Callable[[Any], Any]]) -> Any:
    """A value of a type from its JSON values; ``forms`` make those of types that are not written field by field."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if told is None else from_json(next(one for one in inner if one is not types.NoneType), told, forms)
    if kind in forms:
        return forms[kind](told)
    if is_dataclass(kind):
        return fields_from_json(kind, told, forms)
    if origin in (tuple, list, collections.abc.Sequence):
        some = [from_json(inner[0], one, forms) for one in told]
        return tuple(some) if origin is tuple else some
    if origin in (dict, collections.abc.Mapping):
        return {name: from_json(inner[1], one, forms) for name, one in told.items()}
    return told


def fields_from_json(kind: Any, told: Mapping[str, Any], forms: Mapping[Any, Callable[[Any], Any]]) -> Any:
    """A dataclass from its fields; one that is not written has its default."""
    hints, made = _hints(kind), dict[str, Any]()
    for one in fields(kind):
        if one.metadata.get("json") == "inline":
            made[one.name] = from_json(hints[one.name], told, forms)
        elif json_name(one) in told:
            made[one.name] = from_json(hints[one.name], told[json_name(one)], forms)
    return kind(**made)


def json_name(one: Any) -> str:
    """Under what name a field is written."""
    return str(one.metadata.get("name", one.name))


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
