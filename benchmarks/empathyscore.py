"""What EmpathyScore takes: training at full size, and texts a second beside BERTScore.

``python -m benchmarks.empathyscore`` scores the texts of the demo's release by the packaged model and by BERTScore with the packaged
weights, turn about, and tells the best of three each; then it trains a plain model from the pairs of 30,633 dialogues (``--dialogues``),
made as ``benchmarks.shortcuts`` makes them, in a process of its own. ``--keep DIR`` keeps what it makes, and takes what is there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from empathy_eval.cli import main as empathy_eval
from empathy_eval.design.contrasts import CELLS
from empathy_eval.design.dataset import MANIFEST
from empathy_eval.evaluation.corpus.pairs import read_corpus
from empathy_eval.metrics.registry import find
from empathy_eval.metrics.scoring import statistics_of

from benchmarks.memory import measured
from benchmarks.shortcuts import write_pairs

TIMES = 3


def demo(folder: Path) -> Path:
    """The demo's release with a report of little."""
    made, left_out = folder / "release", ["--without", "bertscore", "--without", "embedding"]
    verbs = ["build", "demo", "--out", str(folder)], ["release", str(folder), "--out", str(made), "--version", "0.1.0", *left_out]
    for verb in verbs if not made.is_dir() else ():
        if status := empathy_eval(verb):
            raise SystemExit(status)
    return made


def trained(folder: Path, release: Path, dialogues: int) -> dict[str, Any]:
    """The figures of one training in a process of its own: the time and the memory of the whole verb."""
    if not (folder / "data").is_dir():
        write_pairs(folder, dialogues, 2000)
        shutil.copy(release / MANIFEST, folder / MANIFEST)
    out = folder / "model"
    taken = measured([sys.executable, "-m", "empathy_eval", "train", str(folder), "--out", str(out), "--json"], output=subprocess.DEVNULL)
    told = json.loads((out / "metrics.json").read_text())
    return {"dialogues": dialogues, **told["trained_on"], **{name: round(value, 1) for name, value in taken.items()}}


def beside(release: Path) -> dict[str, Any]:
    """Texts a second by either metric in this process, best of three; by its CPU seconds too, which other work hardly changes."""
    corpus = read_corpus(release, "controls", CELLS, contexts=True)
    texts, pairs = len(corpus) * len(CELLS), corpus.pairs(CELLS)
    clocks = {"texts_per_s": time.perf_counter, "texts_per_cpu_s": time.process_time}
    rates: dict[str, dict[str, float]] = {name: {} for name in clocks}
    for _ in range(TIMES):
        for metric in find(["empathyscore", "bertscore"], {}).metrics:
            begin = {name: clock() for name, clock in clocks.items()}
            statistics_of([metric], pairs, processes=1)
            for name, clock in clocks.items():
                rates[name][metric.name] = max(rates[name].get(metric.name, 0), round(texts / (clock() - begin[name])))
    faster = {name: round(ours / theirs, 1) for name, (ours, theirs) in ((name, one.values()) for name, one in rates.items())}
    return {"texts": texts, **rates, "times_faster": faster}


def main() -> None:
    """Runs both parts and prints their figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialogues", type=int, default=30_633, help="dialogues to train from (0: leave out)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep what is made here, and take what is there")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        release = demo(folder / "demo")
        print(json.dumps({"beside": beside(release)}, indent=1), flush=True)
        if options.dialogues:
            print(json.dumps({"trained": trained(folder / f"full-{options.dialogues}", release, options.dialogues)}, indent=1), flush=True)


if __name__ == "__main__":
    main()
