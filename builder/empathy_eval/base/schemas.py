"""Validation: every file, model answer and import is checked against a JSON Schema (2020-12)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from functools import cache, reduce
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import yaml

from empathy_eval.base.errors import Problem, input_error, nearest, nearest_column, refuse, shortened
from empathy_eval.base.files import data_folder
from empathy_eval.base.invisible import INVISIBLE, invisible_characters
from empathy_eval.base.parsing import ParseError, json_value, read_text, yaml_value

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

# Breaches of a schema that are told of one value, and that are taken out of it together: a value of strangers may hold a million.
MAX_VIOLATIONS, MAX_REPLACED = 1000, 100
# What raters send back, and the record of it.
OF_RATERS = {"review_answers", "label_studio_export", "reviews"}
# How Python writes out what cannot be printed.
ESCAPED, LEAVE_OUT = re.compile(r"\\[xuU]"), "leave it out"
# A part of a schema, and the whole that its references are of.
Part = tuple[dict[str, Any], dict[str, Any]]


@cache
def schema(name: str) -> dict[str, Any]:
    """The JSON Schema in ``schemas/<border>/<name>.schema.json``."""
    (path,) = data_folder("schemas").glob(f"*/{name}.schema.json")
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def schema_for_models(name: str) -> dict[str, Any]:
    """A schema as it is sent to models: without titles and comments, which strict modes of providers may refuse."""
    return {key: value for key, value in schema(name).items() if key not in ("$schema", "$comment", "title")}


@cache
def validator(name: str) -> Draft202012Validator:
    """A reusable validator of the schema of that name."""
    # Only what is not valid needs it: most processes meet nothing of the kind.
    from jsonschema import Draft202012Validator
    from referencing import Registry, Resource

    others: Registry[Any] = Registry(retrieve=lambda uri: Resource.from_contents(_referred(uri)))  # type: ignore[call-arg]
    return Draft202012Validator(schema(name), registry=others)


def _referred(uri: str) -> dict[str, Any]:
    """The schema that another one names by its file, as in ``{"$ref": "configuration.schema.json"}``."""
    return schema(uri.rpartition("/")[2].removesuffix(".schema.json"))


def violations(value: Any, name: str, *, by_hand: bool = False) -> Iterator[tuple[str, str, str]]:
    """(place, what, fix) for each violation of a schema; empty for a valid value.

    With ``by_hand`` the fix suggests the known name closest to an unknown one. Model answers go without, because the fix is part of repair
    requests.
    """
    if not _plainly_valid(value, name):
        first = islice(validator(name).iter_errors(value), MAX_VIOLATIONS)
        errors = sorted(first, key=lambda error: [str(part) for part in error.absolute_path])
        # What misses several is said of each of them, and branches of a schema may say the same: once is enough.
        breaches = ((_place(error.absolute_path), _what(error), _fix(error, by_hand)) for error in errors)
        yield from dict.fromkeys(breaches)
    if checks_characters(name) and not _plainly_seen(value):
        yield from islice(
            ((_place(path), invisible_fault(text), LEAVE_OUT) for path, text in texts_in(value) if invisible_fault(text)), MAX_VIOLATIONS
        )


@cache
def checks_characters(name: str) -> bool:
    """Whether texts under a schema are searched for invisible characters.

    Not for model answers, which are stored before they are judged, nor for what raters write, which stays as it is.
    """
    (path,) = data_folder("schemas").glob(f"*/{name}.schema.json")
    return path.parent.name not in ("answers", "build") and name not in OF_RATERS


def invisible_fault(text: object) -> str:
    """The fault of a text with an invisible character; empty for any other value."""
    character = next(invisible_characters(text), None) if isinstance(text, str) else None
    return f"{_quoted(text)} holds {character[1]}, which nobody sees, at character {character[0] + 1}" if character else ""


def _plainly_seen(value: Any) -> bool:
    """Whether a value surely holds no invisible character. One look suffices, because ``repr`` escapes nearly all of them."""
    shown = repr(value)
    return not ESCAPED.search(shown) and (shown.isascii() or not INVISIBLE.search(shown))


def texts_in(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """(path, text) of all texts in a value, including keys."""
    if isinstance(value, str):
        yield path, value
    for name, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(name, str):
            yield path, name
        yield from texts_in(item, (*path, name))


def _plainly_valid(value: Any, name: str) -> bool:
    """Fast check whether a value is valid; nearly all are, and this takes at most a fiftieth of jsonschema's time."""
    try:
        return bool(_quick_validator(name).is_valid(value))
    except ValueError:  # what JSON does not have, such as a date of YAML
        return False


