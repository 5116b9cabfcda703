"""The calls of the package give what the command line prints as JSON."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import empathy_eval as ee
import pytest
from empathy_eval.cli import main
from empathy_eval.completions.batch_files import import_report

from tests.conftest import demo_file
from tests.doubles.raters import fill, key_of, kind_and_cold

ROOT = Path(__file__).parent.parent.parent
Said = Callable[..., Any]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """What the command line prints."""

    def run(*arguments: object) -> Any:
        capsys.readouterr()
        assert main([*map(str, arguments), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.e2e
def test_build_preview_and_release(world: Path, tmp_path: Path, said: Said) -> None:
    config = demo_file(tmp_path, report={"metrics": ["bleu", "length"], "bootstrap": 10})
    recipe = ee.load_recipe(config, scenarios=world)
    by_verb = said("build", config, "--scenarios", world, "--out", tmp_path / "verb")
    assert plain(ee.build(recipe, tmp_path / "call").to_json()) == by_verb
    assert (tmp_path / "call" / "outcomes.jsonl").read_bytes() == (tmp_path / "verb" / "outcomes.jsonl").read_bytes()
    ahead = said("preview", config, "--scenarios", world, "-n", 2)
    call = ee.preview(recipe, n=2)
    assert [one["key"] for one in ahead["requests"]] == [one.key for one in call.requests]
    assert ahead["estimates"] == plain([asdict(one) for one in call.estimates])
    manifest = said("release", tmp_path / "verb", "--out", tmp_path / "r", "--version", "1.2.3", "--without", "length")
    assert plain(ee.release(tmp_path / "call", tmp_path / "r2", "1.2.3", without=["length"]).manifest) == manifest


@pytest.mark.e2e
def test_verify_and_report(light: Path, tmp_path: Path, said: Said) -> None:
    folder = light
    told = ee.verify(folder)
    assert [(one["kind"], one["what"]) for one in said("verify", folder)] == [("told", one.what) for one in told]
    assert said("report", folder, "--out", tmp_path / "verb", "--no-cache") == plain(
        ee.report(folder, tmp_path / "call", cache=False).to_json()
    )


@pytest.mark.e2e
def test_diff_and_score(light: Path, said: Said) -> None:
    folder = light
    assert said("diff", folder, folder) == plain(ee.diff(folder, folder).to_json())
    scored = said("score", folder, "--metric", "length", "--metric", "vader", "--no-cache")
    assert scored.pop("canary") == [] and scored == plain(ee.score(folder, ["length", "vader"], cache=False).to_json())


def test_review_and_agree(light: Path, tmp_path: Path, said: Said) -> None:
    folder = light
    by_verb = said("review", "export", folder, "--out", tmp_path / "verb", "--pairs", 2, "--dialogues", 1, "--raters", 9)
    made = ee.review_export(folder, tmp_path / "call", pairs=2, dialogues=1, raters=9)
    assert by_verb == {"review": made.key["review"], "loads": made.loads, "notes": plain(made.sample.notes)}
    assert key_of(tmp_path / "verb") == key_of(tmp_path / "call")
    for number, rater in enumerate(sorted(made.loads)):
        fill(tmp_path / "call", rater, "page" if number % 2 else "csv", kind_and_cold, tmp_path / "returned")
    files, key = sorted((tmp_path / "returned").iterdir()), tmp_path / "call" / "key.json"
    facts = said("review", "import", folder, *files, "--key", key, "--reviews", tmp_path / "verb.json")
    taken = ee.review_import(folder, files, key=key, reviews=tmp_path / "call.json")
    assert (facts["new"], facts["judgements"]) == (taken.new, len(taken.record["judgements"]))
    assert (tmp_path / "verb.json").read_bytes() == (tmp_path / "call.json").read_bytes()
    table = ROOT / "docs" / "agreement.csv"
    assert said("agree", table, "--judge", "judge-a", "--resamples", 50) == plain(ee.agree(table, ["judge-a"], resamples=50).to_json())


def test_ledgers(built: Path, tmp_path: Path, said: Said) -> None:
    ledger = built / "ledger.sqlite"
    assert said("ledger", "show", ledger) == plain([asdict(one) for one in ee.ledger_show(ledger)])
    by_verb = said("ledger", "merge", tmp_path / "verb.sqlite", ledger)
    by_call = plain([asdict(one) for one in ee.ledger_merge(tmp_path / "call.sqlite", [ledger])])
    assert by_verb == by_call and by_verb[0]["added"] > 0
    (tmp_path / "answers.jsonl").write_text("")
    taken = ee.ledger_import(ledger, [tmp_path / "answers.jsonl"])
    assert said("ledger", "import", ledger, tmp_path / "answers.jsonl") == plain({path: import_report(one) for path, one in taken.items()})


def test_a_call_that_is_given_what_is_wrong_says_so_as_the_verb_does(tmp_path: Path) -> None:
    for call in (
        lambda: ee.score(tmp_path),
        lambda: ee.score(tmp_path, ["length"]),
        lambda: ee.build("no-such", tmp_path / "b"),
        lambda: ee.build("demo", tmp_path / "b", offline=True, batch=True),
        lambda: ee.build("demo", tmp_path / "b", engine="far away"),
        lambda: ee.build("demo", tmp_path / "b", part=(17, 16)),
        lambda: ee.release(tmp_path, tmp_path / "r", "1"),
        lambda: ee.load("my-lab/empathy-eval"),
        lambda: ee.agree(tmp_path / "none.csv"),
        lambda: ee.ledger_show(tmp_path / "none"),
    ):
        with pytest.raises(ee.InputError, match="Fix: "):
            call()
    assert list(tmp_path.iterdir()) == []


def test_the_help_of_a_call_lists_each_parameter_that_its_command_has_words_for() -> None:
    text = inspect.getdoc(ee.diff) or ""
    assert "Parameters\n----------\nbefore : str | Path\n    the earlier release" in text
    assert "\n\nReturns\n-------\nDiff\n\nRaises\n------\nInputError\n" in text
    assert "shortcuts : bool\n    False: leave out" in (inspect.getdoc(ee.score) or "")
