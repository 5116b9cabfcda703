"""Ledgers of strangers: whatever is in the file, there is a result or an error that says where, and never a traceback."""

from __future__ import annotations

import io
import json
import os
import shutil
import sqlite3
import zlib
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError, JobError
from empathy_eval.base.schemas import violations
from empathy_eval.cli import main
from empathy_eval.completions.budget import spending
from empathy_eval.completions.ledger import Batch, Ledger, LedgerEntry, PendingRequest
from empathy_eval.completions.ledger_rows import LARGEST, MOST_TOKENS, NAMES, TYPES
from empathy_eval.completions.merge import merge
from empathy_eval.completions.requests import About, Completion, Usage
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import copy_world, demo_file

ABOUT = About("017-00001", "near_apathetic", 5)
ANSWER = Completion("Ü — a “reply”", "stop", "m", Usage(10, 4, 3))
NOTED = PendingRequest("s1-n", About("017-00001", "self_chat"), "e", "m", b"", Usage(1, 0, 1))
NOT_UTF8 = object()


def sql(path: Path, *statements: str | tuple[str, tuple[object, ...]]) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for one in statements:
        connection.execute(*(one if isinstance(one, tuple) else (one,)))
    connection.close()


def change(path: Path, table: str, column: str, value: object, where: str = "1") -> None:
    """Writes a value into a column as a stranger can; ``NOT_UTF8`` is a text that is none."""
    new = "CAST(x'66ff' AS TEXT)" if value is NOT_UTF8 else "?"
    values = () if value is NOT_UTF8 else (value,)
    sql(path, (f"UPDATE OR REPLACE {table} SET {column} = {new} WHERE {where}", values))  # noqa: S608


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Ledger(tmp_path / "l.sqlite") as ledger:
        ledger.put(LedgerEntry("s1-a", ABOUT, ANSWER, seconds=1.5), LedgerEntry("s1-b", ABOUT, ANSWER))
    return tmp_path / "l.sqlite"


STRANGE = {
    "CREATE TRIGGER t AFTER INSERT ON completions BEGIN DELETE FROM reservations; END": 'the "trigger" "t"',
    "CREATE VIEW v AS SELECT 1": 'the "view" "v"',
    'CREATE TABLE "other\x1b" (x)': 'the "table" "other\\u001b"',
    "CREATE INDEX i ON completions (abs(turn))": 'the "index" "i"',
    "CREATE VIRTUAL TABLE f USING fts5 (x)": 'the "table" "f"',
    "ALTER TABLE noted ADD COLUMN more AS (abs(input))": 'its table "noted" has other columns',
    "DROP TABLE completions": 'it misses the table "completions"',
}


@pytest.mark.parametrize("statement", STRANGE)
def test_a_ledger_that_holds_what_ours_do_not_is_refused_and_left_as_it_is(path: Path, statement: str) -> None:
    sql(path, statement)
    before = path.read_bytes()
    for write in (True, False):
        with pytest.raises(InputError) as caught:
            Ledger(path, write=write)
        assert STRANGE[statement] in str(caught.value) and str(path) in str(caught.value)
    assert path.read_bytes() == before


def test_a_view_in_the_place_of_the_answers_is_refused(path: Path) -> None:
    sql(path, "ALTER TABLE completions RENAME TO c", "CREATE VIEW completions AS SELECT * FROM c")
    assert main(["ledger", "show", str(path)]) == 2


def test_a_null_that_was_smuggled_past_a_table_is_damage(path: Path) -> None:
    with Ledger(path) as ledger:
        declared = next(ledger.query("SELECT sql FROM sqlite_master WHERE name = 'completions'"))
    told = "UPDATE sqlite_master SET sql = ? WHERE name = 'completions'"
    sql(path, "PRAGMA writable_schema=1", (told, (declared[0].replace(" NOT NULL", ""),)))
    with pytest.raises(InputError, match='its table "completions" has other columns'):
        Ledger(path)
    change(path, "completions", "model", None)
    sql(path, "PRAGMA writable_schema=1", (told, declared))
    with pytest.raises(JobError, match=r"the ledger is damaged: NULL value in completions\.model"):
        Ledger(path)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/null")])
def test_what_is_not_a_file_is_told_at_once(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "l")
    assert main(["ledger", "show", str(tmp_path / "l")]) == 2
    assert main(["ledger", "merge", str(tmp_path / "into"), str(tmp_path / "l")]) == 2
    assert not (tmp_path / "into").exists()


