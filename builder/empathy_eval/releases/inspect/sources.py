"""Where texts that are shown lie: a release or a build, read as the outcomes that both are made of."""

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


def filter_rows(path: Path, columns: pa.Schema, name: str, value: str, *, begins: bool = False) -> list[TableRow]:
    """The rows of a file with these columns, at least, in which one of them has a value, or ``begins`` with it.

    Raises:
        InputError: if the file is not there, is damaged, or has not these columns.
    """
    found = list[TableRow]()
    with parquet_errors(path):
        for batch in table_batches(path, None):
            if lacking := [
                one.name for one in columns if one.name not in batch.schema.names or batch.schema.field(one.name).type != one.type
            ]:
                raise input_error(path, f'has no column "{lacking[0]}" as the data contract defines it', WHOLE)
            cells = batch.column(name)
            mask = pc.starts_with(cells, pattern=value) if begins else pc.equal(cells, value)
            found += batch.filter(mask).to_pylist()
    return found


class ReleaseFolder:
    """The folder of a release."""

    finished = released = True
    ledger = None

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.header: Mapping[str, Any] = read_manifest(folder)
        self.named = f"{self.header['name']} {self.header['version']}"

    def dialogue_ids(self) -> list[str]:
        """Those that are released."""
        return column(self._folder, "dialogues", "dialogue_id")

    def _rows(self, table: str, dialogue_id: str) -> list[TableRow]:
        """The rows of a table about a dialogue, each valid."""
        path = table_path(self._folder, table, None if table in UNSPLIT else split_of(dialogue_id))
        columns = {**configs_of([table]), "provenance": PROVENANCE, "candidates": CANDIDATES}[table]
        by, value = ("pair_id", f"{dialogue_id}-t") if table == "candidates" else ("dialogue_id", dialogue_id)
        rows = filter_rows(path, pa.schema([columns.field(by)]), by, value, begins=table == "candidates")
        for row in rows:
            check(row, f"{table}_row", f"{path}: {dialogue_id}")
        return rows

    def outcome(self, dialogue_id: str) -> Outcome | None:
        """A dialogue with its pairs, the keys of its provenance, and its texts that were not released."""
        return outcome_of(dialogue_id, {table: self._rows(table, dialogue_id) for table in tables_of(self.header)}, self.header)

    def outcomes(self) -> Iterator[Outcome]:
        """All dialogues, without their pairs: only texts that were not released are told of them."""
        for stored in read_back(self._folder, ["candidates"]):
            for number, row in (rows := stored.rows["candidates", None]):
                check(row, "candidates_row", f"{self._folder / 'candidates.parquet'}: row {number}")
            candidates = tuple(candidate_of(row, row["attempt"]) for _, row in rows)
            yield Outcome(stored.dialogue_id, int(stored.dialogue_id[:3]), "accepted", candidates=candidates)

    def left_out(self) -> dict[str, tuple[str, str]]:
        """Those that were withdrawn, are near-duplicates of others, or were removed by reviewers."""
        header = self.header
        found = withdrawal_reasons(header["withdrawn"])
        found |= {goes: ("duplicate", f"a near-duplicate of {stays}, which is kept") for goes, stays in header["duplicates"].items()}
        for one in (header.get("reviews") or {}).get("removed", []):
            said = f"removed by review: {one['remove']} of {one['remove'] + one['keep']} raters say so"
            found[one["dialogue_id"]] = "removed_by_review", ": ".join([said, "; ".join(one["reasons"])]) if one["reasons"] else said
        return found

    def taken(self) -> set[str]:
        """The keys of all requests whose answers are released."""
        path = self._folder / "provenance.parquet"
        return {key for batch in table_batches(path, ["request_key"]) for key in batch.column(0).to_pylist()}

    def said(self, place: TextAddress) -> dict[str, tuple[Mapping[str, Any], ...]]:
        """Rows of annotations, comparisons and strategies, and scores by metric with the word margin."""
        found = dict[str, list[TableRow]]()
        for config in [one for one in JUDGED if one in self.header["counts"]]:
            path = file_of(self._folder, config, split_of(place.dialogue_id))
            if place.turn is not None:
                found[config] = filter_rows(path, JUDGED[config], "pair_id", place.name)
            elif config == "annotations":
                found[config] = [one for one in filter_rows(path, JUDGED[config], "dialogue_id", place.name) if one["pair_id"] is None]
        if place.turn is not None:
            found["scores"] = filter_rows(self._folder / ITEMS, pa.schema([("pair_id", pa.string())]), "pair_id", place.name)
        return {name: tuple(rows) for name, rows in found.items() if rows}

    def keyed(self, prefix: str) -> list[TextAddress]:
        """Those of the provenance."""
        found = dict[str, TextAddress]()
        path = self._folder / "provenance.parquet"
        for row in filter_rows(path, PROVENANCE, "request_key", prefix, begins=True):
            check(row, "provenance_row", f"{path}: {prefix}")
            turn = None if row["pair_id"] is None else parts_of(row["pair_id"])[1]
            kind = "self_chat" if row["what"] == "dialogue" else KIND_OF.get(row["what"], row["what"])
            kind = CROSSED_CHECK.name if row["method"] == "judge" else kind
            found[row["request_key"]] = TextAddress(row["dialogue_id"], turn, kind, row["request_key"])
        return list(found.values())[:2]


