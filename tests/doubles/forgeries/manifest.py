"""Forgeries of what the manifest says."""

from __future__ import annotations

from empathy_eval.design.dataset import SPLITS

from tests.doubles.forger import Forger
from tests.doubles.forgeries import COST, ORDER, WHO, WITHHELD, forgery


@forgery(anew=True)
def another_name(forger: Forger) -> None:
    forger.facts["name"] = "empathy-eval-gold"


@forgery(anew=True, kind=ORDER)
def another_version(forger: Forger) -> None:
    forger.facts["version"] = "9.0.0"


@forgery(anew=True, kind=ORDER)
def another_date(forger: Forger) -> None:
    forger.facts["date"] = "2025-01-01"


@forgery(anew=True, kind=COST)
def fewer_tokens(forger: Forger) -> None:
    for usage in forger.facts["summary"]["usage"].values():
        usage["output_tokens"] = usage.get("output_tokens", 0) + 7


@forgery()
def rows_that_are_not_there_are_counted(forger: Forger) -> None:
    forger.facts["counts"]["pairs"]["train"] += 1


@forgery(anew=True)
def more_were_accepted(forger: Forger) -> None:
    forger.facts["summary"]["accepted"] += 1
    forger.facts["summary"]["planned"] += 1


@forgery(anew=True)
def more_were_planned(forger: Forger) -> None:
    forger.facts["summary"]["planned"] += 5


@forgery(anew=True)
def fewer_pairs_in_the_summary(forger: Forger) -> None:
    forger.facts["summary"]["pairs"] -= 1


@forgery(anew=True, kind=WITHHELD)
def fewer_pairs_that_were_withdrawn(forger: Forger) -> None:
    """How many pairs a withdrawn dialogue had, nothing says that is still there."""
    forger.facts["summary"]["pairs"] -= 1
    forger.facts["withdrawn_counts"]["pairs"] -= 1


@forgery(anew=True)
def a_withdrawal_that_took_nothing_out(forger: Forger) -> None:
    forger.facts["withdrawn_counts"] = {"dialogues": 0, "pairs": 0}


@forgery(anew=True)
def a_withdrawal_of_what_was_never_planned(forger: Forger) -> None:
    one = {**forger.facts["withdrawn"][0], "dialogue_id": "044-seed"}
    forger.facts["withdrawn"].append(one)
    forger.facts["configuration"]["withdrawn"].append(one)


@forgery(anew=True)
def a_release_before_that_is_later(forger: Forger) -> None:
    forger.facts["previous"] = [{"version": "0.9.0", "date": None, "seal": f"s1-{'0' * 64}", "dialogues": 1, "pairs": 1}]


@forgery(anew=True, kind=ORDER)
def a_release_before_that_never_was(forger: Forger) -> None:
    forger.facts["previous"] = [{"version": "0.0.9", "date": None, "seal": f"s1-{'0' * 64}", "dialogues": 1, "pairs": 1}]


@forgery(anew=True)
def another_format(forger: Forger) -> None:
    forger.facts["format"] = 1


@forgery(anew=True)
def another_signature_of_a_metric(forger: Forger) -> None:
    forger.facts["metrics"][0]["signature"] = "better"


@forgery(anew=True)
def fewer_pairs_than_there_are(forger: Forger) -> None:
    forger.facts["summary"]["pairs"] = sum(forger.facts["counts"]["pairs"].values()) - 1


@forgery(anew=True)
def more_controls_than_pairs(forger: Forger) -> None:
    forger.facts["summary"]["controls"] = forger.facts["summary"]["pairs"] + 1


@forgery(anew=True)
def more_rejections_by_reason(forger: Forger) -> None:
    forger.facts["summary"]["rejected_by_reason"]["toxic"] = 3


@forgery(anew=True)
def fewer_refusals_than_candidates(forger: Forger) -> None:
    refused = forger.facts["summary"]["samples_refused"]
    refused.clear()


@forgery(anew=True)
def a_duplicate_that_never_was(forger: Forger) -> None:
    forger.facts["duplicates"]["017-00042"] = "017-seed"


@forgery(anew=True)
def spares_that_never_were(forger: Forger) -> None:
    forger.facts["spares_left_out"] += 4


