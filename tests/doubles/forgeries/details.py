"""Forgeries of small things: bytes that no reader sees, marks of a judge's work, forms of files."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.doubles.forger import Forger, Row
from tests.doubles.forgeries import forgery

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


@forgery()
def a_candidate_refused_twice_for_one_reason(forger: Forger) -> None:
    forger.change(forger.folder / "candidates.parquet", lambda rows: rows[0].update(reasons=rows[0]["reasons"] * 2))


@forgery(anew=True)
def requests_of_a_form_that_never_was(forger: Forger) -> None:
    def renamed(row: Row) -> None:
        if row["method"] == "model":
            row["request_key"] = row["request_key"].replace("s1-", "s0-")

    forger.each("provenance", renamed)


@forgery(anew=True)
def rows_of_judges_in_another_order(forger: Forger) -> None:
    forger.change(last_file(forger, "annotations"), lambda rows: rows[::-1])


@forgery(anew=True)
def a_sample_that_was_not_asked_for(forger: Forger) -> None:
    for config in JUDGED:
        forger.each(config, lambda row: row.update(sample=7))


@forgery(anew=True)
def fewer_variants_than_were_rated(forger: Forger) -> None:
    told_of_judges(lambda said: said.update(variants=["reference", "apathetic"]))(forger)


@forgery(anew=True)
def fewer_cases_than_have_rows(forger: Forger) -> None:
    told_of_judges(lambda said: said.update(cases=said["cases"] - 1))(forger)


@forgery(anew=True)
def a_case_with_rows_that_is_said_to_be_left_out(forger: Forger) -> None:
    forger.facts["annotations"][0].update(left_out=[next(forger.rows("strategies"))["pair_id"]], turns=9)


@forgery(anew=True)
def judges_in_another_order(forger: Forger) -> None:
    forger.facts["annotations"].reverse()


@forgery(anew=True)
def a_refusal_of_no_kind_of_request(forger: Forger) -> None:
    forger.facts["summary"]["samples_refused"]["greeting: too long"] = 1


@forgery(anew=True)
def a_comment_in_the_definitions(forger: Forger) -> None:
    forger.write("design/rules/safety.yaml", lambda text: f"# approved by all\n{text}")


@forgery(anew=True)
def a_toxicity_of_five_places(forger: Forger) -> None:
    for config in ("pairs", "controls"):
        forger.each(config, lambda row: row["toxicity"].update(apathetic=row["toxicity"]["apathetic"] + 4e-5))
