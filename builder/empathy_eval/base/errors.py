"""Errors that users can fix: where, what with the bad value, and how to fix it."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, wraps
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Any, Literal, ParamSpec
from urllib.parse import urlsplit
from urllib.request import url2pathname

from empathy_eval.base.invisible import invisible_characters

P = ParamSpec("P")
OURS = str(Path(__file__).parents[1])
NAME = "empathy-eval"
# Of a checkout: the package lies in builder/.
SOURCE = Path(__file__).parents[3]
FIX_RESTORE = "restore the file from the published release, or release the build again"
# Of more names none is looked for: it would take longer than the work.
MOST_KNOWN = 2000
NOT_INSTALLED = "needs packages that are not installed"
LAID_OUT = dict.fromkeys(map(ord, "\t\n"))


def traceback_text(error: BaseException) -> str:
    """The traceback of an error as text."""
    return "".join(traceback.format_exception(error))


def raised_at(error: BaseException) -> str:
    """Where third-party code raised an error, as `` (shared_words.py:12, in score)``; empty if none took part.

    It is the last line of the user's own code, else of the installed package that was called. The file is named after its module, so that
    no folder of a machine is written.
    """
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_file():
        return f" ({Path(error.filename).name}:{error.lineno})"
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if _of_others(frame)]
    own = [entry for entry in frames if not _installed(entry[0])]
    packaged = [entry for entry in frames if _module(entry[0])[0] == _module(frames[0][0])[0]]
    if not own and not packaged:
        return ""
    frame, line = (own or packaged)[-1]
    name = frame.f_code.co_name
    return f" ({_file(frame)}:{line}{'' if name == '<module>' else f', in {name}'})"


def _of_others(frame: FrameType) -> bool:
    """Whether a frame is neither ours nor of the standard library."""
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


def install_line(extra: str = "") -> str:
    """The shell command that installs an extra, or the program's own requirements, from where this program came."""
    try:
        installed = distribution(NAME)
    except PackageNotFoundError:
        installed = None
    return install_line_for(extra, SOURCE, installed)


def install_line_for(extra: str, source: Path, installed: Distribution | None) -> str:
    """The command for a program in ``source``, which may be a checkout, or for an installed distribution."""
    extras = f"[{extra}]" if extra else ""
    if _is_checkout(source):
        return f"pip install -e {shlex.quote(f'{source}{extras}')}"
    if installed is None:
        return f"pip install -e {shlex.quote(f'CHECKOUT{extras}')}, where CHECKOUT is the folder of the project"
    if origin := _origin(installed.read_text("direct_url.json")):
        return f"pip install {shlex.quote(f'{NAME}{extras} @ {origin}')}"
    return " ".join(["pip install", *map(shlex.quote, requirements(installed.requires or [], extra))])


def requirements(lines: list[str], extra: str) -> list[str]:
    """The requirements of a distribution that an extra adds. References to other extras of ours are resolved."""
    wanted = list[str]()
    for line in lines:
        requirement, _, marker = line.partition(";")
        named = re.search(r"""extra\s*==\s*["']([^"']*)["']""", marker)
        if (named[1] if named else "") != extra:
            continue
        ours = re.fullmatch(rf"{NAME}\s*\[(.*)\]\s*", requirement)
        parts = [requirements(lines, other.strip()) for other in ours[1].split(",")] if ours else [[requirement.strip()]]
        wanted += chain.from_iterable(parts)
    return list(dict.fromkeys(wanted))


