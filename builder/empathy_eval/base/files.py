"""Files that are whole or absent, and the place of the data folders."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path

from empathy_eval.base.errors import Problem, input_error, job_error, refuse
from empathy_eval.base.paths import not_a_path

UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EIO}
# Places in which no file of that name can be, whatever room there is.
NO_PLACE = {errno.ENAMETOOLONG, errno.ELOOP}
# Of file systems that know of no locks; there all is done as if nobody else wrote.
NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}
# How the Hub's cache calls a commit, and what a file holds: by SHA-1 or SHA-256.
COMMIT, BLOB = re.compile("[0-9a-f]{40}"), re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


def data_folder(name: str) -> Path:
    """The folder ``scenarios``, ``prompt_templates``, ``rubrics``, ``rules``, ``schemas``, ``release``, ``review`` or ``empathyscore``.

    In an installed wheel the data folders lie inside the package, in a checkout beside it.
    """
    package = Path(__file__).resolve().parent.parent
    installed = package / "data" / name
    return installed if installed.is_dir() else package.parent.parent / name


def packaged_file(named: str | Path, kind: str, folder: str, names: Sequence[str], fix: str) -> Path:
    """The file of a ``kind``: a path stays what it is, a bare name that is no file stands for a packaged one of these names.

    Raises:
        InputError: for a name that is neither; ``fix`` says what there is to name.
    """
    path = Path(named)
    if path.is_file() or path.suffix or path.name != str(named):
        return path
    if path.name in names:
        return data_folder(folder) / f"{path.name}.yaml"
    raise input_error(f'{kind} "{named}"', "is not a file, and no packaged one has that name", fix)


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
                yield path, "link" if entry.is_symlink() else "file" if entry.is_file() else "folder" if entry.is_dir() else "device"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)


@contextlib.contextmanager
def room_for(path: Path) -> Iterator[None]:
    """Turns a failed write (a full disk, a missing permission) under ``path`` into a :class:`JobError`.

    Raises:
        InputError: for what is no path.
    """
    try:
        yield
    except ValueError as error:
        if (wrong := not_a_path(path, error)) is None:
            raise
        raise wrong from error
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
    return any(
        missing in (one, *one.parents) or (missing.parent == one.parent and missing.name.startswith(f"{_beside(one).name}."))
        for one in (path, Path(os.path.realpath(path)))
    )


def _beside(path: Path, *words: object) -> Path:
    """What lies beside ``path`` while it is written."""
    return path.with_name(".".join(map(str, ("", path.name, *words))))


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yields a temporary path in the same folder; its file takes the final name only when all went well.

    Where two processes write the same file, each has a temporary one of its own, and the last one stays.

    Raises:
        InputError: if the folder is to lie in what is a file, or a folder lies where the file goes.
    """
    not_folders(path)
    with room_for(path):
        _make_folder(path.parent)
        partial, lock = _free(path)
        try:
            yield partial
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        finally:
            os.close(lock)


def _free(path: Path) -> tuple[Path, int]:
    """The first temporary file of ``path`` that no process writes, empty, and its lock. What killed processes left is used again."""
    names = chain([_beside(path, "partial")], (_beside(path, number, "partial") for number in count(2)))
    found = next((name, lock) for name in names if (lock := _locked(name)) is not None)
    os.ftruncate(found[1], 0)
    for name in names:
        if not name.exists() or (left := _locked(name)) is None:
            break
        name.unlink(missing_ok=True)
        os.close(left)
    return found


def _locked(path: Path) -> int | None:
    """A lock on a file, which is made if it is missing; None if another process has it. It ends with the process, or is closed."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            _ask_for(lock)
            # It may have got its final name, or been removed, before it was locked.
            if os.path.samestat(os.fstat(lock), path.lstat()):
                return lock
        except BlockingIOError:
            os.close(lock)
            return None
        except FileNotFoundError:
            pass
        os.close(lock)


def _ask_for(lock: int) -> None:
    """Raises BlockingIOError if another process has the lock of a file."""
    try:
        import fcntl
    except ImportError:  # not a Unix
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise


def not_folders(*paths: Path) -> None:
    """Raises an :class:`InputError` if folders lie where these files go."""
    # os.path.isdir, since Path.is_dir raises for a name that is too long.
    folders = [path for path in paths if os.path.isdir(path)]  # noqa: PTH112
    refuse(Problem(str(path), "is a folder, but a file is to be written here", "move it away") for path in folders)


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise input_error(path, "is not a folder, or its parent is not one", "name another place") from error


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
    """Yields a temporary folder beside ``path`` that takes its name only when all went well; one process at a time may do so.

    A folder that is already there is replaced only if it is empty or holds the file ``made_by``. If a process is killed while its
    folder takes the name, the next one puts the old folder back, and clears away what else was left.

    Raises:
        InputError: if ``path`` is a file, or a folder of something else, or another process is writing it.
        JobError: if the disk is full, or no folder of that name can be there.
    """
    with room_for(path):
        real = Path(os.path.realpath(path))
        if not real.name:
            raise input_error(path, "has no name of its own", "name another folder with --out")
        _make_folder(real.parent)
        with _alone(path, real):
            _recover(real)
            if os.path.lexists(real) and not (real.is_dir() and ((real / made_by).is_file() or not any(real.iterdir()))):
                raise input_error(path, f'holds something else (no "{made_by}" in it)', "name another folder with --out")
            partial = _beside(real, secrets.token_hex(4), "partial")
            partial.mkdir()
            try:
                yield partial
                if real.exists():
                    real.rename(_beside(real, "replaced"))
                partial.rename(real)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
                _recover(real)


@contextlib.contextmanager
def _alone(path: Path, real: Path) -> Iterator[None]:
    """Keeps other processes from writing a folder.

    Raises:
        InputError: if one is writing it.
    """
    beside = _beside(real, "lock")
    lock = _locked(beside)
    if lock is None:
        raise input_error(path, "another process is writing this folder", "wait for it to end, or name another folder with --out")
    try:
        yield
    finally:
        beside.unlink(missing_ok=True)
        os.close(lock)


def _recover(path: Path) -> None:
    """Puts a folder back whose replacement did not take its name, and clears away what else killed processes left; under the lock."""
    replaced = _beside(path, "replaced")
    if replaced.is_dir() and not (path.is_dir() and any(path.iterdir())):
        replaced.rename(path)
    shutil.rmtree(replaced, ignore_errors=True)
    partial = re.compile(re.escape(_beside(path).name) + "[.]([0-9a-f]{8}[.])?partial")
    with contextlib.suppress(PermissionError):  # a folder that may be written into, and not be listed
        for left in [one for one in path.parent.iterdir() if partial.fullmatch(one.name)]:
            shutil.rmtree(left, ignore_errors=True)
