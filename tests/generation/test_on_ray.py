"""Builds and scores over Ray: the bytes and the values of the plain way, and nothing is lost with a worker."""

from __future__ import annotations

import asyncio
import os
import pickle
import pty
import random
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError, JobError, input_error, job_error
from empathy_eval.base.workers import local_ray, map_over_ray, ray_session, unwrapped_ray_errors
from empathy_eval.cli import main
from empathy_eval.completions.budget import Spent
from empathy_eval.completions.ledger import Ledger, LedgerEntry, row_of
from empathy_eval.completions.models.custom import GuardedModel
from empathy_eval.completions.models.openai_endpoint import EndpointConnection, OpenAIEndpoint
from empathy_eval.completions.requests import About, Completion, Notice, Usage
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.endpoints import ModelConfig
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation import on_ray as engine
from empathy_eval.generation.build import Run, build, mark_answering
from empathy_eval.generation.on_ray import Coordinator, Rows, build_on_ray, lane_config
from empathy_eval.metrics.lexical import RougeL
from empathy_eval.metrics.ngrams import Bleu
from empathy_eval.metrics.protocol import MeanMetric, Metric
from empathy_eval.metrics.scoring import ScoreCache, Scoring, statistics_of

from tests.completions.test_openai_endpoint import config_file
from tests.conftest import copy_world
from tests.doubles.server import Behaviour, Server, running
from tests.generation.test_build import bytes_of
from tests.metrics.test_scoring import of, pairs

ray = pytest.importorskip("ray", reason="Ray is not installed")
pytestmark = pytest.mark.e2e
DIALOGUES, IN_FLIGHT, ROOT = 16, 16, Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Ray with two workers for the tests of this module; its workers find the tests too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        with ray_session(workers=2) as connected:
            yield connected


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue, prompts: Prompts) -> dict[str, bytes]:
    """The bytes of the build without Ray."""
    folder = tmp_path_factory.mktemp("plain")
    with running() as server:
        build(Recipe(load_configuration(config(folder, server)), catalogue, prompts), folder / "b")
    return bytes_of(folder / "b")


def config(folder: Path, server: Server, **model: Any) -> Path:
    return config_file(folder, server.url, {"in_flight": IN_FLIGHT, "timeout_seconds": 20, **model}, dialogues=DIALOGUES)


def asked_again(server: Server) -> int:
    return server.seen.total() - len(server.seen)


def parents(pid: int) -> Iterator[int]:
    while pid > 1:
        yield (pid := int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]))


