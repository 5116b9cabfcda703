"""What ``preview`` prints, in which order, and what it tries before anything is paid for."""

import json
import sys
from pathlib import Path

import pytest
from empathy_eval.cli import main
from empathy_eval.commands.preview import estimate_table
from empathy_eval.completions.requests import Usage
from empathy_eval.generation.preview import RequestEstimate

from tests.conftest import demo_file

PRICED = RequestEstimate("self_chat", "writer", 1200, Usage(3_000_000, 0, 900_000), 12.5, 1.25, True)
FREE = RequestEstimate("far_empathetic", "a-model-whose-name-is-long", 10, Usage(100, 0, 50), None, 0.5, False)


def test_the_estimates_add_up_under_their_columns() -> None:
    head, row, total = estimate_table((PRICED,)).splitlines()
    assert row.split() == ["self_chat", "writer", "1,200", "3,000,000", "900,000", "$12.50", "1.2", "the", "ledger's", "averages"]
    assert total.split() == ["total", "1,200", "3,000,000", "900,000", "$12.50", "1.2"]
    assert head.index("hours") + len("hours") == row.index("1.2  the") + len("1.2") == len(total)


def test_where_one_kind_has_no_prices_there_is_no_sum_of_dollars() -> None:
    *_, row, total = estimate_table((PRICED, FREE)).splitlines()
    assert "no prices" in row and row.endswith("assumed sizes") and "a-model-whose-name-is- " in row
    assert "no prices" in total and "1,210" in total and "3,000,100" in total


def said(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert main(["preview", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_the_price_comes_first_and_requests_only_where_they_are_asked_for(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = (demo_file(tmp_path), "--scenarios", world)
    short, long = said(capsys, *given), said(capsys, *given, "--requests", "1")
    assert len(short) < 2000 and "--- " not in short and "add --requests 1" in short
    assert long.startswith(short[: short.index("to see the requests")]) and long.index("total") < long.index("--- ")
    assert long == said(capsys, *given, "-n", "1")
    assert json.loads(said(capsys, *given, "--json"))["requests"] == []


CHECKS = """
import empathy_eval as ee

class Loud(ee.Check):
    name = "loud"
    def variant(self, variant, text, scene):
        return [] if variant != "far_apathetic" else [text.missing]

class Odd(ee.Check):
    name = "odd"
    def dialogue(self, description, turns):
        return ["no flaw"]

class Strict(ee.Check):
    name = "strict"
    def variant(self, variant, text, scene):
        yield ee.Flaw("never_good", f"{variant} of {scene.dialogue_id}")
"""


def test_checks_of_ones_own_are_tried_and_each_that_fails_is_named(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tried_checks.py").write_text(CHECKS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    limits = {"helper_words_at_least": 8, "edit_ratio_below": 0.3, "overlap_at_most": 0.35, "toxicity": "none"}

    def with_own(*names: str) -> Path:
        return demo_file(tmp_path, checks={**limits, "own": {f"tried_checks:{name}": {} for name in names}})

    assert "total" in said(capsys, with_own("Strict"), "--scenarios", world), "what it finds wrong with seeds is no fault of it"
    assert main(["preview", str(with_own("Loud", "Odd", "Strict")), "--scenarios", str(world)]) == 2
    told = capsys.readouterr()
    assert "check \"loud\": failed: AttributeError: 'str' object has no attribute 'missing'" in told.err and told.out == ""
    assert 'check "odd": gave' in told.err and told.err.count("Fix: fix it, or leave it out") == 2
    assert main(["preview", str(with_own("Gone")), "--scenarios", str(world)]) == 2
    assert 'check "tried_checks:Gone": cannot be loaded' in capsys.readouterr().err
