"""Builds in batches over a real socket: partial, failed, expired and lost batches, kills at every step, budgets."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError, JobError
from empathy_eval.cli import main
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models import batch_api as batches
from empathy_eval.design.configuration import Configuration, load_configuration
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation import by_batch as batching
from empathy_eval.generation.build import Run, build
from empathy_eval.generation.by_batch import build_by_batch, hand_out
from empathy_eval.generation.summary import HandedOut

from tests.completions.test_openai_endpoint import config_file
from tests.conftest import copy_world
from tests.doubles.batches import FATES, BatchServer
from tests.doubles.server import Behaviour, running

POLL = 0.01
SIZE: dict[str, Any] = {"dialogues": 2, "controls": 1}


class Office:
    """Builds in batches against a server of its own."""

    def __init__(self, folder: Path, catalogue: Catalogue, prompts: Prompts) -> None:
        self.folder, self.catalogue, self.prompts = folder, catalogue, prompts
        self.server = BatchServer(Behaviour())

    def config(self, model: dict[str, Any] | None = None, **changes: Any) -> Configuration:
        model = {"batch_requests": 7, "patience_seconds": 5, **(model or {})}
        return load_configuration(config_file(self.folder, self.server.url, model, **{**SIZE, **changes}))

    def build(self, config: Configuration | None = None, wait: bool = True, name: str = "b", **run: Any) -> HandedOut:
        config = config or self.config()
        return build_by_batch(Recipe(config, self.catalogue, self.prompts), self.folder / name, Run(**run), wait=wait, poll=POLL)

    def bytes(self, name: str = "b") -> tuple[bytes, ...]:
        return tuple((self.folder / name / one).read_bytes() for one in ("outcomes.jsonl", "build.json", "configuration.json"))

    def asked_twice(self) -> int:
        """How many of the answers that were paid for were paid for before."""
        return sum(count - 1 for count in self.server.charged.values() if count)


@pytest.fixture
def office(tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> Iterator[Office]:
    office = Office(tmp_path, catalogue, prompts)
    with running(server=office.server):
        yield office


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue, prompts: Prompts) -> tuple[tuple[bytes, ...], int]:
    """The files of the plain build, and the number of requests it takes."""
    office = Office(tmp_path_factory.mktemp("plain"), catalogue, prompts)
    with running(server=office.server):
        build(Recipe(office.config(), catalogue, prompts), office.folder / "b")
        return office.bytes(), office.server.answered.total()


def whole(office: Office, plain: tuple[tuple[bytes, ...], int]) -> None:
    """The bytes are those of the plain build, every answer was paid for once, and nothing is left open."""
    assert office.bytes() == plain[0]
    assert office.server.answered.total() == plain[1] and office.asked_twice() == 0
    with Ledger(office.folder / "b" / "ledger.sqlite", create=False) as ledger:
        assert next(ledger.query("SELECT (SELECT count(*) FROM noted), (SELECT count(*) FROM batches WHERE NOT taken)")) == (0, 0)
        assert set(ledger.query("SELECT DISTINCT delivery FROM completions")) == {("batch",), ("computed",)}


def once(office: Office) -> None:
    """No file was uploaded twice."""
    assert office.server.uploads and len(set(office.server.uploads)) == len(office.server.uploads)


def test_a_build_in_batches_has_the_bytes_of_the_plain_one_and_asks_nothing_twice(
    office: Office, plain: tuple[tuple[bytes, ...], int]
) -> None:
    handed = office.build()
    assert handed.summary and dict(handed.summary.status) == {"accepted": 2} and not handed.reasons
    whole(office, plain)
    rounds = [batch["metadata"]["round"] for batch in office.server.batches.values()]
    assert sorted(set(rounds)) == ["1", "2"]
    assert {batch["metadata"]["build"] for batch in office.server.batches.values()} == {office.config().identity}
    assert max(batch["request_counts"]["total"] for batch in office.server.batches.values()) == 7
    made = len(office.server.batches)
    office.build()
    assert len(office.server.batches) == made, "a build that is done submits nothing"


def test_what_is_watched_of_batches_is_over_once_their_answers_are_in(office: Office) -> None:
    watched, at_work = [(0, 0)], set[tuple[int, int]]()
    run = Run(progress=lambda summary: at_work.add(watched[-1]))
    recipe = Recipe(office.config(), office.catalogue, office.prompts)
    build_by_batch(recipe, office.folder / "b", run, poll=POLL, watch=lambda done, total: watched.append((done, total)))
    assert max(watched) > (9, 9) and at_work == {(0, 0)}


@pytest.mark.parametrize("fate", [*FATES, "all"])
def test_what_a_batch_leaves_unanswered_goes_into_the_next_round(fate: str, office: Office, plain: tuple[tuple[bytes, ...], int]) -> None:
    office.server.fates = deque(
        ["whole", "half", "failed", "expired", "errors", "none"] if fate == "all" else ["whole", fate, "whole", fate]
    )
    handed = office.build()
    assert handed.summary and dict(handed.summary.status) == {"accepted": 2}
    assert bool(handed.reasons) == (fate != "whole")
    whole(office, plain)


@pytest.mark.e2e
def test_bad_answers_are_stored_repaired_and_sampled_again_as_in_a_live_build(office: Office) -> None:
    office.server.behaviour.faults = dict.fromkeys(("cut", "refusal", "length", "turns"), 0.1)
    office.build()
    assert office.asked_twice() == 0
    office.server.seen.clear()
    build(Recipe(office.config(), office.catalogue, office.prompts), office.folder / "live")
    assert office.bytes() == office.bytes("live")


def test_a_request_refused_for_good_is_not_asked_again_in_that_run(office: Office, plain: tuple[tuple[bytes, ...], int]) -> None:
    office.server.behaviour.faults = {"400": 0.05}
    handed = office.build()
    assert handed.summary and handed.summary.status["missing"] > 0
    assert all("refused with 400: fault 400" in one for one in handed.summary.missing)
    assert max(office.server.seen.values()) == 1
    office.server.behaviour.faults = {}
    office.build()
    whole(office, plain)


def test_a_round_that_brings_nothing_stops_with_the_providers_reason_and_the_next_run_goes_on(
    office: Office, plain: tuple[tuple[bytes, ...], int]
) -> None:
    office.server.fates = deque(["failed"])
    with pytest.raises(JobError, match="too much is queued") as caught:
        office.build()
    assert caught.value.exit_code == 1
    office.build()
    whole(office, plain)


def test_answers_that_the_provider_has_no_more_are_asked_for_again(office: Office, plain: tuple[tuple[bytes, ...], int]) -> None:
    office.build(wait=False)

    def lose(step: str) -> None:
        office.server.files.pop("batch-0-output", None)

    office.server.hook = lose
    handed = office.build()
    assert dict(handed.reasons) == {"batch-0-output of batch-0 is gone": 1}
    with Ledger(office.folder / "b" / "ledger.sqlite") as ledger:
        assert ledger.reserved(), "what is gone may have been paid for"
    assert office.bytes() == plain[0]


def test_answers_that_there_is_no_room_for_are_told_with_their_place(office: Office) -> None:
    office.server.files["large"] = b"x" * 100_000
    with pytest.raises(JobError, match="/dev/full: cannot be written: No space left"):
        batches.Batches(office.config().models["far"]).fetch("large", Path("/dev/full"))


def test_without_waiting_each_run_goes_one_step(office: Office, plain: tuple[tuple[bytes, ...], int]) -> None:
    office.server.looks = 2
    runs = 0
    while office.build(wait=False).requests:
        runs += 1
        assert runs < 30 and not (office.folder / "b" / "outcomes.jsonl").exists()
    assert runs >= 6
    whole(office, plain)


def test_a_live_build_or_one_by_hand_does_not_ask_for_what_is_under_way(office: Office) -> None:
    office.build(wait=False)
    before = office.server.seen.total()
    with pytest.raises(InputError, match="1 batches of this build are under way"):
        build(Recipe(office.config(), office.catalogue, office.prompts), office.folder / "b")
    with pytest.raises(InputError, match="1 batches of this build are under way"):
        hand_out(Recipe(office.config(), office.catalogue, office.prompts), office.folder / "b", office.folder / "r.jsonl")
    assert office.server.seen.total() == before


def test_another_build_over_the_same_ledger_does_not_ask_for_what_is_under_way(office: Office) -> None:
    shared, identity = office.folder / "b" / "ledger.sqlite", office.config().identity
    office.build(wait=False)
    other = office.config(samples=3)
    for live in (True, False):
        with pytest.raises(InputError, match=f'1 batches of the build "{identity}" are under way'):
            if live:
                build(Recipe(other, office.catalogue, office.prompts), office.folder / "other", Run(ledger=shared))
            office.build(other, name="other", ledger=shared)
    assert len(office.server.batches) == 1
    office.build()
    office.build(other, name="other", ledger=shared)
    assert office.asked_twice() == 0


@pytest.mark.parametrize("fault", ["503", "lost"])
def test_calls_that_fail_are_made_again_and_no_batch_is_made_twice(
    fault: str, office: Office, plain: tuple[tuple[bytes, ...], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "FIRST_WAIT", 0.01)
    office.server.call_fault = fault
    office.build()
    whole(office, plain)
    once(office)


STEPS = ("files", "upload", "create", "list", "look", "fetch")


def test_a_ledger_restored_from_a_copy_finds_its_batches_again(office: Office, plain: tuple[tuple[bytes, ...], int]) -> None:
    office.build()
    made = len(office.server.batches)
    office.build(name="b2")
    assert len(office.server.batches) == made and office.bytes("b2") == plain[0]
    assert office.server.answered.total() == plain[1]


def test_a_cancelled_batch_brings_what_it_answered_and_is_not_taken_up_by_another_ledger(office: Office) -> None:
    office.build(wait=False)
    office.server.batches["batch-0"] |= {**office.server.results["batch-0"], "status": "cancelled"}
    with Ledger(office.folder / "b" / "ledger.sqlite") as ledger:
        ledger.write(("UPDATE batches SET id = ?", [(None,)]))
    handed = office.build(wait=False)
    assert dict(handed.reasons) == {"batch-0 cancelled": 1} and "batch-0" not in handed.requests
    with Ledger(office.folder / "b" / "ledger.sqlite") as ledger:
        assert list(ledger.query("SELECT count(*) FROM completions WHERE delivery = 'batch'")) == [(2,)]
    given = office.build(name="new", wait=False).requests
    assert list(given.values()) == [2] and not {"batch-0", *handed.requests} & set(given)


def test_parts_in_batches_merge_to_the_bytes_of_the_whole(office: Office, plain: tuple[tuple[bytes, ...], int]) -> None:
    for number in (2, 1, 3):
        office.build(name=f"part{number}", part=(number, 3))
    ledgers = [str(office.folder / f"part{number}" / "ledger.sqlite") for number in (1, 2, 3)]
    (office.folder / "b").mkdir()
    assert main(["ledger", "merge", str(office.folder / "l.sqlite"), *ledgers]) == 0
    (office.folder / "b").rmdir()
    build(
        Recipe(office.config(), office.catalogue, office.prompts), office.folder / "b", Run(ledger=office.folder / "l.sqlite", offline=True)
    )
    assert office.bytes() == plain[0] and office.server.answered.total() == plain[1]


@pytest.mark.parametrize("unit", ["tokens", "dollars"])
def test_a_budget_is_never_exceeded_at_the_server_and_the_next_run_goes_on(
    unit: str, office: Office, plain: tuple[tuple[bytes, ...], int]
) -> None:
    config = office.config({"prices": {"input": 2.0, "output": 8.0, "batch": 0.5}})

    def used() -> float:
        tokens = office.server.tokens
        return tokens["input"] + tokens["output"] if unit == "tokens" else (tokens["input"] + 4 * tokens["output"]) / 1e6

    def limit(budget: float) -> dict[str, Any]:
        return {f"budget_{unit}": budget}

    budget = 20_000 if unit == "tokens" else 0.025
    with pytest.raises(JobError, match="has no room for another request"):
        office.build(config, **limit(budget))
    assert 0.3 * budget < used() <= budget
    office.build(config, **limit(10_000_000))
    assert office.bytes()[0] == plain[0][0] and office.asked_twice() == 0


def test_an_endpoint_without_batches_is_told_with_the_other_way(office: Office) -> None:
    office.server.batches["batch-0"] = {}
    with pytest.raises(JobError, match="build with --requests-to"):
        config = load_configuration(config_file(office.folder, office.server.url.replace("/v1", "/v2"), **SIZE))
        build_by_batch(Recipe(config, office.catalogue, office.prompts), office.folder / "b")


KILLS = [f"{when} {step}" for step in STEPS for when in ("before", "after")] + ["amid fetch"]
CALLS = [
    f"{when} {name}" for name in ("note_requests", "set_batch_id", "store_answers", "end_batch", "build") for when in ("before", "after")
]


def _run(office: Office, at: str) -> None:
    """Builds, and dies the first time the step ``at`` is reached."""
    when, name = at.split()
    if name not in STEPS:
        owner: Any = batching if hasattr(batching, name) else Ledger
        call: Callable[..., Any] = getattr(owner, name)

        def dying(*values: Any, **named: Any) -> Any:
            if when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            call(*values, **named)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(owner, name, dying)
    office.build()


def killed(office: Office, at: str) -> None:
    """A build that is killed at a step."""
    process = multiprocessing.get_context("fork").Process(target=_run, args=(office, at))

    def hook(step: str) -> None:
        if step == at and process.is_alive() and process.pid:
            os.kill(process.pid, signal.SIGKILL)

    office.server.hook = hook
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    office.server.hook = lambda step: None


@pytest.mark.parametrize("at", KILLS + CALLS)
def test_a_kill_at_any_step_pays_for_nothing_twice(at: str, office: Office, plain: tuple[tuple[bytes, ...], int]) -> None:
    killed(office, at)
    office.build()
    whole(office, plain)
    once(office)


@pytest.mark.parametrize("lists", [True, False])
def test_a_file_is_uploaded_once_though_its_batch_is_refused_for_a_while(
    lists: bool, office: Office, plain: tuple[tuple[bytes, ...], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "FIRST_WAIT", 0.01)
    office.server.lists_files, office.server.failing = lists, Counter(create=4)
    office.build()
    whole(office, plain)
    once(office)
    assert {f"requests-{one['metadata']['file']}.jsonl" for one in office.server.batches.values()} == set(office.server.uploads)


def test_a_file_that_was_uploaded_before_a_run_gave_up_is_used_by_the_next(office: Office, plain: tuple[tuple[bytes, ...], int]) -> None:
    office.server.failing["create"] = 99
    with pytest.raises(JobError, match="503: failing"):
        office.build(office.config({"patience_seconds": 0.1}))
    office.server.failing.clear()
    office.build()
    whole(office, plain)
    once(office)


def test_a_file_that_is_listed_and_not_taken_any_more_is_uploaded_again(office: Office, plain: tuple[tuple[bytes, ...], int]) -> None:
    office.server.failing["create"] = 99
    with pytest.raises(JobError):
        office.build(office.config({"patience_seconds": 0.1}))
    office.server.failing.clear()
    gone = office.server.about["file-0"]["filename"]
    del office.server.files["file-0"]
    office.server.files["another"] = b""  # so that the next name is a new one
    office.build()
    whole(office, plain)
    assert {name: many for name, many in Counter(office.server.uploads).items() if many > 1} == {gone: 2}


@pytest.mark.parametrize("at", [None, "after upload", "before create", "after create", "after set_batch_id"])
def test_where_a_gateway_drops_metadata_a_batch_is_known_by_its_uploaded_file(
    at: str | None, office: Office, plain: tuple[tuple[bytes, ...], int]
) -> None:
    office.server.drops_metadata = True
    if at:
        killed(office, at)
    office.build()
    whole(office, plain)
    once(office)


def test_where_a_batch_could_not_be_found_again_no_other_is_made_before_that_is_said(
    office: Office, plain: tuple[tuple[bytes, ...], int]
) -> None:
    office.server.drops_metadata, office.server.lists_files = True, False
    made = 0
    while True:
        try:
            office.build()
            break
        except JobError as error:
            made += 1
            assert f"batch-{made - 1} is created and recorded, but its metadata was dropped on the way" in str(error)
            assert len(office.server.batches) == made
            with Ledger(office.folder / "b" / "ledger.sqlite") as ledger:
                assert [one.id for one in ledger.open_batches()] == [f"batch-{made - 1}"]
    assert made > 1
    whole(office, plain)


# Bodies that are none of a batch, a file or a list of them, each with what is said of it.
ODD = {
    b"": "is not JSON", b"<html>busy</html>": "is not JSON", b"\xff\xfe": "is not JSON", b"[" * 100_000: "is not JSON",
    b"null": "null is not of type object", b"[]": r"\[\] is not of type object", b'"well"': '"well" is not of type object',
    b"NaN": "not of type object", b"{}": "misses", b'{"error": {"message": "overloaded", "code": 7}}': "7 overloaded",
    b'{"error": "a bad\\n\\u001b minute"}': "a bad minute", b'{"id": 7, "status": "completed", "data": 7}': "7 is not of type",
    b'{"id": "../x", "status": "completed", "data": {}}': '"../x" does not match|not of type array',
    b'{"id": "\\ud800", "status": ["completed"], "data": null}': "does not match|not of type array",
}  # fmt: skip


@pytest.mark.parametrize("step", ["files", "upload", "create", "list", "look"])
def test_a_call_that_is_answered_with_something_odd_is_made_again_and_nothing_is_made_twice(
    step: str, office: Office, plain: tuple[tuple[bytes, ...], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "FIRST_WAIT", 0.0005)
    monkeypatch.setattr(batches, "LONGEST_WAIT", 0.01)
    office.server.odd[step] = deque(ODD)
    office.build()
    assert len(office.server.odd[step]) < len(ODD)
    whole(office, plain)
    once(office)


@pytest.mark.parametrize("body", ODD)
def test_what_comes_in_the_place_of_a_batch_is_told_and_the_next_run_goes_on(
    body: bytes, office: Office, plain: tuple[tuple[bytes, ...], int]
) -> None:
    for step in ("list", "look"):
        office.server.odd = {step: deque([body] * 99)}
        with pytest.raises(JobError, match=ODD[body]) as caught:
            office.build(office.config({"patience_seconds": 0.1}))
        assert str(caught.value).startswith("batches of endpoint loopback: what came ")
        assert len(str(caught.value)) < 400 and "\x1b" not in str(caught.value)
    office.server.odd = {}
    office.build()
    whole(office, plain)


def test_a_file_name_that_is_a_number_is_told(office: Office) -> None:
    office.server.odd["look"] = deque([b'{"id": "batch-0", "status": "completed", "output_file_id": 7}'] * 99)
    with pytest.raises(JobError, match="output_file_id: 7 is not of type string or null"):
        office.build(office.config({"patience_seconds": 0.1}))


def test_a_status_that_is_not_known_is_no_end_and_not_waited_for_for_ever(office: Office, plain: tuple[tuple[bytes, ...], int]) -> None:
    office.server.odd["look"] = deque([b'{"id": "batch-0", "status": "paused"}'] * 9999)
    config = office.config({"patience_seconds": 0.3})
    assert "batch-0" in office.build(config, wait=False).requests
    with pytest.raises(JobError, match='batch-0 has the status "paused", which is none of completed, '):
        office.build(config)
    office.server.odd.clear()
    office.build()
    whole(office, plain)


@pytest.mark.parametrize(
    ("more", "status", "reason"),
    [
        ('"status": "COMPLETED", "request_counts": null, "errors": 7', "completed", ""),
        ('"status": "Canceled", "request_counts": [20], "errors": "no credit"', "cancelled", ": no credit"),
        ('"status": "in progress", "request_counts": {"total": "20", "completed": -1, "failed": 0.5}', "in_progress", ""),
        ('"status": "failed", "errors": {"data": [{"message": "too much"}]}, "metadata": "none"', "failed", ": too much"),
        ('"status": "failed", "errors": [], "output_file_id": ""', "failed", ""),
    ],
)
def test_what_is_only_shown_of_a_batch_may_be_anything(more: str, status: str, reason: str, office: Office) -> None:
    office.build(wait=False)
    office.server.odd["look"] = deque([f'{{"id": "batch-0", {more}}}'.encode()])
    state = batches.Batches(office.config().models["far"]).state("batch-0")
    assert (state.status, state.done, state.total, state.files) == (status, 0, 0, ()) and state.reason == f"batch-0 {status}{reason}"


def test_a_page_in_the_place_of_answers_ends_no_batch(office: Office, plain: tuple[tuple[bytes, ...], int]) -> None:
    office.server.odd["fetch"] = deque([b"<html>busy</html>"])
    with pytest.raises(JobError, match="batch-0 batch-0-output: line 1: is not JSON"):
        office.build()
    office.build()
    whole(office, plain)


@pytest.mark.parametrize(("after", "least"), [("1", 1), ("86400", 0), ("1e400", 0), ("-5", 0), ("soon", 0), ("0", 0)])
def test_the_wait_that_an_endpoint_asks_for_is_given_as_far_as_patience_goes(after: str, least: float, office: Office) -> None:
    office.server.failing["list"], office.server.headers = 2, {"Retry-After": after}
    start = time.monotonic()
    assert batches.Batches(office.config().models["far"]).find("none") is None
    assert 2 * least <= time.monotonic() - start < 2 * least + 3


def test_the_command_builds_in_batches_and_says_what_is_under_way(office: Office, capsys: pytest.CaptureFixture[str]) -> None:
    world = copy_world(office.folder / "scenarios")
    office.config()
    arguments = ["build", str(office.folder / "config.yaml"), "--out", str(office.folder / "b"), "--scenarios", str(world)]
    assert main([*arguments, "--no-wait"]) == 2 and "needs --batch" in capsys.readouterr().err
    office.server.looks = 0
    for _ in range(9):
        assert main([*arguments, "--batch", "--no-wait"]) == 0
        said = capsys.readouterr().out
        if "batches are under way" not in said:
            break
        assert main([*arguments, "--batch", "--no-wait", "--json"]) == 0
        capsys.readouterr()
    assert main([*arguments, "--batch", "--no-wait", "--json"]) == 0
    closing = json.loads(capsys.readouterr().out)
    assert closing["accepted"] == 2 and closing["requests"] == {}
