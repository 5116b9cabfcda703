"""The ledger: durable, exclusive, honest about damage."""

import multiprocessing
import os
import signal
import sqlite3
from pathlib import Path

import pytest

from builder.cli import main
from builder.errors import InputError, JobError
from builder.files import data_folder
from builder.ledger import Entry, Ledger
from builder.records import About, Completion, Usage

ABOUT = About("017-00001", "near_apathetic", 5)
ANSWER = Completion('{"text": "Ü — a “reply”"}', "stop", "some-model", Usage(10, 4, 3))


def test_what_is_put_in_comes_out(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.sqlite") as ledger:
        ledger.put(Entry("s1-a", ABOUT, ANSWER, seconds=1.5))
        assert ledger.get("s1-a") == ANSWER
        assert ledger.get("s1-b") is None
        assert len(ledger) == 1


def test_the_first_answer_of_a_request_stays(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.sqlite") as ledger:
        ledger.put(Entry("s1-a", ABOUT, ANSWER))
        ledger.put(Entry("s1-a", ABOUT, Completion("other", "stop", "m")))
        assert ledger.get("s1-a") == ANSWER


def _put_and_die(path: Path) -> None:
    Ledger(path).put(Entry("s1-a", ABOUT, ANSWER))
    os.kill(os.getpid(), signal.SIGKILL)


def test_an_answer_survives_the_death_of_its_process(tmp_path: Path) -> None:
    process = multiprocessing.get_context("fork").Process(target=_put_and_die, args=(tmp_path / "l.sqlite",))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with Ledger(tmp_path / "l.sqlite") as ledger:
        assert ledger.get("s1-a") == ANSWER


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.sqlite"), pytest.raises(InputError, match="another process is using this ledger") as caught:
        Ledger(tmp_path / "l.sqlite")
    assert caught.value.exit_code == 2


def test_a_missing_ledger_is_an_error_where_none_may_be_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no ledger here"):
        Ledger(tmp_path / "l.sqlite", create=False)
    assert not list(tmp_path.iterdir())


def test_a_folder_in_the_place_of_a_ledger_is_refused_by_every_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo, into = str(data_folder("release") / "demo.yaml"), tmp_path / "into.sqlite"
    (tmp_path / "folder").mkdir()
    for command in (
        ["ledger", "show", str(tmp_path / "folder")],
        ["ledger", "merge", str(into), str(tmp_path / "folder")],
        ["build", demo, "--out", str(tmp_path / "b"), "--ledger", str(tmp_path / "folder")],
    ):
        assert main(command) == 2
        assert f"{tmp_path / 'folder'}: is a folder" in capsys.readouterr().err
    assert not into.exists()


def test_a_ledger_that_cannot_be_opened_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JobError, match=r"file/l.sqlite: cannot be opened: .*File exists"):
        Ledger(tmp_path / "file" / "l.sqlite")
    (tmp_path / "loop").symlink_to(tmp_path / "nowhere" / "l.sqlite")
    with pytest.raises(JobError, match="loop: cannot be opened: unable to open"):
        Ledger(tmp_path / "loop")


def test_a_file_of_something_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("my notes, much longer than a header of sqlite " * 10)
    before = (tmp_path / "notes.txt").read_bytes()
    with pytest.raises(InputError, match="is not a ledger"):
        Ledger(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_bytes() == before
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE t (x)").connection.close()
    with pytest.raises(InputError, match="is a database of something else"):
        Ledger(tmp_path / "other.db")


def test_a_later_version_is_refused_with_both_numbers(tmp_path: Path) -> None:
    Ledger(tmp_path / "l.sqlite").close()
    sqlite3.connect(tmp_path / "l.sqlite").execute("PRAGMA user_version=9").connection.close()
    with pytest.raises(InputError, match="has ledger version 9, and this program reads 1"):
        Ledger(tmp_path / "l.sqlite")


def _filled(path: Path) -> bytes:
    with Ledger(path) as ledger:
        for number in range(300):
            text = "".join(chr(97 + (number * 7 + place * place) % 26) for place in range(4000))
            ledger.put(Entry(f"s1-{number}", ABOUT, Completion(text, "stop", "m")))
    return path.read_bytes()


def test_damaged_pages_are_reported_when_it_is_opened(tmp_path: Path) -> None:
    content = bytearray(_filled(tmp_path / "l.sqlite"))
    content[8192 : len(content) // 2] = b"\xa5" * (len(content) // 2 - 8192)
    (tmp_path / "l.sqlite").write_bytes(content)
    with pytest.raises(JobError, match="the ledger is damaged"):
        Ledger(tmp_path / "l.sqlite")


def test_a_flipped_byte_in_an_answer_is_reported_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    with Ledger(path) as ledger:
        ledger.put(Entry("s1-a", ABOUT, Completion("x" * 50 + "needle", "stop", "m")))
    content = bytearray(path.read_bytes())
    place = content.index(b"\x78\x9c") + 8  # the head of a zlib stream
    content[place] ^= 0x10
    path.write_bytes(content)
    with Ledger(path) as ledger, pytest.raises(JobError, match="the ledger is damaged: row s1-a"):
        ledger.get("s1-a")
