"""``list``: names that other verbs take, from their registries."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module

from empathy_eval.base.errors import input_error, nearest, plain
from empathy_eval.base.json_text import json_text
from empathy_eval.commands.command import Command


@dataclass(frozen=True)
class ListedName:
    """A name that a verb takes: its kind, its description, the packages that provide it, and the extra that it needs."""

    kind: str
    name: str
    says: str = ""
    by: tuple[str, ...] = ()
    extra: str = ""


def names(kind: str | None = None) -> list[ListedName]:
    """Lists the names of packaged and installed metrics, rubrics, attacks and checks, or those of one kind.

    Only built-in ones are loaded to be described: code of other packages runs only where it is used.

    Raises
    ------
    InputError
        If the kind is not known.
    """
    if kind is not None and kind not in KINDS:
        raise input_error("list", f'"{kind}" is not known', f"use one of {', '.join(KINDS)}{nearest(kind, KINDS)}")
    return [row for name, rows in KINDS.items() if kind in (None, name) for row in rows()]


def _metrics() -> Iterator[ListedName]:
    from empathy_eval.metrics.registry import BUILT_IN, EXTRAS, known

    for name, offers in known().items():
        place, settings = BUILT_IN.get(name, ("", {}))
        values = "".join(f" ({key}: {value})" for key, value in settings.items())
        yield ListedName("metrics", name, _summary_line(place) + values, tuple(offers), EXTRAS.get(name, ""))


def _rubrics() -> Iterator[ListedName]:
    from empathy_eval.design.rubrics import load_rubric, packaged_rubrics

    for name in packaged_rubrics():
        yield ListedName("rubrics", name, load_rubric(name).title)


def _attacks() -> Iterator[ListedName]:
    from empathy_eval.base.plugins import known_names
    from empathy_eval.evaluation.attacks.registry import BUILT_IN, GROUP

    for name, offers in known_names(GROUP, BUILT_IN).items():
        yield ListedName("attacks", name, _summary_line(BUILT_IN.get(name, "")), tuple(offers))


def _checks() -> Iterator[ListedName]:
    from empathy_eval.base.plugins import known_names
    from empathy_eval.generation.checks.custom import GROUP

    for name, offers in known_names(GROUP).items():
        yield ListedName("checks", name, "", tuple(offers))


KINDS: dict[str, Callable[[], Iterator[ListedName]]] = {"metrics": _metrics, "rubrics": _rubrics, "attacks": _attacks, "checks": _checks}


def _summary_line(place: str) -> str:
    """Returns the first line of the docstring of a built-in class or function."""
    module, _, name = place.partition(":")
    return (inspect.getdoc(getattr(import_module(module), name)) or "").partition("\n")[0] if place else ""


def _shown(rows: list[ListedName], kind: str | None = None, json: bool = False) -> int:
    if json:
        print(json_text([asdict(row) for row in rows]))
        return 0
    wide = max((len(row.name) for row in rows), default=0) + 2
    for title in [kind] if kind else KINDS:
        print(title)
        for row in (row for row in rows if row.kind == title):
            by = [name for name in row.by if name != "empathy-eval"]
            more = [*([f"extra {row.extra}"] if row.extra else []), *([f"from {', '.join(by)}"] if by else [])]
            print(plain(f"  {row.name:<{wide}}{row.says}{f' [{chr(59).join(more)}]' if more else ''}".rstrip()))
    return 0


COMMAND = Command(
    names,
    "show the names of metrics, rubrics, attacks and checks",
    "Lists the names that other verbs take, one per line, with the package that provides a name and the extra that it needs. Checks are "
    "listed only if an installed package adds them: built-in checks have no names and always run.",
    {"kind={metrics,rubrics,attacks,checks}": "list only names of this kind (default: all)", "--json": "print the names as JSON"},
    shown=_shown,
    name="list",
)
