"""Forgeries of rows and columns, whose texts stay as they are."""

from __future__ import annotations

from collections.abc import Callable

from empathy_eval.design.dataset import SPLITS, file_of, split_of

from tests.doubles.forger import Forger, Row
from tests.doubles.forgeries import WITHHELD, Change, forgeries, forgery, in_each

PAIR = "017-seed"
PREFERENCES = ("preferences_near", "preferences_far")


def in_split(config: str, change: Callable[[list[Row]], list[Row] | None]) -> Change:
    """Changes the rows of a config in the split of a dialogue."""
    return lambda forger: forger.change(file_of(forger.folder, config, split_of(PAIR)), change)


def both(*changes: Change) -> Change:
    """Several changes."""
    return lambda forger: [change(forger) for change in changes]


def without_first(config: str, column: str, *configs: str) -> Change:
    """Drops the first row of a config, and the rows of others with the same id."""

    def drop(forger: Forger) -> None:
        dropped = next(forger.rows(config))[column]
        for name in (config, *configs):
            forger.keep(name, lambda row: row[column] != dropped)

    return drop


def emptied(*configs: str) -> Change:
    """Drops all rows of some configs."""

    def drop(forger: Forger) -> None:
        for config in configs:
            forger.keep(config, lambda row: False)

    return drop


@forgery(anew=True)
def a_control_dropped_with_its_requests(forger: Forger) -> None:
    gone = next(forger.rows("controls"))["pair_id"]
    without_first("controls", "pair_id", *PREFERENCES)(forger)
    forger.keep("provenance", lambda row: row["pair_id"] != gone or row["what"] not in ("near_empathetic", "far_apathetic"))


@forgery(anew=True, kind=WITHHELD)
def a_pair_withheld_with_all_that_tells_of_it(forger: Forger) -> None:
    shown = {row["pair_id"] for config in ("annotations", "comparisons", "strategies") for row in forger.rows(config)}
    gone = next(row for row in forger.rows("pairs") if row["pair_id"] not in shown)
    controlled = any(row["pair_id"] == gone["pair_id"] for row in forger.rows("controls"))
    for config in ("pairs", "controls", "preferences", "preferences_near", "preferences_far", "candidates"):
        forger.keep(config, lambda row: row["pair_id"] != gone["pair_id"])
    forger.keep("provenance", lambda row: row["pair_id"] != gone["pair_id"] or row["what"] == "crossed")
    forger.keep("dialogue_contrasts", lambda row: row["dialogue_id"] != gone["dialogue_id"])
    forger.facts["summary"]["pairs"] -= 1
    forger.facts["summary"]["controls"] -= controlled


@forgery(anew=True)
def a_pair_dropped(forger: Forger) -> None:
    shown = {row["pair_id"] for config in ("annotations", "comparisons", "strategies") for row in forger.rows(config)}
    gone = next(row["pair_id"] for row in forger.rows("pairs") if row["pair_id"] not in shown)
    for config in ("pairs", "controls", "preferences", "preferences_near", "preferences_far"):
        forger.keep(config, lambda row: row["pair_id"] != gone)


@forgery(anew=True)
def a_dialogue_dropped(forger: Forger) -> None:
    for config in ("dialogues", "pairs", "controls", "dialogue_contrasts", "crossed"):
        forger.keep(config, lambda row: row["dialogue_id"] != "003-seed")
    for config in ("preferences", "preferences_near", "preferences_far", "annotations", "comparisons", "strategies"):
        forger.keep(config, lambda row: not str(row["pair_id"]).startswith("003-seed"))


@forgery(anew=True)
def a_dialogue_in_another_split(forger: Forger) -> None:
    here = split_of(PAIR)
    there = next(split for split in SPLITS if split != here)

    def mine(row: Row) -> bool:
        return str(row.get("pair_id") or row["dialogue_id"]).startswith(PAIR)

    for config in ("dialogues", "pairs", "controls", "preferences", "preferences_near", "preferences_far", "crossed"):
        taken = [row for row in forger.rows(config) if mine(row)]
        forger.keep(config, lambda row: not mine(row))
        forger.change(file_of(forger.folder, config, there), lambda rows, more=taken: rows + more)  # type: ignore[misc]


@forgery(anew=True)
def a_crisis_kept_quiet(forger: Forger) -> None:
    assert any(row["flags"] for row in forger.rows("dialogues"))
    in_each(lambda row: row.update(flags=[]), "dialogues", "pairs", "controls")(forger)


