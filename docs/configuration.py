"""Writes ``docs/configuration.md`` from the descriptions in ``schemas/input/`` (``make docs``). A test fails where that was forgotten."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "configuration.md"
SCHEMAS = DOCS.parent / "schemas" / "input"
# The last sentence of a description, where a key is part of what is asked.
AGAIN = " Changing it asks again for "
KINDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "array": "list", "object": "mapping"}


@cache
def schema(name: str) -> dict[str, Any]:
    """A schema of the folder."""
    read: dict[str, Any] = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    return read


def at(name: str, way: str) -> dict[str, Any]:
    """The part of a schema at a place such as ``$defs/model/then``; what is referred to on the way is followed."""
    part = schema(name)
    for step in way.split("/") if way else ():
        part = part[step]
        if "$ref" in part:
            file, _, there = part["$ref"].partition("#/")
            name = file.removesuffix(".schema.json") or name
            part = {**at(name, there), **{key: value for key, value in part.items() if key != "$ref"}}
    return part


def rows(name: str, way: str = "") -> Iterator[dict[str, str]]:
    """A row a key of an object; what has keys of its own stands in a table of its own."""
    of = at(name, way)
    for key in of["properties"]:
        part = at(name, "/".join(filter(None, (way, "properties", key))))
        says, _, again = part.get("description", "").partition(AGAIN)
        if part.get("properties"):
            yield {"key": key, "takes": "keys of its own, below", "unless": unless(key, part, of), "says": "", "again": ""}
        elif says:
            yield {"key": key, "takes": takes(part), "unless": unless(key, part, of), "says": says, "again": again.rstrip(".") or "no"}


def takes(part: dict[str, Any]) -> str:
    """What may stand at a key."""
    if "enum" in part:
        return ", ".join(f"`{value}`" for value in part["enum"])
    kinds = part["type"] if isinstance(part["type"], list) else [part["type"]]
    bounds = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to"}
    said = [f"{word} {part[name]:,}" for name, word in bounds.items() if name in part]
    return " ".join([" or ".join(KINDS[kind] for kind in kinds), *said])


def unless(key: str, part: dict[str, Any], of: dict[str, Any]) -> str:
    """What is taken where a key is left out."""
    if key in of.get("required", ()):
        return "needed"
    if key in of.get("then", {}).get("required", ()):
        return "needed for `drawn`"
    if part.get("default") == {} and part.get("properties"):
        return "its defaults, below"
    return f"`{json.dumps(part['default'])}`" if "default" in part else ""


def page() -> str:
    """The whole page."""
    compiler = jinja2.Environment(
        loader=jinja2.FileSystemLoader(DOCS), undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False  # noqa: S701
    )  # fmt: skip
    made = compiler.get_template("configuration.md.j2").render(rows=rows, at=at)
    return re.sub(r"\n{3,}", "\n\n", made)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
