"""Every cell and every row of the tables: what is changed in one of them is found by reading back and deriving again."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.prompts import Prompts
from empathy_eval.releases.assemble.read_back import DialogueRows, File, Numbered, read_back, tables_of
from empathy_eval.releases.verify.content import ReleaseContents, Requests
from empathy_eval.releases.verify.texts import load_text_checks

from tests.doubles import made_once
from tests.doubles.forger import honest

# What nothing else says, and no check refuses: ledgers, word lists and scores of toxicity tell more of it.
SOURCES = {
    ("pairs", "toxicity"), ("controls", "near_empathetic_toxicity"), ("controls", "far_apathetic_toxicity"),
    ("provenance", "request_key"), ("provenance", "model"), ("candidates", "text"),
}  # fmt: skip


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory, prompts: Prompts) -> ReleaseContents:
    folder = made_once.copied(tmp_path_factory, "forged", lambda folder: honest(folder, prompts))[0] / "release"
    facts = read_manifest(folder)
    return ReleaseContents(folder, facts, load_text_checks(folder, facts), Requests(folder, facts))


@pytest.fixture(scope="module")
def stored(contents: ReleaseContents) -> DialogueRows:
    """The dialogue that is first in the release."""
    return next(read_back(contents.folder, tables_of(contents.manifest, derived=True)))


def with_rows(stored: DialogueRows, file: File, rows: list[Numbered]) -> DialogueRows:
    return replace(stored, rows={name: some for name, some in {**stored.rows, file: rows}.items() if some})


def changed(value: Any) -> Any:
    """Another value of that kind."""
    if isinstance(value, dict):
        name = next(reversed(value))
        return {**value, name: changed(value[name])}
    if isinstance(value, list):
        return [*value[:-1], changed(value[-1])] if value else ["crisis"]
    if isinstance(value, str):
        return f"{value} indeed"
    return value / 2 + 0.25 if isinstance(value, float) else (value or 0) + 1


def test_a_dialogue_that_is_as_it_was_released_has_no_fault(contents: ReleaseContents, stored: DialogueRows) -> None:
    assert list(contents.check(stored)) == [] and {table for table, _ in stored.rows} == {*tables_of(contents.manifest, derived=True)}


@pytest.mark.e2e
def test_another_value_in_any_column_is_found_with_its_table(contents: ReleaseContents, stored: DialogueRows) -> None:
    unseen = set[tuple[str, str]]()
    for file, ((number, row), *others) in stored.rows.items():
        for column in row:
            forged = with_rows(stored, file, [(number, {**row, column: changed(row[column])}), *others])
            if not any(one.severity == "fault" for one in contents.check(forged)):
                unseen.add((file[0], column))
    assert unseen <= SOURCES


def test_a_row_that_is_lost_or_there_twice_or_in_the_place_of_another_is_found(contents: ReleaseContents, stored: DialogueRows) -> None:
    for file, rows in stored.rows.items():
        for forged in (rows[1:], [rows[0], *rows], [*rows[1:], rows[0]] if len(rows) > 1 else []):
            found = [one for one in contents.check(with_rows(stored, file, [*forged])) if one.severity == "fault"]
            assert found, (file, len(forged))


def test_a_finding_names_the_cell_with_both_values(contents: ReleaseContents, stored: DialogueRows) -> None:
    file = next(one for one in stored.rows if one[0] == "preferences")
    (number, row), *others = stored.rows[file]
    forged = with_rows(stored, file, [(number, {**row, "scenario": "Another"}), *others])
    (found,) = contents.check(forged)
    assert (found.config, found.row, found.column, found.value, found.derived) == (
        "preferences", number, "scenario", "Another", row["scenario"],
    )  # fmt: skip


@pytest.mark.long
def test_of_a_thousand_changed_cells_all_but_those_of_sources_are_found(contents: ReleaseContents) -> None:
    """One at a time, over all columns in turn, in dialogues and rows that are drawn by a seed."""
    drawn, unseen = random.Random(2026), set[tuple[str, str]]()
    every = list(read_back(contents.folder, tables_of(contents.manifest, derived=True)))
    columns = sorted({(file[0], column) for one in every for file, rows in one.rows.items() for column in rows[0][1]})
    for table, column in (columns * (1000 // len(columns) + 1))[:1000]:
        one = drawn.choice([one for one in every if any(name == table for name, _ in one.rows)])
        file = next(file for file in one.rows if file[0] == table)
        rows = list(one.rows[file])
        at = drawn.randrange(len(rows))
        number, row = rows[at]
        rows[at] = (number, {**row, column: changed(row[column])})
        if not any(found.severity == "fault" for found in contents.check(with_rows(one, file, rows))):
            unseen.add((table, column))
    assert unseen <= SOURCES
