"""How long ``study`` takes for a million ratings, from the file to the figures, and how much memory.

``python -m benchmarks.study`` writes a table of raters with a severity of their own (ten ratings each, five groups, three categories,
blocks of one rater a group, 32 strata and two valences), and reads and reckons it in a process of its own. The first line is the memory of
the imports alone.
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
from empathy_eval.raters.study.ratings import ReadOptions, read_study
from empathy_eval.raters.study.study import StudyOptions, study

GROUPS, EACH, STRATA, POSITIVE = ("human", "a", "b", "c", "d"), 10, 32, 14


def write(path: Path, ratings: int) -> None:
    """A table of about that many ratings: whole blocks of ten items that one rater of each group saw."""
    rng = np.random.default_rng(0)
    blocks = max(ratings // (EACH * len(GROUPS)), 1)
    severity = rng.normal(0, 0.6, (blocks, len(GROUPS), 1)) + 0.3 * (np.arange(len(GROUPS)) > 0)[:, None]
    given = np.clip(np.round(2.2 + severity + rng.normal(0, 0.8, (blocks, len(GROUPS), EACH))), 1, 3).astype(int).tolist()
    with path.open("w") as stream:
        stream.write("item,group,rater,rating,stratum,valence,block\n")
        for block in range(blocks):
            for group, name in enumerate(GROUPS):
                for place, rating in enumerate(given[block][group]):
                    item = block * EACH + place
                    stratum = item % STRATA
                    valence = "positive" if stratum < POSITIVE else "negative"
                    stream.write(f"item-{item},{name},{name}-{block},{rating},stratum-{stratum:02},{valence},{block}\n")


def measure(path: Path, permutations: int) -> None:
    """Reads and reckons a table, and prints what it took."""
    begin = time.perf_counter()
    ratings = read_study([path], ReadOptions("human"))
    read = time.perf_counter()
    study(ratings, StudyOptions(permutations=permutations))
    figures = {"ratings": len(ratings.rater), "read_s": round(read - begin, 1), "study_s": round(time.perf_counter() - read, 1)}
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({**figures, "cpu_s": round(used.ru_utime + used.ru_stime, 1), "peak_mb": used.ru_maxrss // 1024}))


def main() -> None:
    """Writes the table and measures it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=int, default=1_000_000)
    parser.add_argument("--permutations", type=int, default=2000)
    parser.add_argument("--table", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.table:
        measure(options.table, options.permutations)
        return
    print(f"imports: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.csv"
        write(path, options.ratings)
        command = [sys.executable, "-m", "benchmarks.study", "--table", str(path), "--permutations", str(options.permutations)]
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


if __name__ == "__main__":
    main()
