"""The ledger of a build beside its release: each text is what the answer to its request says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.completions.ledger import Ledger
from empathy_eval.design.prompts import Prompts
from empathy_eval.metrics.registry import NotRecomputed
from empathy_eval.releases.verify.ledger import ledger_faults

from tests.doubles import made_once
from tests.doubles.forger import Forger, honest


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, prompts: Prompts) -> Path:
    return made_once.copied(tmp_path_factory, "forged", lambda folder: honest(folder, prompts))[0]


@pytest.fixture
def forger(world: Path, tmp_path: Path) -> Forger:
    return Forger(world / "release", tmp_path / "release")


def said(forger: Forger, *ledgers: Path) -> str:
    return "\n".join(map(str, ledger_faults(forger.folder, forger.facts, ledgers)))


def test_what_is_not_held_against_a_ledger_is_told_and_no_fault(forger: Forger, world: Path) -> None:
    (told,) = ledger_faults(forger.folder, forger.facts, [world / "build" / "ledger.sqlite"])
    assert isinstance(told, NotRecomputed)
    assert "what judges said: not compared with a ledger" in str(told)


def test_a_text_that_is_exchanged_with_all_that_follows_from_it_is_found(forger: Forger, world: Path) -> None:
    pair = next(forger.rows("pairs"))
    forger.say(pair["empathetic"], "Something else entirely was said here, kindly.")
    forger.derive(toxicity=False)
    assert f"{pair['pair_id']}, empathetic: differs from the answer" in said(forger, world / "build" / "ledger.sqlite")


def test_a_description_that_is_exchanged_is_found(forger: Forger, world: Path) -> None:
    dialogue = next(forger.rows("dialogues"))
    forger.say(dialogue["description"], "The user is fine.")
    found = said(forger, world / "build" / "ledger.sqlite")
    assert f"{dialogue['dialogue_id']}, dialogue: differs from the answer" in found


CHANGES: dict[str, tuple[str, Callable[[list[dict[str, Any]]], Any], str]] = {
    "a model": ("provenance", lambda rows: rows[3].update(model="better"), '", but the release names "better"'),
    "a key": ("provenance", lambda rows: rows[3].update(request_key="s1-" + "0" * 64), "the ledger holds no answer to its request"),
    "a candidate": ("candidates", lambda rows: rows[0].update(text="Nobody said this."), "no answer of the ledger holds text"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_no_answer_says_is_found(forger: Forger, world: Path, name: str) -> None:
    config, change, told = CHANGES[name]
    forger.change(forger.folder / f"{config}.parquet", change)
    assert told in said(forger, world / "build" / "ledger.sqlite")


def test_less_than_the_answers_took_is_found(forger: Forger, world: Path) -> None:
    for one in forger.facts["summary"]["usage"].values():
        one["requests"] = 3
    assert "requests is 3, but the released answers of the ledger alone" in said(forger, world / "build" / "ledger.sqlite")


def test_the_ledger_of_another_build_holds_none_of_its_answers(forger: Forger, world: Path) -> None:
    forger.change(
        forger.folder / "provenance.parquet",
        lambda rows: [{**row, "request_key": f"s1-{number:064x}"} for number, row in enumerate(rows)],
    )
    assert "none of the given ledgers holds its answers" in said(forger, world / "build" / "ledger.sqlite")


def test_a_ledger_of_nothing_of_a_release_without_annotations_is_refused(forger: Forger, tmp_path: Path) -> None:
    with Ledger(tmp_path / "empty.sqlite"):
        pass
    del forger.facts["annotations"]
    with pytest.raises(InputError, match="no given ledger is of a build"):
        ledger_faults(forger.folder, forger.facts, [tmp_path / "empty.sqlite"])
