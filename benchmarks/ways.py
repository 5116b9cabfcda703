"""Every way to fill a ledger, at any size: each must give the bytes of the plain build, and ask for nothing twice.

``python -m benchmarks.ways --dialogues 3063`` builds plainly, then with failing requests and kills, in slices, over Ray, by batches that
fail and with a kill at each step, and by hand; all through the command line against the loopback server. ``--plain DIR`` takes a build
that ``benchmarks.rehearsal --keep`` left.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from empathy_eval.base.hashing import derived_random
from empathy_eval.cli import main as command_line
from empathy_eval.generation import by_batch as batching

from benchmarks.memory import family
from benchmarks.rehearsal import REQUESTS_A_DIALOGUE, configuration
from benchmarks.seeded import SeededServer
from tests.doubles.batches import BatchServer, reply
from tests.doubles.server import NO_ANSWER, Behaviour, running

FILES = ("outcomes.jsonl", "build.json", "configuration.json")
IN_FLIGHT, KILLS, PARTS, SHARE_LOST = 256, 5, 16, 0.05
LOST = {fault: SHARE_LOST / 5 for fault in NO_ANSWER if fault != "silence"}
# Where a build by batches is killed: at what it asks of the server, and at what it does by itself.
ASKED = [f"{when} {step}" for step in ("upload", "create", "list", "look", "fetch") for when in ("before", "after")] + ["amid fetch"]
DONE = [f"{when} {step}" for step in ("note", "named", "take", "ended", "build") for when in ("before", "after")]
DYING = "EMPATHY_EVAL_BENCHMARK_DIES"


class Answering(SeededServer, BatchServer):
    """The seeds' server, with batches."""


class World:
    """One way: a folder, a server and the command."""

    def __init__(self, folder: Path, dialogues: int, server: Answering) -> None:
        folder.mkdir(parents=True)
        self.folder, self.dialogues, self.server, self.out = folder, dialogues, server, folder / "build"
        self.config = configuration(folder, dialogues, IN_FLIGHT)

    def start(self, verb: str, *arguments: str | Path, dying: str = "") -> subprocess.Popen[bytes]:
        """Starts a verb in a process of its own."""
        command = [sys.executable, "-m", "benchmarks.ways", "--verb", verb, *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, DYING: dying})

    def build(self, *options: str | Path, out: Path | None = None, dying: str = "") -> subprocess.Popen[bytes]:
        """Starts a build."""
        where = ("--out", out or self.out, "--model", "rehearsal", "--base-url", self.server.url, "--json")
        return self.start("build", self.config, *where, *options, dying=dying)

    def wait_until(self, share: float, process: subprocess.Popen[bytes]) -> None:
        """Waits until about this share of all requests came, or the process has ended."""
        while self.server.seen.total() < share * REQUESTS_A_DIALOGUE * self.dialogues and process.poll() is None:
            time.sleep(0.1)


def done(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """What a process printed; a run that fails ends all."""
    told = process.communicate()[0]
    if process.returncode:
        raise SystemExit(f"{process.args!r}: exit status {process.returncode}")
    found: dict[str, Any] = json.loads(told)
    return found


def killed(world: World) -> str:
    """5 % of requests fail, and the build is killed five times."""
    for number in range(1, KILLS + 1):
        process = world.build()
        world.wait_until(number / (KILLS + 1), process)
        process.kill()
        process.communicate()
    done(world.build())
    return f"{KILLS} kills, at most {KILLS * IN_FLIGHT} in flight"


def sliced(world: World) -> str:
    """16 slices in random order, two at a time."""
    parts = list(range(1, PARTS + 1))
    derived_random(0, "order").shuffle(parts)
    folders = {part: world.folder / f"slice-{part}" for part in parts}
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda part: done(world.build("--slice", f"{part}/{PARTS}", out=folders[part])), parts))
    merged = world.folder / "merged.sqlite"
    done(world.start("ledger", "merge", merged, *(folders[part] / "ledger.sqlite" for part in parts), "--json"))
    done(world.build("--ledger", merged, "--offline"))
    return f"{PARTS} slices"


def on_ray(world: World) -> str:
    """Over Ray, one worker a core."""
    done(world.build("--engine", "ray"))
    return f"{os.cpu_count()} workers"


