"""Replies of systems to contexts of a release: what is asked, what is kept, what is refused."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import empathy_eval as ee
import pytest
import yaml
from empathy_eval.base.errors import InputError, JobError
from empathy_eval.cli import main
from empathy_eval.design.dataset import split_of
from empathy_eval.evaluation.corpus.pairs import read_corpus
from empathy_eval.raters.systems.contexts import BASELINES, ContextSample, Search, draw_contexts, read_turns
from empathy_eval.raters.systems.replies import read_replied
from empathy_eval.raters.systems.responding import load_systems

from tests.doubles.forked import forkserver
from tests.doubles.models import asked_twice
from tests.doubles.server import Behaviour, running
from tests.doubles.systems import BOTH, COLD, KIND, Actor, Empty, Plain

KILLS = 3
NO_SCORES: dict[str, Any] = {"toxicity": False}


def three(release: Path) -> dict[str, Any]:
    return {name: Actor(name, release) for name in (KIND, COLD, BOTH)}


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "outcomes.jsonl").read_text().splitlines()]


def files(folder: Path) -> dict[str, bytes]:
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith("ledger")}


def test_each_system_replies_to_each_context_and_a_larger_sample_only_appends(light: Path, tmp_path: Path) -> None:
    systems = three(light)
    ee.respond(light, tmp_path / "r", systems=systems, split="all", contexts=5, **NO_SCORES)
    few = (tmp_path / "r" / "outcomes.jsonl").read_bytes()
    assert {name: one.asked for name, one in systems.items()} == dict.fromkeys((KIND, COLD, BOTH), 5)
    ee.respond(light, tmp_path / "r", systems=systems, split="all", contexts=9, **NO_SCORES)
    more = (tmp_path / "r" / "outcomes.jsonl").read_bytes()
    assert more.startswith(few) and {one.asked for one in systems.values()} == {9}
    corpus = read_corpus(light, "pairs", ("apathetic", "empathetic"))
    by_pair = {name: row for row, name in enumerate(corpus.pair_ids)}
    for row in rows(tmp_path / "r"):
        pair = {name: texts[by_pair[row["pair_id"]]] for name, texts in corpus.variants.items()}
        expected = {KIND: [pair["empathetic"]], COLD: [pair["apathetic"]], BOTH: list(pair.values())}[row["system"]]
        assert row["status"] == "accepted" and row["text"] in expected


def test_a_fourth_system_asks_nothing_of_the_first_three_and_leaves_their_rows_as_they_are(light: Path, tmp_path: Path) -> None:
    systems = three(light)
    ee.respond(light, tmp_path / "r", systems=systems, split="all", contexts=6, **NO_SCORES)
    before = rows(tmp_path / "r")
    fourth = Actor(KIND, light)
    fourth.name = "kind-2"
    fourth.answer = lambda messages, answer_schema: "I hear you, and I am here."  # type: ignore[method-assign]
    ee.respond(light, tmp_path / "r", systems={**systems, "fourth": fourth}, split="all", contexts=6, **NO_SCORES)
    assert {one.asked for one in systems.values()} == {6}
    assert [row for row in rows(tmp_path / "r") if row["system"] != "fourth"] == before
    assert sum(row["system"] == "fourth" for row in rows(tmp_path / "r")) == 6


def test_baselines_are_what_they_are_called_and_ask_nobody(light: Path, tmp_path: Path) -> None:
    ee.respond(light, tmp_path / "r", baselines=True, split="all", contexts=None, **NO_SCORES)
    found = read_replied(tmp_path / "r")
    assert found.systems == BASELINES and not any(row.request_key or row.usage for row in found.rows)
    corpus, turns = read_corpus(light, "pairs", ("apathetic", "empathetic")), list(read_turns(light))
    by_pair = {name: row for row, name in enumerate(corpus.pair_ids)}
    for one in found.contexts:
        place, texts = by_pair[one.pair_id], {name: some.get(one.pair_id) for name, some in found.texts.items()}
        assert texts["reference"] == corpus.references[place] == one.reference
        assert texts["empathetic"] == corpus.variants["empathetic"][place] and texts["echo"] == one.turns[-1][1]
        split = {turn[3]: turn[0] for turn in turns}
        if texts["bm25"]:
            assert split[texts["bm25"]] != one.split == split_of(one.dialogue_id)
    lacking = [row for row in found.rows if row.text is None]
    assert all(row.status == "rejected" and row.reasons == ("none_there",) for row in lacking)


def test_bm25_is_the_formula_of_its_source() -> None:
    documents = [["rain", "again", "rain"], ["sun"], ["rain", "sun", "wind", "cold"]]
    found = Search(documents).scores(["rain"])
    mean = (3 + 1 + 4) / 3
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    expected = [idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / mean)) for tf, length in ((2, 3), (0, 1), (1, 4))]
    assert found == pytest.approx(expected)
    assert Search(documents).best(["sun"], found >= 0) == 1


def test_the_sample_is_even_over_scenarios_and_another_seed_draws_another(light: Path) -> None:
    one, same, other = (draw_contexts(light, ContextSample("all", 6, seed))[0] for seed in (0, 0, 7))
    assert one == same != other
    assert len({context.scenario_id for context in one}) == len({context.phase for context in one}) == 3
    assert all(context.turns[-1][0] == "seeker" and context.register for context in one)


def test_a_system_is_sent_its_prompt_and_the_turns_and_no_key_is_written(
    light: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYSTEM_KEY", "sk-secret-of-the-test")
    with running(server=Plain(Behaviour(key="sk-secret-of-the-test"))) as server:
        assert isinstance(server, Plain)
        assert main(["respond", str(light), "--systems", str(file_of(tmp_path, server.url)), "--out", str(tmp_path / "r"), *SMALL]) == 0
        assert len(server.bodies) == 3 and "response_format" not in server.bodies[0]
        roles = [message["role"] for message in server.bodies[0]["messages"]]
        assert server.bodies[0]["messages"][0] == {"role": "system", "content": "Be there."} and roles[-1] == "user"
        assert not any(one == other for one, other in zip(roles, roles[1:], strict=False))
        sent = json.dumps(server.bodies)
    assert "one, two" not in sent and not any(b"sk-secret" in content for content in files(tmp_path / "r").values())
    assert b"sk-secret" not in (tmp_path / "r" / "ledger.sqlite").read_bytes()
    assert {row["text"] for row in rows(tmp_path / "r")} == {"I hear how hard that is for you tonight."}


SMALL = ["--split", "all", "--contexts", "3", "--no-toxicity"]


def file_of(folder: Path, url: str, **more: Any) -> Path:
    """The file of one system at an address."""
    model = {
        "kind": "openai", "model": "m", "endpoint": "loop", "base_url": url, "max_tokens": 50, "api_key_env": "SYSTEM_KEY",
        "timeout_seconds": 2, "patience_seconds": 0, **more,
    }  # fmt: skip
    path = folder / "systems.yaml"
    path.write_text(yaml.safe_dump({"systems": [{"name": "one, two".replace(",", ""), "system_prompt": "Be there.", "model": model}]}))
    return path


@pytest.mark.parametrize(("option", "in_flight"), [("--budget-tokens=1500", 1), ("--budget-tokens=1500", 8), ("--budget-usd=1.5", 8)])
def test_a_budget_is_never_exceeded_and_more_of_it_goes_on(
    option: str, in_flight: int, light: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYSTEM_KEY", "k")
    with running(server=Plain()) as server:
        path = file_of(tmp_path, server.url, prices={"input": 1000.0, "output": 1000.0}, in_flight=in_flight)
        command = ["respond", str(light), "--systems", str(path), "--out", str(tmp_path / "r"), *SMALL]
        assert main([*command, option]) == 1
        # A thousand tokens are a dollar.
        assert server.tokens["input"] + server.tokens["output"] <= 1500
        assert main(command) == 0
        assert server.answered.total() == 3 and set(server.answered.values()) == {1}


def test_a_system_that_never_answers_is_missing_and_the_others_are_kept(
    light: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SYSTEM_KEY", "k")
    with running(Behaviour(faults={"500": 1.0})) as server:
        path = file_of(tmp_path, server.url)
        status = main(["respond", str(light), "--systems", str(path), "--baselines", "--out", str(tmp_path / "r"), *SMALL])
    said = capsys.readouterr()
    assert status == 1 and "one two: 0 replies, 3 missing" in said.out and "fault 500" in said.out
    assert Counter((row["system"], row["status"]) for row in rows(tmp_path / "r"))["echo", "accepted"] == 3
    assert read_replied(tmp_path / "r").texts["one two"] == {}


def test_a_system_that_answers_empty_is_told_and_stops_the_run_once_twenty_replies_are_nothing(light: Path, tmp_path: Path) -> None:
    ee.respond(light, tmp_path / "few", systems={"mute": Empty()}, split="all", contexts=4, **NO_SCORES)
    assert {(row["status"], *row["reasons"]) for row in rows(tmp_path / "few")} == {("rejected", "empty")}
    mute = {"mute": Empty(), "kind": Actor(KIND, light)}
    with pytest.raises(JobError, match='the first 20 replies all failed, most often because of: "mute": empty'):
        ee.respond(light, tmp_path / "r", systems=mute, split="all", contexts=None, **NO_SCORES)
    ee.respond(light, tmp_path / "r", systems={"kind": mute["kind"]}, split="all", contexts=None, **NO_SCORES)
    assert len(rows(tmp_path / "r")) == mute["kind"].asked  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("systems", "problem"),
    [
        ([{"name": "a", "model": {"kind": "x:Y"}}, {"name": "a", "model": {"kind": "x:Z"}}], 'the system "a" is there 2 times'),
        ([{"name": "Near Empathetic", "model": {"kind": "x:Y"}}], '"Near Empathetic" is the name of a baseline'),
        ([{"name": "a", "model": {"kind": "seed-bank"}}], '"seed-bank" holds dialogues and cannot reply'),
        ([{"name": "a/b", "model": {"kind": "x:Y"}}], "write up to 60 letters"),
        ([], "list one system or more"),
        (
            [{"name": name, "model": {"kind": "openai", "model": "m", "base_url": f"http://{name}/v1"}} for name in "ab"],
            'the models on endpoint "main" are delivered in different ways',
        ),
    ],
)
def test_a_file_of_systems_that_is_wrong_is_refused_with_how_to_mend_it(systems: list[Any], problem: str, tmp_path: Path) -> None:
    path = tmp_path / "systems.yaml"
    path.write_text(yaml.safe_dump({"systems": systems}))
    with pytest.raises(InputError) as refused:
        load_systems(path)
    assert problem in str(refused.value)


def test_a_changed_release_a_changed_system_and_another_split_are_refused_and_nothing_is_lost(light: Path, tmp_path: Path) -> None:
    systems = {KIND: {"system_prompt": "One.", "model": {"kind": "tests.doubles.systems:Empty"}}}
    ee.respond(light, tmp_path / "r", systems=systems, split="all", contexts=2, **NO_SCORES)
    before = files(tmp_path / "r")
    changed = tmp_path / "release"
    shutil.copytree(light, changed)
    manifest = json.loads((changed / "manifest.json").read_text())
    (changed / "manifest.json").write_text(json.dumps({**manifest, "seal": "s1-" + "0" * 64}))
    for release, more, problem in (
        (changed, {}, f"not to demo 0.1.0 (seal s1-{'0' * 64})"),
        (light, {"split": "train"}, 'of the split "all", not "train"'),
        (light, {"systems": {KIND: {**systems[KIND], "system_prompt": "Two."}}}, 'of "kind" with another system_prompt'),
        (light, {"systems": None}, "there is nobody to reply"),
    ):
        given: dict[str, Any] = {"systems": systems, "split": "all", "contexts": 2, **NO_SCORES, **more}
        with pytest.raises(InputError) as refused:
            ee.respond(release, tmp_path / "r", **given)
        assert problem in str(refused.value)
    assert files(tmp_path / "r") == before


def test_a_row_of_a_context_that_is_not_there_and_a_changed_file_are_refused(light: Path, tmp_path: Path) -> None:
    ee.respond(light, tmp_path / "r", baselines=True, split="all", contexts=2, **NO_SCORES)
    path = tmp_path / "r" / "outcomes.jsonl"
    path.write_text(path.read_text().replace(rows(tmp_path / "r")[0]["pair_id"], "999-seed-t01"))
    with pytest.raises(InputError, match="was changed after the replies were made"):
        read_replied(tmp_path / "r")
    header = json.loads((tmp_path / "r" / "build.json").read_text())
    from empathy_eval.base.hashing import digest_file

    (tmp_path / "r" / "build.json").write_text(json.dumps({**header, "outcomes": digest_file(path)}))
    with pytest.raises(InputError, match='"999-seed-t01" is not a context of these replies'):
        read_replied(tmp_path / "r")


def test_the_checks_of_helpers_are_noted_and_refuse_nothing(light: Path, tmp_path: Path) -> None:
    canary = json.loads((light / "manifest.json").read_text())["canary"]
    texts = {"model": "As an AI, I cannot help with that.", "copy": f"empathy-eval canary GUID {canary}", "plain": "I am with you in this."}
    functions = {name: (lambda messages, text=text: text) for name, text in texts.items()}
    ee.respond(light, tmp_path / "r", systems=functions, split="all", contexts=3)
    for row in rows(tmp_path / "r"):
        checks = row["checks"]
        assert (checks["refusal"], checks["canary"]) == (row["system"] == "model", row["system"] == "copy")
        assert row["status"] == "accepted" and 0 <= checks["toxicity"] <= 1 and checks["words"] > 3


def test_a_preview_sends_nothing_and_counts_by_system(light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file_of(tmp_path, "http://localhost:9/v1", prices={"input": 1.0, "output": 2.0})
    command = ["respond", str(light), "--systems", str(path), "--out", str(tmp_path / "r"), *SMALL, "--preview"]
    assert main([*command, "-n", "1", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert [(one["kind"], one["requests"]) for one in made["estimates"]] == [("one two", 3)] and len(made["requests"]) == 1
    assert made["requests"][0]["body"]["messages"][0]["content"] == "Be there." and not (tmp_path / "r").exists()


def test_requests_written_to_a_file_are_answered_by_hand(light: Path, tmp_path: Path) -> None:
    path = file_of(tmp_path, "http://localhost:9/v1")
    command = ["respond", str(light), "--systems", str(path), "--out", str(tmp_path / "r"), *SMALL]
    assert main([*command, "--requests-to", str(tmp_path / "ask.jsonl")]) == 0
    asked = [json.loads(line) for line in (tmp_path / "ask.jsonl").read_text().splitlines()]
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    choice = {"index": 0, "message": {"role": "assistant", "content": "I am listening to all of it."}, "finish_reason": "stop"}
    answers = [
        {"id": "a", "custom_id": one["custom_id"], "error": None,
         "response": {"status_code": 200, "request_id": "r", "body": {"model": "m", "choices": [choice], "usage": usage}}}
        for one in asked
    ]  # fmt: skip
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(one) + "\n" for one in answers))
    assert main(["ledger", "import", str(tmp_path / "r" / "ledger.sqlite"), str(tmp_path / "answers.jsonl")]) == 0
    assert main([*command, "--offline"]) == 0
    assert {row["text"] for row in rows(tmp_path / "r")} == {"I am listening to all of it."}


def replied_slowly(release: Path, out: Path, log: Path) -> None:
    systems = {name: Actor(name, release, log, 0.02) for name in (KIND, COLD, BOTH)}
    ee.respond(release, out, systems=systems, split="all", contexts=12, **NO_SCORES)


def killed(release: Path, folder: Path, kills: int) -> int:
    """How often replying was killed, of so many times; then it comes to its end."""
    out, log, rng, done = folder / "r", folder / "log", random.Random(1), 0
    log.touch()
    for number in range(kills + 1):
        process = forkserver().Process(target=replied_slowly, args=(release, out, log))
        asked = log.stat().st_size
        process.start()
        if number < kills:
            while process.is_alive() and log.stat().st_size == asked:
                time.sleep(0.002)
            time.sleep(rng.uniform(0, 0.05))
            if process.is_alive() and process.pid:
                os.kill(process.pid, signal.SIGKILL)
                done += 1
        process.join()
    assert process.exitcode == 0
    return done


@pytest.mark.parametrize("kills", [pytest.param(KILLS, marks=pytest.mark.e2e), pytest.param(20, marks=pytest.mark.long)])
def test_kills_lose_nothing_and_give_the_same_bytes(kills: int, light: Path, tmp_path: Path) -> None:
    replied_slowly(light, tmp_path / "whole", tmp_path / "once")
    times = killed(light, tmp_path, kills)
    assert times >= 1
    assert files(tmp_path / "r") == files(tmp_path / "whole")
    # Each model has 8 requests at once at most.
    assert asked_twice(tmp_path / "log") <= times * 3 * 8
