"""The border for paths: what can be no file or folder, and accesses that fail."""

import contextlib
import errno
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from empathy_eval.base.errors import InputError, JobError
from empathy_eval.base.files import whole_file, whole_folder
from empathy_eval.base.paths import check_paths, paths_reached, takes_paths


@takes_paths
def call(first: str | Path, name: str = "", *, others: Sequence[str | Path] = ()) -> str:
    """Takes paths, and a name that is none."""
    return f"{first}{name}{len(others)}"


def odd(folder: Path) -> dict[str, str]:
    """By what is odd, a path that can be neither a file nor a folder."""
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe")
    (folder / "to-pipe").symlink_to("pipe")
    return {
        "NUL": f"{folder}/a\0b", "half a sign": f"{folder}/\ud800", "long name": str(folder / ("n" * 300)),
        "long path": f"{folder}/{'n/' * 3000}", "link to itself": str(folder / "loop"), "under such a link": str(folder / "loop" / "a"),
        "named pipe": str(folder / "pipe"), "link to a pipe": str(folder / "to-pipe"), "address": "http://x", "device": "/dev/zero",
    }  # fmt: skip


def test_odd_paths_are_refused_all_at_once_before_the_call_begins(tmp_path: Path) -> None:
    paths = odd(tmp_path)
    for path in paths.values():
        with pytest.raises(InputError):
            call(path)
    with pytest.raises(InputError) as caught:
        call(tmp_path, others=list(paths.values()))
    assert len(caught.value.problems) == len(paths)
    assert all("\n  Fix: " in str(one) and "\0" not in str(one) and len(str(one)) < 350 for one in caught.value.problems)


def test_what_may_become_a_file_what_is_no_path_and_what_a_shell_hands_over_goes_through(tmp_path: Path) -> None:
    (tmp_path / "nowhere").symlink_to("absent")
    for path in (tmp_path, tmp_path / "absent", tmp_path / "nowhere", "", "~/x", "org/name@v1.0.0", os.devnull, "c:/x"):
        assert call(path) == f"{path}0"
    assert call("a", "n" * 300) == "a" + "n" * 300 + "0"
    with pytest.raises(TypeError, match="call\\(\\) missing 1 required"):
        call()  # type: ignore[call-arg]
    script = "import sys; from empathy_eval.base.paths import check_paths; check_paths(sys.argv[1:]); print(open(sys.argv[1]).read())"
    done = subprocess.run(["bash", "-c", f"{sys.executable} -c '{script}' <(echo read)"], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "read", done.stderr


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOENT, InputError), (errno.EACCES, InputError), (errno.EISDIR, InputError), (errno.ENOSPC, JobError), (errno.EIO, JobError)],
)
def test_a_failed_access_names_its_path_and_a_fix(number: int, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="^a/b: cannot be read or written: .*\n  Fix: "), paths_reached():
        raise OSError(number, os.strerror(number), "a/b")


def test_what_is_of_no_path_is_raised_as_it_is() -> None:
    for error in (OSError(errno.ECONNREFUSED, "refused"), ValueError("a number")):
        with pytest.raises(type(error)) as caught, paths_reached():
            raise error
        assert caught.value is error


@pytest.mark.parametrize("name", ["a\0b", "\0"])
def test_no_file_or_folder_is_made_of_what_is_no_path(name: str, tmp_path: Path) -> None:
    @contextlib.contextmanager
    def folder(path: Path) -> Iterator[Path]:
        with whole_folder(path, made_by="x") as made:
            yield made

    for make in (whole_file, folder):
        with pytest.raises(InputError, match="is not a valid path"), make(tmp_path / name):
            pass
    with pytest.raises(InputError, match="is not a valid path"):
        check_paths([tmp_path / name])
    assert not list(tmp_path.iterdir())