@forgery(anew=True)
def a_scenario_below_its_quota(forger: Forger) -> None:
    forger.facts["below_quota"] = {"017": 1}


@forgery(anew=True)
def the_withdrawal_kept_quiet(forger: Forger) -> None:
    forger.facts["withdrawn"] = []


@forgery(anew=True)
def a_withdrawal_of_what_is_there(forger: Forger) -> None:
    one = {**forger.facts["withdrawn"][0], "dialogue_id": "017-seed"}
    forger.facts["withdrawn"].append(one)
    forger.facts["configuration"]["withdrawn"].append(one)


@forgery(anew=True)
def another_identity(forger: Forger) -> None:
    forger.facts["identity"] = "0" * len(forger.facts["identity"])


@forgery(anew=True)
def another_seed(forger: Forger) -> None:
    forger.facts["configuration"]["seed"] += 1


@forgery(anew=True)
def a_limit_loosened(forger: Forger) -> None:
    forger.facts["configuration"]["checks"]["edit_ratio_below"] = 0.9


@forgery(anew=True)
def a_limit_of_toxicity_loosened(forger: Forger) -> None:
    forger.facts["configuration"]["checks"]["toxicity"]["at_most"] = 0.99


@forgery(anew=True)
def fewer_candidates_asked_for(forger: Forger) -> None:
    forger.facts["configuration"]["candidates"] = 3


@forgery(anew=True)
def another_template_hash(forger: Forger) -> None:
    name = next(iter(forger.facts["templates"]))
    forger.facts["templates"][name] = "0" * 64


@forgery(anew=True)
def another_rule_hash(forger: Forger) -> None:
    name = next(iter(forger.facts["rules"]))
    forger.facts["rules"][name] = "0" * 64


@forgery(anew=True)
def another_seeds_hash(forger: Forger) -> None:
    forger.facts["seeds"] = "0" * 64


@forgery(anew=True)
def another_schema_hash(forger: Forger) -> None:
    name = next(iter(forger.facts["schemas"]))
    forger.facts["schemas"][name] = "0" * 64


@forgery(anew=True)
def another_quota(forger: Forger) -> None:
    next(iter(forger.facts["scenarios"].values()))["quota"] += 1


@forgery(anew=True)
def a_scenario_renamed_in_the_manifest(forger: Forger) -> None:
    forger.facts["scenarios"]["017"]["name"] = "Nothing in Particular"


@forgery(anew=True)
def other_weights_of_toxicity(forger: Forger) -> None:
    forger.facts["toxicity_weights"] = "0" * 64


@forgery(anew=True)
def another_pyarrow(forger: Forger) -> None:
    forger.facts["software"]["pyarrow"] = "1.0.0"


@forgery(anew=True)
def another_numpy(forger: Forger) -> None:
    forger.facts["software"]["numpy"] = "1.0.0"


@forgery()
def made_by_the_version_before(forger: Forger) -> None:
    forger.facts["builder"] = "0.1.0"


@forgery(anew=True)
def made_by_a_version_to_come(forger: Forger) -> None:
    forger.facts["builder"] = "9.9.9"


@forgery(anew=True)
def another_canary(forger: Forger) -> None:
    forger.facts["canary"] = "00000000-0000-0000-0000-000000000000"


@forgery(anew=True)
def said_to_be_partial(forger: Forger) -> None:
    forger.facts["partial"] = True


@forgery(anew=True)
def a_metric_said_to_be_left_out(forger: Forger) -> None:
    forger.facts["without"] = ["length"]


@forgery(anew=True, kind=WITHHELD)
def a_metric_left_out_of_all_that_names_it(forger: Forger) -> None:
    forger.facts["without"] = ["length"]
    forger.facts["metrics"] = [one for one in forger.facts["metrics"] if one["metric"] != "length"]


@forgery(anew=True)
def fewer_cases_of_a_judge(forger: Forger) -> None:
    one = forger.facts["annotations"][0]
    one["cases"] += 1


@forgery(anew=True)
def another_judge_is_named(forger: Forger) -> None:
    forger.facts["annotations"][0]["teacher"] = "a-better-judge"


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
