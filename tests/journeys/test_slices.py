"""Parts of a plan fill ledgers of their own; merged, one replay gives the bytes of the whole build."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import pytest
from empathy_eval.cli import main
from empathy_eval.commands.execution import parse_part
from empathy_eval.completions.ledger import Ledger
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.build import Run, build
from empathy_eval.generation.job import shard
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import copy_world, demo_file


def test_a_part_fills_its_ledger_and_writes_no_outcomes(
    demo: Configuration, tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    seen: Counter[str] = Counter()
    for number in (1, 2):
        out = tmp_path / f"b{number}"
        summary = build(Recipe(demo, catalogue, prompts), out, Run(part=(number, 2)))
        assert summary.total == summary.status["accepted"] == 3 - number
        assert sorted(path.name for path in out.iterdir()) == ["configuration.json", "ledger.sqlite"]
        with Ledger(out / "ledger.sqlite", create=False) as ledger:
            seen.update(str(row[0]) for row in ledger.query("SELECT DISTINCT dialogue_id FROM completions"))
    assert seen == {"003-seed": 1, "007-seed": 1, "017-seed": 1}


def test_a_part_leaves_an_earlier_build_in_its_folder_as_it_was(
    demo: Configuration, tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    build(Recipe(demo, catalogue, prompts), tmp_path / "b")
    before = {path: path.read_bytes() for path in (tmp_path / "b").rglob("*") if path.is_file()}
    build(Recipe(demo, catalogue, prompts), tmp_path / "b", Run(part=(1, 2)))
    assert {path: path.read_bytes() for path in (tmp_path / "b").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "1/0", "-1/3", "1/3/5", "a/b", ""])
def test_what_is_no_part_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="such as 3/16"):
        parse_part(text)


@given(st.integers(1, 99), st.integers(0, 300))
def test_the_parts_of_a_plan_are_disjoint_and_whole(parts: int, items: int) -> None:
    plan = list(range(items))
    taken = [list(shard(plan, *parse_part(f"{number}/{parts}"))) for number in range(1, parts + 1)]
    assert sorted(place for one in taken for place in one) == plan
    assert max(map(len, taken)) - min(map(len, taken)) <= 1


def test_the_command_says_what_to_do_with_a_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = copy_world(tmp_path / "scenarios")
    arguments = ["build", str(demo_file(tmp_path)), "--out", str(tmp_path / "b"), "--scenarios", str(world), "--slice", "3/3"]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "1 planned: 1 accepted" in said and "only the ledger was filled" in said