def withdrawal_reasons(said: list[dict[str, str]]) -> dict[str, tuple[str, str]]:
    """By id why and when dialogues and pairs were withdrawn."""
    kinds = {name: f" ({one['kind']})" if "kind" in one else "" for one in said for name in (one.get("dialogue_id") or one["pair_id"],)}
    named = ((one.get("dialogue_id") or one["pair_id"], one) for one in said)
    return {name: ("withdrawn", f"withdrawn on {one['date']}{kinds[name]}: {one['reason']}") for name, one in named}


IDENTITY = re.compile(rb'"dialogue_id":"(\d{3}-(?:seed|\d{5,})(?:-r[1-9]\d{0,3})?)"')
Rows = tuple[Mapping[str, Any], ...]


class BuildFolder:
    """The folder of a build; it may be under way."""

    released = False

    def __init__(self, folder: Path) -> None:
        self._folder, self.finished = folder, (folder / BUILD).is_file()
        if self.finished:
            self.header: Mapping[str, Any] = read_build(folder)
        else:
            fix = "run the same build again"
            self.header = {"configuration": read_json(folder / CONFIGURATION, "published_configuration", fix)}
        self.named = f"the build {self.header['configuration']['name']}" + ("" if self.finished else ", which is not finished")
        self.ledger = folder / LEDGER if (folder / LEDGER).is_file() else None

    def dialogue_ids(self) -> list[str]:
        """Those that are in the outcomes."""
        return [found[1].decode() for line in self._lines() if (found := IDENTITY.search(line))]

    def outcome(self, dialogue_id: str) -> Outcome | None:
        """The line of a dialogue."""
        wanted = f'"dialogue_id":"{dialogue_id}"'.encode()
        return next((one for one in self._read(wanted) if one.dialogue_id == dialogue_id), None)

    def outcomes(self) -> Iterator[Outcome]:
        """All lines."""
        return self._read(b"")

    def _lines(self) -> Iterator[bytes]:
        if self.finished:
            with (self._folder / OUTCOMES).open("rb") as stream:
                yield from stream

    def _read(self, wanted: bytes) -> Iterator[Outcome]:
        for number, line in enumerate(self._lines(), 1):
            if wanted in line:
                value = json.loads(line)
                check(value, "outcome", f"{self._folder / OUTCOMES}: line {number}")
                yield Outcome.from_json(value)

    def left_out(self) -> dict[str, tuple[str, str]]:
        """Those that the configuration withdraws."""
        return withdrawal_reasons(self.header["configuration"].get("withdrawn", []))

    def taken(self) -> set[str]:
        """None: what of it is released is not decided."""
        return set()

    def said(self, place: TextAddress) -> dict[str, Rows]:
        """Nothing: a build has texts alone."""
        return {}

    def keyed(self, prefix: str) -> list[TextAddress]:
        """Those of texts that were taken and of answers that were not."""
        return [place for one in self._read(f'"{prefix}'.encode()) for place in find_addresses(one, prefix)][:2]


# What lies in a folder, read as outcomes. Of a build that is under way, which is not ``finished``, the ledger alone is known.
Source = ReleaseFolder | BuildFolder


def open_source(folder: Path) -> Source:
    """The release or the build of a folder.

    Raises:
        InputError: if it is neither, or what it says of itself is not valid.
    """
    if (folder / MANIFEST).is_file():
        return ReleaseFolder(folder)
    if (folder / CONFIGURATION).is_file() or (folder / BUILD).is_file():
        return BuildFolder(folder)
    what = f"is not a release (no {MANIFEST} in it), and neither a build nor annotations (no {BUILD} in it)"
    raise input_error(folder, what, "name the folder of a release, a build or annotations")


def find_addresses(outcome: Outcome, prefix: str) -> Iterator[TextAddress]:
    """The places of an outcome's requests whose key begins so."""
    keys = {(kind, turn): key for (kind, turn), key in released_keys_of(outcome).items() if key}
    found = {key: TextAddress(outcome.dialogue_id, turn, kind, key) for (kind, turn), key in keys.items()}
    failed = [(failure, failure.request_key) for failure in outcome.failures if failure.request_key]
    found |= {key: TextAddress(outcome.dialogue_id, one.turn, one.kind, key) for one, key in failed}
    found |= {key: TextAddress(outcome.dialogue_id, turn, CROSSED_CHECK.name, key) for key, turn in judge_keys_of(outcome).items()}
    return (place for key, place in found.items() if key.startswith(prefix))


def released_keys_of(outcome: Outcome) -> dict[tuple[str, int | None], str | None]:
    """By kind and turn the keys of the requests whose answers are in an outcome; None of what was made by rules."""
    found: dict[tuple[str, int | None], str | None] = {}
    if outcome.dialogue:
        found[SELF_CHAT.name, None] = outcome.dialogue.request_key
    for pair in outcome.pairs:
        for variant in VARIANTS:
            if made := getattr(pair, variant):
                found[KIND_OF[variant], pair.turn] = made.request_key
    for item in outcome.crossed:
        if item.request_keys:
            found[CROSSED.name, item.turn] = item.request_keys[0]
    return found


def judge_keys_of(outcome: Outcome) -> dict[str, int]:
    """The keys of the requests in which judges told the replies of crossed items apart, each with the turn of its item."""
    return {key: item.turn for item in outcome.crossed for key in item.request_keys[1:]}
