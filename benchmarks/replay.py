"""How fast a build replays from its ledger: reading, schema checks, all other checks, and writing the outcomes.

``python -m benchmarks.replay --answers 100000`` fills a ledger with that many answers (without a socket), then replays it offline in
a process of its own, and prints answers a second and peak memory.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from empathy_eval.completions.models.openai_endpoint import OpenAIEndpoint
from empathy_eval.completions.models.transport import completion_of
from empathy_eval.completions.requests import Completion, Request, Usage
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.prompts import load_prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.generation.build import Run, build

from benchmarks.endpoint import configuration
from tests.doubles.server import Behaviour, Server

ANSWERS_A_DIALOGUE = 17.6


def fill(folder: Path, dialogues: int) -> None:
    """A build whose answers are made in this process."""
    server = Server(Behaviour())

    async def answer(self: OpenAIEndpoint, request: Request) -> Completion:
        name = hashlib.sha256(request.content).hexdigest()
        return completion_of(server._answer(request.body, name, None), self.name, Usage())

    OpenAIEndpoint.complete = answer  # type: ignore[method-assign]
    build(Recipe(load_configuration(configuration(folder, dialogues, 256)), load_catalogue(), load_prompts()), folder / "build")


def replay(folder: Path) -> None:
    """The same build from the ledger alone."""
    config, catalogue, prompts = load_configuration(folder / "config.yaml"), load_catalogue(), load_prompts()
    ledger = folder / "build" / "ledger.sqlite"
    begin = time.perf_counter()
    summary = build(Recipe(config, catalogue, prompts), folder / "again", Run(ledger=ledger, offline=True))
    took = time.perf_counter() - begin
    answers = sum(row["requests"] for row in summary.usage.values())
    same = (folder / "again" / "outcomes.jsonl").read_bytes() == (folder / "build" / "outcomes.jsonl").read_bytes()
    figures = {"answers": answers, "per_second": round(answers / took), "seconds": round(took, 1), "same_bytes": same}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**figures, "peak_mb": round(peak), "ledger_mb": round(ledger.stat().st_size / 2**20)}))


def main() -> None:
    """Fills and replays."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--replay", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replay:
        replay(options.replay)
        return
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), round(options.answers / ANSWERS_A_DIALOGUE))
        subprocess.run([sys.executable, "-m", "benchmarks.replay", "--replay", folder], check=True)


if __name__ == "__main__":
    main()
