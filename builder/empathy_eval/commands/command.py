"""Commands: a public call, the help of its parameters, the printer of its result, and the options that several verbs share."""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import InputError, Problem, Tracebacks, input_error, plain, refuse
from empathy_eval.base.files import room_for, whole_file
from empathy_eval.base.json_text import json_text
from empathy_eval.commands.progress import display_stages

if TYPE_CHECKING:
    from empathy_eval.design.recipe import Recipe
    from empathy_eval.metrics.faults import MetricFault
    from empathy_eval.metrics.scoring import Scoring


@dataclass(frozen=True)
class OptionGroup:
    """Options under a ``title`` in the help; without a title, options that exclude each other."""

    title: str = ""
    description: str | None = None
    required: bool = False


# Output forms that exclude each other.
ONE_OF = OptionGroup()


class Option:
    """Help of a parameter with a group or settings of argparse."""

    def __init__(self, help: str, group: OptionGroup | None = None, **settings: Any) -> None:
        self.group, self.settings = group, {"help": help, **settings}


# Help by row. A row is written as in the usage: "--out DIR", "--split {train,test}", a switch "--json", an argument "RELEASE".
# The name of the parameter precedes it if it differs: "metrics=--metric NAME".
Rows = Mapping[str, str | Option]

# Output forms for a paper or a page.
PAPER: Rows = {
    "--latex": Option("print the tables as LaTeX with booktabs, for a paper", ONE_OF),
    "--markdown": Option("print the tables as Markdown", ONE_OF),
}

# Names of a release that is read.
A_RELEASE = "a folder, or a version on the Hub such as org/name@v1.0.0"
# The largest count or seed; options with a lower bound check it themselves.
LARGEST = 10**15


def whole_number(text: str, such: str = "in digits") -> int:
    """Parses an argument that is a whole number; ``such`` says how to write it.

    Raises:
        argparse.ArgumentTypeError: if it is no whole number, or out of range.
    """
    if not re.fullmatch(r"[+-]?[0-9]{1,16}", text) or abs(int(text)) > LARGEST:
        raise argparse.ArgumentTypeError(f'"{text[:80]}" is not a whole number up to {LARGEST:,}; write one {such}')
    return int(text)


def check_count(name: str, count: int, least: int = 0) -> None:
    """Checks that a count is at least ``least`` and within bounds. Raises InputError if it is not."""
    if not least <= count <= LARGEST:
        raise input_error(name, f'"{str(count)[:80]}" is out of range', f"use a whole number from {least} to {LARGEST:,}")


# A release that is read, by all verbs that read one.
RELEASE: Rows = {"RELEASE": Option(f"the release, {A_RELEASE}", type=str)}
# The configuration, and replacements for parts of it.
RECIPE: Rows = {
    "CONFIG": Option("a build configuration: a file, or the name of a packaged one (demo, full)", type=str),
    "--model NAME": "use this model for everything, instead of the configured ones",
    "--base-url URL": "the OpenAI-compatible endpoint of the model, such as http://localhost:8000/v1",
    "--scenarios DIR": "a folder of scenarios of your own",
    "--templates DIR": "a folder of prompt templates of your own",
    "--rules DIR": "a folder of rules of your own; every language except English needs one",
}
ENGINE: Rows = {
    "--engine {local,ray}": "where the work runs: on this machine (local, default), or on a Ray cluster (ray); the result is the same, "
    "byte for byte",
    "--ray-address ADDRESS": "the Ray cluster to join, such as auto or 10.0.0.1:6379 (default: RAY_ADDRESS, else a local cluster on "
    "this machine)",
}
# The cache of costly scores.
CACHE: Rows = {
    "--cache PATH": "the cache file of costly scores (default: in the user's cache folder)",
    "--no-cache": "neither read nor write cached scores",
}
# The key that must have signed a release.
SIGNER: Rows = {
    "--signer KEY": Option("the minisign public key that must have signed the release: its file, or the base64 line in it", type=str)
}
# Metrics of a manifest that may run besides built-in and installed ones.
TRUSTED: Rows = {
    "trusted=--trust-metrics NAME": "also run this metric of the manifest, with its settings. It runs code, so check it first; repeatable"
}


def as_recipe(recipe: Recipe | str | Path) -> Recipe:
    """Returns the recipe itself, or loads that of a configuration's path or name."""
    from empathy_eval.design.recipe import Recipe, load_recipe

    return recipe if isinstance(recipe, Recipe) else load_recipe(recipe)


def recipe_of(
    config: str, model: str | None = None, base_url: str | None = None, scenarios: Path | None = None, templates: Path | None = None,
    rules: Path | None = None,
) -> Recipe:  # fmt: skip
    """Loads the recipe that the options ``RECIPE`` name."""
    from empathy_eval.design.recipe import load_recipe

    return load_recipe(config, model=model, base_url=base_url, scenarios=scenarios, templates=templates, rules=rules)


