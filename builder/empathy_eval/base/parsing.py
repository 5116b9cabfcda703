"""Bounded reading of untrusted YAML and JSON."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

try:
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # PyYAML built without libyaml: the same result, slower
    from yaml import SafeLoader  # type: ignore[assignment]

MOST_BYTES = 2**28
DEEPEST = 64
# Values that aliases may add to those that are written out.
SPARE = 10_000
# Digits of a whole number: those that 64 bits hold.
DIGITS = 19


class Loader(SafeLoader):
    """A safe YAML loader that accepts only finite numbers, as JSON does."""

    def finite(self, node: yaml.ScalarNode) -> float:
        """The value of a floating-point number."""
        if not math.isfinite(value := self.construct_yaml_float(node)):
            raise ParseError(f'holds the number "{node.value[:40]}", which is not finite', node.start_mark.line + 1)
        return value


Loader.add_constructor("tag:yaml.org,2002:float", Loader.finite)


class ParseError(ValueError):
    """Content that is refused; ``line`` is its line, if known."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what)
        self.line = line


class TooDeep(ParseError):
    """Lists and objects nested too deeply."""

    def __init__(self) -> None:
        super().__init__(f"is nested more than {DEEPEST} deep")


class DuplicateKey(ParseError):
    """A key that occurs twice in one object."""


def read_text(path: Path) -> str:
    """A UTF-8 text file of bounded size.

    Raises:
        OSError, UnicodeDecodeError: if it cannot be read.
        ParseError: if it is too large.
    """
    with path.open("rb") as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ParseError(f"is larger than {MOST_BYTES:,} bytes")
    return data.decode()


def yaml_value(text: str) -> Any:
    """The value of a YAML text.

    Raises:
        ParseError: if aliases expand it too far, it is nested too deeply, a key repeats, or a value is invalid.
        yaml.YAMLError: if it is not YAML.
    """
    _check_bounds(text)
    try:
        return yaml.load(text, Loader=Loader)  # noqa: S506 (a safe one)
    except ParseError:
        raise
    except (ValueError, TypeError, OverflowError, RecursionError) as error:  # a date that is none, a number of 5,000 digits
        raise ParseError(f"holds a value that cannot be read: {error}") from error


@dataclass
class _OpenCollection:
    """A list or mapping that is being read: its size so far, and the keys of a mapping."""

    anchor: str | None
    keys: set[str] | None
    size: int = 1
    parts: int = 0


def _check_bounds(text: str) -> None:
    """Reads the events of a YAML text without building values."""
    sizes: dict[str, int] = {}
    way = [_OpenCollection(None, None)]
    written = 0
    for event in yaml.parse(text, Loader=SafeLoader):
        size = 1
        if isinstance(event, yaml.CollectionStartEvent):
            written += 1
            way.append(_OpenCollection(event.anchor, set() if isinstance(event, yaml.MappingStartEvent) else None))
            if len(way) > DEEPEST:
                raise ParseError(f"is nested more than {DEEPEST} deep", _line(event))
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            done = way.pop()
            size, anchor = done.size, done.anchor
        elif isinstance(event, yaml.AliasEvent):
            if any(parent.anchor == event.anchor for parent in way):
                raise ParseError(f'holds itself ("*{event.anchor}")', _line(event))
            size, anchor = sizes.get(event.anchor or "", 1), None
        elif isinstance(event, yaml.ScalarEvent):
            written += 1
            anchor = event.anchor
            if way[-1].keys is not None and not way[-1].parts % 2:
                if event.value in way[-1].keys:
                    raise ParseError(f'has the key "{event.value}" twice', _line(event))
                way[-1].keys.add(event.value)
        else:
            continue
        if anchor:
            sizes[anchor] = size
        way[-1].size += size
        way[-1].parts += 1
        if way[-1].size > written + SPARE:
            raise ParseError(f"holds aliases that expand to more than {SPARE:,} values", _line(event))


def _line(event: yaml.Event) -> int | None:
    return event.start_mark.line + 1 if event.start_mark else None


def json_value(text: str, *, characters: bool = True) -> Any:
    """The value of a JSON text. Without ``characters``, half a surrogate pair is accepted.

    Raises:
        ParseError: if it is not JSON, is nested too deeply, or holds a duplicate key, NaN, a number beyond 64 bits or half a surrogate
            pair.
    """
    try:
        value = JSON.decode(text)
    except RecursionError as error:
        raise TooDeep from error
    except json.JSONDecodeError as error:
        raise ParseError(f"is not JSON: {error}") from error
    level = [value]
    for _ in range(DEEPEST):
        level = [part for container in level for part in _parts(container)]
        if not level:
            break
    else:
        raise TooDeep
    if characters and "\\ud" in text.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ParseError(f"holds half a sign ({error.object[error.start]!a})") from error
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise DuplicateKey(f"has {json.dumps(twice)[:80]} twice in one object")
    return value


def _parts(value: Any) -> Iterator[Any]:
    """The lists and mappings directly inside a list or mapping."""
    held = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (part for part in held if isinstance(part, dict | list))


def _whole(digits: str) -> int:
    if len(digits.lstrip("-")) > DIGITS:
        raise ParseError(f"holds a number of {len(digits)} digits")
    return int(digits)


def _finite(digits: str) -> float:
    if not math.isfinite(value := float(digits)):
        raise ParseError(f"holds the number {digits[:40]}, which is too large")
    return value


def _constant(name: str) -> Any:
    raise ParseError(f"holds {name}, which is no JSON")


JSON = json.JSONDecoder(object_pairs_hook=_each_once, parse_int=_whole, parse_float=_finite, parse_constant=_constant)
