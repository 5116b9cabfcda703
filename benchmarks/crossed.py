"""What metrics and shortcuts make of the curated crossed items, as a table of Markdown, with the seconds that each took.

``python -m benchmarks.crossed`` takes the items as the scenarios hold them; ``--metric NAME`` (repeatable, with settings behind it) takes
other metrics than its own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.evaluation.crossed_items import CrossedItems, CrossedScorer, crossed_rows, crossed_scorers, shortcut_scorers
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.evaluation.inversion.rows import CrossedRow
from empathy_eval.evaluation.shortcuts.texts import Embedding
from empathy_eval.metrics.registry import find

METRICS = ("vader", "length", "bertscore:against=context", "empathyscore:model=plain")
# As the demo has it.
CHANCE = ResamplingSettings(1000, 0, 2026)


def curated() -> CrossedItems:
    """The curated items of the project's own scenarios."""
    catalogue = load_catalogue()
    rows = [(number, one) for number, some in sorted(catalogue.crossed.items()) for one in some]
    first, second = [], []
    for number, one in rows:
        seed = catalogue[number].seed
        turns = [{"role": turn.role, "text": turn.text} for turn in (seed.turns if seed else ())[: one.turn]]
        first.append(turns)
        second.append([*turns[:-1], {"role": "seeker", "text": one.twin}])
    replies = [one.reply_1 for _, one in rows], [one.reply_2 for _, one in rows]
    names = [one.crossed_id for _, one in rows]
    dialogues = [name.rpartition("-x")[0] for name in names]
    return CrossedItems(names, dialogues, [number for number, _ in rows], (first, second), replies, ["seed"] * len(rows))


def line(row: CrossedRow, seconds: float) -> str:
    """A line of the table."""
    shown = [f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]" if one else "–" for one in row.figures.values()]
    ties = [f"{one:.3f}" if one is not None else "–" for one in (row.ties, row.own_ties)]
    return f"| {' | '.join([row.metric, str(row.items), *shown, *ties, f'{seconds:.1f}'])} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Scores the items and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metric", action="append", metavar="NAME", help=f"a metric (default: {', '.join(METRICS)})")
    options = parser.parse_args(arguments)
    items = curated()
    print("| scorer | items | fitting | both right | own context | ties | own ties | seconds |\n|" + " --- |" * 8)

    def told(asked: Sequence[CrossedScorer], begin: float) -> None:
        seconds = time.perf_counter() - begin
        for row in crossed_rows(asked, items, CHANCE):
            print(line(row, seconds), flush=True)

    for metric in find(options.metric or METRICS, {}).metrics:
        begin = time.perf_counter()
        told(crossed_scorers([metric], items)[0], begin)
    begin = time.perf_counter()
    told(shortcut_scorers(items, CHANCE.seed, Embedding()), begin)


if __name__ == "__main__":
    main()
