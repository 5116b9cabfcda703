"""Merging ledgers: a union that forgets no answer and does not depend on the order."""

from __future__ import annotations

import itertools
import json
import random
import resource
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from empathy_eval.base.errors import InputError, JobError
from empathy_eval.cli import main
from empathy_eval.completions.ledger import Ledger, LedgerEntry
from empathy_eval.completions.merge import completion_hash, merge
from empathy_eval.completions.requests import About, Completion, Usage
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.build import Run, build
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.journeys.test_full_disk import run

ABOUT = About("017-00001", "self_chat")
Answers = dict[str, Completion]


def filled(path: Path, answers: Answers, delivery: str = "live") -> Path:
    with Ledger(path) as ledger:
        ledger.put(*(LedgerEntry(key, ABOUT, one, delivery) for key, one in answers.items()))
    return path


def read(path: Path) -> Answers:
    with Ledger(path, create=False) as ledger:
        return {str(row[0]): completion for row, completion in ledger.rows()}


def merged(folder: Path, name: str, *sources: Path) -> Path:
    merge(folder / name, sources)
    return folder / name


completions = st.builds(
    Completion, st.sampled_from("abc"), st.sampled_from(["stop", "length"]), st.just("m"), st.builds(Usage, st.integers(0, 1))
)
answers = st.dictionaries(st.sampled_from(["s1-1", "s1-2", "s1-3", "s1-4"]), completions)


@pytest.mark.e2e
@settings(max_examples=25)
@given(st.tuples(answers, answers, answers))
def test_merging_is_commutative_associative_and_idempotent(three: Sequence[Answers]) -> None:
    expected: Answers = {}
    for key, one in (item for ledger in three for item in ledger.items()):
        expected[key] = min(expected.get(key, one), one, key=completion_hash)
    with TemporaryDirectory() as name:
        folder = Path(name)
        a, b, c = (filled(folder / f"{place}", one) for place, one in enumerate(three))
        for number, order in enumerate(itertools.permutations((a, b, c))):
            assert read(merged(folder, f"all{number}", *order)) == expected
        left = merged(folder, "left", merged(folder, "ab", a, b), c)
        right = merged(folder, "right", a, merged(folder, "bc", b, c))
        assert read(left) == read(right) == expected
        assert read(merged(folder, "left", a, right)) == expected
        assert [read(one) for one in (a, b, c)] == list(three)


