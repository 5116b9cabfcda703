"""Generator of ``docs/configuration.md``, from the descriptions in ``schemas/input/`` (``make docs``). A test compares both."""

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
# The last sentence of a description, if the key is part of requests.
AGAIN = " Changing it asks again for "
KINDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "array": "list", "object": "mapping"}


@cache
def schema(name: str) -> dict[str, Any]:
    """One schema of the folder."""
    read: dict[str, Any] = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    return read


def at(name: str, way: str) -> dict[str, Any]:
    """The part of a schema at a path such as ``$defs/model/then``; references on the way are resolved."""
    part = schema(name)
    for step in way.split("/") if way else ():
        part = part[step]
        if "$ref" in part:
            file, _, there = part["$ref"].partition("#/")
            name = file.removesuffix(".schema.json") or name
            part = {**at(name, there), **{key: value for key, value in part.items() if key != "$ref"}}
    return part


def rows(name: str, way: str = "") -> Iterator[dict[str, str]]:
    """One table row for each key of an object. A key with keys of its own also has a table of its own."""
    of = at(name, way)
    for key in of["properties"]:
        part = at(name, "/".join(filter(None, (way, "properties", key))))
        says, _, again = part.get("description", "").partition(AGAIN)
        if part.get("properties"):
            yield {"key": key, "takes": "keys of its own, see below", "unless": unless(key, part, of), "says": "", "again": ""}
        elif says:
            yield {"key": key, "takes": takes(part), "unless": unless(key, part, of), "says": says, "again": again.rstrip(".") or "no"}


def takes(part: dict[str, Any]) -> str:
    """The values that a key accepts."""
    if "enum" in part:
        return ", ".join(f"`{value}`" for value in part["enum"])
    kinds = part["type"] if isinstance(part["type"], list) else [part["type"]]
    bounds = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to"}
    said = [f"{word} {part[name]:,}" for name, word in bounds.items() if name in part]
    return " ".join([" or ".join(KINDS[kind] for kind in kinds), *said])


def unless(key: str, part: dict[str, Any], of: dict[str, Any]) -> str:
    """The default of a key, or that it is required."""
    if key in of.get("required", ()):
        return "required"
    if key in of.get("then", {}).get("required", ()):
        return "required for `drawn`"
    if part.get("default") == {} and part.get("properties"):
        return "its defaults, see below"
    return f"`{json.dumps(part['default'])}`" if "default" in part else ""


def page() -> str:
    """The whole page as Markdown."""
    compiler = jinja2.Environment(
        loader=jinja2.FileSystemLoader(DOCS), undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False  # noqa: S701
    )  # fmt: skip
    made = compiler.get_template("configuration.md.j2").render(rows=rows, at=at)
    return re.sub(r"\n{3,}", "\n\n", made)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
