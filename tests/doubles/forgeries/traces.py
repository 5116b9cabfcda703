"""Forgeries of the provenance, of candidates, and of what judges said."""

from __future__ import annotations

from tests.doubles.forger import Forger
from tests.doubles.forgeries import EXCHANGED, forgery


@forgery(anew=True)
def no_provenance(forger: Forger) -> None:
    forger.keep("provenance", lambda row: False)


@forgery(anew=True)
def a_row_of_the_provenance_dropped(forger: Forger) -> None:
    forger.change(forger.folder / "provenance.parquet", lambda rows: rows[:3] + rows[4:])


@forgery(anew=True)
def a_row_of_the_provenance_twice(forger: Forger) -> None:
    forger.change(forger.folder / "provenance.parquet", lambda rows: rows[:4] + rows[3:])


@forgery(anew=True)
def a_provenance_of_nothing(forger: Forger) -> None:
    forger.change(forger.folder / "provenance.parquet", lambda rows: [*rows, {**rows[1], "pair_id": "017-seed-t99"}])


@forgery(anew=True)
def the_provenance_in_another_order(forger: Forger) -> None:
    forger.change(forger.folder / "provenance.parquet", lambda rows: [*rows[:1], *rows[1:20][::-1], *rows[20:]])


@forgery(anew=True)
def another_method_in_the_provenance(forger: Forger) -> None:
    forger.change(forger.folder / "provenance.parquet", lambda rows: rows[1].update(method="rules"))


@forgery(anew=True)
def another_model_in_the_provenance(forger: Forger) -> None:
    forger.change(forger.folder / "provenance.parquet", lambda rows: rows[1].update(model="better"))


@forgery(anew=True)
def another_source_of_a_dialogue_in_the_provenance(forger: Forger) -> None:
    forger.change(forger.folder / "provenance.parquet", lambda rows: rows[0].update(method="model"))


@forgery(anew=True)
def a_request_key_that_is_none(forger: Forger) -> None:
    forger.change(forger.folder / "provenance.parquet", lambda rows: rows[1].update(request_key="yes"))


@forgery(anew=True)
def a_request_key_taken_away(forger: Forger) -> None:
    forger.change(forger.folder / "provenance.parquet", lambda rows: rows[1].update(request_key=None))


@forgery(anew=True)
def one_request_behind_two_texts(forger: Forger) -> None:
    forger.change(forger.folder / "provenance.parquet", lambda rows: rows[1].update(request_key=rows[2]["request_key"]))


@forgery(anew=True)
def another_hash_of_a_text(forger: Forger) -> None:
    forger.change(forger.folder / "provenance.parquet", lambda rows: rows[1].update(text_sha256="0" * 64))


@forgery(anew=True)
def no_candidates(forger: Forger) -> None:
    forger.keep("candidates", lambda row: False)


@forgery(anew=True)
def a_candidate_dropped(forger: Forger) -> None:
    forger.change(forger.folder / "candidates.parquet", lambda rows: rows[1:])


@forgery(anew=True)
def a_candidate_of_nothing(forger: Forger) -> None:
    forger.change(forger.folder / "candidates.parquet", lambda rows: [*rows, {**rows[0], "pair_id": "044-seed-t03"}])


@forgery(anew=True)
def a_candidate_refused_for_nothing(forger: Forger) -> None:
    forger.change(forger.folder / "candidates.parquet", lambda rows: rows[0].update(reasons=["toxic"]))


@forgery(anew=True)
def a_candidate_with_a_reason_that_there_is_not(forger: Forger) -> None:
    forger.change(forger.folder / "candidates.parquet", lambda rows: rows[0].update(reasons=["dull"]))


@forgery(anew=True)
def a_candidate_numbered_otherwise(forger: Forger) -> None:
    forger.change(forger.folder / "candidates.parquet", lambda rows: rows[0].update(attempt=9))


@forgery(anew=True)
def a_harmful_candidate(forger: Forger) -> None:
    forger.change(forger.folder / "candidates.parquet", lambda rows: rows[0].update(text="You should just kill yourself, you idiot."))


@forgery(anew=True)
def another_winner(forger: Forger) -> None:
    def turn(row: dict[str, object]) -> None:
        row["winner"] = row["variant_1"] if row["winner"] == row["variant_2"] else row["variant_2"]

    forger.each("comparisons", turn)


@forgery(anew=True)
def consistent_where_it_is_not(forger: Forger) -> None:
    forger.each("comparisons", lambda row: row.update(consistent=not row["consistent"]))


@forgery(anew=True)
def a_rating_off_its_scale(forger: Forger) -> None:
    forger.each("annotations", lambda row: row.update(value=17.0))


@forgery(anew=True, kind=EXCHANGED)
def other_ratings_by_a_judge(forger: Forger) -> None:
    forger.each("annotations", lambda row: row.update(value=1.0 - row["value"] if row["value"] in (0.0, 1.0) else row["value"]))


@forgery(anew=True)
def ratings_dropped(forger: Forger) -> None:
    dropped = next(forger.rows("annotations"))["pair_id"]
    forger.keep("annotations", lambda row: row["pair_id"] != dropped)


@forgery(anew=True)
def ratings_of_a_text_that_is_not_there(forger: Forger) -> None:
    forger.each("annotations", lambda row: row.update(pair_id="017-seed-t99", turn=99))


@forgery(anew=True)
def an_ideal_that_does_not_add_up(forger: Forger) -> None:
    forger.each("strategies", lambda row: row.update(ideal=[0.5] * len(row["ideal"])))


@forgery(anew=True)
def no_comparisons(forger: Forger) -> None:
    forger.keep("comparisons", lambda row: False)