def _is_checkout(folder: Path) -> bool:
    try:
        return bool(tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"] == NAME)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _origin(direct_url: str | None) -> str:
    """The URL or path that pip installed from; empty for a package index, or a path that is gone."""
    if direct_url is None:
        return ""
    record = json.loads(direct_url)
    url = str(record["url"])
    if url.startswith("file:") and not Path(url2pathname(urlsplit(url).path)).exists():
        return ""
    if repository := record.get("vcs_info"):
        url = f"{repository['vcs']}+{url}@{repository['commit_id']}"
    return f"{url}#subdirectory={record['subdirectory']}" if "subdirectory" in record else url


@dataclass(frozen=True)
class Problem:
    """One fault of an input: its place, what is wrong with the bad value quoted, and how to fix it. ``traceback`` is that of third-party
    code.
    """

    where: str
    what: str
    fix: str
    traceback: str = field(default="", repr=False, compare=False, kw_only=True)

    def __str__(self) -> str:
        return plain(f"{self.where}: {self.what}\n  Fix: {self.fix}")


def plain(text: str, escape: Callable[[str], str] = ascii) -> str:
    """A text with invisible characters and cursor movements escaped; ``escape`` returns a quoted text of one character.

    Characters that scripts and emoji need stay, and so do tabs and line ends.
    """
    if text.isascii() and text.translate(LAID_OUT).isprintable():
        return text
    odd = {index for index, _ in invisible_characters(text)}
    return "".join(
        escape(character)[1:-1] if index in odd or character == "\r" or "\ud800" <= character <= "\udfff" else character
        for index, character in enumerate(text)
    )


def shortened(text: str, most: int = 80) -> str:
    """A text cut to ``most`` characters, for a quotation."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def some_of(names: Sequence[str], most: int = 5, of: int | None = None) -> str:
    """The first names of a list, and how many more there are: ``a, b and 3 more``; ``of`` is their number where not all are listed."""
    more = (len(names) if of is None else of) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def nearest(name: object, known: Iterable[object]) -> str:
    """The hint "did you mean …?" with the known name closest to an unknown one, ignoring case; empty if none is close.

    It ends a fix that lists the known names.
    """
    from difflib import get_close_matches  # most runs ask for nothing that there is not

    by_sign = {str(candidate).casefold(): str(candidate) for candidate in known}
    matches = get_close_matches(str(name).casefold()[:100], by_sign, n=1) if len(by_sign) <= MOST_KNOWN else ()
    return f'; did you mean "{by_sign[matches[0]]}"?' if matches else ""


def nearest_column(names: Iterable[str], missing: Iterable[str]) -> str:
    """As :func:`nearest`, for a missing column and the first column of a table that may be meant for it."""
    lacking = list(missing)
    return next((question for name in names if name not in lacking and (question := nearest(name, lacking))), "")


@dataclass(frozen=True)
class Finding(Problem):
    """A fault, an ``unchecked`` part named by ``about`` (a metric, a signature, toxicity, pages), or a ``note``.

    ``config``, ``row`` (its number in the file) and ``column`` name a cell of a release, with its ``value`` there and the ``derived`` one.
    """

    fix: str = FIX_RESTORE
    severity: Literal["fault", "unchecked", "note"] = "fault"
    about: str = ""
    config: str | None = None
    row: int | None = None
    column: str | None = None
    value: Any = None
    derived: Any = None


def faults_of(problems: Iterable[Problem]) -> Iterator[Finding]:
    """Problems as faults."""
    return (Finding(problem.where, problem.what, problem.fix) for problem in problems)


def input_errors_as_faults(check: Callable[P, Iterator[Finding]]) -> Callable[P, Iterator[Finding]]:
    """A generator of findings that ends at an :class:`InputError` with its problems as faults."""

    @wraps(check)
    def findings(*args: P.args, **named: P.kwargs) -> Iterator[Finding]:
        try:
            yield from check(*args, **named)
        except InputError as error:
            yield from faults_of(error.problems)

    return findings


def has_faults(findings: Iterable[Finding]) -> bool:
    """Whether any finding is a fault."""
    return any(finding.severity == "fault" for finding in findings)


class EmpathyEvalError(Exception):
    """Base of errors that are printed without a traceback; ``exit_code`` is the exit status."""

    exit_code = 1

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[Any, ...]:  # so that it is the same in another process
        return type(self), (self.problems,)


class InputError(EmpathyEvalError):
    """The input is wrong, and nothing was done. ``problems`` holds all problems that could be found at once."""

    exit_code = 2


class JobError(EmpathyEvalError):
    """The input is right, but the job could not finish. Paid answers are kept."""


def input_error(where: object, what: str, fix: str, raised: BaseException | None = None) -> InputError:
    """An :class:`InputError` of one problem; ``raised`` is an exception of third-party code, whose place is named."""
    return InputError([_problem(where, what, fix, raised)])


def job_error(where: object, what: str, fix: str, raised: BaseException | None = None) -> JobError:
    """A :class:`JobError` of one problem; ``raised`` as for :func:`input_error`."""
    return JobError([_problem(where, what, fix, raised)])


def _problem(where: object, what: str, fix: str, raised: BaseException | None) -> Problem:
    if raised is None:
        return Problem(str(where), what, fix)
    return Problem(str(where), what + raised_at(raised), fix, traceback=traceback_text(raised))


class Tracebacks:
    """Tracebacks of third-party code beside an error: the texts if the command line asks for them, else a hint."""

    shown = False

    @classmethod
    def of(cls, tracebacks: Iterable[str]) -> list[str]:
        """The lines to print; empty without a traceback."""
        texts = [text.rstrip() for text in tracebacks if text]
        return texts if cls.shown or not texts else ["add --traceback for the whole traceback"]


def refuse(problems: Iterable[Problem]) -> None:
    """Raises an :class:`InputError` with all problems; does nothing if there are none."""
    if collected := tuple(problems):
        raise InputError(collected)


@contextmanager
def collecting(problems: list[Problem]) -> Iterator[None]:
    """Adds the problems of an :class:`InputError` in the block to a list, so that all of several files are reported at once."""
    try:
        yield
    except InputError as error:
        problems += error.problems


def missing_package(purpose: str, extra: str = "", otherwise: str = "") -> InputError:
    """The error for a package that is not installed: of an ``extra``, or a required one; ``otherwise`` names an alternative."""
    return input_error(purpose, NOT_INSTALLED, install_line(extra) + (f", or {otherwise}" if otherwise else ""))
