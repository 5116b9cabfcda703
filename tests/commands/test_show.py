"""The verb ``show``: what it prints, and what it refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import empathy_eval as ee
import pytest
from empathy_eval.cli import main
from empathy_eval.commands import show as verb
from empathy_eval.commands.show import _request

from tests.doubles.marred import OFF_SCHEMA, WITHDRAWN

Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(marred: Path, capsys: pytest.CaptureFixture[str]) -> Say:
    """Runs ``show`` over the marred build or its release; (status, output, errors)."""

    def run(folder: str, *arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(["show", str(marred / folder), *arguments, "--scenarios", str(marred / "scenarios")])
        return status, *capsys.readouterr()

    return run


def test_a_pair_is_reported_in_the_order_of_a_readers_questions(say: Say) -> None:
    status, out, err = say("build", "017-seed-t01")
    assert (status, err) == (0, "") and out.startswith("017-seed-t01 in the build demo: accepted\n")
    places = [out.index(f"\n# {title}\n") for title in ("context", "the texts", "texts that were not accepted", "requests")]
    assert places == sorted(places)
    assert "--- far_empathetic turn 1, sample 0: refused" in out and "--- far_empathetic turn 1, sample 0, a repair: taken" in out
    assert "FAILS  overlap: 1.0 (at most 0.35)" in out and "finish stop" in out and "no model read" in out
    assert max(map(len, out.splitlines())) < 200


def test_hostile_texts_do_nothing_to_a_terminal(say: Say) -> None:
    for arguments in (["017-seed-t03"], ["--rejected", "finish_refusal"]):
        status, out, _ = say("build", *arguments)
        assert status == 0 and "\x1b" not in out and "I can't help\\x1b[31m with that." in out
    shown = json.loads(say("build", "017-seed-t03", "--json")[1])
    assert "I can't help\x1b[31m with that." in [one["text"] for one in shown["asked"]]


def test_the_calls_give_what_is_printed_as_json_in_a_notebook_too(marred: Path, say: Say) -> None:
    where, scenarios, ledger = marred / "release", marred / "scenarios", marred / "build" / "ledger.sqlite"
    by_verb = json.loads(say("release", "017-seed-t01", "--json", "--ledger", str(ledger))[1])
    assert by_verb == json.loads(json.dumps(ee.show(where, "017-seed-t01", ledger=ledger, scenarios=scenarios).to_json()))
    refused = json.loads(say("release", "--rejected", "schema", "--json", "--ledger", str(ledger))[1])

    async def in_a_notebook() -> list[object]:
        assert ee.show(where, WITHDRAWN, ledger=ledger, scenarios=scenarios).status == "left out"
        return [one.to_json() for one in ee.show_rejected(where, "schema", ledger=ledger, scenarios=scenarios)]

    assert refused == json.loads(json.dumps(asyncio.run(in_a_notebook()))) and refused[0]["text"] == OFF_SCHEMA


def test_what_was_refused_is_counted_and_can_be_cut_short(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    status, out, _ = say("build", "--rejected", "--limit", "2")
    assert status == 0 and out.count("\n--- ") + out.startswith("--- ") == 2 and out.endswith("2 shown\n")
    whole = json.loads(say("build", "--rejected", "--json")[1])
    monkeypatch.setattr(verb, "MOST_SHOWN", 1)
    monkeypatch.setattr(verb, "MOST_CHARACTERS", 5)
    status, out, _ = say("build", "--rejected")
    assert status == 0 and f"1 shown\n{len(whole) - 1} more are not shown; --limit {len(whole)} or --json prints all" in out
    _, out, _ = say("build", "--rejected", "schema")
    assert f"    {OFF_SCHEMA[:5]}\n  {len(OFF_SCHEMA) - 5} more characters are left out" in out
    status, _, err = say("build", "--rejected", "nope")
    assert status == 2 and 'nothing was refused for "nope"' in err and "schema (1)" in err


def test_what_is_not_there_is_refused_with_what_is(say: Say, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in (
        (["017-00042"], "of this scenario there are 017-seed"),
        (["no such id"], '"no such id" is not an id'),
        (["017-seed-t05/warm"], "apathetic, empathetic"),
        (["deadbeef"], "no request with a key"),
        (["s1"], "is not an id"),
        ([], "takes either an ID or --rejected"),
        (["017-seed", "--rejected"], "takes either an ID or --rejected"),
        (["--rejected", "--limit", "0"], "use a whole number from 1"),
        (["017-seed", "--ledger", str(tmp_path / "none")], "none"),
    ):
        status, _, err = say("build", *arguments)
        assert status == 2 and said in err and "Fix: " in err, arguments
    assert main(["show", str(tmp_path), "017-seed"]) == 2
    assert "is not a release" in capsys.readouterr().err


def test_a_request_is_printed_whole_where_a_model_read_it(marred: Path) -> None:
    shown = ee.show(marred / "build", "017-seed-t01", scenarios=marred / "scenarios")
    one = next(one for one in shown.requests if one.body)
    assert "[system]" not in "\n".join(_request(one)) and "no model read the request" in "\n".join(_request(one))
    assert "    [system]" in [*_request(replace(one, body={**(one.body or {}), "model": "m"}))]
