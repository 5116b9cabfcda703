"""Which dialogues of a build a release takes, and what it says of scenarios that have too few."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.schemas import check
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.build import build
from empathy_eval.generation.outcomes import Dialogue, Outcome, Turn
from empathy_eval.releases.assemble import selection
from empathy_eval.releases.assemble.selection import select_dialogues
from empathy_eval.releases.assemble.write import Released, release

from tests.conftest import demo_file

# Two of each wanted, and a spare of the first scenario alone.
HEADER = {"configuration": {}, "scenarios": {"001": {"name": "One", "quota": 2}, "002": {"name": "Two", "quota": 2}}}
PLANNED = ("001-00000", "001-00001", "001-00002", "002-00000", "002-00001")


@pytest.fixture
def accepted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the accepted dialogues of a build; a test may take some away."""
    ids = list(PLANNED)

    def outcomes(build_dir: Path) -> Any:
        for name in ids:
            words = " ".join(f"{name}-{number}" for number in range(40))
            yield Outcome(name, int(name[:3]), "accepted", (), Dialogue(name, 1, "", (Turn("seeker", words),), (), "model", "m", "k"))

    monkeypatch.setattr(selection, "accepted_outcomes", outcomes)
    return ids


def test_the_first_of_each_scenario_are_taken_and_spares_are_left_out(accepted: list[str], tmp_path: Path) -> None:
    found = select_dialogues(tmp_path, HEADER, set())
    assert found.dialogue_ids == {"001-00000", "001-00001", "002-00000", "002-00001"}
    assert (found.spares, found.below_quota) == (1, {})


def test_a_spare_fills_the_place_of_one_that_was_rejected_or_removed(accepted: list[str], tmp_path: Path) -> None:
    assert "001-00002" in select_dialogues(tmp_path, HEADER, {"001-00001"}).dialogue_ids
    accepted.remove("001-00000")
    found = select_dialogues(tmp_path, HEADER, set())
    assert {"001-00001", "001-00002"} < found.dialogue_ids and (found.spares, found.below_quota) == (0, {})


def test_no_scenario_is_filled_from_the_spares_of_another_and_what_it_lacks_is_told(accepted: list[str], tmp_path: Path) -> None:
    accepted.remove("002-00000")
    found = select_dialogues(tmp_path, HEADER, set())
    assert found.dialogue_ids == {"001-00000", "001-00001", "002-00001"}
    assert (found.spares, found.below_quota) == (1, {"002": 1})


@pytest.mark.e2e
def test_manifest_and_card_name_the_scenarios_below_their_quota(
    released: tuple[Path, Released], catalogue: Catalogue, prompts: Prompts, tmp_path: Path
) -> None:
    withdrawn = [{"dialogue_id": "017-seed", "kind": "error", "reason": "as a test", "date": "2026-02-28"}]
    config = demo_file(tmp_path, report={"metrics": ["rouge-l"], "bootstrap": 10}, withdrawn=withdrawn)
    build(Recipe(load_configuration(config), catalogue, prompts), tmp_path / "b")
    manifest = release(tmp_path / "b", tmp_path / "fewer", "0.1.0").manifest
    check(manifest, "manifest", tmp_path)
    assert manifest["below_quota"] == {"017": 1} and "below_quota" not in released[1].manifest
    card, whole = ((folder / "README.md").read_text() for folder in (tmp_path / "fewer", released[0]))
    assert "Scenarios with fewer dialogues than planned, and the number missing: 017 (1)." in card
    assert "fewer dialogues than planned" not in whole
