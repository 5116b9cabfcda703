"""Forgeries of what the manifest says."""

from __future__ import annotations

from typing import Any

from empathy_eval.design.dataset import SPLITS

from tests.doubles.forger import Forger
from tests.doubles.forgeries import COST, ORDER, WHO, WITHHELD, Change, forgeries, forgery, in_facts


def withdrawn_too(dialogue_id: str) -> Change:
    """One more withdrawal."""

    def add(facts: dict[str, Any]) -> None:
        for place in (facts, facts["configuration"]):
            place["withdrawn"].append({**facts["withdrawn"][0], "dialogue_id": dialogue_id})

    return in_facts(add)


def another_hash(key: str) -> Change:
    """Another hash of the first file that is listed under a key."""
    return in_facts(lambda facts: facts[key].update({next(iter(facts[key])): "0" * 64}))


@forgery(anew=True, kind=COST)
def fewer_tokens(forger: Forger) -> None:
    for usage in forger.facts["summary"]["usage"].values():
        usage["output_tokens"] = usage.get("output_tokens", 0) + 7


@forgery(anew=True)
def more_were_accepted(forger: Forger) -> None:
    forger.facts["summary"]["accepted"] += 1
    forger.facts["summary"]["planned"] += 1


@forgery(anew=True, kind=WITHHELD)
def fewer_pairs_that_were_withdrawn(forger: Forger) -> None:
    """How many pairs a withdrawn dialogue had, nothing says that is still there."""
    forger.facts["summary"]["pairs"] -= 1
    forger.facts["withdrawn_counts"]["pairs"] -= 1


@forgery(anew=True, kind=WITHHELD)
def a_metric_left_out_of_all_that_names_it(forger: Forger) -> None:
    forger.facts["without"] = ["length"]
    forger.facts["metrics"] = [one for one in forger.facts["metrics"] if one["metric"] != "length"]


@forgery(anew=True)
def a_rubric_that_asks_something_else(forger: Forger) -> None:
    says = next(one["says"] for one in forger.facts["annotations"] if one["says"]["criteria"])
    says["criteria"][0]["question"] = "Is it long?"


@forgery(anew=True, kind=WHO)
def another_model_everywhere(forger: Forger) -> None:
    configuration = forger.facts["configuration"]
    for one in configuration["models"].values():
        if one.get("model") == "twice-said":
            one["model"] = "better"
    usage = forger.facts["summary"]["usage"]
    for name in list(usage):
        if "twice-said" in name:
            usage[name.replace("twice-said", "better")] = usage.pop(name)
    for config in ("pairs", "controls", "provenance"):
        forger.each(config, lambda row: row.update({name: "better" for name, value in row.items() if value == "twice-said"}))
    assert not any("twice-said" in str(row) for config in ("pairs", "provenance") for row in forger.rows(config))
    assert set(forger.facts["counts"]["pairs"]) == set(SPLITS)


forgeries(
    rows_that_are_not_there_are_counted=in_facts(
        lambda facts: facts["counts"]["pairs"].update({"train": facts["counts"]["pairs"]["train"] + 1})
    ),
    made_by_the_version_before=in_facts(lambda facts: facts.update({"builder": "0.1.0"})),
)


