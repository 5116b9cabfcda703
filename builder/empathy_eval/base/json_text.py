"""JSON: the only writer of it in output, files and pages; dataclasses to and from JSON values by field metadata."""

from __future__ import annotations

import base64
import collections.abc
import hashlib
import json
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

# Metadata of a field: hidden; its own fields in its place; left out where it is empty; a list of texts. A function writes the value in its
# own way.
HIDDEN, INLINE, OPTIONAL, TEXTS = ({"json": form} for form in ("hidden", "inline", "optional", "texts"))
_hints = cache(get_type_hints)


def json_text(value: Any, *, indent: int | None = 2, ascii_only: bool = False, sort_keys: bool = False) -> str:
    """A value as JSON text, without a final line break. NaN and infinity are written as null, because JSON has neither.

    Raises:
        TypeError: for values that JSON does not have.
    """

    def text(part: Any) -> str:
        return json.dumps(part, indent=indent, ensure_ascii=ascii_only, sort_keys=sort_keys, allow_nan=False)

    try:
        return text(value)
    except ValueError:
        return text(_defined(value))


def _defined(value: Any) -> Any:
    """The value with None for each number that is not finite, at any depth."""
    if isinstance(value, dict):
        return {name: _defined(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_defined(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def embedded_json(value: Any) -> str:
    """JSON that a page cannot read as markup: ``<``, ``>``, ``&`` and all non-ASCII characters are escaped."""
    text = json_text(value, indent=None, ascii_only=True)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def csp(text: str) -> str:
    """The Content-Security-Policy source expression that allows exactly this inline text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def to_json(value: Any) -> Any:
    """A value as JSON values; a dataclass with its own ``to_json`` uses that."""
    if is_dataclass(value) and not isinstance(value, type):
        return value.to_json() if hasattr(value, "to_json") else fields_json(value)
    if isinstance(value, Mapping):
        return {name: to_json(item) for name, item in value.items()}
    return [to_json(item) for item in value] if isinstance(value, list | tuple) else value


def fields_json(value: Any) -> dict[str, Any]:
    """The fields of a dataclass as JSON values, in order."""
    result: dict[str, Any] = {}
    for field in fields(value):
        form, held = field.metadata.get("json"), getattr(value, field.name)
        if form == "hidden" or (form == "optional" and not held):
            continue
        written: Any = form(held) if callable(form) else [str(part) for part in held] if form == "texts" else to_json(held)
        result |= written if form == "inline" else {json_name(field): written}
    return result


def from_json(kind: Any, value: Any, forms: Mapping[Any, Callable[[Any], Any]]) -> Any:
    """A value of a type from JSON values; ``forms`` parse types that are not written field by field."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if value is None else from_json(next(member for member in inner if member is not types.NoneType), value, forms)
    if kind in forms:
        return forms[kind](value)
    if is_dataclass(kind):
        return fields_from_json(kind, value, forms)
    if origin in (tuple, list, collections.abc.Sequence):
        items = [from_json(inner[0], item, forms) for item in value]
        return tuple(items) if origin is tuple else items
    if origin in (dict, collections.abc.Mapping):
        return {name: from_json(inner[1], item, forms) for name, item in value.items()}
    return value


def fields_from_json(kind: Any, values: Mapping[str, Any], forms: Mapping[Any, Callable[[Any], Any]]) -> Any:
    """A dataclass from its fields; missing ones get their defaults."""
    hints, arguments = _hints(kind), dict[str, Any]()
    for field in fields(kind):
        if field.metadata.get("json") == "inline":
            arguments[field.name] = from_json(hints[field.name], values, forms)
        elif json_name(field) in values:
            arguments[field.name] = from_json(hints[field.name], values[json_name(field)], forms)
    return kind(**arguments)


def json_name(field: Any) -> str:
    """The name under which a field is written."""
    return str(field.metadata.get("name", field.name))
