"""A build of a few dialogues through the command line, in this process, with everything it says looked at."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.cli import main
from empathy_eval.completions.ledger import Ledger
from empathy_eval.design import recipe
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.generation.build import build

from tests.completions.test_openai_endpoint import config_file
from tests.conftest import copy_world
from tests.doubles.raw_server import raw_server

# A request that gets no answer is not waited for: what a single reply leads to shows at once.
HASTE = {"timeout_seconds": 5, "patience_seconds": 0, "in_flight": 8}
SMALL = {"dialogues": 1, "controls": 0, "samples": 2}


class Job:
    """One build folder, and what its last run said, took and left behind."""

    def __init__(self, folder: Path, world: Path, capsys: pytest.CaptureFixture[str], log: pytest.LogCaptureFixture) -> None:
        self.folder, self._world, self._capsys, self._log = folder, world, capsys, log
        self.said = ""
        self.seconds = self.cpu_seconds = 0.0

    def run(self, url: str, *options: str, model: dict[str, Any] | None = None, **changes: Any) -> int:
        """Runs ``build``; nothing it says may be a traceback. Returns the exit status."""
        config = config_file(self.folder, url, {**HASTE, **(model or {})}, **{**SMALL, **changes})
        if not url:  # the client then looks for one in the environment
            config.write_text(re.sub(r"(?m)^ *base_url: .*\n", "", config.read_text()))
        return self.command("build", str(config), "--out", str(self.folder / "b"), "--scenarios", str(self._world), *options)

    def command(self, *arguments: str) -> int:
        """Runs any verb in the same way."""
        self._log.clear()
        self._capsys.readouterr()
        begin, cpu = time.monotonic(), time.process_time()
        try:
            status = main(arguments)
        except SystemExit as stop:  # the parser's own way out
            status = int(stop.code or 0)
        self.seconds, self.cpu_seconds = time.monotonic() - begin, time.process_time() - cpu
        # What is logged as a warning goes to the standard error of a user.
        told = [record.getMessage() for record in self._log.records if record.levelno >= logging.WARNING]
        self.said = "\n".join([*self._capsys.readouterr(), *told])
        assert "Traceback" not in self.said, self.said
        logged = [record for record in self._log.records if record.levelno >= logging.ERROR]
        assert not logged, "an exception was only logged: " + "\n".join(map(str, logged))
        return status

    @property
    def ledger(self) -> Path:
        """Where the answers are."""
        return self.folder / "b" / "ledger.sqlite"

    def rows(self, columns: str) -> list[tuple[Any, ...]]:
        """Columns of the answers of the model."""
        with Ledger(self.ledger, create=False) as ledger:
            return list(ledger.query(f"SELECT {columns} FROM completions WHERE model = 'm'"))

    def reserved(self) -> int:
        """The tokens that are set aside for what may have been answered."""
        with Ledger(self.ledger, create=False) as ledger:
            return sum(usage.input_tokens + usage.output_tokens for _, _, usage in ledger.reserved())

    def written(self) -> bytes:
        """The outcomes as they are written."""
        return (self.folder / "b" / "outcomes.jsonl").read_bytes()

    def outcomes(self) -> list[dict[str, Any]]:
        """The outcomes, by :func:`without_usage`."""
        return without_usage(self.written())

    def left(self) -> bytes:
        """All bytes of all files."""
        return b"".join(path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file())


def without_usage(outcomes: bytes) -> list[dict[str, Any]]:
    """Outcomes without what their answers cost."""
    return [{name: value for name, value in json.loads(line).items() if name != "usage"} for line in outcomes.splitlines()]


@pytest.fixture(scope="session")
def small_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_world(tmp_path_factory.mktemp("small") / "scenarios")


@pytest.fixture(scope="module", autouse=True)
def read_once() -> Iterator[None]:
    """What every run of the command line reads anew is read once: templates, scenarios and rules."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("load_prompts", "load_catalogue", "load_language"):
            patch.setattr(recipe, name, cache(getattr(recipe, name)))
        yield


@pytest.fixture(scope="module", autouse=True)
def plain(tmp_path_factory: pytest.TempPathFactory, small_world: Path, prompts: Prompts) -> list[dict[str, Any]]:
    """The outcomes of good answers alone; what is slow only the first time is behind us then."""
    folder = tmp_path_factory.mktemp("plain")
    with raw_server() as server:
        config = config_file(folder, server.url, HASTE, **SMALL)
        build(Recipe(load_configuration(config), load_catalogue(small_world), prompts), folder / "b")
    outcomes = without_usage((folder / "b" / "outcomes.jsonl").read_bytes())
    assert [(one["status"], one["failures"]) for one in outcomes] == [("accepted", [])]
    return outcomes


@pytest.fixture
def job(tmp_path: Path, small_world: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Job:
    return Job(tmp_path, small_world, capsys, caplog)


def shorter(patch: pytest.MonkeyPatch, *, failing: float | None = None, pause: float | None = None) -> None:
    """Lowers the time after which a server that only ever failed is given up on, and the longest pause that a header can ask for."""
    from empathy_eval.completions.models import endpoint_health as pace
    from empathy_eval.completions.models import endpoint_health as reception

    for module, name, seconds in ((reception, "FAILING_SECONDS", failing), (pace, "LONGEST_PAUSE", pause)):
        if seconds is not None:
            patch.setattr(module, name, seconds)
