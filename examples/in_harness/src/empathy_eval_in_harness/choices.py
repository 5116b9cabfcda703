"""The questions of a release, each in both orders, and the share that is answered right, with its interval by dialogue."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import empathy_eval as ee
import numpy as np
from empathy_eval.base.errors import input_error
from empathy_eval.design.dataset import parts_of
from empathy_eval.statistics.estimate import Clusters, percentile_interval

CONFIGS = ("preferences_near", "preferences_far", "crossed")
SEEKERS, LETTERS = ("user", "seeker"), ("A", "B")
RESAMPLES, SEED, PLACES = 2000, 0, 4
QUESTION = files(__package__).joinpath("question.txt").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Choice:
    """A question with two replies, of which ``right`` (A or B) is the kind one, or the one that fits the context."""

    id: str
    dialogue: str
    scenario: str
    question: str
    replies: tuple[str, str]
    right: str


def choices(release: str, config: str = "preferences_near", split: str = "test") -> list[Choice]:
    """The questions of a release: a folder, or a version on the Hub (``my-lab/empathy-eval@v1.0.0``).

    Every question is there twice, with its replies in both orders. ``split`` is one of the release's, or "all".

    Raises:
        InputError: if there is no such release, config or split, or it has no rows.
        JobError: if the Hub cannot be reached.
    """
    if config not in CONFIGS:
        raise input_error("config", f'"{config}" asks for no choice', f"name one of these: {', '.join(CONFIGS)}")
    loaded: Any = ee.load(release, config, None if split == "all" else split)
    rows = [row for part in (loaded.values() if split == "all" else [loaded]) for row in part]
    if not rows:
        raise input_error("split", f'"{split}" of "{config}" has no rows in this release', "name another split, or all")
    ask = _crossed if config == "crossed" else _preferred
    return [one for row in rows for one in ask(row)]


def share_right(asked: Sequence[tuple[str, str, float]]) -> dict[str, float]:
    """From dialogue, scenario and 1 or 0 of each question: the share that is right, and the ends of its 95 % interval.

    Dialogues are resampled within scenario; where there are none to exchange, the ends are no numbers.
    """
    dialogues, scenarios, right = zip(*asked, strict=True)
    numbers = {name: number for number, name in enumerate(sorted(set(scenarios)), 1)}
    clusters = Clusters.of(dialogues, [numbers[one] for one in scenarios])
    sums = clusters.totals(np.column_stack([right, np.ones(len(right))]))
    share, low, high = float(sums[:, 0].sum() / sums[:, 1].sum()), math.nan, math.nan
    if clusters.degrees_of_freedom:
        drawn = clusters.bootstrap(sums, RESAMPLES, SEED)
        low, high = percentile_interval(drawn[:, 0] / drawn[:, 1], PLACES)
    return {"right": share, "low": low, "high": high}


def _preferred(row: dict[str, Any]) -> Iterator[Choice]:
    said = [(turn["role"], turn["content"]) for turn in row["prompt"]]
    replies = (row["chosen"][-1]["content"], row["rejected"][-1]["content"])
    yield from _both_orders(row["pair_id"], parts_of(row["pair_id"])[0], row["scenario"], said, replies)


def _crossed(row: dict[str, Any]) -> Iterator[Choice]:
    """Each reply fits one of the contexts."""
    for fits, other in (("1", "2"), ("2", "1")):
        said = [(turn["role"], turn["text"]) for turn in row[f"context_{fits}"]]
        replies = (row[f"reply_{fits}"], row[f"reply_{other}"])
        yield from _both_orders(f"{row['crossed_id']}-{fits}", row["dialogue_id"], str(row["scenario_id"]), said, replies)


def _both_orders(
    name: str, dialogue: str, scenario: str, said: Sequence[tuple[str, str]], replies: tuple[str, str]
) -> Iterator[Choice]:  # fmt: skip
    turns = "\n\n".join(f"{'Seeker' if role in SEEKERS else 'Helper'}: {text}" for role, text in said)
    question = QUESTION.replace("{turns}", turns).strip()
    yield Choice(f"{name}/A", dialogue, scenario, question, replies, "A")
    yield Choice(f"{name}/B", dialogue, scenario, question, replies[::-1], "B")