@cache
def _quick_validator(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema(name), keywords={"pattern": Pattern}, retriever=_referred)


def without_violations(value: dict[str, Any], name: str) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """A value with None in place of each violation, and (place, what) of each; the value itself is changed.

    The schema must accept None everywhere but at the root, and name the bounds of a list before its entries.
    """
    odd = list[tuple[str, str]]()
    while errors := [] if _plainly_valid(value, name) else list(islice(validator(name).iter_errors(value), MAX_REPLACED)):
        for error in errors:
            *way, last = error.absolute_path
            inside: Any = value
            for step in way:
                inside = inside[step] if inside is not None else None
            if inside is not None:
                inside[last] = None
            odd.append((_place(error.absolute_path), _what(error)))
    return value, odd


class Pattern:
    """The keyword ``pattern`` by Python's regular expressions, as in jsonschema; Rust's have other white space."""

    def __init__(self, parent_schema: dict[str, Any], pattern: str, schema_path: list[str | int]) -> None:
        self._search = re.compile(pattern).search

    def validate(self, instance: Any) -> None:
        """Raises ValueError for a text that does not match, as the library asks."""
        if isinstance(instance, str) and not self._search(instance):
            raise ValueError(instance)


def check(value: Any, name: str, where: object) -> None:
    """Raises an :class:`InputError` with all violations of the schema at once."""
    breaches = violations(value, name, by_hand=True)
    refuse(Problem(f"{where}: {place}" if place else str(where), what, fix) for place, what, fix in breaches)


def whole_numbers(value: Any, name: str) -> Any:
    """A valid value with 4 for 4.0 wherever its schema wants an integer; JSON Schema does not distinguish them."""
    return _whole(value, schema(name), schema(name).get("$defs", {}))


def _whole(value: Any, rule: dict[str, Any], named: dict[str, Any]) -> Any:
    rule = named[rule["$ref"].rpartition("/")[2]] if "$ref" in rule else rule
    if isinstance(value, float):
        whole = rule.get("type") == "integer" or any(isinstance(choice, int) for choice in rule.get("enum", ()))
        return int(value) if whole and value.is_integer() else value
    if not isinstance(value, dict):
        return value
    known = {**rule.get("then", {}).get("properties", {}), **rule.get("properties", {})}
    return {key: _whole(item, known[key], named) if isinstance(known.get(key), dict) else item for key, item in value.items()}


def with_pinned_defaults(value: Any, name: str) -> Any:
    """A valid value with the defaults of all missing keys that the schema pins.

    A pinned key belongs to the identity of a configuration, so it is published whether it was written or not. Other defaults are known to
    the code that reads the value.
    """
    return _pinned(value, (schema(name), schema(name)))


def _pinned(value: Any, part: Part) -> Any:
    if not isinstance(value, dict):
        return value
    keys = properties_for(value, part)
    lacking = {key: rule["default"] for key, (rule, _) in keys.items() if rule.get("pinned") and key not in value}
    return {key: _pinned(item, keys.get(key, ({}, {}))) for key, item in {**deepcopy(lacking), **value}.items()}


def properties_for(value: dict[str, Any], part: Part) -> dict[str, Part]:
    """The part of a schema for each key that this object may have; branches that do not apply are left out."""
    keys = dict[str, Part]()
    rule, root = resolved(*part)
    while rule:
        for key, definition in rule.get("properties", {}).items():
            keys[key] = {**(keys[key][0] if key in keys else {}), **definition}, root
        branch = "then" if "if" in rule and jsonschema_rs.is_valid(rule["if"], value) else "else"
        rule, root = resolved(rule.get(branch, {}), root)
    return keys


def resolved(rule: dict[str, Any], root: dict[str, Any]) -> Part:
    """A part of a schema with its references resolved. Keys beside a reference override it."""
    while "$ref" in rule:
        file, _, way = rule["$ref"].partition("#/")
        root = _referred(file) if file else root
        target: dict[str, Any] = reduce(lambda part, step: part[step], way.split("/") if way else (), root)
        rule = {**target, **{key: value for key, value in rule.items() if key != "$ref"}}
    return rule, root


