"""By hand: requests go out in files, answers come back in files, and the build has the bytes of the plain one."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from empathy_eval.base.errors import InputError, JobError
from empathy_eval.cli import main
from empathy_eval.completions.asker import PendingRequests
from empathy_eval.completions.batch_files import (
    LONGEST,
    ImportedAnswers,
    bounded_lines,
    import_answers,
    numbered_path,
    request_line,
    store_answers,
)
from empathy_eval.completions.ledger import Batch, Ledger, PendingRequest
from empathy_eval.completions.requests import About, Request, Usage
from empathy_eval.design.configuration import Configuration, load_configuration
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.build import Run, build
from empathy_eval.generation.by_batch import hand_out
from empathy_eval.generation.summary import HandedOut
from hypothesis import given
from hypothesis import strategies as st

from tests.completions.test_openai_endpoint import config_file
from tests.conftest import copy_world
from tests.doubles.batches import reply
from tests.doubles.server import Behaviour, Server, running

Answer = Callable[[dict[str, Any]], dict[str, Any]]


class Hands:
    """Someone who carries files between a build and the answers of a server, and counts what is asked."""

    def __init__(self, folder: Path, catalogue: Catalogue, prompts: Prompts, behaviour: Behaviour | None = None) -> None:
        self.folder, self.catalogue, self.prompts = folder, catalogue, prompts
        self.server = Server(behaviour or Behaviour())
        self.seen: list[str] = []

    def config(self, model: dict[str, Any] | None = None, **changes: Any) -> Configuration:
        changes = {"dialogues": 12, "controls": 4, **changes}
        return load_configuration(config_file(self.folder, "http://127.0.0.1:9", model, **changes))

    def write(self, config: Configuration, number: int, **run: Any) -> HandedOut:
        path = self.folder / f"round{number}.jsonl"
        return hand_out(Recipe(config, self.catalogue, self.prompts), self.folder / "b", path, Run(**run))

    def answer(self, file: Path) -> Path:
        """Answers a file as a provider does, in another order."""
        lines = []
        for line in file.read_bytes().splitlines():
            request = json.loads(line)
            assert (request["method"], request["url"]) == ("POST", "/v1/chat/completions") and len(request["custom_id"]) <= 64
            self.seen.append(request["custom_id"])
            lines.append(json.dumps(self.one(request)))
        answers = file.with_suffix(".answers")
        answers.write_text("\n".join(reversed(lines)) + "\n")
        return answers

    def one(self, request: dict[str, Any]) -> dict[str, Any]:
        status, body = reply(self.server, request["body"])
        return {"id": "x", "custom_id": request["custom_id"], "response": {"status_code": status, "body": body}, "error": None}

    def rounds(self, config: Configuration) -> int:
        """Carries files until nothing is unanswered; returns the number of rounds."""
        for number in range(1, 30):
            handed = self.write(config, number)
            if not handed.requests:
                return number
            for path in handed.requests:
                (taken,) = import_answers(self.folder / "b" / "ledger.sqlite", [self.answer(Path(path))]).values()
                assert not taken.problems and not taken.already
        raise AssertionError("no end")


@pytest.fixture
def hands(tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> Hands:
    return Hands(tmp_path, catalogue, prompts)


@pytest.mark.e2e
@pytest.mark.parametrize("faults", [{}, {"cut": 0.1, "refusal": 0.1, "length": 0.1, "fence": 0.1, "turns": 0.1}])
def test_a_build_by_hand_has_the_bytes_of_the_plain_one_and_asks_nothing_twice(hands: Hands, faults: dict[str, float]) -> None:
    hands.server.behaviour.faults = faults
    config = hands.config()
    rounds = hands.rounds(config)
    assert rounds >= 3 and len(hands.seen) == len(set(hands.seen))
    with running(Behaviour(faults=faults)) as server:
        plain = load_configuration(config_file(hands.folder, server.url, dialogues=12, controls=4))
        build(Recipe(plain, hands.catalogue, hands.prompts), hands.folder / "plain")
        assert server.answered.total() == len(hands.seen)
    for name in ("outcomes.jsonl", "build.json", "configuration.json"):
        assert (hands.folder / "b" / name).read_bytes() == (hands.folder / "plain" / name).read_bytes()
    with Ledger(hands.folder / "b" / "ledger.sqlite") as ledger:
        assert set(ledger.query("SELECT DISTINCT delivery FROM completions")) == {("by hand",), ("computed",)}
        assert next(ledger.query("SELECT count(*) FROM noted")) == (0,)


def test_the_same_replay_writes_the_same_bytes(hands: Hands) -> None:
    config = hands.config()
    hands.rounds(config)
    other = Hands(hands.folder / "other", hands.catalogue, hands.prompts)
    other.folder.mkdir()
    other.write(config, 1)
    import_answers(other.folder / "b" / "ledger.sqlite", [hands.folder / "round1.answers"])
    other.write(config, 2, window=3)
    for name in ("round1.jsonl", "round2.jsonl"):
        assert (other.folder / name).read_bytes() == (hands.folder / name).read_bytes()


@given(st.permutations([(number, kind, turn) for number in range(3) for kind in ("far", "near") for turn in (None, 3, 11)]))
def test_notes_come_out_by_place_in_the_plan_and_once_however_they_went_in(order: list[tuple[int, Any, int | None]]) -> None:
    notes = PendingRequests()
    for number, kind, turn in order * 2:
        notes.add(Request({"about": f"{number} {kind} {turn}"}, "e", About(f"001-{number:05d}", kind, turn)), "m", Usage())
    assert [(int(one.about.dialogue_id[-5:]), one.about.kind, one.about.turn) for one in notes] == sorted(
        order, key=lambda one: (one[0], one[1], -1 if one[2] is None else one[2])
    )
    assert len(notes) == len(order)


def test_until_all_is_answered_no_outcomes_are_written(hands: Hands) -> None:
    handed = hands.write(hands.config(), 1)
    assert handed.requests == {str(hands.folder / "round1.jsonl"): 12}
    assert {path.name for path in (hands.folder / "b").iterdir()} == {"configuration.json", "ledger.sqlite"}


def test_a_file_holds_one_model_and_keeps_the_limits(hands: Hands) -> None:
    config = hands.config({"batch_requests": 5})
    written = hands.write(config, 1).requests
    assert written == {str(numbered_path(hands.folder / "round1.jsonl", number)): count for number, count in ((1, 5), (2, 5), (3, 2))}
    sizes = [len(line) + 1 for line in Path(next(iter(written))).read_bytes().splitlines()]
    (hands.folder / "away").mkdir()
    for path in written:
        Path(path).rename(hands.folder / "away" / Path(path).name)
    hands.write(hands.config({"batch_bytes": sum(sizes[:3])}), 1)
    assert (hands.folder / "round1.jsonl").stat().st_size == sum(sizes[:3])


def test_models_on_two_endpoints_are_kept_apart(hands: Hands) -> None:
    config_file(hands.folder, "http://127.0.0.1:9", dialogues=4, controls=0)
    raw = yaml.safe_load((hands.folder / "config.yaml").read_text())
    raw["models"]["far"] = {**raw["models"]["far"], "endpoint": "other", "model": "n"}
    (hands.folder / "config.yaml").write_text(yaml.safe_dump(raw))
    config = load_configuration(hands.folder / "config.yaml")
    hands.write(config, 1)
    import_answers(hands.folder / "b" / "ledger.sqlite", [hands.answer(hands.folder / "round1.jsonl")])
    written = hands.write(config, 2).requests
    models = [{json.loads(line)["body"]["model"] for line in Path(path).read_bytes().splitlines()} for path in written]
    assert models == [{"m"}, {"n"}]


def test_files_of_an_earlier_round_are_not_written_over(hands: Hands) -> None:
    (hands.folder / "round1-2.jsonl").write_text("x")
    with pytest.raises(InputError, match="round1-2.jsonl: is there already"):
        hands.write(hands.config(), 1)
    assert not (hands.folder / "b").exists()


def test_a_budget_by_hand_is_refused(hands: Hands) -> None:
    with pytest.raises(InputError, match="a budget cannot hold what is sent by hand"):
        hands.write(hands.config(), 1, budget_tokens=5)


GOOD = {"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}


def taken(tmp_path: Path, *lines: bytes) -> ImportedAnswers:
    """What becomes of lines where the request s1-aa, and no other, was given out."""
    with Ledger(tmp_path / "l") as ledger:
        ledger.note_requests("f", [PendingRequest("s1-aa", About("017-00001", "self_chat"), "e", "m", b"", Usage(100, 0, 200))])
        return store_answers(ledger, "f", lines, "by hand")


def line(custom_id: str = "aa", status: int = 200, body: Any = GOOD, **more: Any) -> bytes:
    return json.dumps({"custom_id": custom_id, "response": {"status_code": status, "body": body}, **more}).encode()


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b"{", "f: line 1: is not JSON"),
        (b"\xff", "f: line 1: is not JSON"),
        (b"[]", r"f: line 1: \[\] is not of type object"),
        (b"{}", 'f: line 1: misses "custom_id"'),
        (line("bb"), 'f: line 1: "bb" is not a request of'),
        (line(body="text"), "f: line 1: the answer is no chat completion: text"),
        (
            line(body={"choices": [{"message": {"content": 5}}]}),
            r"f: line 1: the answer has no usable content; choices\[0\]: message: content: 5 is not of type",
        ),
        (line(body={"choices": [], "usage": {"prompt_tokens": -1}}), "prompt_tokens: -1 is out of range"),
        (line(body={"text": "hello"}), "f: line 1: the answer has no usable content"),
        (json.dumps({"custom_id": "aa", "response": {"body": GOOD}}).encode(), 'misses "status_code"'),
        (request_line("s1-aa", b"{}"), 'misses "response"'),
        (b'{"custom_id":' + b"[" * 200_000, "f: line 1: is not JSON: it is nested too deeply"),
        (b'{"a":' * 60 + b"0" + b"}" * 60, 'misses "custom_id"'),
        (b" " * LONGEST + line(), "f: line 1: is longer than 16,777,216 bytes"),
        (b"\x00" * 100, "f: line 1: is not JSON"),
        (b'{"a":1e999}', 'f: line 1: misses "custom_id"'),
        (b'{"a":NaN}', 'f: line 1: misses "custom_id"'),
        (b'{"a":' + b"9" * 5000 + b"}", "f: line 1: is not JSON"),
        (json.dumps({"custom_id": 5, "response": None}).encode(), "f: line 1: custom_id: 5 is not of type string"),
        (line("\ud800"), r'f: line 1: "\\ud800" is not a request of'),
        (line("x" * 10_000), r'f: line 1: "x{79} is not a request of'),
        (line("a\x00a"), r'f: line 1: "a\\u0000a" is not a request of'),
        (line().decode().encode("utf-16"), "f: line 1: is not JSON"),
    ],
)
def test_a_line_that_does_not_fit_is_told_and_the_rest_is_taken(tmp_path: Path, bad: bytes, said: str) -> None:
    found = taken(tmp_path, bad, b"\n", line())
    assert found.stored == 1 and found.problems and re.search(said, str(found.problems[0]))


@pytest.mark.parametrize(
    ("none", "reason", "refused"),
    [
        (
            line(status=429, body={"error": {"code": "rate_limit", "message": "slow  down"}}),
            "refused with 429: rate_limit slow down",
            False,
        ),
        (line(status=400, body={"error": {"message": "too long"}}), "refused with 400: too long", True),
        (line(status=500, body=None), "refused with 500", False),
        (line(error={"code": "batch_expired", "message": "late"}), "batch_expired late", False),
        (json.dumps({"custom_id": "aa", "response": None, "error": None}).encode(), "no response", False),
    ],
)
def test_an_error_is_no_answer_and_is_counted_with_its_reason(tmp_path: Path, none: bytes, reason: str, refused: bool) -> None:
    found = taken(tmp_path, none)
    assert (found.stored, found.problems, dict(found.unanswered), list(found.refused)) == (0, [], {reason: 1}, ["s1-aa"] * refused)


def test_nothing_is_taken_twice_and_a_bad_answer_is_an_answer(tmp_path: Path) -> None:
    cut = {"choices": [{"message": {"content": '{"te\ud800'}, "finish_reason": "length"}]}
    found = taken(tmp_path, b"\xef\xbb\xbf" + line("s1-aa", body=cut), line())
    assert (found.stored, found.already) == (1, 1)
    again = taken(tmp_path, line())
    assert (again.stored, again.already) == (0, 1)
    with Ledger(tmp_path / "l") as ledger:
        answer = ledger.get("s1-aa")
        assert answer and answer.finish == "length" and answer.text == '{"te\\ud800'
        assert answer.usage == Usage(100, 0, 200), "tokens that were not counted are the worst case"


def test_an_answer_by_hand_is_taken_after_a_batch_of_the_same_request_has_failed(tmp_path: Path) -> None:
    request = PendingRequest("s1-aa", About("017-00001", "self_chat"), "e", "m", b"", Usage(100, 0, 200))
    with Ledger(tmp_path / "l") as ledger:
        ledger.note_requests("by hand", [request])
        for name in ("batch-0", None):
            batch = Batch("in a batch", "e", "b", 1, name)
            ledger.note_requests(batch.file, [request], batch)
            ledger.end_batch(batch)
            assert ledger.reserved() == []
        found = store_answers(ledger, "f", [line()], "by hand")
        assert (found.stored, found.problems, list(ledger.query("SELECT * FROM noted"))) == (1, [], [])


@pytest.mark.parametrize("column", ["body = x'00'", "finish = x'00'"])
def test_a_damaged_row_of_the_ledger_keeps_no_other_line_from_being_taken(tmp_path: Path, column: str) -> None:
    requests = [
        PendingRequest(f"s1-{name}", About("017-00001", "self_chat"), "e", "m", b"", Usage(100, 0, 200)) for name in ("aa", "bb", "cc")
    ]
    taken(tmp_path, line())
    with Ledger(tmp_path / "l") as ledger:
        ledger.note_requests("f", requests)
        ledger.write((f"UPDATE completions SET {column}", [()]), ("UPDATE noted SET turn = 'x' WHERE key = 's1-bb'", [()]))  # noqa: S608
        found = store_answers(ledger, "f", [line(), line("bb"), line("cc")], "by hand")
    assert found.stored == 1 and [one.where for one in found.problems] == ["f: line 1", "f: line 2"]
    assert "damaged: row s1-aa" in found.problems[0].what and "row 2 of noted: turn" in found.problems[1].what


def test_a_file_of_one_endless_line_is_read_in_bounds_and_what_follows_is_taken(tmp_path: Path) -> None:
    taken(tmp_path)
    with (tmp_path / "long").open("wb") as stream:
        for _ in range(5):
            stream.write(b"x" * LONGEST)
        stream.write(b"\n\xef\xbb\xbf" + line() + b"\r\n")
    with (tmp_path / "long").open("rb") as stream:
        assert max(map(len, bounded_lines(stream))) == LONGEST + 1
    found = import_answers(tmp_path / "l", [tmp_path / "long"])[str(tmp_path / "long")]
    assert found.stored == 1 and [one.where for one in found.problems] == [f"{tmp_path / 'long'}: line 1"]


def test_what_is_no_file_of_lines_is_told_before_anything_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken(tmp_path)
    (tmp_path / "good").write_bytes(line())
    (tmp_path / "packed").write_bytes(gzip.compress(line()))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    files = [str(tmp_path / name) for name in ("good", "packed", "absent")]
    assert main(["ledger", "import", str(tmp_path / "l"), *files]) == 2
    told = capsys.readouterr().err
    assert "packed: is compressed with gzip" in told and "absent: there is no such file" in told
    assert main(["ledger", "import", str(tmp_path / "l"), files[0], str(tmp_path / "pipe")]) == 2
    assert "pipe: is neither a file nor a folder" in capsys.readouterr().err
    with pytest.raises(InputError, match="pipe: is not a file"):
        import_answers(tmp_path / "l", [tmp_path / "good", tmp_path / "pipe"])
    assert main(["ledger", "import", str(tmp_path / "l"), str(tmp_path / "empty")]) == 0
    assert "0 answers stored" in capsys.readouterr().out
    assert main(["ledger", "import", str(tmp_path / "l"), files[0]]) == 0


def test_what_a_stranger_says_is_printed_as_signs_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken(tmp_path)
    (tmp_path / "f").write_bytes(line(status=500, body={"error": {"message": "\ud800\x1b[2J" + "long " * 100}}))
    assert main(["ledger", "import", str(tmp_path / "l"), str(tmp_path / "f")]) == 0
    told = capsys.readouterr().out
    assert "refused with 500: [2J" in told and "\x1b" not in told


def test_what_is_true_of_many_lines_is_said_once_with_their_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken(tmp_path)
    (tmp_path / "f").write_bytes(b"\n".join([*(line(f"b{number}") for number in range(12)), b"{", line("c1"), b"{"]))
    assert main(["ledger", "import", str(tmp_path / "l"), str(tmp_path / "f")]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 4 and told.count("is not a request of") == told.count("is not JSON") == 1
    assert 'f: line 1: "b0" is not a request of' in told and "; and 12 more lines like it\n" in told
    assert "f: line 13: is not JSON" in told and "; and 1 more line like it\n" in told
    assert main(["ledger", "import", str(tmp_path / "l"), str(tmp_path / "f"), "--json"]) == 1
    assert len(json.loads(capsys.readouterr().out)[str(tmp_path / "f")]["problems"]) == 15


def test_nothing_is_taken_from_any_file_if_one_cannot_be_read(tmp_path: Path) -> None:
    taken(tmp_path)
    (tmp_path / "good").write_bytes(line())
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError) as caught:
        import_answers(tmp_path / "l", [tmp_path / "good", tmp_path / "folder", tmp_path / "absent"])
    assert [one.what for one in caught.value.problems] == ["cannot be read: Is a directory", "there is no such file"]
    with Ledger(tmp_path / "l") as ledger:
        assert len(ledger) == 0


def test_requests_that_there_is_no_room_to_note_are_told() -> None:
    notes = PendingRequests()
    notes._file.execute("PRAGMA max_page_count = 3")
    with pytest.raises(JobError, match="noted requests: cannot be written: database or disk is full"):
        for number in range(100):
            notes.add(Request({"about": str(number)}, "e", About(f"001-{number:05d}", "self_chat")), "m", Usage())


@pytest.mark.e2e
def test_the_commands_lead_from_round_to_round(hands: Hands, capsys: pytest.CaptureFixture[str]) -> None:
    world, ledger = copy_world(hands.folder / "scenarios"), hands.folder / "b" / "ledger.sqlite"
    hands.config()
    arguments = ["build", str(hands.folder / "config.yaml"), "--out", str(hands.folder / "b"), "--scenarios", str(world), "--requests-to"]
    said = []
    for number in range(1, 9):
        path = hands.folder / f"r{number}.jsonl"
        assert main([*arguments, str(path)]) == 0
        said.append(capsys.readouterr().out)
        if not path.exists():
            break
        assert main(["ledger", "import", str(ledger), str(hands.answer(path))]) == 0
        said.append(capsys.readouterr().out)
    assert "12 requests are written" in said[0] and f"empathy-eval ledger import {ledger}" in said[0]
    assert "12 answers stored, 0 already there, 0 without an answer" in said[1] and "12 planned: 12 accepted" in said[-1]
    assert main(["ledger", "import", str(ledger), str(hands.folder / "r1.jsonl"), str(hands.folder / "r1.answers"), "--json"]) == 1
    counts = json.loads(capsys.readouterr().out)
    assert counts[str(hands.folder / "r1.answers")] == {"stored": 0, "already_there": 12, "unanswered": {}, "problems": []}
    assert main(["ledger", "import", str(ledger), str(hands.folder / "absent"), str(hands.folder / "gone")]) == 2
    told = capsys.readouterr().err
    assert "absent: there is no such file" in told and "gone: there is no such file" in told
