"""Prompts: one Jinja template a kind in ``prompt_templates/``, with a ``system`` and a ``user`` block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import meta, nodes

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest_bytes
from empathy_eval.base.templates import environment, refusal, rendered
from empathy_eval.design.kinds import CROSSING, KINDS

# What each template may use. A template that asks for anything else is refused when it is read.
VARIABLES = {**{one.name: one.reads for one in KINDS.values() if one.reads}, "repair": frozenset({"violations"})}
# Those that only some builds need: a folder of one's own may be without.
OPTIONAL = frozenset(one.name for one in CROSSING)
Message = dict[str, str]
FIRST = "system"


@dataclass(frozen=True)
class Prompts:
    """The compiled templates, the SHA-256 of each file, and its text, which is what goes to another process."""

    templates: dict[str, jinja2.Template]
    hashes: dict[str, str]
    sources: dict[str, str]

    def __reduce__(self) -> tuple[Any, ...]:
        return _compiled, (self.sources, self.hashes)

    def first_reads(self, kind: str) -> set[str]:
        """What the first message of a kind is a function of, by name."""
        compiler, found = environment(None), set[str]()
        for block in compiler.parse(self.sources[kind]).find_all(nodes.Block):
            if block.name == FIRST:
                alone = nodes.Template(block.body, lineno=1)
                alone.set_environment(compiler)
                found |= meta.find_undeclared_variables(alone)
        return found

    def render(self, kind: str, first: str | None = None, **values: Any) -> list[Message]:
        """The messages of a request of that kind: what is the same for all of them first, the dialogue last.

        Where the text of the first one is known, it is taken as it is.

        Raises:
            InputError: for a template that the sandbox stops, or that fails.
        """
        template = self.templates[kind]
        context = template.new_context(values)
        return [
            {
                "role": role,
                "content": first
                if first is not None and role == FIRST
                else rendered(f"{kind}.md.j2", lambda block=block: block(context)).strip(),  # type: ignore[misc]
            }
            for role, block in template.blocks.items()
            if role in (FIRST, "user")
        ]


def load_prompts(folder: Path | None = None, variables: Mapping[str, frozenset[str]] = VARIABLES) -> Prompts:
    """Reads and checks all templates of a folder (by default the project's own): a file a kind, with the ``variables`` it may use.

    Raises:
        InputError: for a template that is missing, is not Jinja, has no ``user`` block, asks for a variable it does not get, or for
            another template: its hash stands for all that is in it.
    """
    folder = folder or data_folder("prompt_templates")
    compiler = environment(None)
    templates, sources, problems = {}, {}, []
    for kind, allowed in variables.items():
        path = folder / f"{kind}.md.j2"
        if kind in OPTIONAL and not path.exists():
            continue
        try:
            source = path.read_text(encoding="utf-8")
            parsed = compiler.parse(source)
            template = _template(source)
        except OSError as error:
            raise input_error(path, f"cannot be read: {error.strerror}", "restore the template") from error
        except UnicodeDecodeError as error:
            raise input_error(path, f"is not UTF-8: byte {error.start}", "save the file as UTF-8") from error
        except jinja2.TemplateSyntaxError as error:
            problems.append(Problem(f"{path}: line {error.lineno}", f"is not a template: {error.message}", "mend the Jinja syntax"))
            continue
        except (RecursionError, SyntaxError, MemoryError) as error:  # brackets in brackets without end
            raise refusal(path, error) from error
        problems += [*_misused(path, parsed), *_unknown_variables(path, parsed, source, allowed | {"self"})]
        templates[kind], sources[kind] = template, source
    if problems:
        raise InputError(problems)
    return Prompts(templates, {kind: digest_bytes(source.encode()) for kind, source in sources.items()}, sources)


def _compiled(sources: dict[str, str], hashes: dict[str, str]) -> Prompts:
    return Prompts({kind: _template(source) for kind, source in sources.items()}, hashes, sources)


@lru_cache(maxsize=100)
def _template(source: str) -> jinja2.Template:
    return environment(None).from_string(source)


def _misused(path: Path, parsed: nodes.Template) -> Iterator[Problem]:
    """What a template has that a prompt is not made of, and what it lacks."""
    for node in parsed.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        yield Problem(f"{path}: line {node.lineno}", "asks for another template", "write all of a prompt into its own file")
    for block in parsed.body:
        if isinstance(block, nodes.Block) and block.name not in (FIRST, "user"):
            what = f'has a block "{block.name}", which no message is made of'
            yield Problem(f"{path}: line {block.lineno}", what, "name it system or user")
    if not any(node.name == "user" for node in parsed.find_all(nodes.Block)):
        yield Problem(str(path), 'has no block "user"', "put the request into {% block user %} … {% endblock %}")


def _unknown_variables(path: Path, parsed: jinja2.nodes.Template, source: str, allowed: frozenset[str]) -> list[Problem]:
    unknown = sorted(meta.find_undeclared_variables(parsed) - allowed)
    lines = source.splitlines()
    return [
        Problem(
            f"{path}: line {next((number for number, line in enumerate(lines, 1) if name in line), 1)}",
            f'variable "{name}" is not given to this template',
            f"use one of {', '.join(sorted(allowed - {'self'}))}",
        )
        for name in unknown
    ]
