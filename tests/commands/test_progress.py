"""What is printed of a run while it runs, and at which second: the dead, the slow and the recovering endpoint, stops, warnings."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from empathy_eval.base.errors import EmpathyEvalError, JobError, Problem, job_error
from empathy_eval.base.stages import Stages, now, stage
from empathy_eval.base.stopping import Stopped
from empathy_eval.cli import main
from empathy_eval.commands.progress import Display, RunDisplay, StageDisplay, display_progress, display_stages, truncated
from empathy_eval.completions.asker import Asker
from empathy_eval.completions.budget import Spent
from empathy_eval.completions.models.endpoint_health import EndpointHealth
from empathy_eval.completions.models.openai_endpoint import EndpointConnection
from empathy_eval.completions.models.transport import Received
from empathy_eval.completions.requests import Notice
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.build import Run, build, opened, run_job
from empathy_eval.generation.job import Dialogues
from empathy_eval.generation.summary import RunProgress, Summary

from tests.conftest import copy_world, demo_file
from tests.doubles.clock import leaping
from tests.doubles.server import Behaviour, good_answer, running

SEEDED = {"kind": "seed-bank"}
FAR = {
    "kind": "openai", "model": "m", "endpoint": "home", "max_tokens": 500, "base_url": "http://llm.example/v1", "in_flight": 4,
    "timeout_seconds": 30, "patience_seconds": 100, "prices": {"input": 100, "output": 1000},
}  # fmt: skip

BY_HAND = Stopped([Problem("build", "stopped by Ctrl-C", "run it again")])


class Client:
    """In the place of what posts to an endpoint: no connection until ``up``; then an answer after so many seconds."""

    def __init__(self, up: float, seconds: float) -> None:
        self.up, self.seconds = up, seconds

    def __get__(self, line: EndpointConnection, owner: type[EndpointConnection]) -> Callable[[str, bytes], Awaitable[Received]]:
        self.line = line
        return self.post

    async def post(self, path: str, content: bytes) -> Received:
        if now() < self.up:
            raise aiohttp.ClientConnectorError(None, OSError()) from ConnectionRefusedError()  # type: ignore[arg-type]
        self.line.reception.connection_made()
        await asyncio.sleep(self.seconds)
        said = json.dumps(good_answer(json.loads(content), str(len(content))))
        answer = {
            "choices": [{"message": {"content": said}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 2},
        }
        return Received((), json.dumps(answer).encode())


class Lines(io.StringIO):
    """What is written, each line with the second at which it was."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = list[tuple[float, str]]()

    def write(self, text: str) -> int:
        self.seen += [(now(), line) for line in text.splitlines()]
        return len(text)


Go = Callable[..., tuple[list[tuple[float, str]], float, Summary | EmpathyEvalError]]


@pytest.fixture
def go(tmp_path: Path, catalogue: Catalogue, prompts: Prompts, monkeypatch: pytest.MonkeyPatch) -> Go:
    """Builds three dialogues, of which an endpoint writes the far variants: what was written when, when it ended, and how."""
    # The waits between attempts, without chance: the longest there are.
    monkeypatch.setattr(random, "uniform", lambda least, most: most)

    def gone(client: Client, stop_at: float = float("inf"), stop: JobError = BY_HAND, **changes: Any) -> Any:
        models = {"self_chat": SEEDED, "near": SEEDED, "far": {**FAR, **changes}}
        job = Dialogues(Recipe(load_configuration(demo_file(tmp_path, models=models)), catalogue, prompts)).resolved()
        monkeypatch.setattr(EndpointConnection, "post", client)
        run, lines = Run(), Lines()

        @contextlib.contextmanager
        def stopping(asker: Asker) -> Iterator[None]:
            handle = asyncio.get_running_loop().call_at(stop_at, setattr, asker, "stopped", stop) if stop_at < float("inf") else None
            yield
            if handle:
                handle.cancel()

        async def watched() -> tuple[float, Summary | EmpathyEvalError]:
            display = Display("build", RunDisplay(run.course), lines, terminal=False)
            with opened(job.config, tmp_path / "b", run) as (ledger, budget):
                work = asyncio.create_task(run_job(job, tmp_path / "b", run, ledger, budget, stopping))
                while not work.done():
                    display.refresh()
                    await asyncio.wait({work}, timeout=0.25)
                ended = now()
                return ended, work.exception() or work.result()  # type: ignore[return-value]

        ended, result = leaping(watched())
        return lines.seen, ended, result

    return gone


