"""What can go wrong in a way that a user can mend: where it is, what it is, and how to mend it."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from empathy_eval.base.signs import unseen

OURS = str(Path(__file__).parents[1])


def traceback_text(error: BaseException) -> str:
    """The whole traceback as text."""
    return "".join(traceback.format_exception(error))


def place_of(error: BaseException) -> str:
    """Where code of others raised an error, as `` (shared_words.py:12, in score)``; empty where no such code took part.

    It is the last line of the user's own code, else of the installed package that was called. The file is told as its module is named, so
    that no folder of a machine is in what is written.
    """
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_file():
        return f" ({Path(error.filename).name}:{error.lineno})"
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if _of_others(frame)]
    own = [one for one in frames if not _installed(one[0])]
    packaged = [one for one in frames if _module(one[0])[0] == _module(frames[0][0])[0]]
    if not own and not packaged:
        return ""
    frame, line = (own or packaged)[-1]
    name = frame.f_code.co_name
    return f" ({_file(frame)}:{line}{'' if name == '<module>' else f', in {name}'})"


def _of_others(frame: FrameType) -> bool:
    """Whether it is neither code of ours nor of the standard library."""
    path = frame.f_code.co_filename
    return not path.startswith((OURS, "<frozen")) and (not path.startswith(_standard()) or _installed(frame))


@cache
def _standard() -> tuple[str, ...]:
    from sysconfig import get_paths

    return get_paths()["stdlib"], get_paths()["platstdlib"]


def _installed(frame: FrameType) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(frame.f_code.co_filename).parts)


def _module(frame: FrameType) -> list[str]:
    return str(frame.f_globals.get("__name__", "")).split(".")


def _file(frame: FrameType) -> str:
    path = Path(frame.f_code.co_filename)
    return "/".join(path.parts[-len(_module(frame)) - (path.stem == "__init__") :])


NAME = "empathy-eval"
# Of a checkout: the package lies in builder/.
SOURCE = Path(__file__).parents[3]


def install_line(extra: str = "") -> str:
    """The line for a shell that installs what an extra needs, or what the program itself needs, where this program came from."""
    try:
        found = distribution(NAME)
    except PackageNotFoundError:
        found = None
    return line_for(extra, SOURCE, found)


def line_for(extra: str, source: Path, found: Distribution | None) -> str:
    """The line of a program that lies in a folder which may be a checkout, or that pip knows as a distribution."""
    extras = f"[{extra}]" if extra else ""
    if _is_checkout(source):
        return f"pip install -e {shlex.quote(f'{source}{extras}')}"
    if found is None:
        return f"pip install -e {shlex.quote(f'CHECKOUT{extras}')}, where CHECKOUT is the folder of the project"
    if origin := _origin(found.read_text("direct_url.json")):
        return f"pip install {shlex.quote(f'{NAME}{extras} @ {origin}')}"
    return " ".join(["pip install", *map(shlex.quote, requirements(found.requires or [], extra))])


def requirements(lines: list[str], extra: str) -> list[str]:
    """Those of a distribution's requirements that an extra adds; what names another extra of ours is what that one adds."""
    wanted = []
    for line in lines:
        requirement, _, marker = line.partition(";")
        named = re.search(r"""extra\s*==\s*["']([^"']*)["']""", marker)
        if (named[1] if named else "") != extra:
            continue
        ours = re.fullmatch(rf"{NAME}\s*\[(.*)\]\s*", requirement)
        wanted += [one for other in ours[1].split(",") for one in requirements(lines, other.strip())] if ours else [requirement.strip()]
    return list(dict.fromkeys(wanted))


def _is_checkout(folder: Path) -> bool:
    try:
        return bool(tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"] == NAME)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _origin(direct_url: str | None) -> str:
    """Where pip took the distribution from, as it takes it again; nothing if that was an index, or is no longer there."""
    if direct_url is None:
        return ""
    told = json.loads(direct_url)
    url = str(told["url"])
    if url.startswith("file:") and not Path(url2pathname(urlsplit(url).path)).exists():
        return ""
    if repository := told.get("vcs_info"):
        url = f"{repository['vcs']}+{url}@{repository['commit_id']}"
    return f"{url}#subdirectory={told['subdirectory']}" if "subdirectory" in told else url


# Of more names none is looked for: it would take longer than the work.
MOST_KNOWN = 2000
NOT_INSTALLED = "needs packages that are not installed"
LAID_OUT = dict.fromkeys(map(ord, "\t\n"))


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


def plain(text: str, escape: Callable[[str], str] = ascii) -> str:
    """A text whose signs that nobody sees, or that move a terminal's cursor, are written out: ``escape`` makes a quoted text of one.

    What scripts and emoji are written with stays, and so do tabs and ends of lines.
    """
    if text.isascii() and text.translate(LAID_OUT).isprintable():
        return text
    odd = {place for place, _ in unseen(text)}
    return "".join(
        escape(sign)[1:-1] if place in odd or sign == "\r" or "\ud800" <= sign <= "\udfff" else sign for place, sign in enumerate(text)
    )


def shortened(text: str, most: int = 80) -> str:
    """A text as it is quoted where there is room for so many characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def nearest(name: object, known: Iterable[object]) -> str:
    """A question whether the known name that is closest to an unknown one is meant, in whatever case; empty where none is close.

    It stands behind the list of known names, as the end of how to mend it.
    """
    from difflib import get_close_matches  # most runs ask for nothing that there is not

    by_sign = {str(one).casefold(): str(one) for one in known}
    found = get_close_matches(str(name).casefold()[:100], by_sign, n=1) if len(by_sign) <= MOST_KNOWN else ()
    return f'; did you mean "{by_sign[found[0]]}"?' if found else ""


def nearest_column(names: Iterable[str], missing: Iterable[str]) -> str:
    """As :func:`nearest`, of a missing column and the first of the columns of a table that may be meant for it."""
    lacking = list(missing)
    return next((said for name in names if name not in lacking and (said := nearest(name, lacking))), "")


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
    return Problem(str(where), what + place_of(raised), fix, traceback=traceback_text(raised))


class Tracebacks:
    """What is printed beside errors of code of others: their whole tracebacks where the command line asks for them, else how to ask."""

    shown = False

    @classmethod
    def of(cls, tracebacks: Iterable[str]) -> list[str]:
        """The texts to print; none without a traceback."""
        some = [one.rstrip() for one in tracebacks if one]
        return some if cls.shown or not some else ["add --traceback for the whole traceback"]


def refuse(problems: Iterable[Problem]) -> None:
    """Raises an :class:`InputError` with all of these problems at once; where there are none, nothing is done."""
    if found := tuple(problems):
        raise InputError(found)


@contextmanager
def collecting(problems: list[Problem]) -> Iterator[None]:
    """Adds the problems of an :class:`InputError` within to a list, and goes on behind the block: all of several files are told at once."""
    try:
        yield
    except InputError as error:
        problems += error.problems


def missing_package(purpose: str, extra: str = "", otherwise: str = "") -> InputError:
    """The error for a package of an extra (or one that is always needed) that is not installed; ``otherwise`` is a way without it."""
    return input_error(purpose, NOT_INSTALLED, install_line(extra) + (f", or {otherwise}" if otherwise else ""))
