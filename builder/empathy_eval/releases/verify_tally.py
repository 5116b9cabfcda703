"""What comes by when a release is gone through, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from empathy_eval.base.tabular import TableRow
from empathy_eval.design.kinds import KINDS
from empathy_eval.releases.verify_complete import Item

KIND = {kind.variant: name for name, kind in KINDS.items() if kind.variant}


@dataclass
class Tally:
    """Dialogues by scenario with the highest index of each, turns and rows, requests by model, and refusals by kind and reason."""

    dialogues: Counter[str] = field(default_factory=Counter)
    highest: dict[str, str] = field(default_factory=dict)
    turns: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def add(self, item: Item, asked: Sequence[TableRow], candidates: Sequence[TableRow]) -> None:
        """Counts a dialogue with its rows, what was asked for it, and what was refused."""
        scenario, _, index = item.dialogue["dialogue_id"].partition("-")
        self.dialogues[scenario] += 1
        self.highest[scenario] = index
        self.turns += sum(turn["role"] == "helper" for turn in item.dialogue["turns"])
        self.rows.update({config: len(rows) for config, rows in item.rows.items()})
        keys = {row["request_key"]: row["model"] for row in asked if row["request_key"] is not None}
        self.requests.update(keys.values())
        for row in candidates:
            self.refused.update(f"{KIND.get(row['variant'])}: {reason}" for reason in row["reasons"] or ())