def test_a_dead_endpoint_is_reported_at_once_and_ends_the_run_after_twelve_seconds(go: Go) -> None:
    seen, ended, result = go(Client(float("inf"), 0), patience_seconds=900)
    assert seen == [
        (0.25, "build: 0 of 3 dialogues (3 begun), 43 of about 83 requests"),
        (0.25, "build: home: connection refused, trying for 12 s"),
    ]
    assert ended == pytest.approx(12, abs=0.3)
    assert isinstance(result, JobError) and result.exit_code == 1
    assert str(result).startswith(
        'models: m: no connection to endpoint "home" (llm.example) for 12 s, since the start: connection refused\n'
    )


def test_unreachable_seconds_says_how_long_and_a_reason_is_reported_once_a_minute(go: Go) -> None:
    seen, ended, result = go(Client(float("inf"), 0), patience_seconds=900, unreachable_seconds=130)
    assert [at for at, _ in seen] == [0.25, 0.25, 60.25, 60.25, 120.25, 120.25]
    assert seen[3][1] == "build: home: connection refused for 60 s, trying for 70 s more"
    assert seen[5][1] == "build: home: connection refused for 2 min, trying for 10 s more"
    assert ended == pytest.approx(130, abs=0.3) and isinstance(result, JobError)


def test_a_slow_endpoint_is_waited_for_as_its_time_out_and_patience_say(go: Go) -> None:
    seen, ended, result = go(Client(0, 3600), in_flight=200)
    # Four attempts of 30 s, with waits of 0.5, 1 and 2 s between them: the fourth begins within the hundred seconds.
    assert seen == [
        (0.25, "build: 0 of 3 dialogues (3 begun), 43 of about 83 requests"),
        (30.25, "build: home: no answer within 30 s for 30 s, trying for 70 s more"),
        (60.25, "build: 0 of 3 dialogues (3 begun), 43 of about 83 requests"),
        (90.25, "build: home: no answer within 30 s for 2 min, trying for 10 s more"),
        (120.25, "build: 0 of 3 dialogues (3 begun), 43 of about 83 requests"),
    ]
    assert ended == pytest.approx(123.5, abs=0.5)
    assert isinstance(result, Summary) and result.status == {"missing": 3} and "no answer within 30 s" in result.missing[0]


def test_an_endpoint_that_recovers_is_reported_as_down_and_then_the_run_goes_on_to_its_end(go: Go) -> None:
    # Waits of 0.5, 1, 2, 4, 8 and 16 s end at 31.5 s, and the next one, cut short, at 60 s: all is sent again then, four at a time.
    seen, ended, result = go(Client(40, 8), unreachable_seconds=60)
    assert seen == [
        (0.25, "build: 0 of 3 dialogues (3 begun), 43 of about 83 requests"),
        (0.25, "build: home: connection refused, trying for 60 s"),
        (60.25, "build: 0 of 3 dialogues (3 begun), 43 of about 83 requests"),
        (60.25, "build: home: connection refused for 60 s, trying for 40 s more"),
        (
            120.25,
            "build: 0 of 3 dialogues (3 begun), 71 of about 83 requests, 28 a minute, $0.0840, "
            "12 sent again (connection refused), 26 s left",
        ),
    ]
    assert ended == pytest.approx(140, abs=1) and isinstance(result, Summary) and result.status == {"accepted": 3}


def test_once_reached_an_outage_is_reported_with_the_patience_that_is_left_and_ends_nothing(go: Go) -> None:
    client = Client(0, 2)

    async def post(path: str, content: bytes) -> Received:
        client.up = 80 if now() >= 10 else 0
        return await Client.post(client, path, content)

    client.post = post  # type: ignore[method-assign]
    seen, _, result = go(client, patience_seconds=900)
    assert [line for _, line in seen if "home" in line] == [
        "build: home: connection refused for 5 s, trying for 15 min more",
        "build: home: connection refused for 65 s, trying for 14 min more",
    ]
    assert isinstance(result, Summary) and result.status == {"accepted": 3}


