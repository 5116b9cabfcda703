"""A small world of three scenarios with their seeds, a build of it and its release, made once a run."""

from __future__ import annotations

import builtins
import gc
import os
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from empathy_eval.base.files import data_folder
from empathy_eval.design.configuration import Configuration, load_configuration
from empathy_eval.design.prompts import Prompts, load_prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import COMMON, CROSSED, Catalogue, load_catalogue
from empathy_eval.design.taxonomy import Taxonomy, load_taxonomy
from empathy_eval.generation.build import build
from empathy_eval.releases.assemble.write import Released, release
from empathy_eval.reports import charts as figures
from empathy_eval.reports import report
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from tests.doubles import drawn_once, encoded_once, made_once, read_once, scored_once, tried_once
from tests.doubles.browser import browser as browser
from tests.doubles.browser import playwright as playwright
from tests.doubles.browser import tab as tab

# How long one example takes says more of the machine than of the code; what must be fast has a test of its own.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
# It would read the source of all that is loaded for numbers to try: seconds in each process, and others after each choice of tests.
setattr(providers, "_get_local_constants", vars(providers)["Constants"])  # noqa: B010  # not exported

WORLD = ("003", "007", "017")
TIERS = ("unit", "e2e", "long", "quiet")
# Fixtures that start a program of others, whose time is seen at its end alone.
DRIVEN = frozenset({"playwright", "new_client"})
JOURNEYS = Path(__file__).parent / "journeys"
# The CPU time that a unit test may take, its processes' included, in seconds.
UNIT_SECONDS = 5.0


def pytest_configure(config: pytest.Config) -> None:
    """Nothing that is loaded in a test may come from a hub, and nothing is kept in the user's cache."""
    # Where a shell runs the tests in the background, it lets them ignore Ctrl-C, which some of them send.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["HF_HUB_OFFLINE"] = "1"
    # What is imported stays: to look again and again for what could be thrown away of it takes a seventh of all time.
    gc.disable()
    cache = tempfile.TemporaryDirectory(prefix="empathy-eval-cache-")
    config.add_cleanup(cache.cleanup)
    os.environ["XDG_CACHE_HOME"] = cache.name
    # Several tests run at one time, and threads that wait for each other take CPU.
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Journeys and what drives a browser or the Hub's own client are e2e; what has no tier by now is a unit test."""
    for item in items:
        if JOURNEYS in item.path.parents or not DRIVEN.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("e2e")
        if not any(map(item.get_closest_marker, TIERS)):
            item.add_marker("unit")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A unit test that takes long fails: it is to become smaller, or e2e. What fixtures and imports take is not counted."""
    with imports_timed() as importing:
        begin = _cpu_seconds()
        yield
        took = _cpu_seconds() - begin - sum(importing)
    if item.get_closest_marker("unit") and took > UNIT_SECONDS:
        pytest.fail(
            f"a unit test of {took:.1f} s of CPU, at most {UNIT_SECONDS} s are taken: make it smaller, or mark it e2e", pytrace=False
        )


@contextmanager
def imports_timed() -> Iterator[list[float]]:
    """The CPU seconds of each import from now on: the first test that needs a library loads it for all others."""
    seconds, depth, plain = list[float](), [0], builtins.__import__

    def timed(*given: Any, **named: Any) -> Any:
        begin, depth[0] = time.thread_time(), depth[0] + 1
        try:
            return plain(*given, **named)
        finally:
            depth[0] -= 1
            if not depth[0]:
                seconds.append(time.thread_time() - begin)

    builtins.__import__ = timed
    try:
        yield seconds
    finally:
        builtins.__import__ = plain


def _cpu_seconds() -> float:
    """CPU time of this process and of those that it has waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def pytest_collection_finish() -> None:
    """Only what tests make is looked through for what nobody holds any more."""
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


def pytest_runtest_setup() -> None:
    """A test that loads an encoder shares what it makes of the very same batch."""
    encoded_once.share()


@pytest.fixture(scope="session", autouse=True)
def figures_shared() -> Iterator[None]:
    """A report whose figures another test has drawn takes those."""
    with pytest.MonkeyPatch.context() as patch:
        drawn_once.share(patch, made_once.results() / "figures")
        yield


