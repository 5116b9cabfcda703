"""What the shortcut audit of a release takes beside the scores of its report: seconds, and the peak memory of the process.

``python -m benchmarks.shortcuts`` makes the pairs of 30,633 dialogues, 2,000 of them with controls (``--dialogues``, ``--controls``):
those of the seed dialogues over and over, in each dialogue a part of the words replaced by others of a made-up vocabulary whose words are
as frequent as Zipf's law has it. A process of its own reads them, scores them as a report does, and audits them; the reading and the
scoring are told apart from the audit. ``--keep DIR`` keeps the pairs there, and takes those that are there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from empathy_eval.base.hashing import digest
from empathy_eval.base.tabular import TableWriter
from empathy_eval.base.text import WORD
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import COLUMNS, SPLITS, file_of, pair_id, split_of
from empathy_eval.design.quotas import apportion
from empathy_eval.design.scenarios import Scenario, load_catalogue
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.evaluation.shortcuts.shortcuts import audit_texts
from empathy_eval.evaluation.shortcuts.texts import AuditInput
from empathy_eval.metrics.lexical import Vader
from empathy_eval.metrics.scoring import statistics_of

from benchmarks.memory import measured

# The share of a dialogue's words that are replaced, and the number of words that they are drawn from.
REPLACED, VOCABULARY = 0.4, 60_000
SYLLABLES = [first + second for first in "bcdfghklmnprstvw" for second in "aeiou"]


def write_pairs(folder: Path, dialogues: int, controls: int) -> None:
    """The configs ``pairs`` and ``controls`` of so many dialogues, in the columns that an audit reads."""
    scenarios = [one for one in load_catalogue().scenarios if one.seed]
    quotas = apportion(dialogues, [one.share for one in scenarios])
    rng = random.Random(2026)
    vocabulary = ["".join(rng.choices(SYLLABLES, k=rng.randint(2, 4))) for _ in range(VOCABULARY)]
    # Zipf's law, by the place of a word.
    drawn = np.random.default_rng(2026).permutation(VOCABULARY)
    frequency = np.cumsum(1 / (1 + np.arange(VOCABULARY)))
    with contextlib.ExitStack() as stack:
        files = {
            (config, split): stack.enter_context(TableWriter(file_of(folder, config, split), COLUMNS[config]))
            for config in ("pairs", "controls")
            for split in SPLITS
        }
        for scenario, quota in zip(scenarios, quotas, strict=True):
            for index in range(quota):
                name = f"{scenario.number:03d}-{index:05d}"
                own = random.Random(name)
                picks = iter(np.searchsorted(frequency, [own.random() * frequency[-1] for _ in range(2000)]).tolist())
                for row in _rows(scenario, name, own, lambda picks=picks: vocabulary[drawn[next(picks)]]):
                    files["pairs", split_of(name)].add(row)
                    if controls and all(row[one] for one in CONTROLS):
                        files["controls", split_of(name)].add(row)
                        controls -= 1


def _rows(scenario: Scenario, dialogue_id: str, rng: random.Random, other: Any) -> Any:
    known = dict[str, str]()

    def new(text: str | None) -> str | None:
        def replaced(word: Any) -> str:
            found = word[0]
            if found not in known:
                known[found] = other() if rng.random() < REPLACED else found
            return known[found]

        return text and WORD.sub(replaced, text)

    assert scenario.seed
    turns = [{"role": "helper" if turn.strategy else "seeker", "text": new(turn.text)} for turn in scenario.seed.turns]
    for place, turn in enumerate(scenario.seed.turns):
        if turn.empathetic:
            about = {"pair_id": pair_id(dialogue_id, place), "dialogue_id": dialogue_id, "scenario_id": scenario.number, "turn": place}
            groups = {
                "scenario": scenario.name,
                "phase": "comforting",
                "strategy": turn.strategy,
                "source": "model",
                "apathetic_method": "model",
            }
            texts = {name: new(getattr(turn, name)) for name in CELLS}
            yield {**about, **groups, "context": turns[:place], "reference": turns[place]["text"], **texts}


def audit_of(folder: Path) -> dict[str, Any]:
    """The figures of one audit in this process."""
    begin = time.perf_counter()
    held = AuditInput.of(folder)
    read = time.perf_counter()
    pairs, controls = ((held.pairs, PAIR_VARIANTS), (held.controls, CONTROLS))
    found: list[Any] = [statistics_of([Vader()], corpus.pairs(variants))[Vader.name] for corpus, variants in (pairs, controls)]
    held = AuditInput(folder, held.pairs, held.controls, known={Vader.name: {**found[0], **found[1]}})
    scored, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    audit = audit_texts(held, ResamplingSettings(1000, 0, 2026))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu = usage.ru_utime + usage.ru_stime - before.ru_utime - before.ru_stime
    return {
        "pairs": len(held.pairs), "dialogues": len(held.pairs.clusters), "controls": len(held.controls),
        "read_s": round(read - begin, 1), "vader_s": round(scored - read, 1), "audit_s": round(time.perf_counter() - scored, 1),
        "audit_cpu_s": round(cpu, 1), "peak_mb_before": round(before.ru_maxrss / 1024), "peak_mb": round(usage.ru_maxrss / 1024),
        "lines": {one.contrast: one.line.name for one in audit.contrasts if one.line},
        "digest": digest([audit.to_json(), audit.word_margins]),
    }  # fmt: skip


def main() -> None:
    """Makes the pairs, audits them in a process of its own and prints its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialogues", type=int, default=30_633)
    parser.add_argument("--controls", type=int, default=2000, help="pairs with controls at most (default: as in the full configuration)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the pairs here, and take those that are there")
    parser.add_argument("--audit", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.audit:
        print(json.dumps(audit_of(options.audit), indent=1), flush=True)
        return
    with contextlib.ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if not (folder / "data").is_dir():
            write_pairs(folder, options.dialogues, options.controls)
        taken = measured([sys.executable, "-m", "benchmarks.shortcuts", "--audit", str(folder)])
        print(json.dumps({name: round(value, 1) for name, value in taken.items()}))


if __name__ == "__main__":
    main()
