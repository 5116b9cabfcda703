"""Packaged YAML files as a beginning for one's own: each key with what its schema says of it."""

from __future__ import annotations

import json
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import yaml

from empathy_eval.base.files import data_folder
from empathy_eval.base.parsing import Loader, yaml_value
from empathy_eval.base.schemas import Part, keys_at, resolved, schema

# The first line of every packaged file, by which an editor finds the schema.
MODELINE = re.compile(r"# yaml-language-server: \$schema=(?:.*/)?(\w+)\.schema\.json")
WIDTH = 120


def commented(text: str) -> str:
    """The text of a packaged file, with the description of each key before the line where the key first stands.

    An object that is no entry of a list ends with the keys that it leaves out, each with its description and its default, as comments.
    The first line names the schema by the path at which it is installed. The value of the text stays the same.
    """
    first, _, rest = text.partition("\n")
    named = MODELINE.fullmatch(first)
    if not named:
        raise ValueError(f"begins with {first!r}, which names no schema")
    whole, node = schema(named[1]), yaml.compose(text, Loader=Loader)
    said = _Comments(text.splitlines())
    if node is not None:
        said.add(node, yaml_value(text), (whole, whole), listed=False)
    path = data_folder("schemas") / "input" / f"{named[1]}.schema.json"
    lines = [f"# yaml-language-server: $schema={path}", *rest.splitlines()]
    made = [one for number, line in enumerate(lines) for one in (*said.before[number], line)]
    return "\n".join([*made, *said.before[len(lines)]]) + "\n"


class _Comments:
    """Comments by the number of the line that they stand before."""

    def __init__(self, lines: list[str]) -> None:
        self.before = defaultdict[int, list[str]](list)
        self._lines, self._told = lines, set[str]()

    def add(self, node: yaml.Node, value: Any, part: Part, *, listed: bool) -> None:
        """Adds the comments on a node, which has this value; ``listed`` if it is inside a list."""
        if isinstance(node, yaml.SequenceNode):
            said, root = resolved(*part)
            for inside, one in zip(node.value, value, strict=True):
                self.add(inside, one, (said.get("items", {}), root), listed=True)
        elif isinstance(node, yaml.MappingNode) and not node.flow_style:
            keys = {key: resolved(*one) for key, one in keys_at(value, part).items()}
            for key, inside in node.value:
                if key.value in keys:
                    self._explain(key.start_mark.line, keys[key.value][0].get("description", ""))
                    self.add(inside, value[key.value], keys[key.value], listed=listed)
            if not listed:
                column, left = node.value[0][0].start_mark.column, {key: said for key, (said, _) in keys.items() if key not in value}
                self.before[node.end_mark.line] += [line for key, said in left.items() for line in _left_out(key, said, column)]

    def _explain(self, line: int, description: str) -> None:
        if description and description not in self._told:
            self._told.add(description)
            shown = self._lines[line]
            self.before[line] += _comment(description, len(shown) - len(shown.lstrip()))


def _left_out(key: str, said: dict[str, Any], column: int) -> Iterator[str]:
    """The comment on a key that is not there; nothing for one that is not allowed."""
    if "not" in said:
        return
    yield from _comment(said.get("description", ""), column)
    example = f"{{{', '.join(f'{one}: …' for one in said['required'])}}}" if said.get("required") else "…"
    yield f"{' ' * column}# {key}: {json.dumps(said['default'], ensure_ascii=False) if 'default' in said else example}"


def _comment(text: str, column: int) -> list[str]:
    """A text as the lines of a comment, after an empty line where it is on the first level."""
    margin = " " * column + "# "
    lines = textwrap.wrap(text, WIDTH, initial_indent=margin, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)
    return lines if column else ["", *lines]