def at_work() -> list[int]:
    """The processes of this test's own Ray that work on a slice."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::run_shard") and os.getpid() in parents(int(path.parent.name)):
                found.append(int(path.parent.name))
        except OSError:  # it has ended
            continue
    return found


def test_two_workers_give_the_bytes_of_the_plain_build_within_the_bounds_of_the_endpoint(
    cluster: Any, plain: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = copy_world(tmp_path / "scenarios")
    with running(Behaviour(latency=0.02)) as server:
        path = config(tmp_path, server, in_flight=5)
        assert main(["build", str(path), "--out", str(tmp_path / "b"), "--scenarios", str(world), "--engine", "ray"]) == 0
    assert f"{DIALOGUES} planned" in capsys.readouterr().out and bytes_of(tmp_path / "b") == plain
    # Five in flight among two workers are two for each.
    assert asked_again(server) == 0 and 2 < server.peak <= 4


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_killed_workers_slice_is_done_again_and_what_was_answered_is_not_asked_again(
    cluster: Any, plain: dict[str, bytes], tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    killed = list[int]()

    def kill() -> None:
        while server.answered.total() < 40 or not (found := at_work()):
            time.sleep(0.02)
        os.kill(found[0], signal.SIGKILL)
        killed.append(found[0])

    with running(Behaviour(latency=0.1)) as server:
        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        build_on_ray(Recipe(load_configuration(config(tmp_path, server)), catalogue, prompts), tmp_path / "b")
        killer.join(1)
    assert killed and bytes_of(tmp_path / "b") == plain
    # One worker has half of what may be in flight.
    assert asked_again(server) <= IN_FLIGHT // 2


def test_what_ray_says_of_a_lost_worker_is_not_in_standard_output() -> None:
    script = (
        "import os, time\nfrom empathy_eval.base.workers import ray_session, unwrapped_ray_errors\n"
        "from empathy_eval.base.errors import JobError\n"
        "with ray_session(workers=1) as ray:\n"
        "    try:\n"
        "        with unwrapped_ray_errors(ray):\n"
        "            ray.get(ray.remote(lambda: os._exit(1)).options(max_retries=0).remote())\n"
        "    except JobError:\n"
        "        time.sleep(1)\n"
        "print('{}')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "{}\n" and "died" in done.stderr


def test_a_share_of_the_pace_is_a_fraction_where_it_must_be(tmp_path: Path) -> None:
    part = lane_config(
        load_configuration(config(tmp_path, Server(Behaviour(), "http://x/v1"), requests_per_minute=3, tokens_per_minute=9)), 4
    )
    assert {(one.in_flight, one.requests_per_minute, one.tokens_per_minute) for one in part.models.values()} == {(4, 0.75, 2.25)}


def test_a_budget_is_never_exceeded_and_the_next_run_goes_on(
    cluster: Any, plain: dict[str, bytes], tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    budget = 100_000
    with running() as server:
        configuration = load_configuration(config(tmp_path, server))
        with pytest.raises(JobError, match=f"the budget of {budget} tokens has no room"):
            build_on_ray(Recipe(configuration, catalogue, prompts), tmp_path / "b", Run(budget_tokens=budget))
        assert 0 < server.tokens["input"] + server.tokens["output"] <= budget
        build(Recipe(configuration, catalogue, prompts), tmp_path / "b")
        assert bytes_of(tmp_path / "b") == plain and asked_again(server) == 0


# What a slice does with a 400 is what a plain build does, which is tried in make check.
@pytest.mark.long
def test_what_is_refused_with_a_400_is_missing_with_its_reason_and_not_asked_again(
    cluster: Any, tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    with running(Behaviour(faults={"400": 0.05})) as server:
        configuration = load_configuration(config(tmp_path, server))
        summary = build_on_ray(Recipe(configuration, catalogue, prompts), tmp_path / "b")
        assert summary.missing and all("refused with 400: fault 400" in one for one in summary.missing)
        assert summary.status.total() == DIALOGUES and asked_again(server) == 0


def test_a_refused_key_ends_the_run_with_its_error(cluster: Any, tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> None:
    with running(Behaviour(key="secret")) as server, pytest.raises(JobError, match="refuses the key in OPENAI_API_KEY") as caught:
        build_on_ray(Recipe(load_configuration(config(tmp_path, server)), catalogue, prompts), tmp_path / "b")
    assert len(caught.value.problems) == 1


class Slow(Coordinator):
    """A keeper that takes its time to store."""

    async def put(self, rows: Rows) -> bool:
        await asyncio.sleep(1)
        return await super().put(rows)


class OnceOutOfQuota(Server):
    """A server that says so once, after so many requests."""

    most = 40

    def _fault(self, name: str, attempt: int) -> str | None:
        return "quota" if self.seen.total() > self.most and not self.statuses["429"] else None


# A stop that reaches a keeper in mid work is tried in make check, with a keeper that takes less time.
@pytest.mark.long
def test_what_a_slice_was_paid_for_is_stored_after_the_error_of_another(
    cluster: Any, tmp_path: Path, catalogue: Catalogue, prompts: Prompts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "Coordinator", Slow)
    with running(server=OnceOutOfQuota(Behaviour(latency=0.3))) as server:
        with pytest.raises(JobError, match="the quota is used up"):
            build_on_ray(Recipe(load_configuration(config(tmp_path, server)), catalogue, prompts), tmp_path / "b")
        answered = server.answered.total()
    with Ledger(tmp_path / "b" / "ledger.sqlite", create=False) as ledger:
        assert list(ledger.query("SELECT count(*) FROM completions WHERE model = 'm'")) == [(answered,)]
        # Scores of what was judged come in too, so that no replay has to make them.
        assert list(ledger.query("SELECT count(*) > 10 FROM completions WHERE delivery = 'computed'")) == [(1,)]


# The full forty take minutes.
STOPS = int(os.environ.get("STOPS", "2"))


@contextmanager
def after(server: Server, requests: int, act: Callable[[], None]) -> Iterator[None]:
    """Acts once, when the server has seen so many requests."""

    def wait() -> None:
        while server.seen.total() < requests:
            time.sleep(0.005)
        act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    yield
    thread.join(1)


@contextmanager
def busy_loops(number: int, server: Server) -> Iterator[None]:
    """From its first request on a server has so many processes beside it that do nothing but keep a core busy."""
    loops = list[subprocess.Popen[bytes]]()

    def begin() -> None:
        loops.extend(subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(number))

    try:
        # What Ray's workers load before they ask for anything takes a minute under load.
        with after(server, 1, begin):
            yield
    finally:
        for one in loops:
            one.kill()
            one.wait()


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.sampled
@pytest.mark.parametrize("number", range(STOPS))
def test_every_answer_before_a_stop_in_mid_work_is_in_the_ledger(
    cluster: Any,
    plain: dict[str, bytes],
    tmp_path: Path,
    catalogue: Catalogue,
    prompts: Prompts,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    rng = random.Random(number)
    # Each way with each other way, eight in all; the first two are under no load, which takes long.
    by_hand, slow, loaded = number % 2, number // 2 % 2, number % 8 in (2, 4, 5, 7)
    if slow:
        monkeypatch.setattr(engine, "Coordinator", Slow)
    server, moment = OnceOutOfQuota(Behaviour(latency=rng.uniform(0.05, 0.5))), rng.randint(1, 120)
    server.most = 10_000 if by_hand else moment
    with running(server=server):
        configuration = load_configuration(config(tmp_path, server))
        with (
            busy_loops(2 * loaded, server),
            after(server, moment, interrupt if by_hand else lambda: None),
            pytest.raises(JobError, match="stopped by Ctrl-C" if by_hand else "the quota is used up"),
        ):
            build_on_ray(Recipe(configuration, catalogue, prompts), tmp_path / "b")
        with Ledger(tmp_path / "b" / "ledger.sqlite", create=False) as ledger:
            assert list(ledger.query("SELECT count(*) FROM completions WHERE model = 'm'")) == [(server.answered.total(),)]
        server.behaviour.latency = 0
        build(Recipe(configuration, catalogue, prompts), tmp_path / "b")
    assert bytes_of(tmp_path / "b") == plain and max(server.answered.values()) == 1


class Reticent(Coordinator):
    """A keeper that takes its time to tell how the slices are going."""

    async def totals(self) -> tuple[Counter[str], Spent, tuple[Notice, ...]]:
        await asyncio.sleep(2)
        return await super().totals()


def test_slices_that_only_wait_hear_of_a_stop_and_it_is_told(
    cluster: Any, tmp_path: Path, catalogue: Catalogue, prompts: Prompts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "Coordinator", Reticent)
    stopped, run = list[float](), Run()

    def stop() -> None:
        stopped.append(time.monotonic())
        interrupt()

    with running(Behaviour(faults={"429": 1}, retry_after=0.5)) as server, after(server, 40, stop):
        with pytest.raises(JobError, match="stopped by Ctrl-C"):
            build_on_ray(Recipe(load_configuration(config(tmp_path, server)), catalogue, prompts), tmp_path / "b", run)
        assert [one.words.partition(":")[0] for one in run.course.notices] == ["stopped by Ctrl-C"]
        # Their patience is 60 seconds.
        assert time.monotonic() - stopped[0] < 20 and not server.answered


# A stop that reaches the build alone is tried in make check; this one waits for slices of three seconds an answer.
@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="makes a terminal")
@pytest.mark.parametrize("way", ["Ctrl-C", "SIGHUP", "SIGTERM"])
def test_a_stop_that_reaches_a_ray_of_ones_own_too_loses_nothing(way: str, tmp_path: Path) -> None:
    with running(Behaviour(latency=3)) as server, in_a_terminal(server, tmp_path) as (process, terminal):
        with after(server, 20, lambda: stop_group(way, terminal, process.pid)):
            said = all_said(process, terminal)
        assert process.returncode == 1 and f"stopped by {way}" in said and "Traceback" not in said
        answered = server.answered.total()
    with Ledger(tmp_path / "b" / "ledger.sqlite", create=False) as ledger:
        assert list(ledger.query("SELECT count(*) FROM completions WHERE model = 'm'")) == [(answered,)]


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="makes a terminal")
def test_a_second_interrupt_does_not_wait(tmp_path: Path) -> None:
    times = list[float]()

    def twice(terminal: int) -> None:
        for _ in range(2):
            os.write(terminal, b"\x03")
            times.append(time.monotonic())
            time.sleep(0.5)

    with running(Behaviour(latency=60)) as server, in_a_terminal(server, tmp_path) as (process, terminal):
        with after(server, 3, lambda: twice(terminal)):
            said = all_said(process, terminal)
        assert process.returncode == 1 and f"stopped; {engine.WARN_LOST}; run" in " ".join(said.split()) and "Traceback" not in said
    assert time.monotonic() - times[1] < 10


IN_A_TERMINAL = "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from empathy_eval.cli import entry; entry()"


@contextmanager
def in_a_terminal(server: Server, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A build over a Ray of its own, and the terminal that it runs in."""
    world, (terminal, its_end) = copy_world(folder / "scenarios"), pty.openpty()
    command = ["build", str(config(folder, server, timeout_seconds=90)), "--out", str(folder / "b"), "--scenarios", str(world)]
    command = [sys.executable, "-c", IN_A_TERMINAL, *command, "--engine", "ray"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=its_end, stdout=its_end, stderr=its_end, start_new_session=True)
    try:
        yield process, terminal
    finally:
        process.kill()
        process.wait()
        os.close(its_end)
        os.close(terminal)


