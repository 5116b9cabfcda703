"""What can go wrong in a way that a user can mend: where it is, what it is, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from empathy_eval.base.tracebacks import place_of, whole

NOT_INSTALLED = "needs packages that are not installed"


@dataclass(frozen=True)
class Problem:
    """One fault of an input: its place, what is wrong with the bad value quoted, and how to mend it.

    ``traceback`` is that of the code of others which raised it, if any did.
    """

    where: str
    what: str
    fix: str
    traceback: str = field(default="", repr=False, compare=False, kw_only=True)

    def __str__(self) -> str:
        return plain(f"{self.where}: {self.what}\n  Fix: {self.fix}")


def plain(text: str) -> str:
    """A text with what a stranger's value could do to a terminal (control signs, changes of direction, half signs) written out."""
    return "".join(sign if sign.isprintable() or sign in "\n\t\xa0" else ascii(sign)[1:-1] for sign in text)


def nearest(name: object, known: Iterable[object]) -> str:
    """A question whether the known name that is closest to an unknown one is meant, in whatever case; empty where none is close.

    It stands behind the list of known names, as the end of how to mend it.
    """
    from difflib import get_close_matches  # most runs ask for nothing that there is not

    by_sign = {str(one).casefold(): str(one) for one in known}
    found = get_close_matches(str(name).casefold()[:100], by_sign, n=1)
    return f'; did you mean "{by_sign[found[0]]}"?' if found else ""


class EmpathyEvalError(Exception):
    """Base of the errors that are printed without a traceback; ``exit_code`` is the status of the process."""

    exit_code = 1

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[Any, ...]:  # so that it is the same in another process
        return type(self), (self.problems,)


class InputError(EmpathyEvalError):
    """The input is wrong: nothing was done. All problems that could be seen at once are in ``problems``."""

    exit_code = 2


class JobError(EmpathyEvalError):
    """The input is right, and the job could not finish. What was paid for is kept."""


def input_error(where: object, what: str, fix: str, raised: BaseException | None = None) -> InputError:
    """An :class:`InputError` of a single problem; ``raised`` is what code of others raised, whose place is told too."""
    return InputError([_problem(where, what, fix, raised)])


def job_error(where: object, what: str, fix: str, raised: BaseException | None = None) -> JobError:
    """A :class:`JobError` of a single problem; ``raised`` as for :func:`input_error`."""
    return JobError([_problem(where, what, fix, raised)])


def _problem(where: object, what: str, fix: str, raised: BaseException | None) -> Problem:
    if raised is None:
        return Problem(str(where), what, fix)
    return Problem(str(where), what + place_of(raised), fix, traceback=whole(raised))


class Tracebacks:
    """What is printed beside errors of code of others: their whole tracebacks where the command line asks for them, else how to ask."""

    shown = False

    @classmethod
    def of(cls, tracebacks: Iterable[str]) -> list[str]:
        """The texts to print; none without a traceback."""
        some = [one.rstrip() for one in tracebacks if one]
        return some if cls.shown or not some else ["add --traceback for the whole traceback"]


def missing_package(purpose: str, extra: str = "", otherwise: str = "") -> InputError:
    """The error for a package of an extra (or one that is always needed) that is not installed; ``otherwise`` is a way without it."""
    from empathy_eval.base.installed import install_line

    return input_error(purpose, NOT_INSTALLED, install_line(extra) + (f", or {otherwise}" if otherwise else ""))
