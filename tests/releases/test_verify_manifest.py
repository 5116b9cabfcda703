"""The manifest: what does not follow from the rest of a release is found without its report, and told in its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from empathy_eval.design.prompts import Prompts
from empathy_eval.releases.verify.content import content_faults
from empathy_eval.releases.verify.manifest import manifest_faults, review_faults

from tests.doubles import made_once
from tests.doubles.forger import Forger, honest
from tests.doubles.forgeries import every

# Where each of these forgeries is told.
TOLD = {
    "another_name": "name: says empathy-eval-gold", "another_seed": "identity: says", "said_to_be_partial": "partial: says True",
    "the_withdrawal_kept_quiet": "withdrawn: says []", "more_were_accepted": "summary: accepted: says", "another_quota": "scenarios: says",
    "more_were_planned": "summary: planned: says", "fewer_pairs_in_the_summary": "summary: pairs: says",
    "more_rejections_by_reason": "rejected_by_reason: toxic: has 3", "a_duplicate_that_never_was": "017-00042: is not a dialogue of this",
    "spares_that_never_were": "accepted: says", "a_scenario_below_its_quota": "below_quota: says", "another_schema_hash": "schemas: says",
    "a_row_of_the_provenance_dropped": "where the rest of the release gives", "another_canary": "",
}  # fmt: skip
KEYS = {"items": 5, "raters": 2, "ratings": 10, "sample": "pairs", "variant": "empathetic", "mean": 2.9, "low": 2.5, "high": 3.0}
PAPER = {"coherence": 2.95, "helpfulness": 2.82, "empathy": 2.91}


@pytest.fixture
def forger(tmp_path_factory: pytest.TempPathFactory, prompts: Prompts, tmp_path: Path) -> Forger:
    original = made_once.copied(tmp_path_factory, "forged", lambda folder: honest(folder, prompts))[0] / "release"
    return Forger(original, tmp_path / "release")


def said(forger: Forger) -> str:
    found = [one for part in (manifest_faults, review_faults) for one in part(forger.folder, forger.facts)]
    return "\n".join(map(str, [*found, *content_faults(forger.folder, forger.facts, None)]))


@pytest.mark.parametrize("name", TOLD)
def test_what_does_not_follow_from_the_rest_is_told(forger: Forger, name: str) -> None:
    assert said(forger) == "" if name == "another_canary" else True
    next(one for one in every() if one.name == name).change(forger)
    assert TOLD[name] in said(forger)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"mean": 2.95}, "its mean of 2.95 is not a mean of 10 whole numbers"),
        ({"low": 3.0, "high": 2.5}, "its interval of 3.0 to 2.5 is not valid"),
        ({"items": 11}, "10 ratings of 11 items"),
        ({"paper": 2.0}, "says that the paper has 2.0, but it has 2.95"),
    ],
)
def test_a_mean_that_no_ratings_give_is_told(forger: Forger, change: dict[str, Any], told: str) -> None:
    rows = [{**KEYS, "criterion": name, "paper": paper} for name, paper in PAPER.items()]
    forger.facts["reviews"] = {
        "record": "0" * 64, "releases": [], "raters": 2, "judgements": 10, "removed": [], "changed_since": [],
        "ratings": [{**rows[0], **change}, *rows[1:]], "kappa": {}, "signature": "none",
    }  # fmt: skip
    assert told in said(forger)
