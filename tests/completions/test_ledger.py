"""The ledger: durable, exclusive, honest about damage."""

import asyncio
import multiprocessing
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from empathy_eval.base.errors import InputError, JobError
from empathy_eval.base.files import data_folder
from empathy_eval.cli import main
from empathy_eval.completions.ledger import Ledger, LedgerEntry
from empathy_eval.completions.requests import About, Completion, Usage

from tests.conftest import copy_world

ABOUT = About("017-00001", "near_apathetic", 5)
ANSWER = Completion('{"text": "Ü — a “reply”"}', "stop", "some-model", Usage(10, 4, 3))


def test_what_is_put_in_comes_out(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.sqlite") as ledger:
        ledger.put(LedgerEntry("s1-a", ABOUT, ANSWER, seconds=1.5))
        assert ledger.get("s1-a") == ANSWER
        assert ledger.get("s1-b") is None
        assert len(ledger) == 1


def test_the_first_answer_of_a_request_stays(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.sqlite") as ledger:
        ledger.put(LedgerEntry("s1-a", ABOUT, ANSWER))
        ledger.put(LedgerEntry("s1-a", ABOUT, Completion("other", "stop", "m")))
        assert ledger.get("s1-a") == ANSWER


def test_a_reservation_falls_in_one_commit_with_its_answer(tmp_path: Path) -> None:
    def open_ones() -> int:
        return int(sqlite3.connect(tmp_path / "l").execute("SELECT count(*) FROM reservations").fetchone()[0])

    with Ledger(tmp_path / "l") as ledger:
        ledger.reserve("t", "m", Usage(9, 0, 9))
        ledger.release("t")
        killed_now = tmp_path / "copy"
        killed_now.mkdir()
        for path in tmp_path.glob("l*"):
            (killed_now / path.name).write_bytes(path.read_bytes())
        ledger.put(LedgerEntry("s1-a", ABOUT, ANSWER))
        assert ledger.reserved() == []
    assert open_ones() == 0
    with Ledger(killed_now / "l") as ledger:
        assert [usage for _, _, usage in ledger.reserved()] == [Usage(9, 0, 9)] and len(ledger) == 0


def _put_and_die(path: Path) -> None:
    Ledger(path).put(LedgerEntry("s1-a", ABOUT, ANSWER))
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
    with pytest.raises(InputError, match="is a database of another program"):
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
            ledger.put(LedgerEntry(f"s1-{number}", ABOUT, Completion(text, "stop", "m")))
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
        ledger.put(LedgerEntry("s1-a", ABOUT, Completion("x" * 50 + "needle", "stop", "m")))
    content = bytearray(path.read_bytes())
    place = content.index(b"\x78\x9c") + 8  # the head of a zlib stream
    content[place] ^= 0x10
    path.write_bytes(content)
    with Ledger(path) as ledger, pytest.raises(JobError, match="the ledger is damaged: row s1-a"):
        ledger.get("s1-a")


def read_only_disk(folder: Path, source: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs a command where ``folder`` holds what ``source`` does, on a disk that may only be read; skips where there can be none."""
    inside = (
        'mount -t tmpfs none "$0" && cp -R "$1/." "$0" && mount -o remount,ro "$0" && ! touch "$0/x" 2>/dev/null || exit 77; shift; "$@"'
    )
    folder.mkdir(exist_ok=True)
    script = ["unshare", "-rm", "sh", "-c", inside, str(folder), str(source), sys.executable, "-m", "empathy_eval", *command]
    try:
        done = subprocess.run(script, capture_output=True, text=True, timeout=300, check=False)
    except FileNotFoundError:
        pytest.skip("needs unshare")
    if done.returncode == 77 or done.stderr.startswith("unshare"):
        pytest.skip("no disk may be mounted here")
    return done


@pytest.fixture
def sources(built: Path, tmp_path: Path) -> Path:
    """A folder with the ledger of a build, one of before there were all tables, and one whose process was killed."""
    folder = tmp_path / "sources"
    folder.mkdir()
    shutil.copy(built / "ledger.sqlite", folder / "whole")
    shutil.copy(built / "ledger.sqlite", folder / "old")
    connection = sqlite3.connect(folder / "old", isolation_level=None)
    for table in ("noted", "batches", "reservations"):
        connection.execute(f"DROP TABLE {table}")
    connection.close()
    process = multiprocessing.get_context("fork").Process(target=_put_and_die, args=(folder / "killed",))
    process.start()
    process.join()
    assert (folder / "killed-wal").stat().st_size
    return folder


@pytest.mark.e2e
def test_a_ledger_on_a_disk_that_may_only_be_read_is_shown_and_merged(sources: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    for name, said in (("whole", "seed-bank"), ("old", "seed-bank"), ("killed", "some-model")):
        shown = read_only_disk(disk, sources, ["ledger", "show", str(disk / name)])
        assert (shown.returncode, shown.stderr) == (0, "") and said in shown.stdout
    merged = read_only_disk(disk, sources, ["ledger", "merge", str(tmp_path / "into"), *(str(disk / name) for name in ("old", "killed"))])
    assert merged.returncode == 0, merged.stderr
    with Ledger(tmp_path / "into") as ledger:
        assert ledger.get("s1-a") == ANSWER and len(ledger) > 1


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["whole", "old"])
def test_a_ledger_on_a_disk_that_may_only_be_read_is_replayed_to_the_same_bytes(
    sources: Path, tmp_path: Path, built: Path, name: str
) -> None:
    disk, config, world = tmp_path / "disk", data_folder("release") / "demo.yaml", copy_world(tmp_path / "scenarios")
    command = ["build", str(config), "--scenarios", str(world), "--out", str(tmp_path / "b"), "--ledger", str(disk / name)]
    offline = read_only_disk(disk, sources, [*command, "--offline", "--budget-tokens", "1000000000"])
    assert offline.returncode == 0, offline.stderr
    assert (tmp_path / "b" / "outcomes.jsonl").read_bytes() == (built / "outcomes.jsonl").read_bytes()
    online = read_only_disk(disk, sources, command)
    assert online.returncode == 1 and f"{disk / name}: may only be read" in online.stderr and "Traceback" not in online.stderr


@pytest.mark.e2e
@pytest.mark.parametrize("verb", ["import", "merge"])
def test_what_writes_into_a_ledger_that_may_only_be_read_says_so(sources: Path, tmp_path: Path, verb: str) -> None:
    disk = tmp_path / "disk"
    done = read_only_disk(disk, sources, ["ledger", verb, str(disk / "whole"), str(sources / "old")])
    assert done.returncode == 1 and f"{disk / 'whole'}: may only be read, and this command writes into it" in done.stderr
    made = read_only_disk(disk, sources, ["ledger", "merge", str(disk / "new"), str(sources / "old")])
    assert made.returncode == 1 and f"{disk / 'new'}: cannot be written: Read-only file system" in made.stderr


def test_reading_changes_nothing_beside_a_ledger_either(sources: Path) -> None:
    before = {path.name: path.read_bytes() for path in sources.iterdir() if path.name != "killed-wal" and path.name != "killed"}
    for name in ("whole", "old"):
        assert main(["ledger", "show", str(sources / name)]) == 0
        assert {path.name: path.read_bytes() for path in sources.iterdir() if "killed" not in path.name} == before


def test_a_ledger_that_may_only_be_read_and_is_in_use_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Ledger(tmp_path / "l").close()
    code = "from empathy_eval.completions.ledger import Ledger; from pathlib import Path; "
    code += f"one = Ledger(Path({str(tmp_path / 'l')!r})); print(1, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout and process.stdout.readline()
        monkeypatch.setattr("empathy_eval.completions.ledger_file._writable", lambda path: False)
        with pytest.raises(InputError, match="another process is using this ledger"):
            Ledger(tmp_path / "l", write=False)
        process.communicate(b"\n")
    Ledger(tmp_path / "l", write=False).close()


async def test_an_answer_that_waits_for_its_commit_goes_with_any_other_and_with_the_end(tmp_path: Path) -> None:
    """A reservation that is taken back never goes before the answer that it was for."""
    path = tmp_path / "l.sqlite"
    for close in (False, True):
        with Ledger(path) as ledger:
            key = f"s1-{int(close):064x}"
            entry = LedgerEntry(key, About("001-00000", "self_chat"), Completion("{}", "stop", "m", Usage(1, 0, 1)))
            ledger.reserve("t", "m", Usage(9, 0, 9))
            ledger.release("t")
            storing = asyncio.ensure_future(ledger.store(entry))
            await asyncio.sleep(0)  # it waits for its turn now
            if not close:
                ledger.reserve("other", "m", Usage(9, 0, 9))
                assert ledger.get(key) is not None
            storing.cancel()
        with Ledger(path) as ledger:
            assert ledger.get(key) is not None and len(ledger.reserved()) == 1
