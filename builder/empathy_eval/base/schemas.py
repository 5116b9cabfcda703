"""The one border guard: every file, model answer and import is checked against a JSON Schema (2020-12)."""

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
from empathy_eval.base.parsing import Refused, json_value, text_of, yaml_value
from empathy_eval.base.signs import UNSEEN, unseen

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

# Breaches of a schema that are told of one value, and that are taken out of it together: a value of strangers may hold a million.
MOST_TOLD, MOST_ODD = 1000, 100
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


def shape(name: str) -> dict[str, Any]:
    """A schema as models get it: without what it says to those who read its file, which strict modes of providers may refuse."""
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
    """(place, what, fix) for each way in which a value breaks the schema; nothing if it is valid.

    Of what is written ``by_hand`` the fix names the known name that is closest to an unknown one. What models are told goes without:
    it is part of requests.
    """
    if not _plainly_valid(value, name):
        errors = sorted(islice(validator(name).iter_errors(value), MOST_TOLD), key=lambda one: [str(part) for part in one.absolute_path])
        # What misses several is said of each of them, and branches of a schema may say the same: once is enough.
        said = ((_place(one.absolute_path), _what(one), _fix(one, by_hand)) for one in errors)
        yield from dict.fromkeys(said)
    if looked_through(name) and not _plainly_seen(value):
        yield from islice(((_place(path), hidden(text), LEAVE_OUT) for path, text in texts_in(value) if hidden(text)), MOST_TOLD)


@cache
def looked_through(name: str) -> bool:
    """Whether texts that a schema of that name lets in are searched for signs that nobody sees.

    Answers of models are stored before they are judged, and what is built of them holds them; what raters write stays as they wrote it.
    """
    (path,) = data_folder("schemas").glob(f"*/{name}.schema.json")
    return path.parent.name not in ("answers", "build") and name not in OF_RATERS


def hidden(text: object) -> str:
    """What is wrong with a text that holds a sign that nobody sees; empty for any other value."""
    found = next(unseen(text), None) if isinstance(text, str) else None
    return f"{_quoted(text)} holds {found[1]}, which nobody sees, at character {found[0] + 1}" if found else ""


def _plainly_seen(value: Any) -> bool:
    """Whether a value holds no sign that is unseen beyond doubt: Python writes such signs out, but for a few, and so one look is enough."""
    shown = repr(value)
    return not ESCAPED.search(shown) and (shown.isascii() or not UNSEEN.search(shown))


def texts_in(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """(path, text) of all texts in a value, names among them."""
    if isinstance(value, str):
        yield path, value
    for name, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(name, str):
            yield path, name
        yield from texts_in(one, (*path, name))


def _plainly_valid(value: Any, name: str) -> bool:
    """Whether a value is valid beyond doubt: nearly all are, and this takes a fiftieth of the time that jsonschema does, or less."""
    try:
        return bool(_quick_validator(name).is_valid(value))
    except ValueError:  # what JSON does not have, such as a date of YAML
        return False


@cache
def _quick_validator(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema(name), keywords={"pattern": Pattern}, retriever=_referred)


def sound(value: dict[str, Any], name: str) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """A value with None in the place of all that breaks the schema of that name, and (place, what) of it; the value itself is changed.

    The schema must take None at every place but the whole, and name the bounds of a list before its entries.
    """
    odd = list[tuple[str, str]]()
    while errors := [] if _plainly_valid(value, name) else list(islice(validator(name).iter_errors(value), MOST_ODD)):
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
    """The keyword ``pattern`` by Python's regular expressions, as jsonschema reads it: Rust's know other white space."""

    def __init__(self, parent_schema: dict[str, Any], pattern: str, schema_path: list[str | int]) -> None:
        self._search = re.compile(pattern).search

    def validate(self, instance: Any) -> None:
        """Raises ValueError for a text that does not match, as the library asks."""
        if isinstance(instance, str) and not self._search(instance):
            raise ValueError(instance)


def check(value: Any, name: str, where: object) -> None:
    """Raises an :class:`InputError` with all violations of the schema at once."""
    found = violations(value, name, by_hand=True)
    refuse(Problem(f"{where}: {place}" if place else str(where), what, fix) for place, what, fix in found)


def whole_numbers(value: Any, name: str) -> Any:
    """A valid value with 4 for 4.0 wherever the schema of that name wants a whole number: to JSON Schema they are the same."""
    return _whole(value, schema(name), schema(name).get("$defs", {}))


def _whole(value: Any, said: dict[str, Any], named: dict[str, Any]) -> Any:
    said = named[said["$ref"].rpartition("/")[2]] if "$ref" in said else said
    if isinstance(value, float):
        whole = said.get("type") == "integer" or any(isinstance(one, int) for one in said.get("enum", ()))
        return int(value) if whole and value.is_integer() else value
    if not isinstance(value, dict):
        return value
    known = {**said.get("then", {}).get("properties", {}), **said.get("properties", {})}
    return {key: _whole(one, known[key], named) if isinstance(known.get(key), dict) else one for key, one in value.items()}


def pinned(value: Any, name: str) -> Any:
    """A valid value with the default of each key that it lacks and that the schema of that name pins.

    A pinned key is part of what a configuration is, so that it is published with its value whether it was written or not. The other
    defaults are known to the code that reads the value.
    """
    return _pinned(value, (schema(name), schema(name)))


def _pinned(value: Any, part: Part) -> Any:
    if not isinstance(value, dict):
        return value
    keys = keys_at(value, part)
    lacking = {key: said["default"] for key, (said, _) in keys.items() if said.get("pinned") and key not in value}
    return {key: _pinned(one, keys.get(key, ({}, {}))) for key, one in {**deepcopy(lacking), **value}.items()}


def keys_at(value: dict[str, Any], part: Part) -> dict[str, Part]:
    """What a part of a schema says of each key that an object of such values may have: branches that it does not take are left out."""
    keys = dict[str, Part]()
    said, root = resolved(*part)
    while said:
        for key, one in said.get("properties", {}).items():
            keys[key] = {**(keys[key][0] if key in keys else {}), **one}, root
        branch = "then" if "if" in said and jsonschema_rs.is_valid(said["if"], value) else "else"
        said, root = resolved(said.get(branch, {}), root)
    return keys


def resolved(said: dict[str, Any], root: dict[str, Any]) -> Part:
    """What a part of a schema refers to, if it refers to something; what it says beside that counts first."""
    while "$ref" in said:
        file, _, way = said["$ref"].partition("#/")
        root = _referred(file) if file else root
        found: dict[str, Any] = reduce(lambda part, step: part[step], way.split("/") if way else (), root)
        said = {**found, **{key: one for key, one in said.items() if key != "$ref"}}
    return said, root


def read_yaml(path: Path, name: str) -> Any:
    """The content of a YAML file, valid under the schema of that name.

    Raises:
        InputError: if the file is missing, not UTF-8, not YAML, expands beyond bounds, or is not valid; all violations at once.
    """
    try:
        value = yaml_value(text_of(path))
    except OSError as error:
        raise input_error(path, f"cannot be read: {error.strerror}", "check the path") from error
    except UnicodeDecodeError as error:
        raise input_error(path, f"is not UTF-8: byte {error.start}", "save the file as UTF-8") from error
    except Refused as error:
        raise input_error(f"{path}: line {error.line}" if error.line else path, str(error), "write the value in full, once") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}: line {mark.line + 1}, column {mark.column + 1}" if mark else str(path)
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise input_error(place, f"is not YAML: {what}", "quote texts that hold ': ' or start with a special character") from error
    check(value, name, path)
    return value


