"""The stand-in of the Hub, and processes with the real client of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.scenarios import load_catalogue

from tests.conftest import copy_world, released_quickly
from tests.doubles import made_once
from tests.doubles.hub import Client, Hub, running


@pytest.fixture(scope="module")
def server() -> Iterator[Hub]:
    with running() as hub:
        yield hub


@pytest.fixture
def hub(server: Hub) -> Hub:
    """The stand-in, empty and in order."""
    for held in (server.repositories, server.large):
        held.clear()
    server.ignored, server.intruder = (), None
    server.told(None)
    return server


@pytest.fixture(scope="module")
def new_client(server: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Client]]:
    """Starts a client; all are ended after the last test."""
    started: list[Client] = []

    def start(**env: str) -> Client:
        started.append(Client(server.url, tmp_path_factory.mktemp("client") / "home", **env))
        return started[-1]

    yield start
    for client in started:
        client.close()


@pytest.fixture(scope="module")
def client(new_client: Callable[..., Client]) -> Client:
    return new_client()


@pytest.fixture(scope="session")
def lexical(tmp_path_factory: pytest.TempPathFactory, prompts: Prompts) -> Path:
    """A release with rows in every split, lexical metrics only."""

    def make(folder: Path) -> None:
        catalogue = load_catalogue(copy_world(folder / "scenarios", ("003", "004", "005", "017", "019")))
        released_quickly(folder, catalogue, prompts, metrics=["bleu", "rouge-l"], bootstrap=10)

    return made_once.copied(tmp_path_factory, "lexical", make)[0] / "release"


@pytest.fixture(scope="module")
def folder(light: Path) -> Path:
    return light
