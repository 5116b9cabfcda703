"""Custom checks: passed in as objects, named by ``module:name``, or offered by an installed package."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from empathy_eval.base import plugins
from empathy_eval.base.errors import JobError, Problem, collecting, input_error, job_error, refuse
from empathy_eval.completions.requests import SURROGATE, Flaw
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.word_list import NOT_CHOSEN
from empathy_eval.generation.outcomes import Scene, Turn

GROUP = "empathy_eval.checks"
# The texts and the methods of a check.
PARTS = ("name", "signature"), ("dialogue", "variant")
FIX = "fix it, then run the same command to continue; every answer is in the ledger"
REASON = re.compile(r"[a-z][a-z0-9_]{0,63}")


class Check:
    """Base of a custom check: a subclass has a ``name`` and overrides one method or both.

    ``signature`` holds every setting that can change a verdict; it is recorded in the build and the manifest. Reasons are counted as those
    of built-in checks. The detail is shown to the model that repairs its answer, so for a far variant it must not reveal words of the
    reference.
    """

    name: str
    signature = "version:1"

    def dialogue(self, description: str, turns: Sequence[Turn]) -> Iterable[Flaw]:
        """Flaws of a dialogue; empty if it passes."""
        return ()

    def variant(self, variant: str, text: str, scene: Scene) -> Iterable[Flaw]:
        """Flaws of a variant (``apathetic``, …) or a crossed reply (``crossed``); empty if it passes."""
        return ()


def custom_checks(recipe: Recipe) -> tuple[Check, ...]:
    """The custom checks that a recipe names or holds.

    Raises:
        InputError: if one was not passed in, cannot be created, is not a check, or two have one name; all at once.
    """
    given = recipe.checks
    checks, problems = list[Any](), list[Problem]()
    for name, settings in recipe.config.custom_checks.items():
        with collecting(problems):
            if name not in given and "given" in settings:
                what = "was passed in from Python and is not available here"
                raise input_error(f'check "{name}"', what, "pass it in again: build(…, checks=[…])")
            check = given[name] if name in given else plugins.load(GROUP, name, settings)
            plugins.check_interface(check, f'check "{name}"', "check", PARTS)
            checks.append(check)
    names = [check.name for check in checks]
    twice = sorted({name for name in names if names.count(name) > 1})
    problems += [Problem(f'check "{name}"', "is the name of two checks", "give each check its own name") for name in twice]
    refuse(problems)
    return tuple(checks)


def flaws_by(checks: Sequence[Check], look: Callable[[Check], Iterable[Flaw]]) -> list[Flaw]:
    """The flaws that custom checks find. Raises JobError if a check fails, or returns something else than flaws."""
    return [flaw for check in checks for flaw in _checked_flaws(check, look)]


def _checked_flaws(check: Check, look: Callable[[Check], Iterable[Flaw]]) -> list[Flaw]:
    try:
        given: Any = look(check)
        flaws = list(given) if isinstance(given, Iterable) else None
    except Exception as error:
        raise _failed(check, f"failed: {type(error).__name__}: {str(error)[:200]}", error) from error
    if flaws is None:
        raise _failed(check, f"returned {str(given)[:80]}; return a list of flaws, an empty one where nothing is wrong")
    for flaw in flaws:
        texts = isinstance(flaw, Flaw) and isinstance(flaw.reason, str) and isinstance(flaw.detail, str)
        if not texts or not REASON.fullmatch(flaw.reason) or SURROGATE.search(flaw.detail):
            what = "not a Flaw with a reason in lower case, such as too_many_questions, and a detail that is text"
            raise _failed(check, f"gave {str(flaw)[:80]!r}, {what}")
        if flaw.reason == NOT_CHOSEN:
            raise _failed(check, f'gave the reason "{NOT_CHOSEN}", which is reserved for texts that pass')
    return flaws


def _failed(check: Check, what: str, error: Exception | None = None) -> JobError:
    return job_error(f'check "{check.name}"', what, FIX, error)
