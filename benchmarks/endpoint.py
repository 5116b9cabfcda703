"""How fast a build drives an endpoint: a whole build beside a bare loop of the ``openai`` client and beside raw aiohttp.

``python -m benchmarks.endpoint`` starts the tests' loopback server on one core and each client on another, one after the
other, with the same bodies, and prints requests a second, CPU milliseconds a request and peak memory of each; ``schema`` is the check
of a body at the border alone, a part of ``build``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml


def configuration(folder: Path, dialogues: int, in_flight: int) -> Path:
    """A drawn build of that many dialogues against a loopback model."""
    raw = yaml.safe_load((Path(__file__).parent / "endpoint.yaml").read_text())
    raw["dialogues"] = dialogues
    for model in raw["models"].values():
        model["in_flight"] = in_flight
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path


def whole_build(url: str, bodies: Path, dialogues: int, in_flight: int) -> int:
    """Builds, writes the bodies down for the others, and returns the number of requests."""
    from empathy_eval.completions.models.openai_endpoint import OpenAIEndpoint
    from empathy_eval.completions.requests import Completion, Request
    from empathy_eval.design.configuration import load_configuration
    from empathy_eval.design.prompts import load_prompts
    from empathy_eval.design.recipe import Recipe
    from empathy_eval.design.scenarios import load_catalogue
    from empathy_eval.generation.build import build

    sent: list[bytes] = []
    plain, first = OpenAIEndpoint.complete, not bodies.exists()

    async def noted(self: OpenAIEndpoint, request: Request) -> Completion:
        sent.append(request.content if first else b"")
        return await plain(self, request)

    OpenAIEndpoint.complete = noted  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as folder:
        config = load_configuration(configuration(Path(folder), dialogues, in_flight), base_url=url)
        catalogue, prompts = load_catalogue(), load_prompts()
        # spaCy, scikit-learn and the scorer's weights load once a process, whatever its size.
        warm = load_configuration(configuration(Path(folder), 3, in_flight), base_url=url)
        build(Recipe(warm, catalogue, prompts), Path(folder) / "warm")
        sent.clear()
        begin = clock()
        build(Recipe(config, catalogue, prompts), Path(folder) / "build")
        report(begin, len(sent))
    if first:
        bodies.write_bytes(b"\n".join(sent))
    return len(sent)


async def bare_openai(url: str, bodies: list[dict[str, Any]], in_flight: int) -> None:
    """The client as its documentation shows it, over its aiohttp transport."""
    import openai

    gate = asyncio.Semaphore(in_flight)
    async with openai.AsyncOpenAI(base_url=url, api_key="none", http_client=openai.DefaultAioHttpClient()) as client:

        async def one(body: dict[str, Any]) -> str | None:
            async with gate:
                answer = await client.chat.completions.create(**body)
                return answer.choices[0].message.content  # type: ignore[no-any-return]

        begin = clock()
        await asyncio.gather(*map(one, bodies))
        report(begin, len(bodies))


async def raw_aiohttp(url: str, bodies: list[dict[str, Any]], in_flight: int) -> None:
    """No client library at all."""
    import aiohttp

    gate = asyncio.Semaphore(in_flight)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight)) as session:

        async def one(body: dict[str, Any]) -> str:
            async with gate, session.post(f"{url}/chat/completions", json=body) as response:
                value: str = (await response.json())["choices"][0]["message"]["content"]
                return value

        begin = clock()
        await asyncio.gather(*map(one, bodies))
        report(begin, len(bodies))


def border(bodies: list[dict[str, Any]]) -> None:
    """The schema of a chat completion alone, over 20,000 bodies as the server sends them."""
    from empathy_eval.base.schemas import without_violations

    from tests.doubles.server import Behaviour, Server

    server = Server(Behaviour())
    answers = [json.dumps(server._answer(body, str(place), None)) for place, body in enumerate(bodies)]
    parsed = [json.loads(answers[place % len(answers)]) for place in range(20_000)]
    without_violations(parsed[0], "chat_completion")  # the validator is made once
    begin = clock()
    for body in parsed:
        without_violations(body, "chat_completion")
    report(begin, len(parsed))


def clock() -> tuple[float, float]:
    """Wall and CPU seconds."""
    return time.perf_counter(), time.process_time()


def report(begin: tuple[float, float], requests: int) -> None:
    """Prints the figures since ``begin`` as JSON."""
    wall, cpu = (now - then for now, then in zip(clock(), begin, strict=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = {"requests": requests, "per_second": requests / wall, "cpu_ms": cpu / requests * 1000, "peak_mb": peak}
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}))


def client(name: str, url: str, bodies: Path, dialogues: int, in_flight: int) -> None:
    """One client, in a process of its own on core 0."""
    os.sched_setaffinity(0, {0})
    if name == "build":
        whole_build(url, bodies, dialogues, in_flight)
        return
    loaded = [json.loads(line) for line in bodies.read_bytes().splitlines()]
    if name == "schema":
        border(loaded)
        return
    asyncio.run((bare_openai if name == "openai" else raw_aiohttp)(url, loaded, in_flight))


def main() -> None:
    """Runs all clients against one server, ``--rounds`` times in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialogues", type=int, default=200)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--client", nargs=3, metavar=("NAME", "URL", "BODIES"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        name, url, bodies = options.client
        client(name, url, Path(bodies), options.dialogues, options.in_flight)
        return
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.doubles.server", "--latency", str(options.latency)], stdout=subprocess.PIPE, text=True
    )
    os.sched_setaffinity(server.pid, {max(os.sched_getaffinity(0))})
    try:
        url = (server.stdout.readline() if server.stdout else "").strip()
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(options.rounds):
                for name in ("build", "openai", "aiohttp", "schema"):
                    own = [sys.executable, "-m", "benchmarks.endpoint", "--client", name, url, f"{folder}/bodies"]
                    sizes = ["--dialogues", str(options.dialogues), "--in-flight", str(options.in_flight)]
                    print(
                        f"{name:<9}", subprocess.run([*own, *sizes], check=True, capture_output=True, text=True).stdout.strip(), flush=True
                    )
    finally:
        server.kill()


if __name__ == "__main__":
    main()
