"""Files that are whole or absent."""

import errno
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
    with pytest.raises(InputError, match=r"a\.txt: is a folder, where a file is to be written"):
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
