"""Forgeries of small things: bytes that no reader sees, marks of a judge's work, forms of files."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.doubles.forger import Forger, Row
from tests.doubles.forgeries import forgeries, forgery, in_each, in_facts, in_rows, in_text

JUDGED = ("annotations", "comparisons", "strategies")


def told_of_judges(change: Callable[[dict[str, Any]], object]) -> Callable[[Forger], object]:
    """Changes what the manifest says of each judge."""
    return lambda forger: [change(said) for said in forger.facts["annotations"]]


def last_file(forger: Forger, config: str) -> Path:
    return forger.paths(config)[-1]


@forgery(anew=True)
def bytes_between_the_columns_of_a_table(forger: Forger) -> None:
    path = last_file(forger, "crossed")
    data = path.read_bytes()
    end = len(data) - struct.unpack("<I", data[-8:-4])[0] - 8
    path.write_bytes(data[:end] + b"never mind what the columns say" * 50 + data[end:])


@forgery(anew=True)
def a_note_in_the_metadata_of_a_table(forger: Forger) -> None:
    path = last_file(forger, "crossed")
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"note": b"approved"}), path, compression="zstd")


@forgery(anew=True)
def requests_of_a_form_that_never_was(forger: Forger) -> None:
    def renamed(row: Row) -> None:
        if row["method"] == "model":
            row["request_key"] = row["request_key"].replace("s1-", "s0-")

    forger.each("provenance", renamed)


forgeries(
    a_candidate_refused_twice_for_one_reason=in_rows("candidates", lambda rows: rows[0].update(reasons=rows[0]["reasons"] * 2)),
)


forgeries(
    anew=True,
    a_sample_that_was_not_asked_for=in_each(lambda row: row.update(sample=7), *JUDGED),
    a_toxicity_of_five_places=in_each(lambda row: row["toxicity"].update(apathetic=row["toxicity"]["apathetic"] + 4e-5)),
    a_refusal_of_no_kind_of_request=in_facts(lambda facts: facts["summary"]["samples_refused"].update({"greeting: too long": 1})),
    rows_of_judges_in_another_order=lambda forger: forger.change(last_file(forger, "annotations"), lambda rows: rows[::-1]),
    fewer_variants_than_were_rated=told_of_judges(lambda said: said.update(variants=["reference", "apathetic"])),
    fewer_cases_than_have_rows=told_of_judges(lambda said: said.update(cases=said["cases"] - 1)),
    a_case_with_rows_that_is_said_to_be_left_out=lambda forger: forger.facts["annotations"][0].update(
        left_out=[next(forger.rows("strategies"))["pair_id"]], turns=9
    ),
    judges_in_another_order=in_facts(lambda facts: facts["annotations"].reverse()),
    a_comment_in_the_definitions=in_text("design/rules/safety.yaml", lambda text: f"# approved by all\n{text}"),
)