def stop_group(way: str, terminal: int, group: int) -> None:
    """What a user, a shell and a batch system do to all processes of a command."""
    if way == "Ctrl-C":
        os.write(terminal, b"\x03")
    else:
        os.killpg(group, signal.Signals[way])


def all_said(process: subprocess.Popen[bytes], terminal: int) -> str:
    """Reads from a terminal until the process in it has ended."""
    said = b""
    while process.poll() is None or select.select([terminal], [], [], 0)[0]:
        if select.select([terminal], [], [], 0.1)[0]:
            said += os.read(terminal, 1 << 16)
    return said.decode()


class Full(Coordinator):
    """A keeper without room."""

    async def put(self, rows: Rows) -> bool:
        raise job_error("ledger.sqlite", "cannot be written: disk full", "make room")


def test_a_slice_whose_answers_cannot_be_stored_sends_nothing_more(
    cluster: Any, tmp_path: Path, catalogue: Catalogue, prompts: Prompts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "Coordinator", Full)
    with running(Behaviour(latency=0.2)) as server:
        with pytest.raises(JobError, match="disk full"):
            build_on_ray(Recipe(load_configuration(config(tmp_path, server, in_flight=4)), catalogue, prompts), tmp_path / "b")
        # Two workers have two under way each; unheard, they would go on to the end of their slices, with 70 requests and more.
        assert server.seen.total() <= 20


