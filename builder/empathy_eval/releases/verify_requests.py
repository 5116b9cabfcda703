"""The requests behind the texts of a release: one answer has one text, wherever it is shown, and a model was asked as often as told."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import SCHEME
from empathy_eval.base.tabular import TableRow
from empathy_eval.design.contrasts import CELLS

KEY = re.compile(rf"{SCHEME}-[0-9a-f]{{64}}")
# Between the parts of an answer: no text has it.
SEPARATOR = "\0"


def texts_of(there: Mapping[str, Sequence[TableRow]]) -> dict[Any, str]:
    """What was answered for a dialogue, given its rows by config, by pair and variant; what is of crossed items by their requests."""
    found: dict[Any, str] = {}
    for row in there["dialogues"]:
        turns = (f"{one['role']}: {one['text']}: {one['strategy']}" for one in row["turns"])
        found[None, "dialogue"] = SEPARATOR.join([row["description"], *turns])
    for row in (*there["pairs"], *there["controls"]):
        found |= {(row["pair_id"], name): row[name] for name in CELLS if name in row}
    for row in there.get("crossed", ()):
        writer, *judges = row["request_keys"] or [None]
        found[writer] = SEPARATOR.join([row["context_2"][-1]["text"], row["reply_2"], row["reason"]])
        # Each context with its own reply first, then with it last.
        found |= dict(zip(judges, "ABAB", strict=False))
    return found


@dataclass
class Requests:
    """The requests of a release in a few bytes each, and how many each model had, equal ones of a dialogue once.

    Dialogues of one scenario that begin alike may share a request, and then its answer.
    """

    keys: array[int] = field(default_factory=lambda: array("Q"))
    answers: array[int] = field(default_factory=lambda: array("Q"))
    asked: Counter[str] = field(default_factory=Counter)

    def add(self, rows: Sequence[TableRow], there: Mapping[str, Sequence[TableRow]]) -> None:
        """Takes in the provenance of a dialogue, whose rows in the tables are there by config."""
        texts = texts_of(there)
        for row in rows:
            if (key := row["request_key"]) and KEY.fullmatch(key):
                self.keys.append(int(key[-16:], 16))
                self.answers.append(_short(f"{row['model']}{SEPARATOR}{texts.get((row['pair_id'], row['what']), texts.get(key))}"))
        self.asked.update({row["request_key"]: row["model"] for row in rows if row["request_key"]}.values())

    def torn(self) -> int:
        """How many requests stand behind texts, or models, that differ."""
        keys, answers = (np.array(one, dtype=np.uint64) for one in (self.keys, self.answers))
        order = np.argsort(keys, kind="stable")
        keys, answers = keys[order], answers[order]
        both: NDArray[np.uint64] = keys[1:][(keys[1:] == keys[:-1]) & (answers[1:] != answers[:-1])]
        return len(np.unique(both))

    def untold(self, usage: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[str, str]]:
        """(model, what is wrong) of each of which a manifest tells fewer requests than there are."""
        for model, count in sorted(self.asked.items()):
            if (told := usage.get(model, {}).get("requests", 0)) < count:
                yield model, f"says {told} requests, but the provenance has {count}"


def _short(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "big")
