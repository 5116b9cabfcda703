"""Plug-ins by name: entry points of installed packages, and ``module:name``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import EmpathyEvalError, input_error, nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OURS = "empathy-eval"
# Where modules of one's own are looked for beside ``sys.path``: the command line names the folder where it is run.
EXTRA_PATH = list[str]()


def known_names(group: str, built_in: Iterable[str] = ()) -> dict[str, list[str]]:
    """All names of an entry-point group, with the packages that offer each: more than one where they clash."""
    names = {name: [OURS] for name in built_in}
    for point in _entry_points(group):
        names.setdefault(point.name, []).append(point.dist.name if point.dist else point.value)
    return names


def load(group: str, name: str, settings: Mapping[str, Any], built_in: Mapping[str, str] | None = None) -> Any:
    """The object of a name. A class or function is called with the settings; any other object is returned as it is.

    ``group`` is such as ``empathy_eval.metrics``; ``built_in`` maps our own names to ``module:name``.

    Raises:
        InputError: if the name is unknown or offered twice, or the object cannot be loaded or called, or takes no such settings.
    """
    what = f'{group.rpartition(".")[2].removesuffix("s")} "{name}"'
    try:
        thing = _entry_point(group, name, what, built_in or {}).load()
        if callable(thing):
            _refuse_unknown(thing, settings, what)
            return thing(**settings)
    except EmpathyEvalError:
        raise
    except Exception as error:  # a stranger's module may raise anything when imported or called
        fix = "fix or install it, or leave it out"
        raise input_error(what, f'cannot be loaded: {type(error).__name__}: "{error}"', fix, error) from error
    if settings:
        raise input_error(what, f"is already an instance and takes no {', '.join(settings)}", "leave the settings out, or name its class")
    return thing


def check_interface(thing: Any, where: str, kind: str, parts: tuple[Sequence[str], Sequence[str]], named: str = "") -> None:
    """Raises an :class:`InputError` for a class instead of an instance, or if text attributes or methods in ``parts`` are missing."""
    if isinstance(thing, type):
        raise input_error(where, f"{thing.__name__} is a class, not a {kind}", f"pass an instance: {thing.__name__}(…)")
    texts, methods = parts
    missing = [name for name in texts if not isinstance(getattr(thing, name, None), str)]
    missing += [name for name in methods if not callable(getattr(thing, name, None))]
    if missing:
        raise input_error(where, f"{named}has no {', '.join(missing)}", f"see docs/{kind}s.md for what a {kind} has")


def _refuse_unknown(thing: Callable[..., Any], settings: Mapping[str, Any], what: str) -> None:
    """Raises an :class:`InputError` for settings that a class or function does not take; it lists those it takes."""
    try:
        taken = signature(thing).parameters.values() if settings else ()
    except ValueError:  # of what is written in C: it says so itself when it is called
        return
    names = [parameter.name for parameter in taken if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)]
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken)
    unknown = [] if takes_any else [f'"{name}"' for name in settings if name not in names]
    if unknown:
        fix = f"it takes {', '.join(names)}{nearest(unknown[0], names)}" if names else "leave the settings out"
        raise input_error(what, f"takes no {', '.join(unknown)}", fix)


def _entry_point(group: str, name: str, what: str, built_in: Mapping[str, str]) -> EntryPoint:
    from importlib.metadata import EntryPoint

    if ":" in name:
        sys.path += [folder for folder in EXTRA_PATH if folder not in sys.path]
        return EntryPoint(name, name, group)
    names = known_names(group, built_in)
    offers = names.get(name, [])
    if not offers:
        fix = f"use one of {', '.join([*sorted(names), 'module:name'])}{nearest(name, names)}"
        raise input_error(what, "is not known", fix)
    if len(offers) > 1:
        raise input_error(what, f"is offered by {' and by '.join(offers)}", "uninstall one of them, or write module:name")
    if name in built_in:
        return EntryPoint(name, built_in[name], group)
    (point,) = (offer for offer in _entry_points(group) if offer.name == name)
    return point


def _entry_points(group: str) -> Iterator[EntryPoint]:
    """Entry points of installed packages. The working folder is skipped, because it may hold code of somebody else."""
    here = {os.path.realpath(folder) for folder in ("", *EXTRA_PATH)}
    folders = [folder for folder in sys.path if os.path.realpath(folder) not in here]
    yield from _points_in(group, tuple((folder, _changed(folder)) for folder in folders))


def _changed(folder: str) -> int:
    """The modification time of a folder in nanoseconds; 0 if there is none."""
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=64)
def _points_in(group: str, folders: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    """Entry points of the packages in folders with these modification times. Cached, because each name of a report asks."""
    from importlib.metadata import distributions

    collected, seen = list[Any](), set[str]()
    for package in distributions(path=[folder for folder, _ in folders]):
        points = [point for point in package.entry_points if point.group == group]
        # Of a package that lies on two places of the path the first one counts; what has lost its name is none.
        if points and package.name and package.name.lower() not in seen:
            seen.add(package.name.lower())
            collected += points
    return tuple(collected)