async def test_a_slice_that_begins_after_the_stop_ends_at_once_and_none_waits_for_it(tmp_path: Path) -> None:
    keeper, configuration = Coordinator(), load_configuration(config(tmp_path, Server(Behaviour(), "http://x/v1")))
    await keeper.open(configuration, tmp_path / "b", Run())
    await keeper.begin(1, [])
    assert not await keeper.put([]) and not await keeper.stopping()
    assert await keeper.stop() == {1}
    assert await keeper.put([]) and await keeper.stopping()
    with pytest.raises(JobError, match="stopped with the other slices"):
        await keeper.begin(2, [])
    await keeper.close()


async def test_the_keeper_tells_how_all_slices_are_going(tmp_path: Path) -> None:
    keeper, configuration = Coordinator(), load_configuration(config(tmp_path, Server(Behaviour(), "http://x/v1")))
    await keeper.open(configuration, tmp_path / "b", Run())
    down = Notice("home: connection refused", "home: connection refused for 9 s, trying for 51 s more")
    for number in (1, 2):
        await keeper.begin(number, [])
        await keeper.report(number, Counter(answered=number, accepted=1), (down,))
    assert await keeper.answering() == set()
    await keeper.put([row_of(LedgerEntry("s1-a", About("d", "far_empathetic", 1), Completion("{}", "stop", "m", Usage(7, 0, 3))))])
    assert await keeper.answering() == {"m"}
    assert await keeper.totals() == (Counter(answered=3, accepted=2), Spent(10, 0.0), (down,))
    for number in (1, 2):
        await keeper.end(number)
    assert (await keeper.totals())[2] == ()
    await keeper.close()


