"""Real requests over a real socket: every fault alone and all together, kills, budgets, secrets."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from empathy_eval.base.errors import InputError, JobError, job_error
from empathy_eval.base.schemas import schema
from empathy_eval.cli import main
from empathy_eval.completions.ledger import Ledger
from empathy_eval.design.configuration import Configuration, load_configuration
from empathy_eval.design.kinds import ALL_KINDS, REWARD, SCORE, Kind, rewritings
from empathy_eval.design.language import english
from empathy_eval.design.planning import plans
from empathy_eval.design.prompts import Prompts, load_prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.generation import rewriting
from empathy_eval.generation.build import Run, build
from empathy_eval.generation.checks import built_in as checks
from empathy_eval.generation.outcomes import Outcome
from empathy_eval.generation.rewriting import messages, scenes
from empathy_eval.generation.summary import Summary

from tests.conftest import copy_world
from tests.doubles.forked import forkserver
from tests.doubles.server import BAD_ANSWER, NO_ANSWER, Behaviour, Server, running

# A dialogue takes ten requests; those that are killed again and again, or timed, need more to do.
DIALOGUES, LONG = 12, 60
ROOT = Path(__file__).parent.parent.parent
MODEL = {
    "kind": "openai",
    "model": "m",
    "endpoint": "loopback",
    "max_tokens": 2000,
    # Whole answers, on a machine that does other things besides.
    "timeout_seconds": 2.0,
    "patience_seconds": 60,
    "in_flight": 32,
}


def config_file(folder: Path, url: str, model: dict[str, Any] | None = None, **changes: Any) -> Path:
    raw = {
        "name": "drawn", "plan": "drawn", "seed": 1, "dialogues": DIALOGUES, "surplus": 0, "controls": 6, "turns": {"min": 8, "max": 10},
        "phase_order": "anchored", "models": dict.fromkeys(("self_chat", "near", "far"), {**MODEL, "base_url": url, **(model or {})}),
        "near_apathetic": "model", "samples": 4, "repairs": 1, "report": {"bootstrap": 10},
        "checks": {
            "helper_words_at_least": 8, "edit_ratio_below": 0.3, "overlap_at_most": 0.35,
            "toxicity": {"scorer": "alt-profanity-check", "at_most": 0.5},
        },
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump({**raw, **changes}))
    return folder / "config.yaml"


class Bench:
    """Builds against a server, each in a folder of its own."""

    def __init__(self, folder: Path, catalogue: Catalogue, prompts: Prompts) -> None:
        self.folder, self.catalogue, self.prompts = folder, catalogue, prompts

    def config(self, server: Server, model: dict[str, Any] | None = None, **changes: Any) -> Configuration:
        return load_configuration(config_file(self.folder, server.url, model, **changes))

    def build(self, name: str, config: Configuration, **run: Any) -> Summary:
        return build(Recipe(config, self.catalogue, self.prompts), self.folder / name, Run(**run))

    def outcomes(self, name: str) -> bytes:
        return (self.folder / name / "outcomes.jsonl").read_bytes()


@pytest.fixture
def bench(tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> Bench:
    return Bench(tmp_path, catalogue, prompts)


def without_faults(bench: Bench, dialogues: int) -> tuple[bytes, int]:
    """The outcomes without any fault, and the number of requests they take."""
    with running() as server:
        summary = bench.build("b", bench.config(server, dialogues=dialogues))
        assert dict(summary.status) == {"accepted": dialogues}
        return bench.outcomes("b"), server.answered.total()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue, prompts: Prompts) -> tuple[bytes, int]:
    return without_faults(Bench(tmp_path_factory.mktemp("plain"), catalogue, prompts), DIALOGUES)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue, prompts: Prompts) -> tuple[bytes, int]:
    return without_faults(Bench(tmp_path_factory.mktemp("long"), catalogue, prompts), LONG)


# The full hundred takes minutes.
KILLS = int(os.environ.get("KILLS", "4"))
FAULTS = [*NO_ANSWER, *BAD_ANSWER]


@pytest.mark.parametrize("fault", [*NO_ANSWER, "all"])
def test_without_an_answer_the_same_request_is_sent_again_and_the_outcomes_are_the_same(
    fault: str, bench: Bench, plain: tuple[bytes, int]
) -> None:
    faults = {one: 0.2 / len(NO_ANSWER) for one in NO_ANSWER} if fault == "all" else {fault: 0.2}
    with running(Behaviour(faults=faults, retry_after=0.02)) as server:
        summary = bench.build("b", bench.config(server))
        assert dict(summary.status) == {"accepted": DIALOGUES}
        assert bench.outcomes("b") == plain[0]
        assert max(server.answered.values()) == 1 and server.answered.total() == plain[1]
        assert server.seen.total() > server.answered.total(), "the fault was there"


def first_good(server: Server, folder: Path) -> None:
    """Every accepted text is what the first good answer in the ledger said."""
    outcomes = [json.loads(line) for line in (folder / "outcomes.jsonl").read_text().splitlines()]
    with Ledger(folder / "ledger.sqlite", create=False) as ledger:
        for outcome in (one for one in outcomes if one["status"] == "accepted"):
            bad = {failure["request_key"] for failure in outcome["failures"]}
            assert outcome["dialogue"]["request_key"] not in bad
            answer = ledger.get(outcome["dialogue"]["request_key"])
            assert answer and [turn["text"] for turn in json.loads(answer.text.strip("`json\n"))["turns"]] == [
                turn["text"] for turn in outcome["dialogue"]["turns"]
            ]
            for pair in outcome["pairs"]:
                for name in ("apathetic", "empathetic", "near_empathetic", "far_apathetic"):
                    if pair[name]:
                        key = pair[name]["request_key"]
                        answer = ledger.get(key)
                        assert key not in bad and answer and json.loads(answer.text.strip("`json\n"))["text"] == pair[name]["text"]


@pytest.mark.parametrize("fault", [*BAD_ANSWER, "all"])
def test_a_bad_answer_is_stored_repaired_or_sampled_again_and_the_first_good_one_is_taken(fault: str, bench: Bench) -> None:
    faults = {one: 0.2 / len(FAULTS) for one in FAULTS} if fault == "all" else {fault: 0.2}
    with running(Behaviour(faults=faults, retry_after=0.02)) as server:
        summary = bench.build("b", bench.config(server))
        assert sum(summary.status.values()) == DIALOGUES and summary.status["missing"] == 0
        assert summary.status["accepted"] > 0.9 * DIALOGUES
        first_good(server, bench.folder / "b")
        with Ledger(bench.folder / "b" / "ledger.sqlite", create=False) as ledger:
            stored = list(ledger.query("SELECT finish FROM completions WHERE model = 'm'"))
        assert len(stored) == server.answered.total(), "every answer is kept, none was asked for again under its key"


def test_a_400_leaves_its_item_missing_with_the_providers_reason_and_is_not_asked_again(bench: Bench) -> None:
    with running(Behaviour(faults={"400": 0.02})) as server:
        summary = bench.build("b", bench.config(server))
        assert summary.status["missing"] > 0 and sum(summary.status.values()) == DIALOGUES
        assert all("refused with 400: fault 400" in one for one in summary.missing)
        refused = server.statuses["400"]
        assert server.seen.total() == server.answered.total() + refused
        server.behaviour.faults.clear()
        assert dict(bench.build("b", bench.config(server)).status) == {"accepted": DIALOGUES}
        assert max(server.answered.values()) == 1


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("401", "refuses the key in OPENAI_API_KEY"),
        ("403", "may not do this"),
        ("quota", "the quota is used up"),
        ("404", "does not have this"),
    ],
)
def test_what_makes_going_on_senseless_stops_the_run_at_once_with_everything_kept(fault: str, said: str, bench: Bench) -> None:
    with running(Behaviour(faults={fault: 0.01})) as server:
        with pytest.raises(JobError) as caught:
            bench.build("b", bench.config(server))
        assert said in str(caught.value) and "run the same command to continue" in str(caught.value) and caught.value.exit_code == 1
        assert server.seen.total() < 700
        before = server.answered.total()
        server.behaviour.faults.clear()
        assert dict(bench.build("b", bench.config(server)).status) == {"accepted": DIALOGUES}
        assert max(server.answered.values()) == 1 and server.answered.total() > before


def test_after_an_answer_that_cannot_be_stored_only_what_is_at_the_server_is_still_paid_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, room = Ledger.commit, iter(range(20))

    async def full(self: Ledger, rows: list[tuple[object, ...]]) -> None:
        if any("live" in row and next(room, None) is None for row in rows):
            raise job_error(self.path, "cannot be written: full", "make room")
        await commit(self, rows)

    with running(Behaviour(latency=0.05)) as server:
        config = bench.config(server, {"in_flight": 4, "timeout_seconds": 20})
        monkeypatch.setattr(Ledger, "commit", full)
        with pytest.raises(JobError, match="cannot be written: full"):
            bench.build("b", config)
        assert server.seen.total() == server.answered.total() <= 20 + 2 * 4
        monkeypatch.undo()
        assert dict(bench.build("b", config).status) == {"accepted": DIALOGUES}


def test_what_is_at_the_server_when_the_outcomes_cannot_be_written_is_stored(bench: Bench) -> None:
    def full(summary: Summary) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with running(Behaviour(latency=0.05)) as server:
        with pytest.raises(JobError, match=r"outcomes.jsonl: cannot be written: No space left"):
            bench.build("b", bench.config(server, {"in_flight": 8, "timeout_seconds": 20}), progress=full)
        assert server.seen.total() == server.answered.total()
        answered = server.answered.total()
    with Ledger(bench.folder / "b" / "ledger.sqlite", create=False) as ledger:
        assert list(ledger.query("SELECT count(*) FROM completions WHERE model = 'm'")) == [(answered,)]


def test_after_an_error_in_a_check_nothing_more_is_asked(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> float:
        raise job_error("checks", "are broken", "mend them")

    monkeypatch.setattr(rewriting, "toxicity", broken)
    monkeypatch.setattr(checks, "toxicity", broken)
    with running(Behaviour(latency=0.05)) as server:
        with pytest.raises(JobError, match="are broken"):
            bench.build("b", bench.config(server, {"in_flight": 2, "timeout_seconds": 20}))
        assert server.seen.total() == server.answered.total() < DIALOGUES / 2


def test_a_request_that_waits_for_its_turn_when_the_run_is_stopped_is_not_sent_and_keeps_no_room(bench: Bench) -> None:
    with running(Behaviour(faults={"quota": 1.0}, latency=0.2)) as server:
        for run in ({}, {"budget_tokens": 10_000_000}):
            with pytest.raises(JobError, match="the quota is used up"):
                bench.build("b", bench.config(server, {"in_flight": 3, "timeout_seconds": 20}), **run)
        assert server.seen.total() == 2 * 3
    with Ledger(bench.folder / "b" / "ledger.sqlite", create=False) as ledger:
        assert ledger.reserved() == []


def test_a_server_that_is_gone_leaves_items_missing_when_patience_ends(bench: Bench) -> None:
    with running() as server:
        config = bench.config(server, {"patience_seconds": 0.2, "timeout_seconds": 30})
    summary = bench.build("b", config, budget_tokens=10_000_000)
    assert summary.status["missing"] == DIALOGUES and summary.missing[0].endswith(": connection refused")
    with Ledger(bench.folder / "b" / "ledger.sqlite", create=False) as ledger:
        assert ledger.reserved() == [], "where there is no connection nothing is asked"


def test_a_server_that_asks_for_no_wait_at_all_is_not_stormed(bench: Bench) -> None:
    with running(Behaviour(faults={"429": 1.0}, retry_after=0)) as server:
        bench.build("b", bench.config(server, {"patience_seconds": 2}, dialogues=1))
        assert 3 <= server.seen.total() <= 20


def test_a_stop_is_heard_while_all_answers_come_from_the_ledger(bench: Bench) -> None:
    with running() as server:
        config = bench.config(server)
        bench.build("b", config)

    def once(summary: Summary) -> None:  # a second Ctrl-C would not wait
        if summary.status.total() == 1:
            os.kill(os.getpid(), signal.SIGINT)

    for offline in (True, False):
        with pytest.raises(JobError, match="stopped by Ctrl-C"):
            bench.build("b", config, offline=offline, window=2, progress=once)


def _build(world: Path, config: Path, out: Path) -> None:
    build(Recipe(load_configuration(config), load_catalogue(world), load_prompts()), out)


@pytest.mark.e2e
@pytest.mark.sampled
def test_a_hundred_kills_pay_for_nothing_twice_but_what_was_in_flight(tmp_path: Path, long: tuple[bytes, int]) -> None:
    world = copy_world(tmp_path / "scenarios")
    context = forkserver()
    rng, in_flight = random.Random(4), 0
    with running(Behaviour(latency=0.04)) as server:
        config = config_file(tmp_path, server.url, dialogues=LONG)
        for _ in range(KILLS):
            process = context.Process(target=_build, args=(world, config, tmp_path / "b"))
            before = server.seen.total()
            process.start()
            until = time.monotonic() + 20
            while server.seen.total() == before and process.is_alive() and time.monotonic() < until:
                time.sleep(0.002)
            time.sleep(rng.uniform(0, 0.06))
            # What the server has taken up and the ledger may not have yet: at most what may be in flight.
            in_flight += 32
            if process.is_alive() and process.pid:
                os.kill(process.pid, signal.SIGKILL)
            process.join()
            if process.exitcode == 0:
                break
        _build(world, config, tmp_path / "b")
        assert (tmp_path / "b" / "outcomes.jsonl").read_bytes() == long[0]
        assert long[1] <= server.answered.total() <= long[1] + in_flight
        assert server.answered.total() - long[1] < 0.9 * in_flight


@pytest.mark.quiet
def test_a_capped_server_is_used_to_its_cap_with_nothing_missing(bench: Bench, long: tuple[bytes, int]) -> None:
    bench.build("warm", bench.config(server=Server(Behaviour(), url="http://127.0.0.1:9"), model={"patience_seconds": 0}))
    with running(Behaviour(cap=200)) as server:
        config = bench.config(server, dialogues=LONG)
        begin = time.monotonic()
        summary = bench.build("b", config)
        took = time.monotonic() - begin
    assert dict(summary.status) == {"accepted": LONG} and bench.outcomes("b") == long[0]
    assert took <= 1.3 * long[1] / 200 + 0.7  # 0.7 s of start and end, in which nothing can be sent


@pytest.mark.quiet
def test_an_answer_costs_a_build_hardly_more_cpu_than_it_costs_the_bare_client() -> None:
    command = [sys.executable, "-m", "benchmarks.endpoint", "--dialogues", "130", "--latency", "0.05"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout.splitlines()
    figures = {name: json.loads(values) for name, values in (line.split(maxsplit=1) for line in lines)}
    assert figures["build"]["requests"] >= 2_000
    # About 0.9 now. When prompts, garbage and bodies were gone through again and again it was 1.6.
    assert figures["build"]["cpu_ms"] <= 1.25 * figures["openai"]["cpu_ms"], figures


@pytest.mark.quiet
def test_sporadic_429s_do_not_slow_the_rest(bench: Bench, long: tuple[bytes, int]) -> None:
    took: dict[float, list[float]] = {0.0: [], 0.05: []}
    for turn in range(3):  # in turns, and the quickest of each: what the machine does besides only ever adds
        for share, seconds in took.items():
            with running(Behaviour(faults={"429": share}, retry_after=0.1, latency=0.1)) as server:
                config = bench.config(server, dialogues=LONG)
                begin = time.monotonic()
                assert dict(bench.build(f"b{share}-{turn}", config).status) == {"accepted": LONG}
                seconds.append(time.monotonic() - begin)
                assert server.answered.total() == long[1]
    assert min(took[0.05]) <= 1.3 * min(took[0.0])


def test_requests_a_minute_are_bounded(bench: Bench) -> None:
    with running() as server:
        config = bench.config(server, {"requests_per_minute": 6000}, dialogues=12)
        begin = time.monotonic()
        bench.build("b", config)
        # 100 a second, and a second's worth at once
        assert time.monotonic() - begin >= server.answered.total() / 100 - 1


def test_models_that_share_an_endpoint_share_its_bounds(bench: Bench) -> None:
    with running(Behaviour(latency=0.02)) as server:
        bench.build("b", bench.config(server, {"in_flight": 7}, dialogues=12))
        assert server.peak == 7


@pytest.mark.parametrize("faults", [{}, {"reset": 0.05, "500": 0.05}])
def test_a_budget_is_never_exceeded_at_the_server_and_the_next_run_goes_on(
    faults: dict[str, float], bench: Bench, plain: tuple[bytes, int]
) -> None:
    prices = {"input": 1.0, "output": 4.0}
    with running(Behaviour(faults=faults)) as server:
        config = bench.config(server, {"prices": prices})

        def dollars() -> float:
            return (server.tokens["input"] * 1.0 + server.tokens["output"] * 4.0) / 1e6

        for budget in (0.05, 0.2):
            with pytest.raises(JobError, match=f"the budget of \\${budget:.2f} has no room"):
                bench.build("b", config, budget_dollars=budget)
            assert 0.5 * budget < dollars() <= budget
        summary = bench.build("b", config, budget_dollars=500.0)
        assert dict(summary.status) == {"accepted": DIALOGUES}
        assert bench.outcomes("b") == plain[0] and max(server.answered.values()) == 1


def test_a_budget_in_dollars_without_prices_is_an_error(bench: Bench) -> None:
    with running() as server, pytest.raises(InputError, match="a budget in dollars needs prices"):
        bench.build("b", bench.config(server), budget_dollars=1.0)


def test_structure_by_instruction_sends_no_schema_and_by_schema_does(bench: Bench) -> None:
    from empathy_eval.completions.budget import make_budget
    from empathy_eval.completions.models import make_models

    with running() as server, Ledger(bench.folder / "l") as ledger:
        for structure in ("schema", "instruction"):
            config = bench.config(server, {"structure": structure})
            body = make_models(Recipe(config, bench.catalogue, bench.prompts), make_budget(config, ledger, None, None))["far"].body(
                [], "variant_answer"
            )
            assert ("response_format" in body) == (structure == "schema")


# What the strict modes of providers know, as far as our answers use it.
STRICT = {"type", "properties", "required", "additionalProperties", "items", "enum"}


def keywords(shape: dict[str, Any]) -> set[str]:
    """The keywords of a schema and of those in it."""
    inner = [*shape.get("properties", {}).values(), *([shape["items"]] if "items" in shape else [])]
    return set(shape).union(*map(keywords, inner))


@pytest.mark.parametrize(
    "kind", [kind for kind in ALL_KINDS.values() if kind.answer and kind not in (SCORE, REWARD)], ids=lambda kind: kind.name
)
def test_a_schema_that_is_sent_has_no_words_for_those_who_read_its_file(kind: Kind, bench: Bench) -> None:
    from empathy_eval.completions.budget import make_budget
    from empathy_eval.completions.models import make_models

    with Ledger(bench.folder / "l") as ledger:
        config = bench.config(Server(Behaviour(), "http://localhost:9/v1"))
        model = make_models(Recipe(config, bench.catalogue, bench.prompts), make_budget(config, ledger, None, None))["far"]
    written = schema(kind.answer)
    sent = model.body([], kind.answer)["response_format"]["json_schema"]
    assert sent == {"name": kind.answer, "strict": True, "schema": {name: one for name, one in written.items() if name in STRICT}}
    assert keywords(sent["schema"]) <= STRICT
    commented = {"rating", "preference", "crossed", "crossed_check"}
    assert ("$comment" in written) == (kind.name in commented), "the file keeps its comment"


def running_commands() -> bytes:
    """The command lines of all processes."""
    commands = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            commands += path.read_bytes()
    return commands


@pytest.mark.e2e
def test_the_key_is_nowhere_but_in_the_request(tmp_path: Path) -> None:
    secret = "sk-very-secret-0123456789"  # noqa: S105
    world = copy_world(tmp_path / "scenarios")
    for key, expected in ((secret, 0), ("sk-another-9876543210", 1)):
        with running(Behaviour(key=secret)) as server:
            config = config_file(tmp_path, server.url, {"api_key_env": "TEST_KEY"}, dialogues=3, controls=1)
            command = [
                sys.executable,
                "-m",
                "empathy_eval",
                "build",
                str(config),
                "--out",
                str(tmp_path / f"b{expected}"),
                "--scenarios",
                str(world),
            ]
            process = subprocess.Popen(command, env={**os.environ, "TEST_KEY": key}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            titles = b""
            while process.poll() is None:
                titles += running_commands()
                time.sleep(0.2)
            printed = process.stdout.read() if process.stdout else b""
        assert process.returncode == expected, printed
        left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        for hidden in (secret, key):
            assert hidden.encode() not in printed + titles + left


def test_preview_shows_exact_requests_estimates_and_sends_nothing(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    world = copy_world(bench.folder / "scenarios")
    with running() as server:
        path = config_file(bench.folder, server.url, {"prices": {"input": 1, "output": 2}})
        assert main(["preview", str(path), "-n", "2", "--scenarios", str(world), "--json"]) == 0
        assumed = json.loads(capsys.readouterr().out)
        assert server.seen.total() == 0
        build(Recipe(load_configuration(path), load_catalogue(world), bench.prompts), bench.folder / "b")
        answered = server.answered.total()
        assert (
            main(
                [
                    "preview",
                    str(path),
                    "-n",
                    "2",
                    "--scenarios",
                    str(world),
                    "--ledger",
                    str(bench.folder / "b" / "ledger.sqlite"),
                    "--json",
                ]
            )
            == 0
        )
        observed = json.loads(capsys.readouterr().out)
        assert server.answered.total() == answered
    assert assumed["stand_ins"] == ["003-00000", "003-00001"] and observed["stand_ins"] == []
    with Ledger(bench.folder / "b" / "ledger.sqlite", create=False) as ledger:
        assert all(ledger.get(request["key"]) for request in observed["requests"]), "these are the requests that were sent"
        (tokens,) = next(iter(ledger.query("SELECT sum(input_tokens) + sum(output_tokens) FROM completions")))
    assert sum(one["requests"] for one in observed["estimates"]) == answered
    guessed = sum(one["usage"]["input_tokens"] + one["usage"]["output_tokens"] for one in observed["estimates"])
    assert guessed == pytest.approx(int(str(tokens)), rel=0.01)
    assert all(one["dollars"] > 0 and one["observed"] for one in observed["estimates"])


def test_ledger_show_adds_up(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    with running(Behaviour(faults={"length": 0.1})) as server:
        config = bench.config(server, {"prices": {"input": 1, "output": 2}}, dialogues=6)
        bench.build("b", config)
        ledger = str(bench.folder / "b" / "ledger.sqlite")
        assert main(["ledger", "show", ledger, "--config", str(bench.folder / "config.yaml"), "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        asked = [row for row in rows if row["model"] == "m"]
        assert sum(row["answers"] for row in asked) == server.answered.total()
        assert sum(row["usage"]["input_tokens"] for row in asked) == server.tokens["input"]
        assert {row["finish"] for row in asked} == {"stop", "length"}
        assert main(["ledger", "show", ledger]) == 0
        assert "no prices" in capsys.readouterr().out


@pytest.mark.e2e
def test_uncached_tokens_are_at_most_half_of_the_whole_dialogue_each_time(
    bench: Bench, record_property: Callable[[str, object], None]
) -> None:
    with running(Behaviour(prefix_cache=True)) as server:
        config = bench.config(server, turns={"min": 12, "max": 22}, dialogues=16)
        summary = bench.build("b", config)
        uncached = server.tokens["input"] - server.tokens["cached"]
    # The plain way: the same instructions, and the whole dialogue in every request.
    plain, planned = 0, {plan.dialogue_id: plan.turns for plan in plans(config, bench.catalogue)}
    for line in bench.outcomes("b").decode().splitlines():
        dialogue = Outcome.from_json(json.loads(line)).dialogue
        for scene in scenes(dialogue, planned[dialogue.dialogue_id], english()) if dialogue else ():
            whole = replace(scene, context=dialogue.turns if dialogue else ())
            for kind in rewritings(controls=False):
                plain += len(json.dumps(messages(Recipe(config, bench.catalogue, bench.prompts), kind, whole))) // 4
    record_property("uncached_tokens_a_pair", round(uncached / summary.pairs))
    record_property("plain_tokens_a_pair", round(plain / summary.pairs))
    assert uncached <= 0.5 * plain