@pytest.fixture(scope="session", autouse=True)
def work_shared() -> Iterator[None]:
    """YAML that another test has read, templates it has tried and texts it has scored are not gone through again."""
    with pytest.MonkeyPatch.context() as patch:
        read_once.share(patch)
        tried_once.share(patch)
        scored_once.share(patch)
        yield


@pytest.fixture
def drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every figure of every report is drawn."""
    for name in drawn_once.NAMES:
        monkeypatch.setattr(report, name, getattr(figures, name))


def copy_world(folder: Path, numbers: Collection[str] = WORLD) -> Path:
    """Some of the project's scenarios and the files that all share, in a folder of their own."""
    folder.mkdir(parents=True)
    for path in data_folder("scenarios").glob("*.yaml"):
        if path.name[:3] in numbers or path.name in COMMON:
            shutil.copy(path, folder / path.name)
    (folder / CROSSED).mkdir()
    for path in (data_folder("scenarios") / CROSSED).glob("*.yaml"):
        if path.stem in numbers:
            shutil.copy(path, folder / CROSSED / path.name)
    return folder


def demo_file(folder: Path, **changes: object) -> Path:
    """The demo's configuration with changes at its first level (None takes a key away)."""
    raw = yaml.safe_load((data_folder("release") / "demo.yaml").read_text())
    raw.update(changes)
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in raw.items() if value is not None}))
    return path


@pytest.fixture(scope="session")
def taxonomy() -> Taxonomy:
    return load_taxonomy()


@pytest.fixture(scope="session")
def prompts() -> Prompts:
    return load_prompts()


@pytest.fixture(scope="session")
def demo() -> Configuration:
    return load_configuration(data_folder("release") / "demo.yaml")


@pytest.fixture
def world(tmp_path: Path) -> Path:
    return copy_world(tmp_path / "scenarios")


@pytest.fixture(scope="session")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return load_catalogue(copy_world(tmp_path_factory.mktemp("world") / "scenarios"))


def released_quickly(folder: Path, catalogue: Catalogue, prompts: Prompts, **of_report: object) -> None:
    """A build and a release of it, whose report has fewer metrics and draws than the demo's: the data files are the same."""
    config = load_configuration(demo_file(folder, report=of_report))
    build(Recipe(config, catalogue, prompts), folder / "build")
    release(folder / "build", folder / "release", "0.1.0")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, demo: Configuration, catalogue: Catalogue, prompts: Prompts) -> Path:
    def make(folder: Path) -> None:
        build(Recipe(demo, catalogue, prompts), folder / "build")

    return made_once.copied(tmp_path_factory, "built", make)[0] / "build"


@pytest.fixture(scope="session")
def released(built: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Released]:
    folder, made = made_once.copied(tmp_path_factory, "released", lambda folder: release(built, folder / "release", "0.1.0"))
    return folder / "release", made


@pytest.fixture(scope="session")
def seeds(tmp_path_factory: pytest.TempPathFactory, prompts: Prompts) -> Path:
    """A release of all seeds whose report is quickly made: its data files are those of the demo's release."""

    def make(folder: Path) -> None:
        released_quickly(folder, load_catalogue(), prompts, metrics=["bleu"], bootstrap=200)

    return made_once.copied(tmp_path_factory, "seeds", make)[0] / "release"


@pytest.fixture(scope="session")
def light(tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue, prompts: Prompts) -> Path:
    """A release of the small world whose report is quickly made."""

    def make(folder: Path) -> None:
        released_quickly(folder, catalogue, prompts, metrics=["bleu", "length"], bootstrap=10)

    return made_once.copied(tmp_path_factory, "light", make)[0] / "release"


@pytest.fixture(scope="session")
def marred(tmp_path_factory: pytest.TempPathFactory, prompts: Prompts) -> Path:
    """A folder with a build in which texts were refused, repaired and withdrawn, its release, and its scenarios."""
    from tests.doubles.marred import marred

    return made_once.copied(tmp_path_factory, "marred", lambda folder: marred(folder, prompts))[0]