def test_an_empty_file_is_no_ledger_to_read_and_a_place_for_one_to_write(tmp_path: Path) -> None:
    (tmp_path / "l").touch()
    assert main(["ledger", "show", str(tmp_path / "l")]) == 2
    assert (tmp_path / "l").stat().st_size == 0
    Ledger(tmp_path / "l").close()
    assert main(["ledger", "show", str(tmp_path / "l")]) == 0


def test_a_database_of_others_is_not_touched_though_it_is_empty(tmp_path: Path) -> None:
    sql(tmp_path / "l", "PRAGMA application_id=7")
    before = (tmp_path / "l").read_bytes()
    with pytest.raises(InputError, match="is a database of another program"):
        Ledger(tmp_path / "l")
    assert (tmp_path / "l").read_bytes() == before


BODIES: dict[str, tuple[object, str]] = {
    "text": ("text", "the body is not a BLOB"),
    "number": (5, "the body is not a BLOB"),
    "no zlib": (b"\x00\x01", "incorrect header check"),
    "cut": (zlib.compress(b"x" * 999)[:-3], "incomplete or truncated stream"),
    "not UTF-8": (zlib.compress(b"\xff"), "can't decode byte 0xff"),
    "long and cut": (zlib.compress(bytes(range(256)) * 10_000, 0)[:-3], "or cut short"),
    "bomb": (zlib.compress(bytes(LARGEST + 1)), f"the answer is larger than {LARGEST:,} bytes"),
    "huge": (bytes(LARGEST + 1), f"the body is not a BLOB of at most {LARGEST:,} bytes"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_bad_body_is_told_with_its_row_and_how_to_do_without_it(path: Path, name: str) -> None:
    body, what = BODIES[name]
    change(path, "completions", "body", body, "key = 's1-a'")
    with Ledger(path) as ledger:
        assert ledger.get("s1-b") == ANSWER, "one damaged row leaves the others"
        for read in (lambda: ledger.get("s1-a"), lambda: list(ledger.rows())):
            with pytest.raises(JobError) as caught:
                read()
            assert "the ledger is damaged: row s1-a: " in str(caught.value) and what in str(caught.value)
            assert f"sqlite3 {path} 'DELETE FROM completions WHERE rowid = 1'" in str(caught.value)
    sql(path, "DELETE FROM completions WHERE rowid = 1")
    with Ledger(path) as ledger:
        assert ledger.get("s1-a") is None


@pytest.mark.parametrize("column", ["finish", "model"])
@pytest.mark.parametrize("value", [b"stop", NOT_UTF8])
def test_a_text_that_is_none_is_told_where_the_answer_is_needed(path: Path, column: str, value: object) -> None:
    change(path, "completions", column, value, "key = 's1-a'")
    with Ledger(path) as ledger, pytest.raises(JobError, match=f"row s1-a: {column} .* is not of type string"):
        ledger.get("s1-a")
    assert main(["ledger", "show", str(path)]) == 1


def test_columns_that_an_answer_does_not_need_keep_no_build_from_it(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for column, value in (("dialogue_id", b"x"), ("kind", NOT_UTF8), ("turn", "five"), ("seconds", "soon"), ("delivery", b"\x1b[2J")):
        change(path, "completions", column, value, "key = 's1-a'")
    with Ledger(path) as ledger:
        assert ledger.get("s1-a") == ANSWER
        assert ledger.spent()[0][2] == Usage(10, 4, 3) and len(ledger.spent()) == 2
    assert main(["ledger", "show", str(path)]) == 1
    told = capsys.readouterr()
    assert "total" in told.out and "\x1b" not in told.out and told.err.count("row s1-a") == 5
    with pytest.raises(JobError, match="row s1-a"):
        merge(path.with_name("into"), [path])
    assert not path.with_name("into").exists()


def test_all_damaged_rows_are_told_at_once_but_not_endlessly(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l") as ledger:
        ledger.put(*(LedgerEntry(f"s1-{number:02}", ABOUT, ANSWER) for number in range(30)))
    change(tmp_path / "l", "completions", "body", b"")
    with pytest.raises(JobError) as caught:
        merge(tmp_path / "into", [tmp_path / "l"])
    assert len(caught.value.problems) == 11 and "20 more rows are damaged" in str(caught.value)


COUNTS: list[tuple[object, object, object, Usage]] = [
    (10, 4, 3, Usage(10, 4, 3)),
    (-5, -5, -5, Usage(0, 0, 0)),
    (9.25, 4, 2.5, Usage(10, 4, 3)),
    ("many", "some", "few", Usage(0, 0, 0)),
    (10, 11, 3, Usage(10, 0, 3)),
    (10, 0.5, 3, Usage(10, 0, 3)),
    (b"\x09", b"", NOT_UTF8, Usage(0, 0, 0)),
    (2**63 - 1, 2**63 - 1, 1e300, Usage(MOST_TOKENS, 0, MOST_TOKENS)),
    (float("inf"), 0, float("-inf"), Usage(MOST_TOKENS, 0, 0)),
    (-(2**63), 0, MOST_TOKENS, Usage(0, 0, MOST_TOKENS)),
]


@pytest.mark.parametrize(("read", "cached", "written", "sound"), COUNTS)
def test_unsound_counts_are_read_as_sound_ones_everywhere(path: Path, read: object, cached: object, written: object, sound: Usage) -> None:
    with Ledger(path) as ledger:
        ledger.reserve("token", "m", Usage(1, 0, 1))
        ledger.note_requests("f", [NOTED], Batch("f", "e", "b", 1))
    for column, value in (("input_tokens", read), ("cached_tokens", cached), ("output_tokens", written)):
        change(path, "completions", column, value, "key = 's1-a'")
    for table in ("reservations", "noted"):
        change(path, table, "input", read)
        change(path, table, "output", written)
    both = Usage(sound.input_tokens + 10, sound.cached_tokens + 4, sound.output_tokens + 3)
    worst = Usage(sound.input_tokens, 0, sound.output_tokens)
    with Ledger(path) as ledger:
        found = ledger.get("s1-a")
        assert found and found.usage == sound
        assert ledger.spent() == [("m", "live", both)] and spending(ledger)[0].usage == both
        assert ledger.reserved() == [("m", "live", worst), ("m", "batch", worst)]
        assert ledger.noted_request("s1-n") == (NOTED.about, "m", worst)
    assert main(["ledger", "show", str(path)]) == 0
    merge(path.with_name("into"), [path])
    raw = sqlite3.connect(path.with_name("into")).execute("SELECT input_tokens, cached_tokens, output_tokens FROM completions").fetchone()
    assert Usage(*raw) == sound, "what is brought together is written as it is read"


def test_no_number_of_huge_counts_overflows_or_lowers_what_is_spent(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l") as ledger:
        ledger.put(*(LedgerEntry(f"s1-{number}", ABOUT, ANSWER) for number in range(40)))
    change(tmp_path / "l", "completions", "input_tokens", 2**63 - 1, "rowid > 20")
    change(tmp_path / "l", "completions", "input_tokens", -(2**63), "rowid = 1")
    with Ledger(tmp_path / "l") as ledger:
        assert ledger.spent()[0][2].input_tokens == 20 * MOST_TOKENS + 19 * 10


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("noted", "dialogue_id", b"x"),
        ("noted", "turn", 1.5),
        ("noted", "model", NOT_UTF8),
        ("batches", "round", "one"),
        ("batches", "endpoint", b"x"),
        ("batches", "id", NOT_UTF8),
        ("batches", "round", -1),
    ],
)
def test_a_damaged_row_of_what_is_under_way_is_told_where_it_is_needed(path: Path, table: str, column: str, value: object) -> None:
    with Ledger(path) as ledger:
        ledger.note_requests("f", [NOTED], Batch("f", "e", "b", 1))
    change(path, table, column, value)
    with Ledger(path) as ledger, pytest.raises(JobError, match=f"row 1 of {table}: {column}"):
        ledger.noted_request("s1-n")
        ledger.open_batches()
        ledger.next_round("b")


def test_a_damaged_reservation_stops_a_merge(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.reserve("token", "m", Usage(1, 0, 1))
    change(path, "reservations", "model", b"m")
    with pytest.raises(JobError, match="row 1 of reservations: model"):
        merge(path.with_name("into"), [path])


cells = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
    st.just(NOT_UTF8),
    st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: zlib.compress(text.encode())),
    st.recursive(st.none() | st.booleans() | st.floats() | st.text("ab"), lambda one: st.lists(one) | st.dictionaries(st.text("ab"), one))
    .map(lambda value: zlib.compress(json.dumps(value).encode())),
)  # fmt: skip


# What the views give; no column of whole numbers gives 1.0, which a schema takes for one.
given_back = cells.filter(lambda cell: cell is not NOT_UTF8 and not (isinstance(cell, float) and cell.is_integer()))
seconds = st.none() | st.floats(allow_nan=False) | st.text() | st.binary()


@pytest.mark.e2e
@settings(max_examples=300)
@given(st.data())
def test_the_quick_look_at_a_row_agrees_with_the_schema(data: st.DataObject) -> None:
    row: list[Any] = ["s1-a", "017-00001", "self_chat", 5, "m", "stop", 10, 4, 3, 1.5, "live", b"x", 1]
    for place in data.draw(st.sets(st.sampled_from([0, 1, 2, 3, 4, 5, 9, 10, 11]), max_size=3)):
        row[place] = data.draw(seconds if place == 9 else given_back)
    columns = dict(zip(NAMES["completions"], row, strict=True))
    body, _ = columns.pop("body"), columns.pop("place")
    assert (tuple(map(type, row)) in TYPES) == (isinstance(body, bytes) and not list(violations(columns, "ledger_row")))


@settings(max_examples=100)
@given(column=st.sampled_from(NAMES["completions"][1:-1]), value=cells)
def test_get_and_rows_agree_on_what_is_damaged_in_an_answer(column: str, value: object) -> None:
    with Ledger(Path(":memory:")) as ledger:
        ledger.put(LedgerEntry("s1-a", ABOUT, ANSWER))
        new = "CAST(x'66ff' AS TEXT)" if value is NOT_UTF8 else "?"
        try:
            ledger._connection.execute(f"UPDATE completions SET {column} = {new}", () if value is NOT_UTF8 else (value,))  # noqa: S608
        except sqlite3.IntegrityError:
            return
        found = [_or_error(lambda: ledger.get("s1-a")), _or_error(lambda: next(iter([one for _, one in ledger.rows()])))]
        if column in ("body", "finish", "model"):
            assert found[0] == found[1]
        else:
            assert isinstance(found[0], Completion), "an answer does not need this column"


def _or_error(read: Any) -> object:
    try:
        return read()
    except JobError as error:
        return str(error)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A ledger of a small build, and the arguments of that build."""
    folder = tmp_path_factory.mktemp("small")
    world, config = copy_world(folder / "scenarios"), demo_file(folder)
    assert main(["build", str(config), "--scenarios", str(world), "--out", str(folder / "b")]) == 0
    with Ledger(folder / "b" / "ledger.sqlite") as ledger:
        ledger.reserve("token", "m", Usage(1, 0, 1))
        ledger.note_requests("f", [NOTED], Batch("f", "e", "b", 1))
    return folder / "b" / "ledger.sqlite", ["build", str(config), "--scenarios", str(world), "--offline", "--budget-tokens", "100000"]


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "5", '{"score": null}', '{"score": 1e9}', '{"score": NaN}', '{"score": true}', "[" * 9999]
)
def test_an_answer_that_is_no_score_is_told_with_its_row(
    small: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = Path(shutil.copy(small[0], tmp_path / "l"))
    change(path, "completions", "body", zlib.compress(text.encode()), "kind = 'score'")
    assert main([*small[1], "--out", str(tmp_path / "b"), "--ledger", str(path)]) == 1
    told = capsys.readouterr().err
    assert "the ledger is damaged: row s1-" in told and "the answer is no score" in told and "WHERE rowid = " in told


places = st.sampled_from([(table, column) for table, columns in NAMES.items() for column in columns[:-1]])


@pytest.mark.e2e
@settings(max_examples=30)
@given(st.lists(st.tuples(places, st.integers(0, 100), cells), min_size=1, max_size=4))
def test_no_value_in_any_column_of_any_table_gives_a_traceback(
    small: tuple[Path, list[str]], tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[tuple[str, str], int, object]]
) -> None:
    folder = tmp_path_factory.mktemp("strange")
    path = Path(shutil.copy(small[0], folder / "l.sqlite"))
    for (table, column), row, value in changes:
        try:
            change(path, table, column, value, f"rowid = {row} % (SELECT count(*) FROM {table}) + 1")  # noqa: S608
        except sqlite3.IntegrityError:
            continue
    for command in (
        ["ledger", "show", str(path)],
        ["ledger", "merge", str(folder / "into"), str(path), "--json"],
        [*small[1], "--out", str(folder / "b"), "--ledger", str(path)],
        ["ledger", "import", str(path), os.devnull],
    ):
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as error:
            status = main(command)
        assert status in (0, 1, 2) and "Traceback" not in error.getvalue(), out.getvalue()
        assert status == 0 or error.getvalue()
        if command[1] == "merge":
            assert (folder / "into").exists() == (status == 0)
