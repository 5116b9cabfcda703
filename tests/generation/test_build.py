"""The build as a replay: the same bytes whatever the order, the kills and the machine."""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from empathy_eval.base.errors import InputError, JobError
from empathy_eval.design.configuration import Configuration, load_configuration
from empathy_eval.design.prompts import Prompts, load_prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.generation.build import Run, build
from empathy_eval.generation.outcomes import CONFIGURATION

from tests.conftest import copy_world, demo_file
from tests.doubles.forked import forkserver
from tests.doubles.models import Slow, asked_twice

KILLS = 20
WINDOW = 2


def bytes_of(folder: Path) -> dict[str, bytes]:
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith("ledger")}


def test_every_item_is_counted_once(demo: Configuration, tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> None:
    summary = build(Recipe(demo, catalogue, prompts), tmp_path / "b")
    assert dict(summary.status) == {"accepted": 3} and summary.total == 3
    assert summary.controls >= 6 and summary.pairs > 15


def test_window_and_a_second_run_change_nothing(
    demo: Configuration, built: Path, tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    for _ in range(2):
        build(Recipe(demo, catalogue, prompts), tmp_path / "b", Run(window=1))
        assert bytes_of(tmp_path / "b") == bytes_of(built)


@pytest.mark.e2e
def test_the_hash_seed_of_the_interpreter_changes_nothing(built: Path, tmp_path: Path) -> None:
    world, config = copy_world(tmp_path / "scenarios"), demo_file(tmp_path)
    command = [
        sys.executable,
        "-m",
        "empathy_eval",
        "build",
        str(config),
        "--out",
        str(tmp_path / "b"),
        "--scenarios",
        str(world),
        "--json",
    ]
    subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "4711"}, check=True, capture_output=True)
    assert bytes_of(tmp_path / "b") == bytes_of(built)


def test_a_rebuild_from_the_ledger_alone_gives_the_same_bytes(
    demo: Configuration, built: Path, tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    build(Recipe(demo, catalogue, prompts), tmp_path / "b", Run(ledger=built / "ledger.sqlite", offline=True))
    assert bytes_of(tmp_path / "b") == bytes_of(built)


@pytest.mark.parametrize("kind", ["self_chat", "near_apathetic", "score"])
def test_an_offline_build_that_lacks_a_row_names_the_request(
    kind: str, demo: Configuration, tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    build(Recipe(demo, catalogue, prompts), tmp_path / "b")
    ledger = sqlite3.connect(tmp_path / "b" / "ledger.sqlite")
    key, dialogue = ledger.execute("SELECT key, dialogue_id FROM completions WHERE kind = ? LIMIT 1", (kind,)).fetchone()
    ledger.execute("DELETE FROM completions WHERE key = ?", (key,))
    ledger.commit()
    ledger.close()
    before = bytes_of(tmp_path / "b")
    with pytest.raises(JobError) as caught:
        build(Recipe(demo, catalogue, prompts), tmp_path / "b", Run(offline=True))
    assert key in str(caught.value) and dialogue in str(caught.value) and caught.value.exit_code == 1
    assert bytes_of(tmp_path / "b") == before


def test_a_folder_of_another_configuration_is_refused_and_left_alone(
    demo: Configuration, tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    build(Recipe(demo, catalogue, prompts), tmp_path / "b")
    before = bytes_of(tmp_path / "b")
    other = load_configuration(demo_file(tmp_path, seed=9))
    with pytest.raises(InputError, match="holds the build of another configuration"):
        build(Recipe(other, catalogue, prompts), tmp_path / "b")
    assert bytes_of(tmp_path / "b") == before
    (tmp_path / "b" / CONFIGURATION).write_text("{")
    with pytest.raises(InputError, match=f"{CONFIGURATION}: is not JSON"):
        build(Recipe(demo, catalogue, prompts), tmp_path / "b")


def test_a_folder_of_something_else_is_refused(demo: Configuration, tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    with pytest.raises(InputError, match="is not empty and holds no build"):
        build(Recipe(demo, catalogue, prompts), tmp_path / "photos")
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat.jpg"]


def test_a_rejected_dialogue_has_its_reasons_counted(demo: Configuration, tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> None:
    strict = dataclasses.replace(demo, checks=dataclasses.replace(demo.checks, helper_words_at_least=1000))
    summary = build(Recipe(strict, catalogue, prompts), tmp_path / "b")
    assert summary.status["rejected"] == 3 and summary.reasons == {"too_short": 3} and summary.pairs == 0


def _slow_build(world: Path, out: Path, log: Path) -> None:
    catalogue = load_catalogue(world)
    models = dict.fromkeys(("self_chat", "near", "far"), Slow(catalogue, log, 0.02))
    build(Recipe(load_configuration(demo_file(world.parent)), catalogue, load_prompts(), models), out, Run(window=WINDOW))


def test_twenty_kills_lose_nothing_and_ask_again_only_for_what_was_in_flight(built: Path, tmp_path: Path) -> None:
    world, out, log = copy_world(tmp_path / "scenarios"), tmp_path / "b", tmp_path / "log"
    context = forkserver()
    rng, killed = random.Random(1), 0
    log.touch()
    for number in range(KILLS + 1):
        process = context.Process(target=_slow_build, args=(world, out, log))
        asked = log.stat().st_size
        process.start()
        if number < KILLS:
            while process.is_alive() and log.stat().st_size == asked and time.monotonic() > 0:
                time.sleep(0.002)
            time.sleep(rng.uniform(0, 0.05))
            if process.is_alive() and process.pid:
                os.kill(process.pid, signal.SIGKILL)
                killed += 1
        process.join()
    assert process.exitcode == 0 and killed >= KILLS // 2, killed
    assert bytes_of(out) == bytes_of(built)
    # An item asks for at most all variants of its dialogue at once; no more than those of the window can be in flight.
    in_flight = WINDOW * 4 * 11
    assert asked_twice(log) <= killed * in_flight
    # What was answered before a kill is not asked for again: the last run asked only for what was left.
    last = [line.split()[1] for line in log.read_text().splitlines() if line.split()[0] == str(process.pid)]
    assert len(last) == len(set(last))
