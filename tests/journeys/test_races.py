"""Two processes that write one folder: always one whole result, and a refusal that says why."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
from empathy_eval.base.files import entries
from empathy_eval.base.hashing import digest_file
from empathy_eval.cli import main
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.build import build

from tests.conftest import demo_file
from tests.doubles.forked import forkserver

OFFSETS = 20
# Where the second of two is begun while the first is at work, in twentieths of the time that it takes; in full with LONG=1.
TRIED = range(OFFSETS) if "LONG" in os.environ else (1,)
BUSY = "another process is writing this folder\n  Fix: wait for it to end, or name another folder with --out"
VERBS = ("release", "report", "train", "review export")


def said(arguments: list[str], log: Path) -> None:
    with log.open("w") as stream, contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        status = main(arguments)
    sys.exit(status)


def begun(arguments: list[str], log: Path) -> ForkServerProcess:
    process = forkserver().Process(target=said, args=(arguments, log))
    process.start()
    return process


def held(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): digest_file(path) for path, kind in entries(folder) if kind == "file"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue, prompts: Prompts) -> Path:
    """A build whose report is quickly made, and two releases of it."""
    folder = tmp_path_factory.mktemp("races")
    config = load_configuration(demo_file(folder, report={"metrics": ["bleu", "length"], "bootstrap": 10}))
    build(Recipe(config, catalogue, prompts), folder / "build")
    for version in ("2.0.0", "3.0.0"):
        process = begun(["release", str(folder / "build"), "--out", str(folder / version), "--version", version], folder / "log")
        process.join()
        assert process.exitcode == 0, (folder / "log").read_text()
    return folder


def two(verb: str, world: Path) -> tuple[list[str], list[str]]:
    """Two commands of a verb whose results differ, without their --out."""
    one, other = str(world / "2.0.0"), str(world / "3.0.0")
    return {
        "release": (["release", str(world / "build"), "--version", "2.0.0"], ["release", str(world / "build"), "--version", "3.0.0"]),
        "report": (["report", one, "--no-cache"], ["report", other, "--no-cache"]),
        "train": (["train", one], ["train", one, "--contrasts", "empathetic>apathetic"]),
        "review export": (["review", "export", one, "--seed", "1"], ["review", "export", one, "--seed", "2"]),
    }[verb]


@pytest.mark.sampled
@pytest.mark.parametrize("verb", VERBS)
def test_of_two_that_write_one_folder_one_has_its_whole_result_and_the_other_is_refused(verb: str, world: Path, tmp_path: Path) -> None:
    commands, alone, seconds = two(verb, world), list[dict[str, str]](), list[float]()
    for number, command in enumerate(commands):
        place = tmp_path / f"alone-{number}"
        process, begin = begun([*command, "--out", str(place / "out")], tmp_path / "log"), 0.0
        while process.is_alive():
            begin = begin or (time.monotonic() if place.is_dir() and any(place.iterdir()) else 0.0)
            process.join(0.01)
        # What comes before, such as imports, is in nobody's way.
        seconds.append(time.monotonic() - begin)
        assert process.exitcode == 0, (tmp_path / "log").read_text()
        alone.append(held(tmp_path / f"alone-{number}" / "out"))
    assert alone[0] != alone[1]
    refused = 0
    for offset in TRIED:
        place = tmp_path / f"together-{offset}"
        logs, running = [tmp_path / f"{offset}-{number}.log" for number in (0, 1)], list[ForkServerProcess]()
        for command, log in zip(commands, logs, strict=True):
            running.append(begun([*command, "--out", str(place / "out")], log))
            time.sleep(min(seconds) * offset / OFFSETS if log == logs[0] else 0)
        for process in running:
            process.join()
        ends, words = [process.exitcode or 0 for process in running], [log.read_text() for log in logs]
        assert sorted(ends) in ([0, 2], [0, 0]) and not any("Traceback" in text for text in words), (offset, words)
        # Who comes to it after the other has ended is in nobody's way; what is there then may be kept for a reason of its own.
        if 2 in ends:
            refused += BUSY in words[ends.index(2)]
            assert "\n  Fix: " in words[ends.index(2)], (offset, words)
        assert held(place / "out") == alone[ends.index(0)] if 2 in ends else held(place / "out") in alone, offset
        assert [path.name for path in place.iterdir()] == ["out"], offset
    assert 2 * refused >= len(TRIED), f"{refused} of {len(TRIED)}"