def read_yaml(path: Path, name: str) -> Any:
    """The content of a YAML file, valid under the schema of that name.

    Raises:
        InputError: if the file is missing, not UTF-8, not YAML, expands beyond bounds, or is not valid; all violations at once.
    """
    try:
        value = yaml_value(read_text(path))
    except OSError as error:
        raise input_error(path, f"cannot be read: {error.strerror}", "check the path") from error
    except UnicodeDecodeError as error:
        raise input_error(path, f"is not UTF-8: byte {error.start}", "save the file as UTF-8") from error
    except ParseError as error:
        raise input_error(f"{path}: line {error.line}" if error.line else path, str(error), "write the value in full, once") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}: line {mark.line + 1}, column {mark.column + 1}" if mark else str(path)
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise input_error(place, f"is not YAML: {what}", "quote texts that hold ': ' or start with a special character") from error
    check(value, name, path)
    return value


def read_json(path: Path, name: str | None, fix: str) -> dict[str, Any]:
    """The content of a JSON file, validated if a schema is named; ``fix`` is the advice if it cannot be read.

    Raises:
        InputError: if the file is missing, not JSON, nested beyond bounds, or not valid; all violations at once.
    """
    try:
        value: dict[str, Any] = json_value(read_text(path))
    except OSError as error:
        raise input_error(path, f"cannot be read: {error.strerror}", fix) from error
    except ParseError as error:
        raise input_error(path, str(error), fix) from error
    except UnicodeDecodeError as error:
        raise input_error(path, f"is not JSON: {error}", fix) from error
    if name:
        check(value, name, path)
    return value


def _place(steps: Iterable[str | int]) -> str:
    """A place in a value as readers count it: ``turn 9: strategy`` for ``seed.turns[9].strategy``."""
    parts: list[str] = []
    path = list(steps)
    while path:
        part = path.pop(0)
        if part == "turns" and path and isinstance(path[0], int):
            parts.append(f"turn {path.pop(0)}")
        elif isinstance(part, int) and parts:
            parts[-1] = f"{parts[-1]}[{part}]"
        else:
            parts.append(str(part))
    return ": ".join(parts)


def _what(error: ValidationError) -> str:
    rule: Any = error.validator_value
    instance: Any = error.instance
    match error.validator:
        case "not" if rule == {}:  # a plain false would leave out which key it is
            return f"{_quoted(error.instance)} is not allowed here"
        case "required":
            return "misses " + ", ".join(f'"{key}"' for key in rule if key not in instance)
        case "additionalProperties":
            return "has unknown " + ", ".join(f'"{key}"' for key in instance if key not in _known(error))
        case "enum" | "const":
            return f"{_quoted(error.instance)} is not known"
        case "pattern":
            # What a text is to be, where a schema has words for it: a regular expression tells few people.
            meant = error.schema.get("title") if isinstance(error.schema, dict) else None
            return f"{_quoted(error.instance)} is no {meant}" if meant else f"{_quoted(error.instance)} does not match {rule}"
        case "type":
            return f"{_quoted(error.instance)} is not of type {rule if isinstance(rule, str) else ' or '.join(rule)}"
        case "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum":
            return f"{_quoted(error.instance)} is out of range ({error.validator} {rule})"
        case "minItems" | "maxItems":
            return f"has {len(instance)} entries, at {'least' if error.validator == 'minItems' else 'most'} {rule} are taken"
        case _:
            return error.message if len(error.message) < 200 else f"{error.message[:197]}..."


def _fix(error: ValidationError, by_hand: bool) -> str:
    """How to fix a violation; in files written by hand with the closest known name."""
    rule: Any = error.validator_value
    instance: Any = error.instance
    part, known = error.schema if isinstance(error.schema, dict) else {}, _known(error)
    match error.validator:
        case "required":
            # Where an unknown key is let through, nothing else names it.
            silent = by_hand and isinstance(error.schema, dict) and part.get("additionalProperties", True) is not False
            lacking = [key for key in rule if key not in instance]
            return "add it" + (nearest_column([key for key in instance if key not in known], lacking) if silent else "")
        case "additionalProperties":
            meant = nearest(next(key for key in instance if key not in known), known) if by_hand else ""
            return "use one of " + ", ".join(sorted(known)) + meant
        case "enum":
            return "use one of " + ", ".join(map(str, rule)) + (nearest(instance, rule) if by_hand else "")
        case _:
            # How to mend it stands apart, under a name that editors know too; a description that is a sentence says what the key holds.
            described = str(part.get("description") or "write it as the schema says")
            return str(part.get("errorMessage") or (f"write it as described: {described}" if described.endswith(".") else described))


def _known(error: ValidationError) -> dict[str, Any]:
    """The properties of the schema at this place."""
    return dict(error.schema.get("properties", {})) if isinstance(error.schema, dict) else {}


def _quoted(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False, default=str))