forgeries(
    anew=True,
    a_withdrawal_of_what_was_never_planned=withdrawn_too("044-seed"),
    a_withdrawal_of_what_is_there=withdrawn_too("017-seed"),
    another_template_hash=another_hash("templates"),
    another_rule_hash=another_hash("rules"),
    another_schema_hash=another_hash("schemas"),
    fewer_refusals_than_candidates=in_facts(lambda facts: facts["summary"]["samples_refused"].clear()),
    fewer_cases_of_a_judge=in_facts(lambda facts: facts["annotations"][0].update({"cases": facts["annotations"][0]["cases"] + 1})),
    another_name=in_facts(lambda facts: facts.update({"name": "empathy-eval-gold"})),
    more_were_planned=in_facts(lambda facts: facts["summary"].update({"planned": facts["summary"]["planned"] + 5})),
    fewer_pairs_in_the_summary=in_facts(lambda facts: facts["summary"].update({"pairs": facts["summary"]["pairs"] - 1})),
    a_withdrawal_that_took_nothing_out=in_facts(lambda facts: facts.update({"withdrawn_counts": {"dialogues": 0, "pairs": 0}})),
    a_release_before_that_is_later=in_facts(
        lambda facts: facts.update({"previous": [{"version": "0.9.0", "date": None, "seal": f"s1-{'0' * 64}", "dialogues": 1, "pairs": 1}]})
    ),
    another_format=in_facts(lambda facts: facts.update({"format": 1})),
    another_signature_of_a_metric=in_facts(lambda facts: facts["metrics"][0].update({"signature": "better"})),
    fewer_pairs_than_there_are=in_facts(lambda facts: facts["summary"].update({"pairs": sum(facts["counts"]["pairs"].values()) - 1})),
    more_controls_than_pairs=in_facts(lambda facts: facts["summary"].update({"controls": facts["summary"]["pairs"] + 1})),
    more_rejections_by_reason=in_facts(lambda facts: facts["summary"]["rejected_by_reason"].update({"toxic": 3})),
    a_duplicate_that_never_was=in_facts(lambda facts: facts["duplicates"].update({"017-00042": "017-seed"})),
    spares_that_never_were=in_facts(lambda facts: facts.update({"spares_left_out": facts["spares_left_out"] + 4})),
    a_scenario_below_its_quota=in_facts(lambda facts: facts.update({"below_quota": {"017": 1}})),
    the_withdrawal_kept_quiet=in_facts(lambda facts: facts.update({"withdrawn": []})),
    another_identity=in_facts(lambda facts: facts.update({"identity": "0" * len(facts["identity"])})),
    another_seed=in_facts(lambda facts: facts["configuration"].update({"seed": facts["configuration"]["seed"] + 1})),
    a_limit_loosened=in_facts(lambda facts: facts["configuration"]["checks"].update({"edit_ratio_below": 0.9})),
    a_limit_of_toxicity_loosened=in_facts(lambda facts: facts["configuration"]["checks"]["toxicity"].update({"at_most": 0.99})),
    fewer_candidates_asked_for=in_facts(lambda facts: facts["configuration"].update({"candidates": 3})),
    another_seeds_hash=in_facts(lambda facts: facts.update({"seeds": "0" * 64})),
    another_quota=lambda forger: next(iter(forger.facts["scenarios"].values())).update(
        {"quota": next(iter(forger.facts["scenarios"].values()))["quota"] + 1}
    ),
    a_scenario_renamed_in_the_manifest=in_facts(lambda facts: facts["scenarios"]["017"].update({"name": "Nothing in Particular"})),
    other_weights_of_toxicity=in_facts(lambda facts: facts.update({"toxicity_weights": "0" * 64})),
    another_pyarrow=in_facts(lambda facts: facts["software"].update({"pyarrow": "1.0.0"})),
    another_numpy=in_facts(lambda facts: facts["software"].update({"numpy": "1.0.0"})),
    made_by_a_version_to_come=in_facts(lambda facts: facts.update({"builder": "9.9.9"})),
    another_canary=in_facts(lambda facts: facts.update({"canary": "00000000-0000-0000-0000-000000000000"})),
    said_to_be_partial=in_facts(lambda facts: facts.update({"partial": True})),
    a_metric_said_to_be_left_out=in_facts(lambda facts: facts.update({"without": ["length"]})),
    another_judge_is_named=in_facts(lambda facts: facts["annotations"][0].update({"teacher": "a-better-judge"})),
)


forgeries(
    anew=True,
    kind=ORDER,
    another_version=in_facts(lambda facts: facts.update({"version": "9.0.0"})),
    another_date=in_facts(lambda facts: facts.update({"date": "2025-01-01"})),
    a_release_before_that_never_was=in_facts(
        lambda facts: facts.update({"previous": [{"version": "0.0.9", "date": None, "seal": f"s1-{'0' * 64}", "dialogues": 1, "pairs": 1}]})
    ),
)
