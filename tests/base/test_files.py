"""Files that are whole or absent."""

import errno
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from empathy_eval.base.errors import InputError, JobError
from empathy_eval.base.files import data_folder, room_for, whole_file, whole_folder, write_whole


def test_the_data_folders_are_found() -> None:
    for name in ("scenarios", "prompt_templates", "rubrics", "rules", "schemas", "release"):
        assert any(data_folder(name).iterdir()), name


def test_a_file_that_fails_half_way_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.txt", "old")
    with pytest.raises(RuntimeError), whole_file(tmp_path / "a.txt") as partial:
        partial.write_text("half")
        raise RuntimeError
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "old")]


def test_a_file_is_not_written_over_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.txt").mkdir()
    with pytest.raises(InputError, match=r"a\.txt: is a folder, but a file is to be written here"):
        write_whole(tmp_path / "a.txt", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"] and (tmp_path / "a.txt").is_dir()


def test_a_folder_that_fails_half_way_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "release"
    for content in ("old", None):
        try:
            with whole_folder(out, made_by="manifest.json") as folder:
                (folder / "manifest.json").write_text(content or "half")
                if content is None:
                    raise RuntimeError
        except RuntimeError:
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["release"]
    assert (out / "manifest.json").read_text() == "old"


def test_a_folder_of_ours_is_replaced_and_one_of_something_else_is_not(tmp_path: Path) -> None:
    for content in ("one", "two"):
        with whole_folder(tmp_path / "out", made_by="manifest.json") as folder:
            (folder / "manifest.json").write_text(content)
    assert (tmp_path / "out" / "manifest.json").read_text() == "two"
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    with pytest.raises(InputError, match="holds something else"), whole_folder(tmp_path / "photos", made_by="manifest.json"):
        pass
    assert (tmp_path / "photos" / "cat.jpg").exists()


# A process that writes a folder or a file, and says so, and then waits for a word or kills itself.
WRITER = """
import os, pathlib, signal, sys
from empathy_eval.base.files import whole_file, whole_folder
kind, place, text, end = sys.argv[1:]
rename = pathlib.Path.rename
def rename_and_die(old, new):
    rename(old, new)
    if new.name == ".out.replaced":
        os.kill(os.getpid(), signal.SIGKILL)
if end == "killed between":
    pathlib.Path.rename = rename_and_die
with whole_folder(pathlib.Path(place), "made.txt") if kind == "folder" else whole_file(pathlib.Path(place)) as one:
    (one / "made.txt" if kind == "folder" else one).write_text(text)
    print("writing", flush=True)
    if end == "waits":
        sys.stdin.readline()
    if end == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
"""


def writer(kind: str, place: Path, text: str, end: str) -> subprocess.Popen[str]:
    """Such a process, which writes."""
    command = [sys.executable, "-c", WRITER, kind, str(place), text, end]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "writing\n"
    return process


def ended(process: subprocess.Popen[str]) -> int:
    process.communicate("go on\n")
    return process.returncode


def test_a_folder_that_another_process_writes_is_refused_at_once_and_that_process_ends_well(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("out")
    first = writer("folder", tmp_path / "out", "first", "waits")
    # A second name of the folder is the same folder.
    for name in ("out", "link"):
        with pytest.raises(InputError, match=f"{name}: another process is writing this folder"), whole_folder(tmp_path / name, "made.txt"):
            pass
    assert ended(first) == 0
    assert (tmp_path / "out" / "made.txt").read_text() == "first"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "out"]


@pytest.mark.parametrize("end", ["killed", "killed between"])
def test_what_a_killed_process_left_is_cleared_away_and_the_old_folder_is_put_back(end: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with whole_folder(out, "made.txt") as folder:
        (folder / "made.txt").write_text("old")
    assert ended(writer("folder", out, "half", end)) == -signal.SIGKILL
    assert out.exists() == (end == "killed") and len(list(tmp_path.iterdir())) == 3
    with pytest.raises(RuntimeError), whole_folder(out, "made.txt"):
        raise RuntimeError
    assert [one.name for one in tmp_path.iterdir()] == ["out"] and (out / "made.txt").read_text() == "old"


def test_a_folder_that_cannot_take_its_name_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, rename = tmp_path / "out", Path.rename

    def refused(self: Path, target: Path) -> Path:
        if self.name.endswith(".partial"):
            raise OSError(errno.EIO, "Input/output error")
        return rename(self, target)

    with whole_folder(out, "made.txt") as folder:
        (folder / "made.txt").write_text("old")
    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(JobError, match="cannot be written"), whole_folder(out, "made.txt") as folder:
        (folder / "made.txt").write_text("new")
    assert [one.name for one in tmp_path.iterdir()] == ["out"] and (out / "made.txt").read_text() == "old"


def test_folders_whose_names_begin_alike_are_not_in_each_others_way(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "a.b", "made.txt") as longer:
        with whole_folder(tmp_path / "a", "made.txt") as shorter:
            (shorter / "made.txt").touch()
        (longer / "made.txt").touch()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "a.b"]


def test_two_processes_that_write_one_file_each_write_a_whole_one_and_the_last_stays(tmp_path: Path) -> None:
    out = tmp_path / "a.txt"
    first = writer("file", out, "first", "waits")
    write_whole(out, "second")
    assert out.read_text() == "second"
    assert ended(first) == 0 and out.read_text() == "first"
    assert [one.name for one in tmp_path.iterdir()] == ["a.txt"]


def test_what_killed_processes_left_of_a_file_is_used_up_by_the_next(tmp_path: Path) -> None:
    out = tmp_path / "a.txt"
    first = writer("file", out, "a long first text", "waits")
    assert ended(writer("file", out, "second", "killed")) == -signal.SIGKILL
    first.kill()
    first.communicate()
    assert len(list(tmp_path.iterdir())) == 2
    write_whole(out, "third")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("a.txt", "third")]


def test_a_file_system_without_locks_is_written_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def unknown(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unknown)
    write_whole(tmp_path / "a.txt", "text")
    with whole_folder(tmp_path / "out", "made.txt") as folder:
        (folder / "made.txt").touch()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.txt", "out"]


@pytest.mark.parametrize("place", ["/proc/x.html", "/proc/of/x.html", "n" * 300 + ".html"])
def test_a_place_that_takes_no_such_file_is_a_clear_error(place: str, tmp_path: Path) -> None:
    for write in (lambda: write_whole(tmp_path / place, ""), lambda: whole_folder(tmp_path / place, "a").__enter__()):
        with pytest.raises(JobError, match=r"cannot be written: .*\n  Fix: name another place"):
            write()
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_to_read_is_not_taken_for_a_place_to_write(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "out") as partial:
        partial.write_text((tmp_path / "in").read_text())


def test_a_full_disk_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"cannot be written: No space left on device\n  Fix: make room"), room_for(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
