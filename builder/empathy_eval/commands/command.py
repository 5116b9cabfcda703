"""Commands: a public call, the help of its parameters, and the printer of its result."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from empathy_eval.base.json_text import json_text
from empathy_eval.commands.options import Option, OptionGroup, Rows, whole_number
from empathy_eval.commands.progress import display_stages

# Parser of an argument by a word in the annotation of its parameter; others stay strings.
TYPES: dict[str, Callable[[str], Any]] = {"Path": Path, "int": whole_number, "float": float}
# Of a row: a parameter, flags, and choices or a metavar.
ROW = re.compile(r"(?:(\w+)=)?((?:-\w, )?--[\w-]+)? ?(?:\{(.+)\}|(.*))")


def printed(result: Any, json: bool = False, latex: bool = False, markdown: bool = False) -> int:
    """Prints a result as a table, LaTeX, Markdown or JSON; returns the exit status."""
    print(json_text(result.to_json()) if json else result.to_latex() if latex else result.to_markdown() if markdown else result)
    return 0


@dataclass(frozen=True)
class Command:
    """A verb: ``call`` does the work, ``shown`` prints the result and returns the exit status; both receive the options they name.

    ``factories`` build parameters of the call from several options. ``staged`` shows the stages of the work. ``run`` replaces all of this.
    ``name`` is the name of the verb, if it is not that of the call.
    """

    call: Callable[..., Any]
    help: str
    description: str | None
    rows: Rows
    epilog: str | None = None
    shown: Callable[..., int] = printed
    factories: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    staged: bool = False
    run: Callable[[argparse.Namespace], int] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        """Adds "Parameters" and "Returns" to the docstring of the call, from the option rows and the annotation."""
        lead, mark, rest = (inspect.getdoc(self.call) or "").partition("\n\nRaises\n")
        returns = inspect.signature(self.call).return_annotation
        sections = {"Parameters": "\n".join(parameter_docs(self.call, self.rows)), "Returns": returns}
        added = (f"\n\n{title}\n{'-' * len(title)}\n{text}" for title, text in sections.items() if text)
        self.call.__doc__ = f"{lead}{''.join(added)}{mark}{rest}"

    def add(self, verbs: Any) -> None:
        """Adds the verb to the parser."""
        name, form = self.name or self.call.__name__, argparse.RawDescriptionHelpFormatter if self.epilog else argparse.HelpFormatter
        verb = verbs.add_parser(name, help=self.help, description=self.description, epilog=self.epilog, formatter_class=form)
        rows = {**self.rows, "--traceback": "print the full traceback when your own code fails"}
        add_options(verb, rows, self.shown, self.call, *self.factories.values())
        verb.set_defaults(run=self)

    def __call__(self, options: argparse.Namespace) -> int:
        """Runs the verb; returns the exit status."""
        if self.run:
            return self.run(options)
        with display_stages(self.name or self.call.__name__) if self.staged else nullcontext():
            result = self.call(**self.arguments(options))
        return self.shown(result, **arguments_for(options, self.shown))

    def arguments(self, options: argparse.Namespace) -> dict[str, Any]:
        """Returns the arguments of the call that the command line gives."""
        return arguments_for(options, self.call) | {name: make(**arguments_for(options, make)) for name, make in self.factories.items()}


@dataclass(frozen=True)
class CommandGroup:
    """A verb with sub-verbs."""

    name: str
    help: str
    description: str | None
    commands: tuple[Command, ...]

    def add(self, verbs: Any) -> None:
        """Adds the verbs to the parser."""
        inner = verbs.add_parser(self.name, help=self.help, description=self.description)
        inner = inner.add_subparsers(title="verbs", metavar="VERB", required=True)
        for command in self.commands:
            command.add(inner)


def arguments_for(options: argparse.Namespace, call: Callable[..., Any]) -> dict[str, Any]:
    """Returns the arguments of a call that the command line gives; an option that is None is left to the call's default."""
    return {name: value for name in inspect.signature(call).parameters if (value := getattr(options, name, None)) is not None}


def add_options(parser: argparse.ArgumentParser, rows: Rows, *calls: Callable[..., Any]) -> None:
    """Adds option rows to a parser; the annotation of a parameter in the last of these calls decides how it is read."""
    parameters = {name: parameter for call in calls for name, parameter in inspect.signature(call).parameters.items()}
    groups: dict[OptionGroup | None, Any] = {None: parser}
    for row, words in rows.items():
        option = words if isinstance(words, Option) else Option(words)
        name, options, choices, metavar = _parsed(row)
        settings = _settings(parameters.get(name), placed=not options, switch=not (choices or metavar))
        settings |= {"choices": choices.split(",")} if choices else {"metavar": metavar} if metavar else {}
        settings |= option.settings | ({"dest": name} if options else {})
        if option.group not in groups:
            groups[option.group] = _group(parser, option.group)
        groups[option.group].add_argument(*(options or [name]), **settings)


def _parsed(row: str) -> tuple[str, list[str], str | None, str | None]:
    """The parameter of a row, its flags, choices and metavar."""
    name, flags, choices, metavar = ROW.fullmatch(row).groups()  # type: ignore[union-attr]  # anything is a metavar
    options = flags.split(", ") if flags else []
    return name or (options[-1].lstrip("-").replace("-", "_") if options else metavar.lower()), options, choices, metavar


def parameter_docs(call: Callable[..., Any], rows: Rows) -> Iterator[str]:
    """Yields the parameters of a call as a numpy docstring lists them, with the help of their rows."""
    helps = {_parsed(row)[0]: words.settings["help"] if isinstance(words, Option) else words for row, words in rows.items()}
    for name, parameter in inspect.signature(call).parameters.items():
        if name in helps:  # the row of what is on by default is of the option that turns it off
            off = "False: " if parameter.default is True and parameter.annotation == "bool" else ""
            yield f"{name} : {parameter.annotation}\n    {off}{helps[name]}"


def _group(parser: argparse.ArgumentParser, group: OptionGroup | None) -> Any:
    if group and group.title:
        return parser.add_argument_group(group.title, group.description)
    return parser.add_mutually_exclusive_group(required=bool(group and group.required))


def _settings(parameter: inspect.Parameter | None, *, placed: bool, switch: bool) -> dict[str, Any]:
    """Returns the argparse settings of a parameter: type, number of values, and whether it is required."""
    if switch:
        return {"action": "store_false" if parameter and parameter.default is True else "store_true", "default": None}
    if parameter is None:
        return {}
    kind, needed = parameter.annotation, parameter.default is parameter.empty
    settings = {"type": next((type_ for word, type_ in TYPES.items() if re.search(rf"\b{word}\b", kind)), None)}
    if placed:
        return settings | ({"nargs": "+"} if "Sequence" in kind else {} if needed else {"nargs": "?"})
    return settings | ({"action": "append"} if "Sequence" in kind else {}) | ({"required": True} if needed else {})