@forgery(anew=True)
def another_strategy(forger: Forger) -> None:
    def change(row: Row) -> None:
        for one in row["turns"]:
            if one["strategy"]:
                one.update(strategy="Clarification", phase="exploration")

    forger.each("dialogues", change)
    in_each(lambda row: row.update(strategy="Clarification", phase="exploration"))(forger)


IN_PROVENANCE: dict[str, Callable[[Row], object]] = {
    "source": lambda row: row.update(method="model" if row["what"] == "dialogue" else row["method"]),
    "method": lambda row: row.update(method="rules" if row["what"] == "apathetic" else row["method"]),
    "model": lambda row: row.update(model="better") if row["what"] in ("empathetic", "far_apathetic") else None,
}
forgeries(
    anew=True,
    preferences_at_equal_closeness_dropped=emptied(*PREFERENCES),
    a_preference_turned=in_split("preferences", lambda rows: rows[0].update(chosen=rows[0]["rejected"], rejected=rows[0]["chosen"])),
    no_controls=emptied("controls", *PREFERENCES),
    a_control_dropped=without_first("controls", "pair_id", *PREFERENCES),
    a_crossed_item_dropped=without_first("crossed", "crossed_id"),
    an_empathetic_strategy_of_another_phase=in_each(
        lambda row: row.update(empathetic_strategy="Suggest Options" if row["phase"] != "action" else "Clarification")
    ),
    another_phase=both(
        in_each(lambda row: row.update(phase="action")),
        in_each(lambda row: [turn.update(phase="action") for turn in row["turns"] if turn["phase"]], "dialogues"),
    ),
    another_scenario_name=in_each(
        lambda row: row.update(scenario="Nothing in Particular"), "dialogues", "pairs", "controls", "preferences", *PREFERENCES
    ),
    another_source=both(
        in_each(lambda row: row.update(source="model"), "dialogues", "pairs", "controls"), in_each(IN_PROVENANCE["source"], "provenance")
    ),
    another_way_of_making=both(in_each(lambda row: row.update(apathetic_method="rules")), in_each(IN_PROVENANCE["method"], "provenance")),
    another_model_in_rows_and_provenance=both(
        in_each(lambda row: row.update(far_model="better")), in_each(IN_PROVENANCE["model"], "provenance")
    ),
    no_preferences=emptied("preferences"),
    a_preference_dropped=in_split("preferences", lambda rows: rows[1:]),
    preferences_in_another_order=in_split("preferences", lambda rows: rows[::-1]),
    a_row_twice=in_split("pairs", lambda rows: [*rows, rows[0]]),
    rows_in_another_order=in_split("pairs", lambda rows: rows[::-1]),
    another_edit_ratio=in_each(lambda row: row.update(apathetic_edit_ratio=0.01)),
    another_edit_ratio_of_a_control=in_each(lambda row: row.update(near_empathetic_edit_ratio=0.01), "controls"),
    another_overlap_of_a_control=in_each(lambda row: row.update(far_apathetic_overlap=0.01), "controls"),
    a_toxicity_lowered=in_each(lambda row: row["toxicity"].update(apathetic=0.0001)),
    a_toxicity_of_a_control_lowered=in_each(lambda row: row.update(far_apathetic_toxicity=0.0001), "controls"),
    no_toxicity=in_each(lambda row: row.update(toxicity=dict.fromkeys(row["toxicity"]))),
    a_crisis_that_is_none=in_each(lambda row: row.update(flags=["crisis"]), "dialogues", "pairs", "controls"),
    another_manner=in_each(lambda row: row.update(apathetic_manner="rude")),
    another_device=in_each(lambda row: row.update(empathetic_device="flattery")),
    another_manner_of_a_control=in_each(lambda row: row.update(far_apathetic_manner="rude"), "controls"),
    the_references_own_strategy=in_each(lambda row: row.update(empathetic_strategy=row["strategy"])),
    another_scenario_number=in_each(lambda row: row.update(scenario_id=3), "dialogues", "pairs", "controls", "crossed"),
    another_model_in_a_column=in_each(lambda row: row.update(near_model="better")),
    a_crossed_item_of_another_number=in_each(lambda row: row.update(crossed_id=f"{row['crossed_id']}7"), "crossed"),
    a_crossed_item_said_to_be_of_a_model=in_each(lambda row: row.update(source="model", writer="better", judge="better"), "crossed"),
)
