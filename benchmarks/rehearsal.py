"""The whole job at any size against the tests' loopback server: build, release, report, verify, diff, review export.

``python -m benchmarks.rehearsal --dialogues 1000 --faults 0.05 --kills 5`` runs the real command line and prints for each stage wall and
CPU seconds, milliseconds a dialogue and peak memory; ``--compare 300,1000,3063`` runs several sizes and tells how far the time of a
dialogue varies; ``--synthetic`` makes the build without a server and does not measure it.
``--turns 34000`` lets a judge annotate that many turns of the release as well, replays that offline, and releases and scores it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from benchmarks.memory import measured

FULL = Path(__file__).parent.parent / "release" / "full.yaml"
# Requests that a dialogue takes, about: when a build is to be killed.
REQUESTS_A_DIALOGUE = 15
STAGES = ("build", "release", "report", "verify", "diff", "review export")


def configuration(folder: Path, dialogues: int, in_flight: int) -> Path:
    """The full-size configuration, its dialogues and controls scaled, with lexical metrics and the embedded toxicity scorer."""
    raw = yaml.safe_load(FULL.read_text(encoding="utf-8"))
    raw |= {"dialogues": dialogues, "controls": round(raw["controls"] * dialogues / raw["dialogues"]), "report": {"bootstrap": 1000}}
    raw["checks"]["toxicity"] = {"scorer": "alt-profanity-check", "at_most": 0.5}
    raw["models"] = {role: {**model, "in_flight": in_flight} for role, model in raw["models"].items()}
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path


@contextlib.contextmanager
def serving(latency: float, faults: float) -> Iterator[str]:
    """The address of a server in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.seeded", "--latency", str(latency), "--faults", str(faults)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield (server.stdout.readline() if server.stdout else "").strip()
        finally:
            server.kill()


def counts(url: str) -> dict[str, int]:
    """What the server counted."""
    with urllib.request.urlopen(f"{url}/counts") as answer:
        found: dict[str, int] = json.load(answer)
    return found


def verb(*arguments: str, kill: Callable[[], bool] = lambda: False) -> dict[str, float]:
    """Runs a verb of the command line; what it takes."""
    return measured([sys.executable, "-m", "empathy_eval", *arguments], output=subprocess.DEVNULL, kill=kill)