def test_an_endpoint_that_answered_one_slice_is_waited_for_by_those_that_begin_later() -> None:
    lines = {name: EndpointConnection(ModelConfig("openai", name, name), lambda: None) for name in "mn"}
    models = {name: OpenAIEndpoint(ModelConfig("openai", name, name), None, line, lambda: None) for name, line in lines.items()}  # type: ignore[arg-type]
    mark_answering({**models, "o": GuardedModel(models["m"])}, {"m", "o"})
    assert [line.reception.answered for line in lines.values()] == [True, False]


async def test_room_that_a_lost_worker_waited_for_is_given_back(tmp_path: Path) -> None:
    keeper, configuration = Coordinator(), load_configuration(config(tmp_path, Server(Behaviour(), "http://x/v1")))
    assert await keeper.open(configuration, tmp_path / "b", Run(budget_tokens=100))
    for number in (1, 2):
        await keeper.begin(number, [])
    await keeper.reserve(1, "a", "m", Usage(60))
    waiting = asyncio.create_task(keeper.reserve(2, "b", "m", Usage(60)))
    await asyncio.sleep(0)
    await keeper.begin(2, [])
    await keeper.settle(1, "a", Usage(10), True)
    await waiting
    async with asyncio.timeout(5):
        await keeper.reserve(2, "c", "m", Usage(90))
        with pytest.raises(JobError, match="has no room"):
            await keeper.settle(2, "c", Usage(90), True)
            await keeper.reserve(1, "d", "m", Usage(1))
    await keeper.close()


def test_scores_are_the_same_and_kept_ones_are_not_scored_again(cluster: Any, tmp_path: Path) -> None:
    table, cache, spread = pairs(1200), ScoreCache(tmp_path / "scores.sqlite"), map_over_ray(cluster)
    metrics: list[Metric] = [Bleu(), RougeL(), Length()]
    here, there = statistics_of(metrics, table), statistics_of(metrics, table, Scoring(cache, spread))
    assert all(of(here[name]) == of(there[name]) for name in ("BLEU-4", "ROUGE-L", "length of text"))
    kept = statistics_of([Refusing()], table, Scoring(cache, spread))
    assert of(kept["length of text"]) == of(here["length of text"])
    fault = statistics_of([Refusing()], table, Scoring(spread=spread))["length of text"].fault
    assert fault and fault.where == "017-00001-t00, near" and "asked again" in fault.what and fault.texts == 2400


