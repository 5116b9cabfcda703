"""Forgeries of the provenance, of candidates, and of what judges said."""

from __future__ import annotations

from tests.doubles.forger import Forger
from tests.doubles.forgeries import EXCHANGED, forgeries, forgery, in_each, in_rows


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
    a_row_of_the_provenance_dropped=in_rows("provenance", lambda rows: rows[:3] + rows[4:]),
    a_row_of_the_provenance_twice=in_rows("provenance", lambda rows: rows[:4] + rows[3:]),
    a_provenance_of_nothing=in_rows("provenance", lambda rows: [*rows, {**rows[1], "pair_id": "017-seed-t99"}]),
    the_provenance_in_another_order=in_rows("provenance", lambda rows: [*rows[:1], *rows[1:20][::-1], *rows[20:]]),
    another_method_in_the_provenance=in_rows("provenance", lambda rows: rows[1].update(method="rules")),
    another_model_in_the_provenance=in_rows("provenance", lambda rows: rows[1].update(model="better")),
    another_source_of_a_dialogue_in_the_provenance=in_rows("provenance", lambda rows: rows[0].update(method="model")),
    a_request_key_that_is_none=in_rows("provenance", lambda rows: rows[1].update(request_key="yes")),
    a_request_key_taken_away=in_rows("provenance", lambda rows: rows[1].update(request_key=None)),
    one_request_behind_two_texts=in_rows("provenance", lambda rows: rows[1].update(request_key=rows[2]["request_key"])),
    another_hash_of_a_text=in_rows("provenance", lambda rows: rows[1].update(text_sha256="0" * 64)),
    no_candidates=lambda forger: forger.keep("candidates", lambda row: False),
    a_candidate_dropped=in_rows("candidates", lambda rows: rows[1:]),
    a_candidate_of_nothing=in_rows("candidates", lambda rows: [*rows, {**rows[0], "pair_id": "044-seed-t03"}]),
    a_candidate_refused_for_nothing=in_rows("candidates", lambda rows: rows[0].update(reasons=["toxic"])),
    a_candidate_with_a_reason_that_there_is_not=in_rows("candidates", lambda rows: rows[0].update(reasons=["dull"])),
    a_candidate_numbered_otherwise=in_rows("candidates", lambda rows: rows[0].update(attempt=9)),
    a_harmful_candidate=in_rows("candidates", lambda rows: rows[0].update(text="You should just kill yourself, you idiot.")),
    consistent_where_it_is_not=in_each(lambda row: row.update(consistent=not row["consistent"]), "comparisons"),
    a_rating_off_its_scale=in_each(lambda row: row.update(value=17.0), "annotations"),
    ratings_of_a_text_that_is_not_there=in_each(lambda row: row.update(pair_id="017-seed-t99", turn=99), "annotations"),
    an_ideal_that_does_not_add_up=in_each(lambda row: row.update(ideal=[0.5] * len(row["ideal"])), "strategies"),
    no_comparisons=lambda forger: forger.keep("comparisons", lambda row: False),
)


forgeries(
    anew=True,
    kind=EXCHANGED,
    other_ratings_by_a_judge=in_each(
        lambda row: row.update(value=1.0 - row["value"] if row["value"] in (0.0, 1.0) else row["value"]), "annotations"
    ),
)
