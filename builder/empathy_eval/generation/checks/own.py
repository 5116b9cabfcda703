"""Checks of one's own: handed in as objects, named by ``module:name``, or offered by an installed package."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from empathy_eval.base import plugins
from empathy_eval.base.errors import InputError, JobError, Problem, input_error, job_error
from empathy_eval.completions.requests import Flaw
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.outcomes import Scene, Turn

GROUP = "empathy_eval.checks"
NEEDED = ("name", "signature", "dialogue", "variant")
FIX = "mend it, then run the same command to go on; every answer is in the ledger"
REASON = re.compile(r"[a-z][a-z0-9_]{0,63}")


class Check:
    """The base of a check of one's own: a subclass has a ``name`` and overrides one method or both.

    ``signature`` holds every setting that could change what it says: it stands in the build and in the manifest of its release. A reason
    is counted as those of the built-in checks are; the detail is shown to the model that is asked to repair its answer, so that of a far
    variant must not tell the reference's words.
    """

    name: str
    signature = "version:1"

    def dialogue(self, description: str, turns: Sequence[Turn]) -> Iterable[Flaw]:
        """What is wrong with a dialogue; nothing if it passes."""
        return ()

    def variant(self, variant: str, text: str, scene: Scene) -> Iterable[Flaw]:
        """What is wrong with the text of a variant (``apathetic``, ``empathetic``, …) of a helper turn; nothing if it passes."""
        return ()


def own_checks(recipe: Recipe) -> tuple[Check, ...]:
    """The checks of one's own that a recipe names or holds.

    Raises:
        InputError: if one was not handed in, cannot be made, or is no check; all at once.
    """
    given = {one.name: one for one in recipe.checks}
    found, problems = list[Any](), list[Problem]()
    for name, settings in recipe.config.own_checks.items():
        try:
            if name not in given and "given" in settings:
                what = "was handed in from Python, and is not here"
                raise input_error(f'check "{name}"', what, "hand it in again: build(…, checks=[…])")
            check = given.get(name) or plugins.made(GROUP, name, settings)
            if missing := [one for one in NEEDED if not hasattr(check, one)]:
                raise input_error(f'check "{name}"', f"has no {', '.join(missing)}", "see docs/checks.md for what a check has")
            found.append(check)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return tuple(found)


def flaws_by(checks: Sequence[Check], look: Callable[[Check], Iterable[Flaw]]) -> list[Flaw]:
    """The flaws that checks of one's own find.

    Raises:
        JobError: if one of them fails, or gives what is no flaw.
    """
    return [flaw for check in checks for flaw in _looked(check, look)]


def _looked(check: Check, look: Callable[[Check], Iterable[Flaw]]) -> list[Flaw]:
    try:
        found = list(look(check))
    except Exception as error:
        raise _failed(check, f"failed: {type(error).__name__}: {str(error)[:200]}") from error
    for one in found:
        if not isinstance(one, Flaw) or not REASON.fullmatch(str(one.reason)) or not isinstance(one.detail, str):
            raise _failed(check, f"gave {str(one)[:80]!r}, not a Flaw with a reason in lower case, such as too_many_questions")
    return found


def _failed(check: Check, what: str) -> JobError:
    return job_error(f'check "{check.name}"', what, FIX)
