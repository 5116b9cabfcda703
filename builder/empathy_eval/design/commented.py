"""Commented copies of packaged YAML files: each key with the description from its schema."""

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
from empathy_eval.base.schemas import Part, properties_for, resolved, schema

# The first line of every packaged file, by which an editor finds the schema.
MODELINE = re.compile(r"# yaml-language-server: \$schema=(?:.*/)?(\w+)\.schema\.json")
WIDTH = 120


def commented(text: str) -> str:
    """A packaged file with the description of each key before its first line.

    Each object outside lists ends with the keys it leaves out, as comments with description and default. The first line names the installed
    schema. The value stays the same.
    """
    first, _, rest = text.partition("\n")
    named = MODELINE.fullmatch(first)
    if not named:
        raise ValueError(f"begins with {first!r}, which names no schema")
    whole, node = schema(named[1]), yaml.compose(text, Loader=Loader)
    comments = _Comments(text.splitlines())
    if node is not None:
        comments.add(node, yaml_value(text), (whole, whole), listed=False)
    path = data_folder("schemas") / "input" / f"{named[1]}.schema.json"
    lines = [f"# yaml-language-server: $schema={path}", *rest.splitlines()]
    body = [entry for number, line in enumerate(lines) for entry in (*comments.before[number], line)]
    return "\n".join([*body, *comments.before[len(lines)]]) + "\n"


class _Comments:
    """Comments by the number of the line that they precede."""

    def __init__(self, lines: list[str]) -> None:
        self.before = defaultdict[int, list[str]](list)
        self._lines, self._told = lines, set[str]()

    def add(self, node: yaml.Node, value: Any, part: Part, *, listed: bool) -> None:
        """Adds the comments of a node with this value; ``listed`` if it is inside a list."""
        if isinstance(node, yaml.SequenceNode):
            rule, root = resolved(*part)
            for inside, item in zip(node.value, value, strict=True):
                self.add(inside, item, (rule.get("items", {}), root), listed=True)
        elif isinstance(node, yaml.MappingNode) and not node.flow_style:
            keys = {key: resolved(*inner) for key, inner in properties_for(value, part).items()}
            for key, inside in node.value:
                if key.value in keys:
                    self._explain(key.start_mark.line, keys[key.value][0].get("description", ""))
                    self.add(inside, value[key.value], keys[key.value], listed=listed)
            if not listed:
                column, left = node.value[0][0].start_mark.column, {key: rule for key, (rule, _) in keys.items() if key not in value}
                self.before[node.end_mark.line] += [line for key, rule in left.items() for line in _left_out(key, rule, column)]

    def _explain(self, line: int, description: str) -> None:
        if description and description not in self._told:
            self._told.add(description)
            shown = self._lines[line]
            self.before[line] += _comment(description, len(shown) - len(shown.lstrip()))


def _left_out(key: str, rule: dict[str, Any], column: int) -> Iterator[str]:
    """The comment for a key that is left out; empty for one that is not allowed."""
    if "not" in rule:
        return
    yield from _comment(rule.get("description", ""), column)
    example = f"{{{', '.join(f'{name}: …' for name in rule['required'])}}}" if rule.get("required") else "…"
    yield f"{' ' * column}# {key}: {json.dumps(rule['default'], ensure_ascii=False) if 'default' in rule else example}"


def _comment(text: str, column: int) -> list[str]:
    """A text as comment lines, after an empty line on the first level."""
    margin = " " * column + "# "
    lines = textwrap.wrap(text, WIDTH, initial_indent=margin, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)
    return lines if column else ["", *lines]
