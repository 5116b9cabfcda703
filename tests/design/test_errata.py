"""Errata are held against the plan: what is not there is refused with what is, and nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.errata import PlanIndex, nearest_ids, unknown_errata
from empathy_eval.design.planning import refuse_unknown_errata
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.build import build
from empathy_eval.generation.preview import preview

from tests.conftest import demo_file

MODEL = {"kind": "openai", "model": "m", "endpoint": "e", "max_tokens": 100}
DRAWN = {"plan": "drawn", "dialogues": 6, "surplus": 0, "controls": 0, "models": dict.fromkeys(("self_chat", "near", "far"), MODEL)}


def withdrawal(name: str, kind: str = "harm") -> dict[str, Any]:
    return {"pair_id" if "-t" in name else "dialogue_id": name, "kind": kind, "reason": "a test", "date": "2026-02-28"}


def refused(folder: Path, catalogue: Catalogue, *names: str, **changes: Any) -> list[str]:
    """What is said of the errata of a configuration; nothing if they are taken."""
    config = load_configuration(demo_file(folder, withdrawn=[withdrawal(name) for name in names], **changes))
    try:
        refuse_unknown_errata(config, catalogue)
    except InputError as error:
        assert error.exit_code == 2
        return [str(one) for one in error.problems]
    return []


def test_what_is_planned_may_be_withdrawn_and_all_that_is_not_is_told_at_once(tmp_path: Path, catalogue: Catalogue) -> None:
    assert refused(tmp_path, catalogue, "017-seed", "003-seed-t03") == []
    told = refused(tmp_path, catalogue, "017-seed", "003-seed-t99", "044-seed", "003-00007", "003-seed-t02", "003-seed-t003")
    assert [one.partition("\n")[0] for one in told] == [
        'configuration demo: withdrawn[1]: "003-seed-t99" is not a pair: 003-seed has 14 turns',
        'configuration demo: withdrawn[2]: "044-seed" is not planned',
        'configuration demo: withdrawn[3]: "003-00007" is not planned',
        'configuration demo: withdrawn[4]: "003-seed-t02" is not a pair: the seeker speaks there',
        'configuration demo: withdrawn[5]: "003-seed-t003" is not a pair: 003-seed has 14 turns',
    ]
    assert "name one of its pairs: 003-seed-t01, 003-seed-t03, " in told[0] and 'did you mean "003-seed-t0' in told[0]
    assert "name one that is: there are 003-seed, 007-seed, 017-seed" in told[1]
    assert "name one that is: of this scenario there are 003-seed" in told[2]


def test_a_drawn_dialogue_and_its_pairs_are_known_by_the_plan_alone(tmp_path: Path, catalogue: Catalogue) -> None:
    assert refused(tmp_path, catalogue, "003-00000", "017-00001-t01", **DRAWN)[1:] == []
    (told,) = refused(tmp_path, catalogue, "003-00000", "003-00099", **DRAWN)
    assert '"003-00099" is not planned' in told and "of this scenario there are 003-00000, 003-00001" in told
    (told,) = refused(tmp_path, catalogue, "003-00000-t98", **DRAWN)
    assert '"003-00000-t98" is not a pair: 003-00000 has ' in told
    assert refused(tmp_path, catalogue, "003-seed", **DRAWN)


def test_forms_before_the_last_correction_are_known_and_later_ones_are_not(tmp_path: Path, catalogue: Catalogue) -> None:
    corrected = {"corrected": ["017-seed-r1", "017-seed-r2"]}
    # Which turns the form before had nobody knows any more.
    assert refused(tmp_path, catalogue, "017-seed", "017-seed-r1", "017-seed-t97", **corrected) == []
    for name in ("017-seed-r3", "017-seed-r2-t97"):
        (told,) = refused(tmp_path, catalogue, "017-seed", "017-seed-r1", name, **corrected)
        assert f'withdrawn[2]: "{name}"' in told
    told, other = refused(tmp_path, catalogue, "044-seed", corrected=["044-seed-r1"])
    assert '"044-seed" is not planned' in told and 'corrected: "044-seed-r1" replaces a dialogue that is not planned' in other


def test_build_and_preview_refuse_it_before_anything_is_asked_or_written(tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> None:
    config = load_configuration(demo_file(tmp_path, withdrawn=[withdrawal("003-seed-t99")]))
    recipe = Recipe(config, catalogue, prompts)
    with pytest.raises(InputError, match='"003-seed-t99" is not a pair'):
        build(recipe, tmp_path / "b")
    assert not (tmp_path / "b").exists()
    with pytest.raises(InputError, match='"003-seed-t99" is not a pair'):
        preview(recipe, None, 0)


def test_of_a_dialogue_whose_turns_are_not_known_any_pair_is_taken() -> None:
    plan = PlanIndex(lambda: ["003-00000"], {"003-00000": []}.get)
    assert list(unknown_errata("it", {"withdrawn": [withdrawal("003-00000-t77")]}, plan)) == []


def test_ids_that_are_near_are_named_and_none_where_there_are_none() -> None:
    many = [f"017-{index:05d}" for index in range(50)]
    assert nearest_ids("017-00042", many) == "of this scenario there are 017-00040, 017-00041, 017-00042, 017-00043, 017-00044 and 45 more"
    assert nearest_ids("018-00001", many).startswith("there are 017-00000, ") and nearest_ids("017-seed", []) == ""