def read_json(path: Path, name: str | None, fix: str) -> dict[str, Any]:
    """The content of a JSON file, valid under the schema of that name if one is named; ``fix`` says what to do where it cannot be read.

    Raises:
        InputError: if the file is missing, not JSON, nested beyond bounds, or not valid; all violations at once.
    """
    try:
        value: dict[str, Any] = json_value(text_of(path))
    except OSError as error:
        raise input_error(path, f"cannot be read: {error.strerror}", fix) from error
    except Refused as error:
        raise input_error(path, str(error), fix) from error
    except UnicodeDecodeError as error:
        raise input_error(path, f"is not JSON: {error}", fix) from error
    if name:
        check(value, name, path)
    return value


def _place(steps: Iterable[str | int]) -> str:
    """``turn 9: strategy`` rather than ``seed.turns[9].strategy``: a place as a reader counts it."""
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
    there: Any = error.instance
    match error.validator:
        case "not" if rule == {}:  # a plain false would leave out which key it is
            return f"{_quoted(error.instance)} is not allowed here"
        case "required":
            return "misses " + ", ".join(f'"{key}"' for key in rule if key not in there)
        case "additionalProperties":
            return "has unknown " + ", ".join(f'"{key}"' for key in there if key not in _known(error))
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
            return f"has {len(there)} entries, at {'least' if error.validator == 'minItems' else 'most'} {rule} are taken"
        case _:
            return error.message if len(error.message) < 200 else f"{error.message[:197]}..."


def _fix(error: ValidationError, by_hand: bool) -> str:
    """How to mend it; of what is written by hand with the known name that may be meant by the first unknown one."""
    rule: Any = error.validator_value
    there: Any = error.instance
    told, known = error.schema if isinstance(error.schema, dict) else {}, _known(error)
    match error.validator:
        case "required":
            # Where an unknown key is let through, nothing else names it.
            silent = by_hand and isinstance(error.schema, dict) and told.get("additionalProperties", True) is not False
            lacking = [key for key in rule if key not in there]
            return "add it" + (nearest_column([key for key in there if key not in known], lacking) if silent else "")
        case "additionalProperties":
            meant = nearest(next(key for key in there if key not in known), known) if by_hand else ""
            return "use one of " + ", ".join(sorted(known)) + meant
        case "enum":
            return "use one of " + ", ".join(map(str, rule)) + (nearest(there, rule) if by_hand else "")
        case _:
            # How to mend it stands apart, under a name that editors know too; a description that is a sentence says what the key holds.
            described = str(told.get("description") or "write it as the schema says")
            return str(told.get("errorMessage") or (f"write it as described: {described}" if described.endswith(".") else described))


def _known(error: ValidationError) -> dict[str, Any]:
    """The properties that the schema at this place has."""
    return dict(error.schema.get("properties", {})) if isinstance(error.schema, dict) else {}


def _quoted(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False, default=str))
