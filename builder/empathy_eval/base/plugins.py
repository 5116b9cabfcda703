"""What others add by name: entry points of installed packages, and ``module:name``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from empathy_eval.base.errors import EmpathyEvalError, input_error

OURS = "empathy-eval"


def known(group: str, built_in: Iterable[str] = ()) -> dict[str, list[str]]:
    """Every name of a group of entry points, with the packages that offer it: more than one where they clash."""
    names = {name: [OURS] for name in built_in}
    for point in entry_points(group=group):
        names.setdefault(point.name, []).append(point.dist.name if point.dist else point.value)
    return names


def made(group: str, name: str, settings: Mapping[str, Any], built_in: Mapping[str, str] | None = None) -> Any:
    """The object of a name: a class or a function is called with the settings, anything else is taken as it is.

    ``group`` is as in ``empathy_eval.metrics``; ``built_in`` says where our own names are, as ``module:name``.

    Raises:
        InputError: if the name is unknown or offered twice, or what stands behind it cannot be loaded or called, or takes no settings.
    """
    what = f'{group.rpartition(".")[2].removesuffix("s")} "{name}"'
    try:
        thing = _point(group, name, what, built_in or {}).load()
        if callable(thing):
            return thing(**settings)
    except EmpathyEvalError:
        raise
    except Exception as error:  # a stranger's module may raise anything when imported or called
        raise input_error(what, f'cannot be loaded: {type(error).__name__}: "{error}"', "mend or install it, or leave it out") from error
    if settings:
        raise input_error(what, f"is made already, and takes no {', '.join(settings)}", "leave the settings out, or name its class")
    return thing


def _point(group: str, name: str, what: str, built_in: Mapping[str, str]) -> EntryPoint:
    if ":" in name:
        return EntryPoint(name, name, group)
    names = known(group, built_in)
    offers = names.get(name, [])
    if not offers:
        raise input_error(what, "is not known", f"use one of {', '.join([*sorted(names), 'module:name'])}")
    if len(offers) > 1:
        raise input_error(what, f"is offered by {' and by '.join(offers)}", "uninstall one of them, or write module:name")
    if name in built_in:
        return EntryPoint(name, built_in[name], group)
    (point,) = entry_points(group=group, name=name)
    return point
