"""Prompts: one Jinja template for each kind in ``prompt_templates/``, with a ``system`` and a ``user`` block."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import meta, nodes

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest_bytes
from empathy_eval.base.templates import environment, rendered, template_error
from empathy_eval.design.kinds import CROSSING, KINDS

# What each template may use. A template that asks for anything else is refused when it is read.
VARIABLES = {**{kind.name: kind.reads for kind in KINDS.values() if kind.reads}, "repair": frozenset({"violations"})}
# Those that only some builds need: a folder of one's own may be without.
OPTIONAL = frozenset(kind.name for kind in CROSSING)
Message = dict[str, str]
FIRST = "system"
# First messages that are kept: those of every manner and device for the scenarios that are worked on at a time.
MOST_KEPT = 1_000


@dataclass(frozen=True)
class Prompts:
    """The compiled templates, the SHA-256 of each file, and its source, which is what other processes get."""

    templates: dict[str, jinja2.Template]
    hashes: dict[str, str]
    sources: dict[str, str]
    # First messages by kind and the values that they read, with those values: nearly all requests of a kind have the same.
    _kept: OrderedDict[tuple[Any, ...], tuple[list[Any], str]] = field(default_factory=OrderedDict, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return _compiled, (self.sources,)

    def render(self, kind: str, **values: Any) -> list[Message]:
        """The messages of a request of that kind: the part that all share first, the dialogue last.

        Values must not change afterwards, because a first message is cached by its values.

        Raises:
            InputError: for a template that the sandbox stops, or that fails.
        """
        template = self.templates[kind]
        context = template.new_context(values)

        def text(role: str) -> str:
            return rendered(f"{kind}.md.j2", lambda: template.blocks[role](context)).strip()

        roles = [role for role in template.blocks if role in (FIRST, "user")]
        return [{"role": role, "content": self._first(kind, values, text) if role == FIRST else text(role)} for role in roles]

    def _first(self, kind: str, values: dict[str, Any], text: Callable[[str], str]) -> str:
        names = _first_reads(self.sources[kind])
        if "self" in names:  # it may ask for the other message
            return text(FIRST)
        read = [values.get(name) for name in names]
        # Plain texts are known by what they say, all else by being the same object, which is kept so that no other takes its place.
        key = kind, *(value if isinstance(value, str) else id(value) for value in read)
        if key not in self._kept:
            self._kept[key] = read, text(FIRST)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return self._kept[key][1]


def load_prompts(folder: Path | None = None, variables: Mapping[str, frozenset[str]] = VARIABLES) -> Prompts:
    """Reads and checks all templates of a folder (by default the packaged one); ``variables`` lists what each kind may use.

    Raises:
        InputError: for a template that is missing or not Jinja, has no ``user`` block, or uses an unknown variable or another template:
            its hash stands for all of its content.
    """
    folder = folder or data_folder("prompt_templates")
    sources, problems = dict[str, str](), list[Problem]()
    for kind, allowed in variables.items():
        path = folder / f"{kind}.md.j2"
        if kind in OPTIONAL and not path.exists():
            continue
        try:
            source = path.read_text(encoding="utf-8")
            parsed, read, _ = _analysed(source)
        except OSError as error:
            raise input_error(path, f"cannot be read: {error.strerror}", "restore the template") from error
        except UnicodeDecodeError as error:
            raise input_error(path, f"is not UTF-8: byte {error.start}", "save the file as UTF-8") from error
        except jinja2.TemplateSyntaxError as error:
            problems.append(Problem(f"{path}: line {error.lineno}", f"is not a template: {error.message}", "fix the Jinja syntax"))
            continue
        except (RecursionError, SyntaxError, MemoryError) as error:  # brackets in brackets without end
            raise template_error(path, error) from error
        problems += [*_misused(path, parsed), *_unknown_variables(path, source, read - allowed - {"self"}, allowed)]
        sources[kind] = source
    refuse(problems)
    return _compiled(sources)


def _compiled(sources: dict[str, str]) -> Prompts:
    hashes = {kind: digest_bytes(source.encode()) for kind, source in sources.items()}
    return Prompts({kind: _analysed(source)[2] for kind, source in sources.items()}, hashes, sources)


@lru_cache(maxsize=100)
def _first_reads(source: str) -> tuple[str, ...]:
    """The variables that the first message of a template reads."""
    compiler, names = environment(None), set[str]()
    for block in compiler.parse(source).find_all(nodes.Block):
        if block.name == FIRST:
            alone = nodes.Template(block.body, lineno=1)
            alone.set_environment(compiler)
            names |= meta.find_undeclared_variables(alone)
    return tuple(sorted(names))


@lru_cache(maxsize=100)
def _analysed(source: str) -> tuple[nodes.Template, frozenset[str], jinja2.Template]:
    """The syntax tree of a template, the variables that it reads, and the compiled template."""
    parsed = environment(None).parse(source)
    return parsed, frozenset(meta.find_undeclared_variables(parsed)), environment(None).from_string(source)


def _misused(path: Path, parsed: nodes.Template) -> Iterator[Problem]:
    """Problems for parts that prompts do not have, and for missing ones."""
    for node in parsed.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        yield Problem(f"{path}: line {node.lineno}", "asks for another template", "write all of a prompt into its own file")
    for block in parsed.body:
        if isinstance(block, nodes.Block) and block.name not in (FIRST, "user"):
            what = f'has a block "{block.name}", which is not part of a prompt'
            yield Problem(f"{path}: line {block.lineno}", what, "name it system or user")
    if not any(node.name == "user" for node in parsed.find_all(nodes.Block)):
        yield Problem(str(path), 'has no block "user"', "put the request into {% block user %} … {% endblock %}")


def _unknown_variables(path: Path, source: str, unknown: frozenset[str], allowed: frozenset[str]) -> Iterator[Problem]:
    """Problems for variables that a template is not given, each with its first line."""
    for name in sorted(unknown):
        line = next((number for number, line in enumerate(source.splitlines(), 1) if name in line), 1)
        what, fix = f'variable "{name}" is not given to this template', f"use one of {', '.join(sorted(allowed))}"
        yield Problem(f"{path}: line {line}", what, fix)
