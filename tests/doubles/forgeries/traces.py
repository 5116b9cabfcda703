"""Forgeries of the provenance, of candidates, and of what judges said."""

from __future__ import annotations

from tests.doubles.forger import Forger
from tests.doubles.forgeries import EXCHANGED, forgeries, forgery


@forgery(anew=True)
def another_winner(forger: Forger) -> None:
    def turn(row: dict[str, object]) -> None:
        row["winner"] = row["variant_1"] if row["winner"] == row["variant_2"] else row["variant_2"]

    forger.each("comparisons", turn)


@forgery(anew=True)
def ratings_dropped(forger: Forger) -> None:
    dropped = next(forger.rows("annotations"))["pair_id"]
    forger.keep("annotations", lambda row: row["pair_id"] != dropped)


forgeries(
    anew=True,
    no_provenance=lambda forger: forger.keep("provenance", lambda row: False),
    a_row_of_the_provenance_dropped=lambda forger: forger.change(forger.folder / "provenance.parquet", lambda rows: rows[:3] + rows[4:]),
    a_row_of_the_provenance_twice=lambda forger: forger.change(forger.folder / "provenance.parquet", lambda rows: rows[:4] + rows[3:]),
    a_provenance_of_nothing=lambda forger: forger.change(
        forger.folder / "provenance.parquet", lambda rows: [*rows, {**rows[1], "pair_id": "017-seed-t99"}]
    ),
    the_provenance_in_another_order=lambda forger: forger.change(
        forger.folder / "provenance.parquet", lambda rows: [*rows[:1], *rows[1:20][::-1], *rows[20:]]
    ),
    another_method_in_the_provenance=lambda forger: forger.change(
        forger.folder / "provenance.parquet", lambda rows: rows[1].update(method="rules")
    ),
    another_model_in_the_provenance=lambda forger: forger.change(
        forger.folder / "provenance.parquet", lambda rows: rows[1].update(model="better")
    ),
    another_source_of_a_dialogue_in_the_provenance=lambda forger: forger.change(
        forger.folder / "provenance.parquet", lambda rows: rows[0].update(method="model")
    ),
    a_request_key_that_is_none=lambda forger: forger.change(
        forger.folder / "provenance.parquet", lambda rows: rows[1].update(request_key="yes")
    ),
    a_request_key_taken_away=lambda forger: forger.change(
        forger.folder / "provenance.parquet", lambda rows: rows[1].update(request_key=None)
    ),
    one_request_behind_two_texts=lambda forger: forger.change(
        forger.folder / "provenance.parquet", lambda rows: rows[1].update(request_key=rows[2]["request_key"])
    ),
    another_hash_of_a_text=lambda forger: forger.change(
        forger.folder / "provenance.parquet", lambda rows: rows[1].update(text_sha256="0" * 64)
    ),
    no_candidates=lambda forger: forger.keep("candidates", lambda row: False),
    a_candidate_dropped=lambda forger: forger.change(forger.folder / "candidates.parquet", lambda rows: rows[1:]),
    a_candidate_of_nothing=lambda forger: forger.change(
        forger.folder / "candidates.parquet", lambda rows: [*rows, {**rows[0], "pair_id": "044-seed-t03"}]
    ),
    a_candidate_refused_for_nothing=lambda forger: forger.change(
        forger.folder / "candidates.parquet", lambda rows: rows[0].update(reasons=["toxic"])
    ),
    a_candidate_with_a_reason_that_there_is_not=lambda forger: forger.change(
        forger.folder / "candidates.parquet", lambda rows: rows[0].update(reasons=["dull"])
    ),
    a_candidate_numbered_otherwise=lambda forger: forger.change(
        forger.folder / "candidates.parquet", lambda rows: rows[0].update(attempt=9)
    ),
    a_harmful_candidate=lambda forger: forger.change(
        forger.folder / "candidates.parquet", lambda rows: rows[0].update(text="You should just kill yourself, you idiot.")
    ),
    consistent_where_it_is_not=lambda forger: forger.each("comparisons", lambda row: row.update(consistent=not row["consistent"])),
    a_rating_off_its_scale=lambda forger: forger.each("annotations", lambda row: row.update(value=17.0)),
    ratings_of_a_text_that_is_not_there=lambda forger: forger.each("annotations", lambda row: row.update(pair_id="017-seed-t99", turn=99)),
    an_ideal_that_does_not_add_up=lambda forger: forger.each("strategies", lambda row: row.update(ideal=[0.5] * len(row["ideal"]))),
    no_comparisons=lambda forger: forger.keep("comparisons", lambda row: False),
)


forgeries(
    anew=True,
    kind=EXCHANGED,
    other_ratings_by_a_judge=lambda forger: forger.each(
        "annotations", lambda row: row.update(value=1.0 - row["value"] if row["value"] in (0.0, 1.0) else row["value"])
    ),
)
