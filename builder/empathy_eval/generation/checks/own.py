"""Checks of one's own: handed in as objects, named by ``module:name``, or offered by an installed package."""

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
        """What is wrong with the text of a variant (``apathetic``, …), or of a crossed reply (``crossed``); nothing if it passes."""
        return ()


def own_checks(recipe: Recipe) -> tuple[Check, ...]:
    """The checks of one's own that a recipe names or holds.

    Raises:
        InputError: if one was not handed in, cannot be made, or is no check, or two have one name; all at once.
    """
    given = recipe.checks
    found, problems = list[Any](), list[Problem]()
    for name, settings in recipe.config.own_checks.items():
        with collecting(problems):
            if name not in given and "given" in settings:
                what = "was passed in from Python and is not available here"
                raise input_error(f'check "{name}"', what, "pass it in again: build(…, checks=[…])")
            made = given[name] if name in given else plugins.made(GROUP, name, settings)
            plugins.refuse_unlike(made, f'check "{name}"', "check", PARTS)
            found.append(made)
    names = [one.name for one in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    problems += [Problem(f'check "{name}"', "is the name of two checks", "give each check its own name") for name in twice]
    refuse(problems)
    return tuple(found)


def flaws_by(checks: Sequence[Check], look: Callable[[Check], Iterable[Flaw]]) -> list[Flaw]:
    """The flaws that checks of one's own find.

    Raises:
        JobError: if one of them fails, or gives what is no flaw.
    """
    return [flaw for check in checks for flaw in _looked(check, look)]


def _looked(check: Check, look: Callable[[Check], Iterable[Flaw]]) -> list[Flaw]:
    try:
        given: Any = look(check)
        found = list(given) if isinstance(given, Iterable) else None
    except Exception as error:
        raise _failed(check, f"failed: {type(error).__name__}: {str(error)[:200]}", error) from error
    if found is None:
        raise _failed(check, f"returned {str(given)[:80]}; return a list of flaws, an empty one where nothing is wrong")
    for one in found:
        texts = isinstance(one, Flaw) and isinstance(one.reason, str) and isinstance(one.detail, str)
        if not texts or not REASON.fullmatch(one.reason) or SURROGATE.search(one.detail):
            what = "not a Flaw with a reason in lower case, such as too_many_questions, and a detail that is text"
            raise _failed(check, f"gave {str(one)[:80]!r}, {what}")
        if one.reason == NOT_CHOSEN:
            raise _failed(check, f'gave the reason "{NOT_CHOSEN}", which is reserved for texts that pass')
    return found


def _failed(check: Check, what: str, error: Exception | None = None) -> JobError:
    return job_error(f'check "{check.name}"', what, FIX, error)