def check_engine(engine: str, ray_address: str | None) -> None:
    """Checks the engine, and that an address is given only for Ray.

    Raises:
        InputError: if the engine is unknown, or the address would not be used.
    """
    if engine not in ("local", "ray"):
        raise input_error("--engine", f'"{engine}" is not known', "use local or ray")
    if ray_address and engine != "ray":
        raise input_error("--ray-address", "needs --engine ray", "add --engine ray, or leave it out")


def cache_of(cache: Path | None = None, no_cache: bool = False) -> Path | bool:
    """Returns the cache that the options ``CACHE`` name: a path, True (the user's cache folder) or False (none)."""
    return not no_cache and (cache or True)


def report_faults(faults: Sequence[MetricFault]) -> int:
    """Prints faults of metrics on standard error; returns the exit status."""
    for fault in faults:
        print(fault, file=sys.stderr)
    for words in Tracebacks.of(fault.traceback for fault in faults):
        print(words, file=sys.stderr)
    return 1 if faults else 0


def print_warnings(warnings: Iterable[str]) -> None:
    """Prints warnings, which do not change the exit status, on standard error."""
    for warning in warnings:
        print(f"warning: {plain(warning)}", file=sys.stderr)


@contextmanager
def scoring_session(
    cache: str | Path | bool, engine: str = "local", ray_address: str | None = None, progress: Callable[[int], None] | None = None
) -> Iterator[Scoring]:
    """Yields the scoring of an engine; ``cache`` is as in :func:`cache_of`, ``progress`` is called with the number of scored texts."""
    from empathy_eval.metrics.scoring import ScoreCache, Scoring, user_cache

    check_engine(engine, ray_address)
    kept = ScoreCache(user_cache() if cache is True else Path(cache)) if cache else None
    count_texts = progress or (lambda texts: None)
    if engine == "local":
        yield Scoring(kept, None, count_texts)
        return
    from empathy_eval.base.workers import map_over_ray, ray_session

    with ray_session(ray_address) as ray:
        yield Scoring(kept, map_over_ray(ray), count_texts)


FIX = "name a file OUT.html; its figures are written beside it, as OUT.json"


def page_path(page: str | Path, read: Sequence[Path]) -> Path:
    """Returns the checked path of a page; its figures are written beside it (``.json``).

    Raises:
        InputError: if it does not end in .html, one of the two files is a folder or an input in ``read``, or only one of them exists:
            then no page wrote it, and it may be the record of a review.
        JobError: if the file system does not allow the name.
    """
    path = Path(page)
    # A name that is too long fails in every call.
    with room_for(path):
        if path.suffix.lower() != ".html":
            raise InputError([Problem("page", f'"{path}" is {"a folder" if path.is_dir() else "not an .html file"}', FIX)])
        both = (path, path.with_suffix(".json"))
        folders, existing = [file for file in both if file.is_dir()], [file for file in both if file.exists()]
    real = {source.resolve() for source in read}
    problems = [Problem("page", f'"{folder}" is a folder', FIX) for folder in folders]
    problems += [Problem("page", f'"{file}" is an input file, and would be overwritten', FIX) for file in both if file.resolve() in real]
    if not problems and len(existing) == 1:
        what = f'"{existing[0]}" exists without the other file of a page, so no page wrote it: it would be overwritten'
        problems = [Problem("page", what, "name another OUT.html, or move it away")]
    refuse(problems)
    return path


def write_page(html: str, figures: Any, path: Path) -> None:
    """Writes a page and its figures (as JSON values), both or neither. Raises JobError if they cannot be written."""
    texts = html, json_text(figures) + "\n"
    with whole_file(path) as page_file, whole_file(path.with_suffix(".json")) as figures_file:
        for text, partial in zip(texts, (page_file, figures_file), strict=True):
            partial.write_text(text, encoding="utf-8", newline="\n")


# Parser of an argument by a word in the annotation of its parameter; others stay strings.
TYPES: dict[str, Callable[[str], Any]] = {"Path": Path, "int": whole_number, "float": float}
# Of a row: a parameter, flags, and choices or a metavar.
ROW = re.compile(r"(?:(\w+)=)?((?:-\w, )?--[\w-]+)? ?(?:\{(.+)\}|(.*))")


def printed(result: Any, json: bool = False, latex: bool = False, markdown: bool = False, csv: bool = False) -> int:
    """Prints a result as a table, LaTeX, Markdown, CSV or JSON; returns the exit status."""
    if json:
        print(json_text(result.to_json()))
    else:
        print(result.to_csv() if csv else result.to_latex() if latex else result.to_markdown() if markdown else result)
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
