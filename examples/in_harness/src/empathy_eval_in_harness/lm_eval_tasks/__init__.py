"""What the tasks for lm-evaluation-harness call: the YAML files beside this one name it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict
from empathy_eval.base.errors import input_error

from empathy_eval_in_harness.choices import LETTERS, Choice, choices, share_right

# What --include_path is to name.
FOLDER = Path(__file__).parent
Asked = tuple[str, str, float]


def rows(config: str, release: str = "", split: str = "test", **_: object) -> DatasetDict:
    """The questions as the harness takes them; ``release`` and ``split`` are what --metadata says.

    Raises:
        InputError: as :func:`empathy_eval_in_harness.choices.choices`, or if no release is named.
    """
    if not release:
        raise input_error("--metadata", "names no release", """give --metadata '{"release": "FOLDER-OR-HUB-NAME"}'""")
    asked = [
        {"id": one.id, "dialogue": one.dialogue, "scenario": one.scenario, "text": _text(one), "right": LETTERS.index(one.right)}
        for one in choices(release, config, split)
    ]
    return DatasetDict({"test": Dataset.from_list(asked)})


def _text(choice: Choice) -> str:
    replies = [f"{letter}) {reply}" for letter, reply in zip(LETTERS, choice.replies, strict=True)]
    return "\n\n".join([choice.question, *replies, "Answer:"])


def chosen(row: dict[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, Asked]:
    """Whether the likelier letter is the right one, for each figure that is made of it."""
    likelihoods = [result[0] for result in results]
    told = (row["dialogue"], row["scenario"], float(likelihoods.index(max(likelihoods)) == row["right"]))
    return dict.fromkeys(("right", "low", "high"), told)


def right(asked: Sequence[Asked]) -> float:
    """The share that is right over both orders."""
    return share_right(asked)["right"]


def low(asked: Sequence[Asked]) -> float:
    """The lower end of its 95 % interval."""
    return share_right(asked)["low"]


def high(asked: Sequence[Asked]) -> float:
    """The upper end of its 95 % interval."""
    return share_right(asked)["high"]
