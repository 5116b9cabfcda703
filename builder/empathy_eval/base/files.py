"""Files that are whole or absent, and the place of the data folders."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from empathy_eval.base.errors import InputError, Problem, input_error, job_error

UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EIO}
# Places in which no file of that name can be, whatever room there is.
NO_PLACE = {errno.ENAMETOOLONG, errno.ELOOP}
# How the Hub's cache calls a commit, and what a file holds: by SHA-1 or SHA-256.
COMMIT, BLOB = re.compile("[0-9a-f]{40}"), re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


def data_folder(name: str) -> Path:
    """The folder ``scenarios``, ``prompt_templates``, ``rubrics``, ``rules``, ``schemas``, ``release``, ``review`` or ``empathyscore``.

    In an installed wheel the data folders lie inside the package, in a checkout beside it.
    """
    package = Path(__file__).resolve().parent.parent
    installed = package / "data" / name
    return installed if installed.is_dir() else package.parent.parent / name


def is_own(folder: Path, path: Path) -> bool:
    """Whether what a path in a folder leads to is the folder's own: in it, or a file of the Hub's cache that the folder is a snapshot of.

    Such a snapshot is ``snapshots/<commit>`` of a repository's folder; its files are links to ``blobs/<hash>`` beside it.
    """
    root, real = Path(os.path.realpath(folder)), Path(os.path.realpath(path))
    if real.is_relative_to(root):
        return True
    snapshot = root.parent.name == "snapshots" and COMMIT.fullmatch(root.name)
    return bool(snapshot and real.parent == root.parent.parent / "blobs" and BLOB.fullmatch(real.name))


def leading_out(folder: Path) -> list[Path]:
    """The links in a folder that lead out of it: what is read or sent through them is not the folder's own.

    What git keeps of itself, in a folder ``.git`` at the top, is not looked at.
    """
    # A link that leads to itself has a real path too.
    return sorted(path for path, kind in entries(folder) if kind == "link" and not is_own(folder, path))


def entries(folder: Path) -> Iterator[tuple[Path, str]]:
    """All that lies in a folder and those in it, with its kind: ``file``, ``folder``, ``link`` or, of what is none of these, ``device``.

    Nothing is opened and no link is followed. A ``.git`` at the top is left out, and what a folder holds that cannot be read.
    """
    waiting = [folder]
    while waiting:
        inside = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(inside) as found:
            for entry in sorted(found, key=lambda one: one.name):
                path = inside / entry.name
                if path == folder / ".git":
                    continue
                yield path, _kind(entry)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    return "file" if entry.is_file() else "folder" if entry.is_dir() else "device"


@contextlib.contextmanager
def room_for(path: Path) -> Iterator[None]:
    """Turns a failed write (a full disk, a missing permission) under ``path`` into a :class:`JobError`."""
    try:
        yield
    except OSError as error:
        nowhere = error.errno in NO_PLACE or _takes_no_files(error, path)
        if not nowhere and error.errno not in UNWRITABLE:
            raise
        fix = "name another place" if nowhere else "make room or give permission, then run the same command"
        raise job_error(path, f"cannot be written: {error.strerror or error}", fix) from error


def _takes_no_files(error: OSError, path: Path) -> bool:
    """Whether ``path`` or a folder on the way to it could not be made where there is a folder, as in ``/proc``; a missing input is none."""
    if error.errno != errno.ENOENT or error.filename is None:
        return False
    missing = Path(os.fsdecode(error.filename))
    return missing in (path, _partial(path), *path.parents)


def _partial(path: Path) -> Path:
    # A fixed name: what a killed process left is overwritten by the next.
    return path.with_name(f".{path.name}.partial")


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yields a temporary path in the same folder; its file takes the final name only when all went well.

    Raises:
        InputError: if the folder is to lie in what is a file, or a folder lies where the file goes.
    """
    not_folders(path)
    with room_for(path):
        _make_folder(path.parent)
        partial = _partial(path)
        try:
            yield partial
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


def not_folders(*paths: Path) -> None:
    """Raises an :class:`InputError` if folders lie where these files go."""
    # os.path.isdir, since Path.is_dir raises for a name that is too long.
    folders = [path for path in paths if os.path.isdir(path)]  # noqa: PTH112
    if folders:
        raise InputError([Problem(str(path), "is a folder, where a file is to be written", "move it away") for path in folders])


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise input_error(path, "is no folder, or lies in what is none", "name another place") from error


def write_whole(path: Path, text: str) -> None:
    """Writes a UTF-8 text file, whole or not at all.

    Raises:
        InputError: if the folder is to lie in what is a file.
        JobError: if the disk is full, the folder may not be written to, or no file of that name can be there.
    """
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


@contextlib.contextmanager
def whole_folder(path: Path, made_by: str) -> Iterator[Path]:
    """Yields a temporary folder beside ``path`` that takes its name only when all went well.

    A folder that is already there is replaced only if it is empty or holds the file ``made_by``.

    Raises:
        InputError: if ``path`` is a file, or a folder of something else.
        JobError: if the disk is full, or no folder of that name can be there.
    """
    with room_for(path):
        if path.exists() and not (path.is_dir() and ((path / made_by).is_file() or not any(path.iterdir()))):
            raise input_error(path, f'holds something else (no "{made_by}" in it)', "name another folder with --out")
        _make_folder(path.parent)
        partial, replaced = _partial(path), path.with_name(f".{path.name}.replaced")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        try:
            yield partial
            if path.exists():
                path.rename(replaced)
            partial.rename(path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
            shutil.rmtree(replaced, ignore_errors=True)