class Length(MeanMetric):
    """A metric whose scores are kept."""

    name, signature, reads, keep = "length of text", "v:1", (), True

    def score(self, text: str, *read: Any) -> float:
        return len(text)


class Refusing(Length):
    """The same by its settings; it fails when it is asked."""

    def score(self, text: str, *read: Any) -> float:
        raise ValueError("asked again")


def test_the_command_prints_the_same_numbers(cluster: Any, released: Any, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["score", str(released[0]), "--metric", "rouge-l", "--no-cache", "--json", "--engine"]
    assert main([*command, "ray"]) == 0
    there = capsys.readouterr().out
    assert main([*command, "local"]) == 0 and capsys.readouterr().out == there


def test_errors_travel_as_they_are(cluster: Any) -> None:
    error = input_error(About("017-00001", "self_chat"), "is bad", "mend it")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is InputError and again.problems == error.problems and str(again) == str(error)

    def fail() -> None:
        raise error

    with pytest.raises(InputError) as caught, unwrapped_ray_errors(cluster):
        ray.get(ray.remote(fail).remote())
    assert caught.value.problems == error.problems


@pytest.mark.parametrize("way", [["--offline"], ["--slice", "1/2"], ["--batch"], ["--requests-to", "r.jsonl"]])
def test_other_ways_to_build_are_refused_beside_ray(way: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", str(ROOT / "release" / "demo.yaml"), "--out", str(tmp_path / "b"), "--engine", "ray", *way]) == 2
    assert "only builds a whole plan live" in capsys.readouterr().err and not (tmp_path / "b").exists()


def test_an_address_without_ray_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["build", str(ROOT / "release" / "demo.yaml"), "--out", str(tmp_path / "b"), "--ray-address"]
    assert main([*command, "auto"]) == 2
    assert "needs --engine ray" in capsys.readouterr().err


class Unstartable:
    """A Ray that cannot be started, and remembers where that was tried."""

    exceptions, folder = ray.exceptions, ""

    def init(self, *, _temp_dir: str, **_: Any) -> None:
        self.folder = _temp_dir
        raise OSError("AF_UNIX path length cannot exceed 107 bytes")

    def shutdown(self) -> None:
        pass


def test_a_ray_of_ones_own_has_its_sockets_where_their_paths_are_short_and_says_why_it_cannot_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "x")
    tried = Unstartable()
    with pytest.raises(JobError, match='no Ray can be started in "/tmp/ray-[^"/]*": AF_UNIX path length') as caught, local_ray(tried, 1):
        pass
    assert caught.value.exit_code == 1 and not Path(tried.folder).exists()


def test_local_builds_never_load_ray_and_errors_say_how_to_get_it_and_where_to_run(tmp_path: Path) -> None:
    script = (
        "import sys; from empathy_eval.cli import main\n"
        "demo, out = sys.argv[1:]\n"
        "assert main(['build', demo, '--out', out + '/a']) == 0 and 'ray' not in sys.modules\n"
        "address = ['--ray-address', 'ray://head:10001']\n"
        "assert main(['build', demo, '--out', out + '/b', '--engine', 'ray', *address]) == 2\n"
        "assert main(['build', demo, '--out', out + '/b', '--engine', 'ray', '--ray-address', '127.0.0.1:1']) == 2\n"
        "sys.modules['ray'] = None\n"
        "assert main(['build', demo, '--out', out + '/b', '--engine', 'ray']) == 2\n"
    )
    command = [sys.executable, "-c", script, str(ROOT / "release" / "demo.yaml"), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "pip install -e '" in done.stderr and "[ray]'" in done.stderr and "Ray Client, which cannot see the ledger" in done.stderr
    assert 'no cluster answers at "127.0.0.1:1"' in done.stderr