def rehearsed_build(folder: Path, options: argparse.Namespace, dialogues: int) -> dict[str, Any]:
    """Builds against a server, killed a few times on the way; the figures of all attempts together, and what was answered in vain."""
    config, out = configuration(folder, dialogues, options.in_flight), folder / "build"
    with serving(options.latency, options.faults) as url:
        command = ["build", str(config), "--out", str(out), "--model", "rehearsal", "--base-url", url, "--json"]
        kills = [REQUESTS_A_DIALOGUE * dialogues * part // (options.kills + 1) for part in range(1, options.kills + 1)]
        runs = [verb(*command, kill=partial(lambda most: counts(url)["received"] >= most, kill)) for kill in kills] + [verb(*command)]
        served = counts(url)
    total = {name: sum(run[name] for run in runs) for name in ("wall_s", "cpu_s")}
    peak = {name: max(run[name] for run in runs) for name in ("peak_mb", "together_mb")}
    summary = json.loads((out / "build.json").read_text(encoding="utf-8"))["summary"]
    kept = sum(row["requests"] for row in summary["usage"].values())
    ledger = (out / "ledger.sqlite").stat().st_size / 2**20
    told = {"requests": served["received"], "per_second": served["received"] / total["wall_s"], "lost": served["answered"] - kept}
    return {**total, **peak, **told, "ledger_mb": ledger, **{name: summary[name] for name in ("accepted", "rejected", "pairs")}}


def judged(folder: Path, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Annotates the release of a folder, each stage to its end with the figures that it prints; figures by stage."""
    out, judge, release = folder / "judged", folder / "judge.yaml", str(folder / "release")
    known = {"kind": "openai", "model": "rehearsal", "endpoint": "loopback", "max_tokens": 1024, "parameters": {"temperature": 0}}
    with serving(options.latency, options.faults) as url:
        judge.write_text(yaml.safe_dump({**known, "base_url": url, "in_flight": options.in_flight}))
        command = ["annotate", release, "--out", str(out), "--rubric", options.rubric, "--model", str(judge), "--turns", str(options.turns)]
        stages: dict[str, dict[str, Any]] = {"annotate": {**verb(*command)}}
        asked = counts(url)
        before = (out / "outcomes.jsonl").read_bytes()
        stages["replay"] = {**verb(*command, "--offline"), "same_bytes": (out / "outcomes.jsonl").read_bytes() == before}
        stages["replay"]["asked"] = counts(url)["received"] - asked["received"]
    summary = json.loads((out / "build.json").read_text(encoding="utf-8"))["summary"]
    ledger = {"ledger_mb": (out / "ledger.sqlite").stat().st_size / 2**20}
    stages["annotate"] |= {"requests": asked["received"], "per_second": asked["received"] / stages["annotate"]["wall_s"], **ledger}
    stages["annotate"] |= {name: summary[name] for name in ("annotated", "ratings", "comparisons") if name in summary}
    with_them = str(folder / "release-judged")
    stages["release annotated"] = verb(
        "release", str(folder / "build"), "--out", with_them, "--version", "0.2.0", "--annotations", str(out)
    )
    stages["verify annotated"] = verb("verify", with_them)
    stages["score --annotations"] = verb("score", release, "--annotations", str(out), "--no-shortcuts")
    return stages


def rehearsal(options: argparse.Namespace, dialogues: int) -> dict[str, dict[str, Any]]:
    """All stages at one size: figures by stage."""
    with contextlib.ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = folder / str(dialogues)
        folder.mkdir(parents=True)
        build, release = str(folder / "build"), str(folder / "release")
        stages: dict[str, dict[str, Any]] = {}
        if options.synthetic:
            command = [sys.executable, "-m", "benchmarks.seeded", "--build", build, "--dialogues", str(dialogues)]
            subprocess.run(command, check=True)
        else:
            stages["build"] = rehearsed_build(folder, options, dialogues)
        verbs = {
            "release": ["release", build, "--out", release, "--version", "0.1.0"],
            "report": ["report", release, "--out", str(folder / "report"), "--no-cache"],
            "verify": ["verify", release],
            "diff": ["diff", release, release],
            "review export": ["review", "export", release, "--out", str(folder / "review")],
        }
        for name, arguments in verbs.items():
            if name in options.stages.split(","):
                stages[name] = verb(*arguments)
                print(f"{dialogues:,} dialogues, {name}: {stages[name]['wall_s']:.0f} s", file=sys.stderr)
        stages |= judged(folder, options) if options.turns else {}
        for figures in stages.values():
            figures |= {f"{time}_ms_a_dialogue": figures[f"{time}_s"] / dialogues * 1000 for time in ("wall", "cpu")}
    return stages


def told(stages: dict[str, dict[str, Any]], dialogues: int) -> str:
    """The figures as lines of text."""
    names = ("wall_s", "cpu_s", "wall_ms_a_dialogue", "cpu_ms_a_dialogue", "peak_mb", "together_mb")
    lines = [f"{dialogues:,} dialogues".ljust(20) + "".join(f"{name:>20}" for name in names)]
    lines += [f"{stage:<20}" + "".join(f"{figures[name]:>20,.1f}" for name in names) for stage, figures in stages.items()]
    for stage, figures in stages.items():
        if beside := ", ".join(f"{name} {value:,.0f}" for name, value in figures.items() if name not in names):
            lines.append(f"{stage}: {beside}")
    return "\n".join(lines)


def spread(runs: dict[int, dict[str, dict[str, Any]]]) -> dict[str, dict[str, float]]:
    """By stage, how far wall and CPU time of a dialogue at any size are from those at the largest, as a share of them."""
    largest = runs[max(runs)]

    def furthest(stage: str, name: str) -> float:
        return max(abs(float(run[stage][name]) / float(largest[stage][name]) - 1) for run in runs.values())

    return {stage: {name: furthest(stage, f"{name}_ms_a_dialogue") for name in ("wall", "cpu")} for stage in largest}


def main() -> None:
    """Rehearses one size or several."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialogues", type=int, default=1000)
    parser.add_argument("--compare", metavar="N,N,…", help="several sizes in a row, in the place of --dialogues")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before the server answers")
    parser.add_argument("--faults", type=float, default=0.0, help="share of requests that fail")
    parser.add_argument("--kills", type=int, default=0, help="how often the build is killed on its way (kill -9) and run again")
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument("--stages", default=",".join(STAGES), help="what to run and measure (default: %(default)s)")
    parser.add_argument("--turns", help="how many turns a judge annotates, or all (default: none)")
    parser.add_argument("--rubric", default="teacher", help="what it judges by (default: %(default)s)")
    parser.add_argument("--synthetic", action="store_true", help="make the build without a server, and measure what comes after it")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep all folders here (default: a temporary folder)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sizes = [int(size) for size in (options.compare or str(options.dialogues)).split(",")]
    runs = {}
    for size in sizes:
        runs[size] = rehearsal(options, size)
        if not options.json:
            print(told(runs[size], size), flush=True)
    if options.json:
        print(json.dumps({"runs": runs, "spread": spread(runs)}, indent=2))
    elif len(runs) > 1:
        print("time of a dialogue, furthest from that at the largest size:")
        for stage, one in spread(runs).items():
            print(f"  {stage:<16} wall {one['wall']:.0%}, CPU {one['cpu']:.0%}")


if __name__ == "__main__":
    main()