def test_cost_rate_and_time_left_are_reported_and_what_the_ledger_had(go: Go) -> None:
    slow = Client(0, 30)
    seen, _, _ = go(slow, stop_at=130, timeout_seconds=60)
    assert seen[1] == (60.25, "build: 0 of 3 dialogues (3 begun), 51 of about 83 requests, 8 a minute, $0.0240, 4 min left")
    assert seen[2] == (120.25, "build: 0 of 3 dialogues (3 begun), 59 of about 83 requests, 8 a minute, $0.0480, 3 min left")
    again, _, result = go(slow, timeout_seconds=60, in_flight=64)
    assert again[0] == (0.25, "build: 0 of 3 dialogues (3 begun), 63 of about 83 requests (63 from the ledger), $0.0600")
    assert isinstance(result, Summary) and result.status == {"accepted": 3} and result.requests == 83


@pytest.mark.parametrize("up", [float("inf"), 0])
def test_one_stop_ends_what_waits_at_once_and_says_what_it_waits_for(up: float, go: Go) -> None:
    seen, ended, result = go(Client(up, 30), stop_at=10, timeout_seconds=60)
    assert isinstance(result, JobError) and "stopped by Ctrl-C" in str(result)
    waits = [one for one in seen if "stopped" in one[1]]
    if up:
        assert ended <= 10.5 and not waits, "nothing is under way"
    else:
        assert waits == [(10.0, "build: stopped by Ctrl-C: waiting for 4 answers under way; the next Ctrl-C ends at once")]
        assert ended == pytest.approx(30, abs=0.5)


def test_a_stop_by_an_error_says_nothing_of_ctrl_c_which_is_handled_then(go: Go) -> None:
    seen, _, _ = go(Client(0, 30), stop_at=10, stop=job_error("models: m", "the key is refused", "mend it"), timeout_seconds=60)
    assert [line for _, line in seen if "waiting" in line] == ["build: the key is refused: waiting for 4 answers under way"]


