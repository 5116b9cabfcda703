"""How long ``agree`` takes for a million ratings with intervals, from the file to the figures, and the figures of a page after them.

``python -m benchmarks.agreement`` writes tables of several shapes, reads and measures each in a process of its own, and prints
seconds, CPU seconds and peak memory. The first line is the memory of the imports alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.raters.agreement import agree, read_table
from empathy_eval.raters.agreement.panel import JudgeRater, Panel, frameworks_of
from empathy_eval.raters.agreement.reliability import reliability

# Raters, ratings an item, values of the scale, criteria: a panel, a long scale, criteria, the largest panel, a crowd.
SHAPES = {
    "10 raters": (10, 10, 3, 1),
    "10 raters, 7 values": (10, 10, 7, 1),
    "10 raters, 3 criteria": (10, 10, 3, 3),
    "30 raters": (30, 30, 5, 1),
    "30 raters, 3 an item": (30, 3, 5, 1),
    "1000 raters, 3 an item": (1000, 3, 3, 1),
}


def write(path: Path, ratings: int, raters: int, each: int, steps: int, criteria: int) -> None:
    """A table of about that many ratings: a truth with noise, each item rated by neighbours among the raters."""
    rng = np.random.default_rng(0)
    items = ratings // (each * criteria)
    with path.open("w") as stream:
        stream.write("item,rater,criterion,rating\n")
        for criterion in range(criteria):
            truth = rng.integers(1, steps + 1, items)
            first = rng.integers(raters, size=items)
            given = np.clip(truth[:, None] + rng.integers(-1, 2, (items, each)), 1, steps)
            for item in range(items):
                rows = (f"i{item},r{(first[item] + place) % raters},c{criterion},{given[item, place]}\n" for place in range(each))
                stream.writelines(rows)


def measure(path: Path) -> None:
    """Reads and measures a table, with the first rater as a judge, then the figures of its page, and prints what each took."""
    begin = time.perf_counter()
    table = read_table(path)
    read = time.perf_counter()
    agreement = agree(table, ["r0"])
    agreed = time.perf_counter()
    panel = Panel(agreement.experts, (JudgeRater("r0", "r0"),))
    reliability(table, panel, frameworks_of(table, {}, ()), agreement, ResamplingSettings(1000, 0, 0))
    took = {"read_s": read - begin, "agree_s": agreed - read, "page_s": time.perf_counter() - agreed}
    figures = {"ratings": len(table.rating), **{name: round(seconds, 1) for name, seconds in took.items()}}
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({**figures, "cpu_s": round(used.ru_utime + used.ru_stime, 1), "peak_mb": used.ru_maxrss // 1024}))


def main() -> None:
    """Writes the tables and measures each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=int, default=1_000_000)
    parser.add_argument("--table", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.table:
        measure(options.table)
        return
    print(f"imports: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")
    with tempfile.TemporaryDirectory() as folder:
        for name, shape in SHAPES.items():
            path = Path(folder) / "ratings.csv"
            write(path, options.ratings, *shape)
            command = [sys.executable, "-m", "benchmarks.agreement", "--table", str(path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            print(f"{name}: {done.stdout.strip()}", flush=True)


if __name__ == "__main__":
    main()
