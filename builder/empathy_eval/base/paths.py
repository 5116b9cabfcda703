"""The border for paths: what can be neither file nor folder is refused before it is opened, and no failed access is a traceback."""

from __future__ import annotations

import contextlib
import errno
import functools
import inspect
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ParamSpec, TypeVar

from empathy_eval.base.errors import InputError, Problem, input_error, job_error, refuse

P = ParamSpec("P")
T = TypeVar("T")
ELSEWHERE = "name another place"
# "http://x", also as a Path has it; one letter is a drive.
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
# What mends a failed access, by its error; others are mended by another place.
FIXES = {
    errno.ENOENT: "name an existing path", errno.EACCES: "give permission, or name another place",
    errno.EPERM: "give permission, or name another place", errno.EISDIR: "name a file", errno.ENOTDIR: "name a folder",
}  # fmt: skip
# The input may be right then.
OF_THE_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE}
LONGEST = 200


def check_paths(paths: Iterable[Any]) -> None:
    """Refuses what no file or folder can be; where nothing is, and what may not be read, is left to whoever opens it.

    Raises:
        InputError: for a name that the system does not take, links that lead to themselves, an address, and what is no regular file or
            folder: to open a named pipe waits for its other end. What a shell hands over (``<(…)``) may be read, and the null device.
    """
    refuse([problem for path in paths if (problem := _odd(os.fspath(path)))])


def _odd(path: str | bytes) -> Problem | None:
    where = _named(path)
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  # a Path of NUL and the like is its matter too
    except (ValueError, UnicodeError) as error:
        return Problem(where, f"is not a valid path: {error}", ELSEWHERE)
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            return Problem(where, f"cannot be a file or folder: {error.strerror}", ELSEWHERE)
        return Problem(where, "is an address, but a path is needed", ELSEWHERE) if ADDRESS.match(os.fsdecode(path)) else None
    regular = stat.S_ISREG(mode) or stat.S_ISDIR(mode) or os.fsdecode(path) == os.devnull
    # What has no name of its own was opened by a shell, and blocks nobody.
    if regular or not os.path.lexists(os.path.realpath(path)):
        return None
    return Problem(where, "is neither a file nor a folder", ELSEWHERE)


def _named(path: str | bytes) -> str:
    text = os.fsdecode(path)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


@contextlib.contextmanager
def paths_reached() -> Iterator[None]:
    """Turns a failed access to a path into an error that names it.

    Raises:
        InputError: if there is nothing, something else, or no permission, or it is no path.
        JobError: if the disk is full or fails.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None:  # of no path, such as a connection
            raise
        where, what = _named(os.fsdecode(error.filename)), f"cannot be read or written: {error.strerror or error}"
        if error.errno in OF_THE_MACHINE:
            raise job_error(where, what, "make room or repair the disk, then run the same command") from error
        raise input_error(where, what, FIXES.get(error.errno or 0, ELSEWHERE)) from error
    except ValueError as error:
        if (wrong := not_a_path("a path", error)) is None:
            raise
        raise wrong from error


def not_a_path(where: object, error: ValueError) -> InputError | None:
    """The error for what the system takes for no path at all, if that is meant."""
    return input_error(where, f"is not a valid path: {error}", ELSEWHERE) if "embedded null" in str(error) else None


def takes_paths(call: Callable[P, T]) -> Callable[P, T]:
    """A call whose paths, which are the arguments that are annotated as such, are looked at before, and whose failed accesses are told."""
    names = {name for name, kind in call.__annotations__.items() if "Path" in str(kind)}
    signature = inspect.signature(call)

    @functools.wraps(call)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        with contextlib.suppress(TypeError):  # the call itself says it better
            given = signature.bind(*args, **kwargs).arguments
            check_paths(paths_in(value for name, value in given.items() if name in names))
        with paths_reached():
            return call(*args, **kwargs)

    return guarded


def paths_in(values: Iterable[Any], kinds: tuple[type, ...] = (str, os.PathLike)) -> Iterator[Any]:
    """The paths among values and in their lists."""
    for value in values:
        if isinstance(value, kinds):
            yield value
        elif isinstance(value, list | tuple):
            yield from paths_in(value, kinds)