def test_a_stop_by_a_signal_ends_a_run_that_only_waits_within_two_seconds(tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> None:
    far = {**FAR, "base_url": "http://127.0.0.1:9/v1"}
    config = load_configuration(demo_file(tmp_path, models={"self_chat": SEEDED, "near": SEEDED, "far": far}))
    stopped = list[float]()

    def stop() -> None:
        while not run.course.notices_at(now()):
            time.sleep(0.01)
        stopped.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    run = Run()
    threading.Thread(target=stop, daemon=True).start()
    with pytest.raises(JobError, match="stopped by Ctrl-C"):
        build(Recipe(config, catalogue, prompts), tmp_path / "b", run)
    assert time.monotonic() - stopped[0] < 2


def test_the_command_ends_with_1_and_standard_output_stays_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    far = {**FAR, "base_url": "http://127.0.0.1:9/v1", "unreachable_seconds": 1}
    config = demo_file(tmp_path, models={"self_chat": SEEDED, "near": SEEDED, "far": far})
    world = str(copy_world(tmp_path / "scenarios"))
    assert main(["build", str(config), "--out", str(tmp_path / "b"), "--scenarios", world, "--json"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert re.search(
        r"^build: 0 of 3 dialogues \(3 begun\), \d+ of about 83 requests\nbuild: home: connection refused, trying ", said.err, re.MULTILINE
    )
    assert said.err.count("\n") == 4 and "for 1 s, since the start: connection refused\n  Fix: " in said.err


def course(done: int, total: int, **counts: int) -> RunProgress:
    return RunProgress(Summary(total, status=Counter(accepted=done)), remote_counts=Counter(begun=total, accepted=done, **counts))


class Terminal(io.StringIO):
    """What is on a screen of six lines after what was written to it."""

    def screen(self) -> list[str]:
        rows, at = [""] * 6, 0
        for part in self.getvalue().replace("\r", "\r\0").split("\x1b["):
            rest = part
            if part[:1].isdigit():
                at, rest = at - int(part[0]), part[2:]
            elif part[:1] == "K":
                rows[at], rest = "", part[1:]
            elif part[:1] == "J":
                rows[at + 1 :], rest = [""] * (5 - at), part[1:]
            for sign in rest:
                at += sign == "\n"
                rows[at] += sign if sign.isprintable() else ""
        return [row for row in rows if row]


def test_on_a_terminal_the_lines_are_kept_current_and_warnings_appear_above_them() -> None:
    at, stream, run = 0.0, Terminal(), course(0, 9, expected=90)
    display = Display("build", RunDisplay(run), stream, terminal=True, clock=lambda: at)
    display.refresh()
    assert stream.screen() == ["build: 0 of 9 dialogues (9 begun), 0 of about 90 requests"]
    run.notices = (Notice("a", "home: connection refused, trying for 60 s"),)
    display.refresh()
    assert stream.screen() == [
        "build: 0 of 9 dialogues (9 begun), 0 of about 90 requests",
        "build: home: connection refused, trying for 60 s",
    ]
    at, run.remote_counts = 30.0, Counter(begun=9, expected=90, answered=30)
    display.refresh()
    assert stream.screen()[0] == "build: 0 of 9 dialogues (9 begun), 30 of about 90 requests, 1 a second, 60 s l…"
    display.handle(logging.makeLogRecord({"msg": "endpoint home:\x1b[2J slower", "levelno": logging.WARNING}))
    at, run.notices = 31.0, ()
    display.refresh()
    # The line that the warning took the place of is below it.
    assert stream.screen()[0] == "endpoint home:\\x1b[2J slower" and stream.screen()[1].startswith(
        "build: 0 of 9 dialogues (9 begun), 30 of"
    )
    display.finish()
    assert len(stream.screen()) == 2 and stream.getvalue().endswith("\n")
    wide = Terminal()
    Display("b", RunDisplay(RunProgress(notices=(Notice("a", "x" * 200),))), wide, terminal=True, clock=lambda: at).refresh()
    assert wide.screen() == ["b: getting ready", "b: " + "x" * 75 + "…"]
    assert truncated("中" * 40, 81) == "中" * 40 and truncated("中" * 40, 80) == "中" * 39 + "…"
    assert truncated("a中中中", 7) == "a中中…" and truncated("", 80) == ""


def test_elsewhere_there_is_a_line_at_once_and_then_one_a_minute() -> None:
    at, stream, run = 0.0, io.StringIO(), RunProgress()
    display = Display("build", RunDisplay(run), stream, terminal=False, clock=lambda: at)
    for tenth in range(1250):
        at = tenth / 10
        run.summary = Summary(5) if at >= 3 else None
        run.notices = (Notice("stop", "stopped"),) if at > 100 else ()
        display.refresh()
    assert stream.getvalue().splitlines() == [
        "build: getting ready", "build: 0 of 5 dialogues", "build: 0 of 5 dialogues", "build: stopped", "build: 0 of 5 dialogues",
    ]  # fmt: skip


def test_an_outage_whose_words_are_never_the_same_is_reported_once_a_minute() -> None:
    at, stream, reception = 0.0, io.StringIO(), EndpointHealth(load_configuration(Path("release/full.yaml")).models["far"])
    display = Display("build", RunDisplay(RunProgress(endpoints=(reception,))), stream, terminal=False, clock=lambda: at)
    reception.again[0] = 1e9
    for second in range(200):
        at = float(second)
        reception.no_answer_received(f"refused with 503: request {second}, try again in {second / 7} s")
        display.refresh()
    assert stream.getvalue().count("refused with 503") == 4


def test_a_batch_that_is_waited_for_a_budget_and_refusals_have_their_words() -> None:
    run = course(4, 4, expected=40, answered=41, replayed=44, rejected=1, refused=7, missing=2)
    run.spent = Spent(1234, 0)
    told = "4 of 4 dialogues, 41 of 41 requests (41 from the ledger), 1,234 tokens, 1 rejected, 2 missing, 7 answers not accepted"
    assert RunDisplay(run).state(0.0) == told
    run.batch = (3, 20_000)
    assert RunDisplay(run).state(0.0) == "3 of 20,000 requests in batches are done"


def test_what_is_shown_in_a_thread_survives_that_nobody_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stderr", Closed())
    with display_progress("build", RunDisplay(course(0, 1))):
        for _ in range(2):
            logging.getLogger("empathy_eval.x").warning("it is slower")
            time.sleep(0.2)
    assert threading.active_count() < 50 and not [one for one in threading.enumerate() if one.name == "empathy-eval progress"]


def test_a_run_says_what_it_waits_for_after_a_signal(tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> None:
    """Over a real socket: what is at the server when the run is stopped is waited for, and stored."""
    with running(Behaviour(latency=1.0)) as server:
        far = {**FAR, "base_url": server.url, "in_flight": 3}
        config = load_configuration(demo_file(tmp_path, models={"self_chat": SEEDED, "near": SEEDED, "far": far}))
        run, said = Run(), list[str]()

        def stop() -> None:
            while server.seen.total() < 3:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
            while not said:
                said.extend(one.words for one in run.course.notices_at(now()) if one.key == "stop")
                time.sleep(0.01)

        threading.Thread(target=stop, daemon=True).start()
        with pytest.raises(JobError, match="stopped by Ctrl-C"):
            build(Recipe(config, catalogue, prompts), tmp_path / "b", run)
        assert said == ["stopped by Ctrl-C: waiting for 3 answers under way; the next Ctrl-C ends at once"]
        assert server.answered.total() == 3


def test_a_stage_is_reported_with_its_count_its_time_and_what_is_left() -> None:
    at, stages = 0.0, Stages()
    work = StageDisplay(stages)
    assert work.state(at) == "getting ready"
    stages.name = "scoring"
    stages.count(2000, "scores")
    assert work.state(at) == "scoring, 0 of 2,000 scores"
    stages.done = 500
    assert work.state(20.0) == "scoring, 500 of 2,000 scores, 20 s, 60 s left"
    stages.name = "drawing the report"
    stages.count(0, "")
    assert work.state(100.0) == "drawing the report" and work.state(200.0) == "drawing the report, 2 min"


def test_stages_are_drawn_on_a_terminal_and_leave_nothing_behind() -> None:
    at, stream, stages = 0.0, Terminal(), Stages("scoring", "scores", 10, 5, 1)
    display = Display("score", StageDisplay(stages), stream, terminal=True, clock=lambda: at)
    display.refresh()
    assert stream.screen() == ["score: scoring, 5 of 10 scores"]
    at, stages.name = 2.0, ""
    display.refresh()
    assert stream.screen() == []
    written = stream.getvalue()
    at = 4.0
    display.refresh()
    assert stream.getvalue() == written, "another shows its own progress"
    at, stages.name = 6.0, "hashing files"
    display.refresh()
    assert stream.screen() != []
    display.finish()
    assert stream.screen() == []


def test_in_a_pipe_a_job_of_stages_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with display_stages("verify"):
        stage("looking for faults")
        assert not [one for one in threading.enumerate() if one.name == "empathy-eval progress"]
        time.sleep(0.3)
    assert capsys.readouterr() == ("", "")


TOLD = {
    "release": ["reading the build", "writing rows", "measuring", "drawing the report", "hashing files"],
    "report": ["scoring", "computing tables", "shortcut audit"],
    "verify": ["looking for faults of definitions, annotations and manifest", "deriving all rows and checking all texts again"],
    "score": ["scoring", "computing tables"],
    "shortcuts": ["reading texts for the shortcut audit", "shortcut audit"],
    "review": ["drawing the sample", "writing folders"],
    "publish": ["looking for faults of definitions, annotations and manifest", ""],
    "train": ["reading and learning", "measuring the model"],
}


@pytest.mark.e2e
@pytest.mark.parametrize("verb", TOLD)
def test_every_long_verb_reports_its_stages(verb: str, light: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = ["--out", str(tmp_path / "out")]
    arguments = {
        "release": [str(light.parent / "build"), *out, "--version", "1.0.0"], "report": [str(light), *out],
        "verify": [str(light), "--fast"],
        "score": [str(light), "--metric", "length", "--no-shortcuts", "--no-cache"], "shortcuts": [str(light), "--without", "embedding"],
        "review": ["export", str(light), *out, "--pairs", "3", "--dialogues", "1"], "publish": [str(light), "--dry-run"],
        "train": [str(light), *out],
    }[verb]  # fmt: skip
    told, counted = list[str | None](), Stages.count

    def noted(stages: Stages, total: int, things: str) -> None:
        told.append(stages.name)
        assert stages.done <= stages.total or not stages.total
        counted(stages, total, things)

    monkeypatch.setattr(Stages, "count", noted)
    main([verb, *arguments])
    assert [name for name in dict.fromkeys(told) if name in TOLD[verb]] == TOLD[verb]