def test_conflicts_are_counted_and_shown_with_the_provenance_of_what_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two = sorted((Completion("x", "stop", "m"), Completion("y", "stop", "m")), key=completion_hash)
    small = filled(tmp_path / "small", {"s1-1": two[0], "s1-2": two[1]}, "batch")
    large = filled(tmp_path / "large", {"s1-1": two[1], "s1-2": two[1], "s1-3": two[1]}, "by hand")
    assert main(["ledger", "merge", str(tmp_path / "into"), str(large), str(small), "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert (first["answers"], first["added"], first["same"], first["conflicts"]) == (3, 3, 0, 0)
    assert (second["answers"], second["added"], second["same"], second["conflicts"], second["won"]) == (2, 0, 1, 1, 1)
    assert second["shown"][0]["delivery"] == "batch" and second["shown"][0]["ledger"] == str(small)
    assert main(["ledger", "merge", str(tmp_path / "into"), str(large)]) == 0
    assert "017-00001 self_chat: the answer of " + str(tmp_path / "into") + " is kept (m, stop, batch)" in capsys.readouterr().out
    with Ledger(tmp_path / "into") as ledger:
        assert sorted(ledger.query("SELECT key, delivery FROM completions"), key=str) == [
            ("s1-1", "batch"),
            ("s1-2", "by hand"),
            ("s1-3", "by hand"),
        ]


def test_open_reservations_go_on_counting_after_a_merge(tmp_path: Path) -> None:
    with Ledger(tmp_path / "a") as ledger:
        ledger.reserve("token", "m", Usage(5, 0, 6))
    for _ in range(2):
        merge(tmp_path / "into", [tmp_path / "a"])
    with Ledger(tmp_path / "into") as ledger:
        assert ledger.reserved() == [("m", "live", Usage(5, 0, 6))]


def test_what_is_no_ledger_is_refused_all_at_once_and_nothing_is_made(tmp_path: Path) -> None:
    good = filled(tmp_path / "good", {"s1-1": Completion("x", "stop", "m")})
    (tmp_path / "text").write_text("notes " * 1000)
    sqlite3.connect(tmp_path / "other").execute("CREATE TABLE t (x)").connection.close()
    with pytest.raises(InputError) as caught:
        merge(tmp_path / "into", [good, tmp_path / "text", tmp_path / "other", tmp_path / "absent"])
    assert [problem.where for problem in caught.value.problems] == [str(tmp_path / name) for name in ("text", "other", "absent")]
    assert not (tmp_path / "into").exists() and not (tmp_path / "absent").exists()


def test_more_ledgers_are_merged_than_files_may_be_open(tmp_path: Path) -> None:
    sources = [filled(tmp_path / f"{number}", {f"s1-{number}": Completion("x", "stop", "m")}) for number in range(60)]
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/dev/fd").iterdir())) + 40, before[1]))
    try:
        merge(tmp_path / "into", sources)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(read(tmp_path / "into")) == 60


def test_a_ledger_named_twice_is_refused(tmp_path: Path) -> None:
    good = filled(tmp_path / "good", {})
    for sources in ([good], [tmp_path / "x" / ".." / "good"]):
        with pytest.raises(InputError, match="is named twice"):
            merge(good, sources)


def test_a_damaged_row_stops_the_merge_with_nothing_changed(tmp_path: Path) -> None:
    into = filled(tmp_path / "into", {"s1-0": Completion("x", "stop", "m")})
    good = filled(tmp_path / "good", {"s1-1": Completion("x", "stop", "m")})
    bad = filled(tmp_path / "bad", {"s1-2": Completion("x", "stop", "m")})
    sqlite3.connect(bad, isolation_level=None).execute("UPDATE completions SET body = x'789c00'").connection.close()
    with pytest.raises(JobError, match="the ledger is damaged: row s1-2"):
        merge(into, [good, bad])
    assert list(read(into)) == ["s1-0"]
    before = sorted(tmp_path.iterdir())
    with pytest.raises(JobError, match="the ledger is damaged: row s1-2"):
        merge(tmp_path / "new", [good, bad])
    assert sorted(tmp_path.iterdir()) == before


def test_parts_merged_in_any_order_replay_to_the_bytes_of_the_whole_build(
    demo: Configuration, built: Path, tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    for number in (3, 1, 2):
        build(Recipe(demo, catalogue, prompts), tmp_path / f"b{number}", Run(part=(number, 3)))
    into = merged(tmp_path, "l", *(tmp_path / f"b{number}" / "ledger.sqlite" for number in (2, 3, 1)))
    build(Recipe(demo, catalogue, prompts), tmp_path / "b", Run(ledger=into, offline=True))
    for name in ("outcomes.jsonl", "build.json", "configuration.json"):
        assert (tmp_path / "b" / name).read_bytes() == (built / name).read_bytes()


def test_a_killed_merge_leaves_the_ledger_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    into = filled(tmp_path / "into", {"s1-0": Completion("x", "stop", "m")})
    source = filled(tmp_path / "a", {f"s1-{number}": Completion("x", "stop", "m") for number in range(1, 50)})
    rows = Ledger.rows

    def cut(self: Ledger):  # type: ignore[no-untyped-def]  # noqa: ANN202
        yield from itertools.islice(rows(self), 20)
        # What the disk holds at this moment is what a killed process would leave.
        for path in tmp_path.glob("into*"):
            shutil.copy(path, tmp_path / path.name.replace("into", "left"))
        yield from itertools.islice(rows(self), 20, None)

    monkeypatch.setattr(Ledger, "rows", cut)
    merge(into, [source])
    monkeypatch.undo()
    assert list(read(tmp_path / "left")) == ["s1-0"] and len(read(into)) == 50


@pytest.mark.parametrize("cut", [KeyboardInterrupt, OSError, JobError])
def test_a_merge_that_is_stopped_leaves_no_new_ledger_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: type[BaseException]
) -> None:
    source = filled(tmp_path / "a", {f"s1-{number}": Completion("x", "stop", "m") for number in range(50)})
    rows = Ledger.rows

    def stopped(self: Ledger, *where: Any) -> Iterator[Any]:
        yield from itertools.islice(rows(self, *where), 20)
        raise cut([])

    monkeypatch.setattr(Ledger, "rows", stopped)
    assert main(["ledger", "merge", str(tmp_path / "new"), str(source)]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    monkeypatch.undo()
    assert main(["ledger", "merge", str(tmp_path / "new"), str(source)]) == 0 and len(read(tmp_path / "new")) == 50


@pytest.mark.e2e
def test_a_merge_for_which_there_is_no_room_leaves_no_new_ledger_behind(tmp_path: Path) -> None:
    texts = (random.Random(number).randbytes(500).hex() for number in range(200))
    source = filled(tmp_path / "a", {f"s1-{number}": Completion(text, "stop", "m") for number, text in enumerate(texts)})
    merging = ["ledger", "merge", str(tmp_path / "new"), str(source)]
    for room in (100, 2_000, 60_000, 100_000):
        full = run(merging, room)
        assert full.returncode == 1 and f"{tmp_path / 'new'}: cannot be" in full.stderr, (room, full.stderr)
        assert "Traceback" not in full.stderr and [path.name for path in tmp_path.iterdir()] == ["a"]
    assert run(merging).returncode == 0 and len(read(tmp_path / "new")) == 200


def test_a_merge_whose_answers_could_not_all_be_brought_into_the_file_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, close = filled(tmp_path / "a", {"s1-1": Completion("x", "stop", "m")}), Ledger.close

    def leaving(self: Ledger) -> None:
        close(self)
        for folder in tmp_path.glob(".new.*"):
            (folder / "ledger.sqlite-wal").touch()

    monkeypatch.setattr(Ledger, "close", leaving)
    with pytest.raises(JobError, match="new: cannot be written: No space left on device"):
        merge(tmp_path / "new", [source])
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_ledger_that_is_made_meanwhile_is_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, rows = filled(tmp_path / "a", {"s1-1": Completion("x", "stop", "m")}), Ledger.rows

    def meanwhile(self: Ledger, *where: Any) -> Iterator[Any]:
        (tmp_path / "new").write_text("of someone else")
        return rows(self, *where)

    monkeypatch.setattr(Ledger, "rows", meanwhile)
    with pytest.raises(JobError, match="new: cannot be written: it was made by another process meanwhile"):
        merge(tmp_path / "new", [source])
    assert (tmp_path / "new").read_text() == "of someone else" and len(list(tmp_path.iterdir())) == 2
