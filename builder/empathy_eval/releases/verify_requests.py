"""The requests behind the texts of a release: what its provenance must say of each dialogue, by the rows in the tables."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from empathy_eval.base.errors import Problem
from empathy_eval.base.hashing import SCHEME
from empathy_eval.base.tabular import TableRow
from empathy_eval.design.contrasts import CONTROLS
from empathy_eval.design.dataset import TEXT_HASH
from empathy_eval.design.kinds import KINDS
from empathy_eval.releases.rows import crossed_requests
from empathy_eval.releases.verify_complete import Item
from empathy_eval.releases.verify_rows import RESTORE

KEY = re.compile(rf"{SCHEME}-[0-9a-f]{{64}}")
ROLE = {kind.variant: kind.role for kind in KINDS.values() if kind.variant}
# What a judge of a crossed item is shown first and last in turn, so what was chosen.
CHOICES = "AB"


class Made(NamedTuple):
    """What a row of the provenance must say; ``model`` is None where the tables do not tell it. ``text`` is what the request brought."""

    dialogue_id: str
    pair_id: str | None
    what: str
    method: str
    model: str | None
    text: str

    @property
    def about(self) -> str:
        """What it is of, in words."""
        return f"{self.pair_id or self.dialogue_id}, {self.what}"


@dataclass
class Requests:
    """What each request brought, as two numbers: one answer has one text, wherever it is shown."""

    keys: array[int] = field(default_factory=lambda: array("Q"))
    brought: array[int] = field(default_factory=lambda: array("Q"))

    def add(self, key: str, *brought: str | None) -> None:
        """Notes what a request brought."""
        self.keys.append(int(key[-16:], 16))
        told = blake2b("\0".join(map(str, brought)).encode(errors="surrogatepass"), digest_size=8).digest()
        self.brought.append(int.from_bytes(told, "big"))

    def torn(self) -> int:
        """How many requests are named for different texts."""
        keys, brought = (np.frombuffer(one, np.uint64) if one else np.empty(0, np.uint64) for one in (self.keys, self.brought))
        order = np.argsort(keys, kind="stable")
        keys, brought = keys[order], brought[order]
        return len(np.unique(keys[1:][(keys[1:] == keys[:-1]) & (brought[1:] != brought[:-1])]))


def wanted_rows(item: Item, manifest: dict[str, Any]) -> Iterator[Made]:
    """What the provenance says of a dialogue, as its rows in the tables give it."""
    dialogue, rows = item
    name = dialogue["dialogue_id"]
    said = [f"{turn['role']}: {turn['text']}: {turn['strategy']}" for turn in dialogue["turns"]]
    yield Made(name, None, "dialogue", dialogue["source"], dialogue["model"], "\0".join([dialogue["description"], *said]))
    controls = {row["pair_id"]: row for row in rows["controls"]}
    for row in rows["pairs"]:
        pair = row["pair_id"]
        yield Made(name, pair, "apathetic", row["apathetic_method"], row["near_model"], row["apathetic"])
        yield Made(name, pair, "empathetic", method_of("empathetic", manifest), row["far_model"], row["empathetic"])
        for control in CONTROLS if pair in controls else ():
            yield Made(name, pair, control, method_of(control, manifest), None, controls[pair][control])
    for row in rows.get("crossed", ()):
        texts = "\0".join([row["context_2"][-1]["text"], row["reply_2"], row["reason"]])
        for number, one in enumerate(crossed_requests(row)):
            # A judge is shown the own reply first, then last.
            brought = CHOICES[(number - 1) % 2] if number else texts
            yield Made(name, one["pair_id"], one["what"], one["method"], one["model"], brought)


def method_of(variant: str, manifest: dict[str, Any]) -> str:
    """The method of a text that a model is asked for."""
    return "seed" if manifest["configuration"]["models"][ROLE[variant]]["kind"] == "seed-bank" else "model"


def wrong_rows(path: Path, found: list[TableRow], wanted: list[Made], requests: Requests) -> Iterator[Problem]:
    """The first row of a dialogue that is not what the tables give, if there is one."""
    for row, made in zip(found, wanted, strict=False):
        if what := _wrong(row, made):
            yield Problem(f"{path}: row {row['row']}", what, RESTORE)
            return
        if row["request_key"] is not None:
            requests.add(row["request_key"], row["model"], made.text)
    if len(found) > len(wanted):
        yield Problem(f"{path}: row {found[len(wanted)]['row']}", "is more than the tables give of its dialogue", RESTORE)
    for made in wanted[len(found) :][:1]:
        yield Problem(str(path), f"has no row of {made.about}", RESTORE)


def _wrong(row: TableRow, made: Made) -> str | None:
    """What a row says otherwise than the tables."""
    if (row["dialogue_id"], row["pair_id"], row["what"]) != (made.dialogue_id, made.pair_id, made.what):
        return f'is of "{str(row["pair_id"] or row["dialogue_id"])[:80]}", {str(row["what"])[:80]}; the tables give {made.about}'
    for name, value in (("method", made.method), ("model", made.model or row["model"])):
        if row[name] is None or row[name] != value:
            return f'{made.about}: its {name} is "{str(row[name])[:80]}", the tables give "{value}"'
    key = row["request_key"]
    if made.method == "rules" and key is not None:
        return f"{made.about}: was made by rules, and has the key of a request"
    if made.method != "rules" and (key is None or not KEY.fullmatch(key)):
        return f'{made.about}: its request_key "{str(key)[:80]}" is none'
    if made.what in ("dialogue", "crossed") and row.get(TEXT_HASH) is not None:
        return f"{made.about}: is no single text, and has the hash of one"
    return None
