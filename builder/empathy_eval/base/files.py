"""Atomic files and folders, and the location of data folders."""

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
    """The file of a ``kind``: a path, or the name of a packaged file.

    Raises:
        InputError: for a name that is neither; ``fix`` lists the names.
    """
    path = Path(named)
    if path.is_file() or path.suffix or path.name != str(named):
        return path
    if path.name in names:
        return data_folder(folder) / f"{path.name}.yaml"
    raise input_error(f'{kind} "{named}"', "is not a file, and no packaged one has that name", fix)


def belongs_to(folder: Path, path: Path) -> bool:
    """Whether a path in a folder leads to the folder's own content: inside it, or in the Hub cache that it is a snapshot of.

    Such a snapshot is ``snapshots/<commit>``; its files are links to ``blobs/<hash>`` beside it.
    """
    root, real = Path(os.path.realpath(folder)), Path(os.path.realpath(path))
    if real.is_relative_to(root):
        return True
    snapshot = root.parent.name == "snapshots" and COMMIT.fullmatch(root.name)
    return bool(snapshot and real.parent == root.parent.parent / "blobs" and BLOB.fullmatch(real.name))


def outside_links(folder: Path) -> list[Path]:
    """Links in a folder that lead out of it: their targets are not the folder's own. A ``.git`` at the top is skipped."""
    # A link that leads to itself has a real path too.
    return sorted(path for path, kind in entries(folder) if kind == "link" and not belongs_to(folder, path))


def entries(folder: Path) -> Iterator[tuple[Path, str]]:
    """All entries below a folder with their kind: ``file``, ``folder``, ``link`` or ``device`` (anything else).

    Nothing is opened and no link is followed. A ``.git`` at the top and unreadable folders are skipped.
    """
    waiting = [folder]
    while waiting:
        inside = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(inside) as listing:
            for entry in sorted(listing, key=lambda entry: entry.name):
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
        InputError: for an invalid path.
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
    """Whether a parent of ``path`` exists but takes no files, as in ``/proc``; a missing input does not count."""
    if error.errno != errno.ENOENT or error.filename is None:
        return False
    missing = Path(os.fsdecode(error.filename))
    return any(
        missing in (target, *target.parents) or (missing.parent == target.parent and missing.name.startswith(f"{_beside(target).name}."))
        for target in (path, Path(os.path.realpath(path)))
    )


def _beside(path: Path, *words: object) -> Path:
    """The name of a temporary file or folder beside ``path``."""
    return path.with_name(".".join(map(str, ("", path.name, *words))))


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yields a temporary path in the same folder that takes the final name only on success.

    Two processes that write the same file have separate temporary files; the last one wins.

    Raises:
        InputError: if the folder would lie in a file, or a folder lies where the file goes.
    """
    refuse_folders(path)
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
    """The first temporary file of ``path`` that no process writes, emptied, and its lock. Files of killed processes are reused."""
    names = chain([_beside(path, "partial")], (_beside(path, number, "partial") for number in count(2)))
    free = next((name, lock) for name in names if (lock := _locked(name)) is not None)
    os.ftruncate(free[1], 0)
    for name in names:
        if not name.exists() or (left := _locked(name)) is None:
            break
        name.unlink(missing_ok=True)
        os.close(left)
    return free


def _locked(path: Path) -> int | None:
    """A lock on a file, created if missing; None if another process holds it. It ends with the process or when closed."""
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
    """Raises BlockingIOError if another process holds the lock of a file."""
    try:
        import fcntl
    except ImportError:  # not a Unix
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise


def refuse_folders(*paths: Path) -> None:
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
    """Writes a UTF-8 text file atomically.

    Raises:
        InputError: if the folder would lie in a file.
        JobError: if the disk is full, permission is missing, or no file of that name can exist there.
    """
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


@contextlib.contextmanager
def whole_folder(path: Path, made_by: str) -> Iterator[Path]:
    """Yields a temporary folder beside ``path`` that takes its name only on success; one process at a time.

    An existing folder is replaced only if it is empty or holds the file ``made_by``. If a process is killed meanwhile, the next one
    restores the old folder and clears what was left.

    Raises:
        InputError: if ``path`` is a file, another folder, or is being written.
        JobError: if the disk is full, or no folder of that name can exist.
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
    """Locks a folder against other writers.

    Raises:
        InputError: if another process is writing it.
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
    """Restores a folder whose replacement did not finish, and removes what killed processes left; under the lock."""
    replaced = _beside(path, "replaced")
    if replaced.is_dir() and not (path.is_dir() and any(path.iterdir())):
        replaced.rename(path)
    shutil.rmtree(replaced, ignore_errors=True)
    partial = re.compile(re.escape(_beside(path).name) + "[.]([0-9a-f]{8}[.])?partial")
    with contextlib.suppress(PermissionError):  # a folder that may be written into, and not be listed
        for left in [entry for entry in path.parent.iterdir() if partial.fullmatch(entry.name)]:
            shutil.rmtree(left, ignore_errors=True)
