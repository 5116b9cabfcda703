"""Items through their window: results in order, and who must ask is not held back by those that are only replayed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from empathy_eval.base.errors import JobError
from empathy_eval.completions.asker import Asker
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.planning import Plan
from empathy_eval.design.prompts import load_prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.generation.build import Run, build
from empathy_eval.generation.job import ItemPipeline, outcomes
from empathy_eval.generation.outcomes import Outcome
from empathy_eval.generation.summary import Summary

from tests.conftest import copy_world, demo_file
from tests.doubles.forked import forkserver
from tests.doubles.models import Slow
from tests.generation.test_build import bytes_of


@dataclass(frozen=True)
class Done:
    place: int
    status: str = "accepted"


@dataclass
class Desk:
    """Replays items without a wait; those that ask wait for an answer. It notes who asked, how often, and how many are at work."""

    asking: Iterable[int]
    status: dict[int, str] = field(default_factory=dict)
    stopped: JobError | None = None
    asked: list[int] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)
    waiting: int = 0
    most: int = 0

    def stop(self, error: JobError) -> None:
        self.stopped = self.stopped or error

    async def work(self, place: int) -> Done:
        self.begun.append(place)
        if place in self.asking and place not in self.asked:
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            for _ in range(5):
                await asyncio.sleep(0)
            self.waiting -= 1
            self.asked.append(place)
        return Done(place, self.status.get(place, "accepted"))


async def test_who_must_ask_has_asked_long_before_its_turn_and_results_are_in_order() -> None:
    desk, found = Desk(range(90, 100)), list[int]()
    async for one in outcomes(cast(Asker, desk), desk.work, range(100), 8, ((place, place) for place in range(90, 100))):
        found.append(one.place)
        if len(found) == 20:
            assert set(desk.asked) >= set(range(90, 98)), "as many as the window holds"
    assert found == list(range(100)) and sorted(desk.asked) == list(range(90, 100)) and desk.most <= 8


async def test_results_that_wait_for_their_turn_never_keep_others_from_asking() -> None:
    desk = Desk(range(50, 100))
    async for one in outcomes(cast(Asker, desk), desk.work, range(100), 4, ((place, place) for place in range(50, 100))):
        if one.place == 45:
            assert len(desk.asked) > 12
    # What was let go of was replayed in its turn, and nothing was asked twice.
    assert sorted(desk.asked) == list(range(50, 100)) and len(desk.begun) > 100


async def test_what_is_missing_is_kept_for_it_would_be_asked_again() -> None:
    desk = Desk(range(50, 100), dict.fromkeys(range(50, 100), "missing"))
    found = [one async for one in outcomes(cast(Asker, desk), desk.work, range(100), 4, ((place, place) for place in range(50, 100)))]
    assert [one.place for one in found] == list(range(100)) and sorted(desk.begun) == list(range(100))


async def test_what_was_begun_before_its_turn_ends_with_an_error() -> None:
    desk = Desk(range(90, 100))
    made = outcomes(cast(Asker, desk), desk.work, range(100), 8, ((place, place) for place in range(90, 100)))
    with pytest.raises(ValueError, match="enough"):
        async with contextlib.aclosing(made):
            async for _ in made:
                raise ValueError("enough")
    assert desk.stopped and desk.waiting == 0 and desk.most <= 8


def build_until_killed(world: Path, out: Path, log: Path, *, kill: bool) -> None:
    """A build whose replays take a tenth of a second, which is killed when the first of them has ended."""
    item = ItemPipeline.item

    async def slowly(self: ItemPipeline, plan: Plan) -> Outcome:
        found = await item(self, plan)
        await asyncio.sleep(0.1)
        return found

    setattr(ItemPipeline, "item", slowly)  # noqa: B010  # in a process of its own

    def end(summary: Summary) -> None:
        if kill:
            os.kill(os.getpid(), signal.SIGKILL)

    models = dict.fromkeys(("self_chat", "near", "far"), Slow(load_catalogue(world), log, 0.001))
    recipe = Recipe(load_configuration(demo_file(world.parent)), load_catalogue(world), load_prompts(), models)
    build(recipe, out, Run(window=1, progress=end))


def test_a_build_that_is_killed_in_the_replay_of_its_first_item_comes_to_its_end_all_the_same(built: Path, tmp_path: Path) -> None:
    world, out, log = copy_world(tmp_path / "scenarios"), tmp_path / "b", tmp_path / "log"
    log.touch()
    asked = list[int]()
    for number in range(30):
        process = forkserver().Process(target=build_until_killed, args=(world, out, log), kwargs={"kill": True})
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
        asked.append(rows(out / "ledger.sqlite"))
        if number and asked[-1] == asked[-2]:
            break
    begin = time.monotonic()
    process = forkserver().Process(target=build_until_killed, args=(world, out, log), kwargs={"kill": False})
    process.start()
    process.join(60)
    assert process.exitcode == 0 and time.monotonic() - begin < 60 and bytes_of(out) == bytes_of(built)
    # Each run brought answers, until all were there: none of its runs came further than to its first item.
    assert len(asked) > 2 and asked[-1] == rows(out / "ledger.sqlite"), asked


def rows(ledger: Path) -> int:
    with contextlib.closing(sqlite3.connect(ledger)) as connection:
        return int(connection.execute("SELECT count(*) FROM completions WHERE delivery != 'computed'").fetchone()[0])
