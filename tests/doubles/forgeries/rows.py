"""Forgeries of rows and columns, whose texts stay as they are."""

from __future__ import annotations

from collections.abc import Callable

from empathy_eval.design.dataset import SPLITS, file_of, split_of

from tests.doubles.forger import Forger, Row
from tests.doubles.forgeries import WITHHELD, forgeries, forgery

PAIR = "017-seed"


def everywhere(forger: Forger, change: Callable[[Row], object], *configs: str) -> None:
    for config in configs or ("pairs", "controls"):
        forger.each(config, change)


@forgery(anew=True)
def preferences_at_equal_closeness_dropped(forger: Forger) -> None:
    for config in ("preferences_near", "preferences_far"):
        forger.keep(config, lambda row: False)


@forgery(anew=True)
def a_preference_turned(forger: Forger) -> None:
    def turn(rows: list[Row]) -> None:
        rows[0]["chosen"], rows[0]["rejected"] = rows[0]["rejected"], rows[0]["chosen"]

    forger.change(file_of(forger.folder, "preferences", split_of(PAIR)), turn)


@forgery(anew=True)
def no_controls(forger: Forger) -> None:
    for config in ("controls", "preferences_near", "preferences_far"):
        forger.keep(config, lambda row: False)


@forgery(anew=True)
def a_control_dropped(forger: Forger) -> None:
    gone = next(forger.rows("controls"))["pair_id"]
    for config in ("controls", "preferences_near", "preferences_far"):
        forger.keep(config, lambda row: row["pair_id"] != gone)


@forgery(anew=True)
def a_control_dropped_with_its_requests(forger: Forger) -> None:
    gone = next(forger.rows("controls"))["pair_id"]
    for config in ("controls", "preferences_near", "preferences_far"):
        forger.keep(config, lambda row: row["pair_id"] != gone)
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
    everywhere(forger, lambda row: row.update(flags=[]), "dialogues", "pairs", "controls")


@forgery(anew=True)
def an_empathetic_strategy_of_another_phase(forger: Forger) -> None:
    def change(row: Row) -> None:
        row["empathetic_strategy"] = "Suggest Options" if row["phase"] != "action" else "Clarification"

    everywhere(forger, change)


@forgery(anew=True)
def another_phase(forger: Forger) -> None:
    everywhere(forger, lambda row: row.update(phase="action"))
    forger.each("dialogues", lambda row: [one.update(phase="action") for one in row["turns"] if one["phase"]])


@forgery(anew=True)
def another_strategy(forger: Forger) -> None:
    def change(row: Row) -> None:
        for one in row["turns"]:
            if one["strategy"]:
                one.update(strategy="Clarification", phase="exploration")

    forger.each("dialogues", change)
    everywhere(forger, lambda row: row.update(strategy="Clarification", phase="exploration"))


@forgery(anew=True)
def another_scenario_name(forger: Forger) -> None:
    configs = ("dialogues", "pairs", "controls", "preferences", "preferences_near", "preferences_far")
    everywhere(forger, lambda row: row.update(scenario="Nothing in Particular"), *configs)


@forgery(anew=True)
def another_source(forger: Forger) -> None:
    everywhere(forger, lambda row: row.update(source="model"), "dialogues", "pairs", "controls")
    forger.each("provenance", lambda row: row.update(method="model" if row["what"] == "dialogue" else row["method"]))


@forgery(anew=True)
def another_way_of_making(forger: Forger) -> None:
    everywhere(forger, lambda row: row.update(apathetic_method="rules"))
    forger.each("provenance", lambda row: row.update(method="rules" if row["what"] == "apathetic" else row["method"]))


@forgery(anew=True)
def another_model_in_rows_and_provenance(forger: Forger) -> None:
    everywhere(forger, lambda row: row.update(far_model="better"))
    forger.each("provenance", lambda row: row.update(model="better") if row["what"] in ("empathetic", "far_apathetic") else None)


@forgery(anew=True)
def a_crossed_item_dropped(forger: Forger) -> None:
    gone = next(forger.rows("crossed"))["crossed_id"]
    forger.keep("crossed", lambda row: row["crossed_id"] != gone)


forgeries(
    anew=True,
    no_preferences=lambda forger: forger.keep("preferences", lambda row: False),
    a_preference_dropped=lambda forger: forger.change(file_of(forger.folder, "preferences", split_of(PAIR)), lambda rows: rows[1:]),
    preferences_in_another_order=lambda forger: forger.change(
        file_of(forger.folder, "preferences", split_of(PAIR)), lambda rows: rows[::-1]
    ),
    a_row_twice=lambda forger: forger.change(file_of(forger.folder, "pairs", split_of(PAIR)), lambda rows: [*rows, rows[0]]),
    rows_in_another_order=lambda forger: forger.change(file_of(forger.folder, "pairs", split_of(PAIR)), lambda rows: rows[::-1]),
    another_edit_ratio=lambda forger: everywhere(forger, lambda row: row.update(apathetic_edit_ratio=0.01)),
    another_edit_ratio_of_a_control=lambda forger: forger.each("controls", lambda row: row.update(near_empathetic_edit_ratio=0.01)),
    another_overlap_of_a_control=lambda forger: forger.each("controls", lambda row: row.update(far_apathetic_overlap=0.01)),
    a_toxicity_lowered=lambda forger: everywhere(forger, lambda row: row["toxicity"].update(apathetic=0.0001)),
    a_toxicity_of_a_control_lowered=lambda forger: forger.each("controls", lambda row: row.update(far_apathetic_toxicity=0.0001)),
    no_toxicity=lambda forger: everywhere(forger, lambda row: row.update(toxicity=dict.fromkeys(row["toxicity"]))),
    a_crisis_that_is_none=lambda forger: everywhere(forger, lambda row: row.update(flags=["crisis"]), "dialogues", "pairs", "controls"),
    another_manner=lambda forger: everywhere(forger, lambda row: row.update(apathetic_manner="rude")),
    another_device=lambda forger: everywhere(forger, lambda row: row.update(empathetic_device="flattery")),
    another_manner_of_a_control=lambda forger: forger.each("controls", lambda row: row.update(far_apathetic_manner="rude")),
    the_references_own_strategy=lambda forger: everywhere(forger, lambda row: row.update(empathetic_strategy=row["strategy"])),
    another_scenario_number=lambda forger: everywhere(
        forger, lambda row: row.update(scenario_id=3), "dialogues", "pairs", "controls", "crossed"
    ),
    another_model_in_a_column=lambda forger: everywhere(forger, lambda row: row.update(near_model="better")),
    a_crossed_item_of_another_number=lambda forger: forger.each("crossed", lambda row: row.update(crossed_id=f"{row['crossed_id']}7")),
    a_crossed_item_said_to_be_of_a_model=lambda forger: forger.each(
        "crossed", lambda row: row.update(source="model", writer="better", judge="better")
    ),
)