def on_ray_killed(world: World) -> str:
    """Over Ray; a worker is killed in the middle."""
    process = world.build("--engine", "ray")
    world.wait_until(0.5, process)
    at_work = [pid for pid in family(process.pid) if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::run_shard")]
    os.kill(at_work[0], signal.SIGKILL)
    done(process)
    return f"1 of {len(at_work)} workers killed, at most {IN_FLIGHT // len(at_work)} in flight"


def batched(world: World) -> str:
    """By batches, one half answered and one expired, with a kill at each step."""
    world.server.fates.extend(("half", "expired"))
    waiting, kills = [*ASKED, *DONE], 0
    while True:
        at = waiting[0] if waiting else ""
        process = world.build("--batch", "--no-wait", dying=at)
        world.server.hook = lambda step, at=at, process=process: process.kill() if step == at else None  # type: ignore[misc]
        told = process.communicate()[0]
        if process.returncode == -signal.SIGKILL:
            kills += 1
            waiting.remove(at)
        elif process.returncode:
            raise SystemExit(f"exit status {process.returncode}")
        elif not json.loads(told)["requests"]:
            return f"{kills} kills, {len(world.server.batches)} batches" + (f", never at: {', '.join(waiting)}" if waiting else "")
        else:  # that step did not come in this run
            waiting.append(waiting.pop(0)) if waiting else None


def by_hand(world: World) -> str:
    """Requests and answers carried in files."""
    for number in range(1, 100):
        files = done(world.build("--requests-to", world.folder / f"round-{number}.jsonl"))["requests"]
        if not files:
            return f"{number - 1} rounds"
        for file in files:
            with Path(file).open("rb") as lines, Path(f"{file}.answers").open("w", encoding="utf-8") as answers:
                for request in map(json.loads, lines):
                    status, body = reply(world.server, request["body"])
                    answers.write(json.dumps({"custom_id": request["custom_id"], "response": {"status_code": status, "body": body}}) + "\n")
        done(world.start("ledger", "import", world.out / "ledger.sqlite", *(f"{file}.answers" for file in files), "--json"))
    raise SystemExit("no end")


def plain(world: World) -> str:
    """The plain build."""
    done(world.build())
    return ""


WAYS: dict[str, Callable[[World], str]] = {
    "plain": plain, "killed": killed, "slices": sliced, "ray": on_ray, "ray-killed": on_ray_killed, "batch": batched, "hand": by_hand,
}  # fmt: skip


def tried(name: str, folder: Path, dialogues: int, wanted: dict[str, bytes]) -> dict[str, Any]:
    """One way: its figures, and whether it gave the bytes of the plain build (the first fills them in, and has none to compare with)."""
    server, begin = Answering(Behaviour(LOST if name == "killed" else {})), time.perf_counter()
    with running(server=server):
        world = World(folder / name, dialogues, server)
        told = WAYS[name](world)
    found = {file: (world.out / file).read_bytes() for file in FILES}
    same = found == wanted if wanted else None
    wanted.update(found if same is None else {})
    answers = {"answers": server.answered.total(), "answered_twice": server.answered.total() - len(server.answered)}
    return {"way": name, "wall_s": round(time.perf_counter() - begin, 1), "same_bytes": same, **answers, "about": told}


def main(arguments: Sequence[str] | None = None) -> None:
    """Tries the ways and prints a line each; exit status 1 if one gave other bytes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialogues", type=int, default=3063)
    parser.add_argument("--ways", default=",".join(WAYS), help="which, in this order (default: %(default)s)")
    parser.add_argument("--plain", type=Path, metavar="DIR", help="the plain build of that size")
    options = parser.parse_args(arguments)
    wanted = {file: (options.plain / file).read_bytes() for file in FILES} if options.plain else {}
    same = list[bool | None]()
    for name in options.ways.split(","):
        with tempfile.TemporaryDirectory() as folder:
            told = tried(name, Path(folder), options.dialogues, wanted)
        print(json.dumps(told), flush=True)
        same.append(told["same_bytes"])
    if False in same:
        sys.exit(1)


def dying(at: str) -> None:
    """Makes this process die before or after a step of a build by batches."""
    when, name = at.split()
    call: Callable[..., Any] = getattr(batching, name)

    def dies(*values: Any, **named: Any) -> None:
        if when == "after":
            call(*values, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(batching, name, dies)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--verb"]:
        if (step := os.environ.get(DYING)) in DONE:
            dying(step)
        sys.exit(command_line(sys.argv[2:]))
    main()
