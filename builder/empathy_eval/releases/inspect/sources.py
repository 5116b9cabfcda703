"""Folders that are inspected: a release or a build, read as outcomes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from empathy_eval.base.errors import input_error
from empathy_eval.base.schemas import check, read_json
from empathy_eval.base.tabular import WHOLE, TableRow, parquet_errors, table_batches
from empathy_eval.design.dataset import (
    CANDIDATES,
    JUDGED,
    MANIFEST,
    PROVENANCE,
    column,
    configs_of,
    file_of,
    parts_of,
    read_manifest,
    split_of,
)
from empathy_eval.design.kinds import CROSSED, CROSSED_CHECK, SELF_CHAT
from empathy_eval.generation.outcomes import BUILD, CONFIGURATION, LEDGER, OUTCOMES, VARIANTS, Outcome, read_build
from empathy_eval.releases.assemble.read_back import UNSPLIT, candidate_of, outcome_of, read_back, table_path, tables_of
from empathy_eval.releases.inspect.texts import KIND_OF, TextAddress

ITEMS = "report/items.parquet"
# Rows about a text, by the name of their table.
Judgements = dict[str, tuple[Mapping[str, Any], ...]]


def filter_rows(path: Path, columns: pa.Schema, name: str, value: str, *, begins: bool = False) -> list[TableRow]:
    """Returns the rows of a file in which a column equals a value, or ``begins`` with it.

    Raises:
        InputError: if the file is missing or damaged, or lacks one of ``columns``.
    """
    rows = list[TableRow]()
    with parquet_errors(path):
        for batch in table_batches(path, None):
            schema = batch.schema
            lacking = [field.name for field in columns if field.name not in schema.names or schema.field(field.name).type != field.type]
            if lacking:
                raise input_error(path, f'has no column "{lacking[0]}" as the data contract defines it', WHOLE)
            cells = batch.column(name)
            mask = pc.starts_with(cells, pattern=value) if begins else pc.equal(cells, value)
            rows += batch.filter(mask).to_pylist()
    return rows


class ReleaseFolder:
    """The folder of a release."""

    finished = released = True
    ledger = None

    def __init__(self, folder: Path) -> None:
        self._folder, self._provenance = folder, folder / "provenance.parquet"
        self.header: Mapping[str, Any] = read_manifest(folder)
        self.title = f"{self.header['name']} {self.header['version']}"

    def dialogue_ids(self) -> list[str]:
        """Returns the ids of released dialogues."""
        return column(self._folder, "dialogues", "dialogue_id")

    def _rows(self, table: str, dialogue_id: str) -> list[TableRow]:
        """Returns the rows of a table about a dialogue, each validated."""
        path = table_path(self._folder, table, None if table in UNSPLIT else split_of(dialogue_id))
        columns = {**configs_of([table]), "provenance": PROVENANCE, "candidates": CANDIDATES}[table]
        by, value = ("pair_id", f"{dialogue_id}-t") if table == "candidates" else ("dialogue_id", dialogue_id)
        rows = filter_rows(path, pa.schema([columns.field(by)]), by, value, begins=table == "candidates")
        for row in rows:
            check(row, f"{table}_row", f"{path}: {dialogue_id}")
        return rows

    def outcome(self, dialogue_id: str) -> Outcome | None:
        """Returns a dialogue with its pairs, the keys of its provenance, and its texts that were not released."""
        return outcome_of(dialogue_id, {table: self._rows(table, dialogue_id) for table in tables_of(self.header)}, self.header)

    def outcomes(self) -> Iterator[Outcome]:
        """Yields all dialogues with their texts that were not released, without pairs."""
        for stored in read_back(self._folder, ["candidates"]):
            for number, row in (rows := stored.rows["candidates", None]):
                check(row, "candidates_row", f"{self._folder / 'candidates.parquet'}: row {number}")
            candidates = tuple(candidate_of(row, row["attempt"]) for _, row in rows)
            yield Outcome(stored.dialogue_id, int(stored.dialogue_id[:3]), "accepted", candidates=candidates)

    def left_out(self) -> dict[str, tuple[str, str]]:
        """Returns (reason, explanation) of withdrawn, duplicate and removed items by id."""
        header = self.header
        reasons = withdrawal_reasons(header["withdrawn"])
        reasons |= {name: ("duplicate", f"a near-duplicate of {first}, which is kept") for name, first in header["duplicates"].items()}
        for review in (header.get("reviews") or {}).get("removed", []):
            votes = f"removed by review: {review['remove']} of {review['remove'] + review['keep']} raters say so"
            reasons[review["dialogue_id"]] = "removed_by_review", ": ".join(filter(None, [votes, "; ".join(review["reasons"])]))
        return reasons

    def released_keys(self) -> set[str]:
        """Returns the keys of all requests whose answers are released."""
        return {key for batch in table_batches(self._provenance, ["request_key"]) for key in batch.column(0).to_pylist()}

    def judgements(self, address: TextAddress) -> Judgements:
        """Returns rows of annotations, comparisons and strategies, and scores by metric with the word margin."""
        tables = dict[str, list[TableRow]]()
        for config in [config for config in JUDGED if config in self.header["counts"]]:
            path = file_of(self._folder, config, split_of(address.dialogue_id))
            if address.turn is not None:
                tables[config] = filter_rows(path, JUDGED[config], "pair_id", address.name)
            elif config == "annotations":
                rows = filter_rows(path, JUDGED[config], "dialogue_id", address.name)
                tables[config] = [row for row in rows if row["pair_id"] is None]
        if address.turn is not None:
            tables["scores"] = filter_rows(self._folder / ITEMS, pa.schema([("pair_id", pa.string())]), "pair_id", address.name)
        return {name: tuple(rows) for name, rows in tables.items() if rows}

    def find_keys(self, prefix: str) -> list[TextAddress]:
        """Returns at most two requests of the provenance whose key begins with the prefix."""
        addresses = dict[str, TextAddress]()
        for row in filter_rows(self._provenance, PROVENANCE, "request_key", prefix, begins=True):
            check(row, "provenance_row", f"{self._provenance}: {prefix}")
            turn = None if row["pair_id"] is None else parts_of(row["pair_id"])[1]
            kind = "self_chat" if row["what"] == "dialogue" else KIND_OF.get(row["what"], row["what"])
            kind = CROSSED_CHECK.name if row["method"] == "judge" else kind
            addresses[row["request_key"]] = TextAddress(row["dialogue_id"], turn, kind, row["request_key"])
        return list(addresses.values())[:2]


def withdrawal_reasons(withdrawals: list[dict[str, str]]) -> dict[str, tuple[str, str]]:
    """Returns (reason, explanation) of withdrawn dialogues and pairs by id."""
    reasons = {}
    for withdrawal in withdrawals:
        kind = f" ({withdrawal['kind']})" if "kind" in withdrawal else ""
        text = f"withdrawn on {withdrawal['date']}{kind}: {withdrawal['reason']}"
        reasons[withdrawal.get("dialogue_id") or withdrawal["pair_id"]] = "withdrawn", text
    return reasons


IDENTITY = re.compile(rb'"dialogue_id":"(\d{3}-(?:seed|\d{5,})(?:-r[1-9]\d{0,3})?)"')


class BuildFolder:
    """The folder of a build, which may be in progress."""

    released = False

    def __init__(self, folder: Path) -> None:
        self._folder, self.finished = folder, (folder / BUILD).is_file()
        if self.finished:
            self.header: Mapping[str, Any] = read_build(folder)
        else:
            fix = "run the same build again"
            self.header = {"configuration": read_json(folder / CONFIGURATION, "published_configuration", fix)}
        self.title = f"the build {self.header['configuration']['name']}" + ("" if self.finished else ", which is not finished")
        self.ledger = folder / LEDGER if (folder / LEDGER).is_file() else None

    def dialogue_ids(self) -> list[str]:
        """Returns the ids in the outcomes."""
        return [match[1].decode() for line in self._lines() if (match := IDENTITY.search(line))]

    def outcome(self, dialogue_id: str) -> Outcome | None:
        """Returns the outcome of a dialogue."""
        outcomes = self._read(f'"dialogue_id":"{dialogue_id}"'.encode())
        return next((outcome for outcome in outcomes if outcome.dialogue_id == dialogue_id), None)

    def outcomes(self) -> Iterator[Outcome]:
        """Yields all outcomes."""
        return self._read(b"")

    def _lines(self) -> Iterator[bytes]:
        if self.finished:
            with (self._folder / OUTCOMES).open("rb") as stream:
                yield from stream

    def _read(self, content: bytes) -> Iterator[Outcome]:
        for number, line in enumerate(self._lines(), 1):
            if content in line:
                value = json.loads(line)
                check(value, "outcome", f"{self._folder / OUTCOMES}: line {number}")
                yield Outcome.from_json(value)

    def left_out(self) -> dict[str, tuple[str, str]]:
        """Returns (reason, explanation) of the withdrawals in the configuration, by id."""
        return withdrawal_reasons(self.header["configuration"].get("withdrawn", []))

    def released_keys(self) -> set[str]:
        """Returns no keys: nothing is released yet."""
        return set()

    def judgements(self, address: TextAddress) -> Judgements:
        """Returns no judgements: a build holds texts alone."""
        return {}

    def find_keys(self, prefix: str) -> list[TextAddress]:
        """Returns at most two requests of outcomes whose key begins with the prefix, accepted or refused."""
        outcomes = self._read(f'"{prefix}'.encode())
        return [address for outcome in outcomes for address in find_addresses(outcome, prefix)][:2]


# A folder read as outcomes. Of a build in progress, which is not ``finished``, only the ledger is known.
Source = ReleaseFolder | BuildFolder


def open_source(folder: Path) -> Source:
    """Returns the release or the build of a folder. Raises InputError if it is neither, or its header is not valid."""
    if (folder / MANIFEST).is_file():
        return ReleaseFolder(folder)
    if (folder / CONFIGURATION).is_file() or (folder / BUILD).is_file():
        return BuildFolder(folder)
    what = f"is not a release (no {MANIFEST} in it), and neither a build nor annotations (no {BUILD} in it)"
    raise input_error(folder, what, "name the folder of a release, a build or annotations")


def find_addresses(outcome: Outcome, prefix: str) -> Iterator[TextAddress]:
    """Yields the addresses of an outcome's requests whose key begins with the prefix."""
    requests = {key: (kind, turn) for (kind, turn), key in released_keys_of(outcome).items() if key}
    requests |= {failure.request_key: (failure.kind, failure.turn) for failure in outcome.failures if failure.request_key}
    requests |= {key: (CROSSED_CHECK.name, turn) for key, turn in judge_keys_of(outcome).items()}
    return (TextAddress(outcome.dialogue_id, turn, kind, key) for key, (kind, turn) in requests.items() if key.startswith(prefix))


def released_keys_of(outcome: Outcome) -> dict[tuple[str, int | None], str | None]:
    """Returns the keys of the requests whose answers are in an outcome, by kind and turn; None for texts that rules made."""
    keys: dict[tuple[str, int | None], str | None] = {}
    if outcome.dialogue:
        keys[SELF_CHAT.name, None] = outcome.dialogue.request_key
    for pair in outcome.pairs:
        for name in VARIANTS:
            if variant := getattr(pair, name):
                keys[KIND_OF[name], pair.turn] = variant.request_key
    for item in outcome.crossed:
        if item.request_keys:
            keys[CROSSED.name, item.turn] = item.request_keys[0]
    return keys


def judge_keys_of(outcome: Outcome) -> dict[str, int]:
    """Returns the turn of the item by the key of each request in which a judge checked the replies of a crossed item."""
    return {key: item.turn for item in outcome.crossed for key in item.request_keys[1:]}
