"""The provenance, the candidates and the manifest's arithmetic: consistent forgeries of them are found, and told in their place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.design.prompts import Prompts
from empathy_eval.releases.verify.annotations import annotation_faults
from empathy_eval.releases.verify.content import content_faults
from empathy_eval.releases.verify.manifest import manifest_faults
from empathy_eval.releases.verify.reviews import review_faults

from tests.doubles import made_once
from tests.doubles.forger import Forger, honest

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, prompts: Prompts) -> Path:
    return made_once.copied(tmp_path_factory, "forged", lambda folder: honest(folder, prompts))[0] / "release"


@pytest.fixture
def forger(original: Path, tmp_path: Path) -> Forger:
    return Forger(original, tmp_path / "release")


def said(forger: Forger) -> str:
    forger.counted()
    found = [one for part in (manifest_faults, review_faults, annotation_faults) for one in part(forger.folder, forger.facts)]
    return "\n".join(map(str, [*found, *content_faults(forger.folder, forger.facts, None)]))


def test_an_honest_release_has_no_fault(forger: Forger) -> None:
    assert said(forger) == ""


FORGERIES: dict[str, tuple[str, Callable[[Rows], Any], str]] = {
    "a row dropped": ("provenance", lambda rows: rows[:3] + rows[4:], "where the rest of the release gives 003-seed-t01, near_empathetic"),
    "a row twice": ("provenance", lambda rows: rows[:4] + rows[3:], "where the rest of the release gives 003-seed-t01, far_apathetic"),
    "none left": ("provenance", lambda rows: [], "has nothing more where the rest of the release gives dialogue"),
    "two swapped": ("provenance", lambda rows: [rows[0], rows[2], rows[1], *rows[3:]], "gives 003-seed-t01, apathetic"),
    "one of a dialogue that is not there": (
        "provenance", lambda rows: [{**rows[0], "dialogue_id": "001-seed"}, *rows], '"001-seed" has no dialogue in this place',
    ),
    "a method": ("provenance", lambda rows: rows[1].update(method="rules"), "apathetic_method is 'model', but the rest"),
    "a model": ("provenance", lambda rows: rows[1].update(model="better"), "gives 'better'"),
    "a control's model": ("provenance", lambda rows: _control(rows).update(model="better"), "better: says 0 requests"),
    "a key that is none": ("provenance", lambda rows: rows[1].update(request_key="yes"), 'row 1: request_key: "yes" does not match'),
    "a judge's row before the others": ("provenance", lambda rows: [rows[-1], *rows[:-1]], "comes after the rows of judges"),
    "one key for two texts": (
        "provenance", lambda rows: rows[1].update(request_key=rows[2]["request_key"]), "names 1 requests for different texts",
    ),
    "a candidate of no pair": ("candidates", lambda rows: rows[-1].update(pair_id="055-seed-t99"), "has 055-seed-t99"),
    "a candidate's number": ("candidates", lambda rows: rows[0].update(attempt=9), "far_apathetic, 9 where the rest of the release gives"),
    "a candidate's reason": ("candidates", lambda rows: rows[0].update(reasons=["dull"]), "far_apathetic: dull: says 0, but 1 candidates"),
    "a candidate without a number": ("candidates", lambda rows: rows[3].update(attempt=None), "row 3: attempt"),
    "a row of no dialogue": ("provenance", lambda rows: rows[3].update(dialogue_id=None), "row 3: "),
    "the hash of a text at a dialogue": (
        "provenance", lambda rows: rows[0].update(text_sha256="0" * 64), "but the rest of the release gives 'None'",
    ),
    "candidates in another order": ("candidates", lambda rows: rows[::-1], "is not in the order of the plan, or is there twice"),
    "rows in another order": ("pairs", lambda rows: rows[::-1], "where the rest of the release gives"),
    "a preference lost": ("preferences_near", lambda rows: rows[1:], "has 003-seed-t"),
}  # fmt: skip


def _control(rows: Rows) -> dict[str, Any]:
    return next(row for row in rows if row["what"] == "far_apathetic")


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_row_is_told(forger: Forger, name: str) -> None:
    config, change, told = FORGERIES[name]
    forger.change(forger.paths(config)[0], change)
    assert told in said(forger)


def test_a_row_of_controls_dropped_is_told_by_the_provenance_and_without_it_by_the_summary(forger: Forger) -> None:
    first = next(forger.rows("controls"))["pair_id"]
    for config in ("controls", "preferences_near", "preferences_far"):
        forger.keep(config, lambda row: row["pair_id"] != first)
    assert "where the rest of the release gives" in said(forger)
    forger.keep("provenance", lambda row: row["pair_id"] != first or "_" not in row["what"])
    forger.keep("candidates", lambda row: row["pair_id"] != first)
    forger.facts["withdrawn"], forger.facts["configuration"]["withdrawn"] = [], []
    forger.facts["summary"] |= {"planned": 5, "accepted": 5}
    assert "summary: controls: says" in said(forger)


def _bank(facts: dict[str, Any]) -> dict[str, int]:
    """What the model took that answers for all of them."""
    usage: dict[str, dict[str, int]] = facts["summary"]["usage"]
    return next(one for name, one in usage.items() if name.startswith("seed-bank@"))


MANIFEST: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "name": (lambda facts: facts.update(name="empathy-eval-gold"), "name: says empathy-eval-gold"),
    "seed": (lambda facts: facts["configuration"].update(seed=1), "identity: says"),
    "partial": (lambda facts: facts.update(partial=True), "partial: says True"),
    "withdrawn": (lambda facts: facts.update(withdrawn=[]), "withdrawn: says []"),
    "accepted": (
        lambda facts: facts["summary"].update(accepted=9, planned=9),
        "accepted: says 9, but the data and the left-out dialogues give 6",
    ),
    "planned": (lambda facts: facts["summary"].update(planned=99), "summary: planned: says 99"),
    "pairs": (lambda facts: facts["summary"].update(pairs=1), "summary: pairs: says 1, but the data holds"),
    "rejected": (lambda facts: facts["summary"]["rejected_by_reason"].update(toxic=3), "rejected_by_reason: toxic: says 3"),
    "duplicates": (
        lambda facts: facts["duplicates"].update({"017-00042": "017-seed"}),
        "017-00042: is not a dialogue of this plan",
    ),
    "spares": (lambda facts: facts.update(spares_left_out=4), "summary: accepted: says 6, but the data and the left-out dialogues give 10"),
    "quota": (lambda facts: facts["scenarios"]["017"].update(quota=2), "below_quota: says"),
    "schemas": (lambda facts: facts["schemas"].update(variant_answer="0"), "schemas: says"),
    "usage": (lambda facts: _bank(facts).update(requests=1), "says 1 requests, but the provenance has "),
}


@pytest.mark.parametrize("name", MANIFEST)
def test_what_does_not_follow_from_the_rest_is_told(forger: Forger, name: str) -> None:
    change, told = MANIFEST[name]
    change(forger.facts)
    assert told in said(forger)


RATING = {"sample": "pairs", "variant": "empathetic", "criterion": "coherence", "mean": 2.9, "low": 2.5, "high": 3.0}
COUNTS = {"raters": 2, "items": 5, "ratings": 10, "paper": 2.95}


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
    row = {**RATING, **COUNTS, **change}
    beside = [{**RATING, **COUNTS, "criterion": name, "paper": paper} for name, paper in (("helpfulness", 2.82), ("empathy", 2.91))]
    forger.facts["reviews"] = {
        "record": "0" * 64, "releases": [], "raters": 2, "judgements": 10, "removed": [], "changed_since": [],
        "ratings": [row, *beside], "kappa": {}, "signature": "none",
    }  # fmt: skip
    assert told in said(forger)
    assert json.dumps(forger.facts)
