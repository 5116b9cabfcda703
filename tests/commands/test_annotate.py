"""``annotate`` on the command line: live, by hand and by batch to the same bytes, and what is said of bad input."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from empathy_eval.cli import main
from empathy_eval.completions.ledger import Ledger
from empathy_eval.raters.judges.cases import cases_of

from tests.doubles.batches import reply
from tests.doubles.judge import JudgeServer
from tests.doubles.judge import read_once as read_once
from tests.doubles.server import Behaviour, running

FILES = ("outcomes.jsonl", "build.json", "configuration.json")
RUBRICS = ["teacher", "warmer", "strategies", "lend-an-ear"]


class Door:
    """The command line, and what it says."""

    def __init__(self, folder: Path, release: Path, server: JudgeServer, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.release, self.server, self.capsys = folder, release, server, capsys
        self.out = self.err = ""

    def run(self, *arguments: object) -> int:
        try:
            status = main([str(one) for one in arguments])
        except SystemExit as stop:  # the parser's own way out
            status = int(stop.code or 0)
        self.out, self.err = self.capsys.readouterr()
        assert "Traceback" not in self.out + self.err
        return status

    def annotate(self, rubric: str | Path, name: str = "a", *more: object, model: str | Path = "judge-1", turns: object = 4) -> int:
        given = ["--rubric", rubric, "--model", model, "--turns", turns]
        at = ["--base-url", self.server.url] if not str(model).endswith(".yaml") else []
        return self.run("annotate", self.release, "--out", self.folder / name, *given, *at, *more)

    def bytes(self, name: str = "a") -> tuple[bytes, ...]:
        return tuple((self.folder / name / file).read_bytes() for file in FILES)

    def deliveries(self, name: str = "a") -> set[Any]:
        with Ledger(self.folder / name / "ledger.sqlite", create=False) as ledger:
            return set(ledger.query("SELECT DISTINCT delivery FROM completions"))

    def answer(self, file: Path) -> tuple[Path, list[str]]:
        """Answers a file of requests as a provider does, in another order; and the ids of the requests."""
        requests = [json.loads(line) for line in file.read_bytes().splitlines()]
        lines = []
        for request in requests:
            status, body = reply(self.server, request["body"])
            given = {"response": {"status_code": status, "body": body}, "error": None}
            lines.append(json.dumps({"id": "x", "custom_id": request["custom_id"], **given}))
        answers = file.with_suffix(".answers")
        answers.write_text("\n".join(reversed(lines)) + "\n")
        return answers, [request["custom_id"] for request in requests]


@pytest.fixture
def door(tmp_path: Path, light: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Door]:
    with running(server=JudgeServer(Behaviour())) as server:
        assert isinstance(server, JudgeServer)
        yield Door(tmp_path, light, server, capsys)


def test_the_summary_counts_what_was_annotated_in_words_and_as_json(door: Door) -> None:
    texts = sum(len(case.texts) for case in cases_of(door.release, 4))
    assert door.annotate("teacher") == 0
    assert "4 cases: 4 judged, 0 missing" in door.out and f"{6 * texts} ratings" in door.out and "tokens" in door.out
    assert door.annotate("teacher", "a", "--json", "--offline") == 0
    closing = json.loads(door.out)
    assert (closing["planned"], closing["annotated"], closing["missing"], closing["ratings"]) == (4, 4, 0, 6 * texts)
    assert closing["usage"]["judge-1"]["requests"] == texts and closing["unannotated_by_reason"] == {}
    door.server.behaviour.faults = {"400": 1.0}
    assert door.annotate("teacher", turns=5) == 1 and "4 judged, 1 missing" in door.out and "fault 400" in door.out


def test_all_turns_and_only_some_variants_are_judged_where_that_is_asked_for(door: Door) -> None:
    assert door.annotate("teacher", "a", "--variants", "reference,apathetic", "--samples", "2", "--json", turns="all") == 0
    closing, cases = json.loads(door.out), len(cases_of(door.release, None))
    assert closing["planned"] == cases and closing["ratings"] == cases * 2 * 2 * 6


def test_a_preview_reports_what_is_left_first_and_the_requests_that_are_asked_for_and_writes_nothing(door: Door) -> None:
    texts = [len(case.texts) for case in cases_of(door.release, 4)]
    assert door.annotate("teacher", "a", "--preview") == 0
    assert "--- " not in door.out and "assumed sizes" in door.out and f"{sum(texts)} " in door.out
    assert door.annotate("teacher", "a", "--preview", "-n", "1") == 0
    assert door.out.count("--- ") == texts[0] and door.out.index("total") < door.out.index("--- ")
    assert not door.server.received and not (door.folder / "a").exists()
    assert door.annotate("teacher", turns=2) == 0
    before, asked = door.bytes(), len(door.server.received)
    assert door.annotate("teacher", "a", "--preview") == 0
    assert f"{asked} requests are already answered in {door.folder / 'a' / 'ledger.sqlite'}" in door.out
    assert "the ledger's averages" in door.out
    assert door.annotate("teacher", "a", "--preview", "-n", "1", "--json") == 0
    made = json.loads(door.out)
    assert (len(made["requests"]), made["answered"]) == (texts[0], asked) and made["requests"][0]["body"]["model"] == "judge-1"
    assert [one["requests"] for one in made["estimates"]] == [sum(texts[2:])]
    assert door.bytes() == before and len(door.server.received) == asked


@pytest.mark.parametrize("more", [("--slice", "1/2"), ("--offline",), ("--engine", "ray")])
def test_a_preview_in_another_way_at_once_is_refused(more: tuple[str, ...], door: Door) -> None:
    assert door.annotate("teacher", "a", "--preview", *more) == 2
    refused(door, "--preview")


def test_a_build_is_annotated_and_says_how_to_go_on_and_is_held_against_nobody(door: Door) -> None:
    door.release = door.release.parent / "build"
    assert door.annotate("teacher", "a", "--beside", door.folder) == 2
    refused(door, "--beside, --reviews", "is a build", "annotate a release of the build")
    assert door.annotate("teacher", turns=1) == 0 and "1 judged" in door.out
    assert f"empathy-eval release {door.release} --annotations {door.folder / 'a'}" in door.out
    assert door.annotate("teacher", "a", "--json", turns=1) == 0 and json.loads(door.out)["annotated"] == 1


# In every way.


@pytest.mark.parametrize("rubric", RUBRICS)
def test_by_hand_the_annotations_have_the_bytes_of_live_ones_in_a_few_rounds(rubric: str, door: Door) -> None:
    ledger, asked = door.folder / "hand" / "ledger.sqlite", list[str]()
    door.server.behaviour.faults = {"odd": 0.1}
    for rounds in range(12):
        path = door.folder / f"r{rounds}.jsonl"
        assert door.annotate(rubric, "hand", "--requests-to", path) == 0
        if not path.exists():
            break
        assert "requests are written; nothing was sent" in door.out and f"ledger import {ledger}" in door.out
        answers, ids = door.answer(path)
        asked += ids
        assert door.run("ledger", "import", ledger, answers) == 0 and f"{len(ids)} answers stored" in door.out
    # One or two of questions, and those of repairs and samples again.
    assert len(asked) == len(set(asked)) and rounds <= 3 + (2 + 3 if rubric == "strategies" else 1)
    assert not door.server.received and f"{3 if rubric == 'lend-an-ear' else 4} judged" in door.out
    door.server.seen.clear()
    assert door.annotate(rubric, "live") == 0
    assert door.bytes("hand") == door.bytes("live") and len(door.server.received) == len(asked)
    assert door.deliveries("hand") == {("by hand",)} and door.deliveries("live") == {("live",)}


def test_the_same_requests_are_written_in_the_same_bytes(door: Door) -> None:
    for name in ("one", "two"):
        assert door.annotate("perceived-empathy", name, "--requests-to", door.folder / f"{name}.jsonl") == 0
    assert (door.folder / "one.jsonl").read_bytes() == (door.folder / "two.jsonl").read_bytes() != b""
    assert {path.name for path in (door.folder / "one").iterdir()} == {"configuration.json", "ledger.sqlite"}
    requests = [json.loads(line) for line in (door.folder / "one.jsonl").read_bytes().splitlines()]
    assert len({one["custom_id"] for one in requests}) == len(requests)


@pytest.mark.parametrize("rubric", RUBRICS)
def test_in_batches_the_annotations_have_the_bytes_of_live_ones(rubric: str, door: Door) -> None:
    door.server.looks = 0
    for _ in range(9):
        assert door.annotate(rubric, "batch", "--batch", "--no-wait") == 0
        if "batches are under way" not in door.out:
            break
    assert not door.server.received and set(door.server.charged.values()) == {1}
    assert len(door.server.batches) == (2 if rubric == "strategies" else 1)
    assert door.annotate(rubric, "live") == 0
    assert door.bytes("batch") == door.bytes("live") and door.deliveries("batch") == {("batch",)}
    assert len(door.server.received) == door.server.charged.total()


def test_parts_fill_ledgers_that_merge_to_the_whole(door: Door) -> None:
    assert door.annotate("teacher", "whole", turns=7) == 0
    asked = len(door.server.received)
    for number in (1, 2):
        assert door.annotate("teacher", f"p{number}", "--slice", f"{number}/2", turns=7) == 0 and "only the ledger was filled" in door.out
    merged = door.folder / "merged.sqlite"
    assert door.run("ledger", "merge", merged, *(door.folder / f"p{number}" / "ledger.sqlite" for number in (1, 2))) == 0
    assert door.annotate("teacher", "a", "--offline", "--ledger", merged, turns=7) == 0
    assert door.bytes() == door.bytes("whole") and len(door.server.received) == 2 * asked


# Bad input.


def judge_file(folder: Path, **changes: Any) -> Path:
    known = {"kind": "openai", "model": "m", "endpoint": "e", "max_tokens": 100, "base_url": "http://127.0.0.1:9/v1", **changes}
    path = folder / "judge.yaml"
    path.write_text(yaml.safe_dump({name: value for name, value in known.items() if value is not None}))
    return path


def refused(door: Door, *said: str) -> None:
    """What was wrong is said, nothing was asked, and no folder was made."""
    assert all(one in door.err for one in said), door.err
    assert not door.server.received and not (door.folder / "a").exists()


def test_a_rubric_that_is_not_known_is_refused_with_those_that_are(door: Door) -> None:
    assert door.annotate("kindness") == 2
    refused(door, 'rubric "kindness"', "no packaged one has that name", "teacher")


def test_a_rubric_that_is_not_valid_is_refused(door: Door) -> None:
    path = door.folder / "mine.yaml"
    path.write_text("name: mine\nkind: rating\n")
    assert door.annotate(path) == 2
    refused(door, "mine.yaml")


def test_a_rubric_for_reward_models_is_refused_where_a_model_is_asked_in_words(door: Door) -> None:
    assert door.annotate("reward") == 2
    refused(door, 'rubric "reward"', 'is for reward models, but "judge-1" is prompted in words', "kind: reward")


@pytest.mark.parametrize(("option", "value"), [("--turns", "0"), ("--turns", "-3"), ("--samples", "0")])
def test_less_than_one_is_refused(option: str, value: str, door: Door) -> None:
    assert door.annotate("teacher", "a", f"{option}={value}") == 2
    refused(door, option, f"{value} is less than 1")


def test_all_that_is_wrong_with_how_much_is_judged_is_reported_at_once(door: Door) -> None:
    assert door.annotate("teacher", "a", "--samples=10001", "--variants=warm,,reference", turns="1" + "0" * 12) == 2
    refused(
        door, "--turns: 1e+12 is more than 1,000,000,000", "--samples: 1e+04 is more than 10,000", '"warm" is not known', '"" is not known'
    )


def test_annotations_are_not_made_in_the_release_itself(door: Door) -> None:
    door.release = Path(shutil.copytree(door.release, door.folder / "release"))
    for name in ("release", "release/judged", "release/data/../more", "link"):
        if name == "link":
            (door.folder / "link").symlink_to(door.release)
            name = "link/judged"
        assert door.annotate("teacher", name) == 2
        refused(door, "--out", "is inside the folder that is judged")
    assert not {"judged", "more"} & {path.name for path in door.release.rglob("*")}


@pytest.mark.parametrize("name", ["a file", "a build", "others' files"])
def test_a_place_that_is_not_for_annotations_is_refused_and_left_alone(name: str, door: Door) -> None:
    place = door.folder / "place"
    if name == "a file":
        place.write_text("mine")
    else:
        place.mkdir()
        (place / ("configuration.json" if name == "a build" else "mine.txt")).write_text("{}")
    before = sorted(path.name for path in door.folder.rglob("*"))
    assert door.annotate("teacher", place.name) == 2
    refused(door, place.name, "Fix: ", "--out")
    assert sorted(path.name for path in door.folder.rglob("*")) == before


@pytest.mark.parametrize("name", ["m\x1b[31m", "m\u202e", "m\nn", "m|n", "m`n", "x" * 201])
def test_a_name_of_a_judge_that_hides_signs_is_refused_and_does_nothing_to_a_terminal(name: str, door: Door) -> None:
    for model in (name, judge_file(door.folder, model=name)):
        assert door.annotate("teacher", model=model) == 2
        refused(door, "model", "visible characters")
        assert not {"\x1b", "\u202e"} & set(door.err)


def test_turns_that_are_no_number_are_refused(door: Door) -> None:
    assert door.annotate("teacher", turns="many") == 2
    refused(door, "--turns", '"many" is not a whole number up to 1,000,000,000,000,000; write one of at least 1, or all')


def test_a_variant_that_is_not_known_is_refused_with_those_that_are(door: Door) -> None:
    assert door.annotate("teacher", "a", "--variants", "reference,apathtic") == 2
    refused(door, "--variants", '"apathtic" is not known', 'near_empathetic, far_apathetic; did you mean "apathetic"?')


def test_variants_that_are_not_compared_with_each_other_are_refused(door: Door) -> None:
    assert door.annotate("warmer", "a", "--variants", "reference,far_apathetic") == 2
    refused(door, "nothing to judge", "--variants")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"max_tokens": "many"}, ("max_tokens", "many")),
        ({"model": None}, ("model",)),
        ({"temperature": 0}, ("temperature",)),
        ({"base_url": "ftp://judge"}, ("base_url",)),
        ({"base_url": "https://me:secret@judge/v1"}, ("base_url", "credentials")),
        ({"api_key": "secret"}, ('has unknown "api_key"', "api_key_env")),
        ({"kind": "no such kind"}, ("kind",)),
    ],
)
def test_a_file_that_describes_no_model_is_refused(changes: dict[str, Any], said: tuple[str, ...], door: Door) -> None:
    assert door.annotate("teacher", model=judge_file(door.folder, **changes)) == 2
    refused(door, *said)
    told = door.err.splitlines()[::2]
    assert "secret" not in door.err and len(told) == len(set(told))


def test_a_file_of_a_model_that_is_not_there_is_refused(door: Door) -> None:
    assert door.annotate("teacher", model=door.folder / "absent.yaml") == 2
    refused(door, "absent.yaml")


def test_the_seed_bank_is_refused_as_a_judge(door: Door) -> None:
    path = door.folder / "judge.yaml"
    path.write_text("kind: seed-bank\n")
    assert door.annotate("teacher", model=path) == 2
    refused(door, "seed-bank")


def test_what_is_neither_a_release_nor_a_build_is_refused(door: Door) -> None:
    for name in ("nowhere", "empty"):
        door.release = door.folder / name
        if name == "empty":
            door.release.mkdir()
        assert door.annotate("teacher") == 2
        refused(door, name)


def test_templates_that_are_not_there_are_refused(door: Door) -> None:
    assert door.annotate("teacher", "a", "--templates", door.folder / "absent") == 2
    refused(door, "absent")


def test_ways_that_contradict_each_other_are_refused(door: Door) -> None:
    assert door.annotate("teacher", "a", "--offline", "--batch") == 2
    assert door.annotate("teacher", "a", "--no-wait") == 2
    refused(door, "needs --batch")
    assert door.annotate("teacher", "a", "--requests-to", door.folder / "r.jsonl", "--budget-tokens", "5") == 2
    refused(door, "a budget cannot hold what is sent by hand")
