"""A change that asks again for what is paid is told before anything is sent, with what changed and what it comes to."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.files import data_folder
from empathy_eval.cli import main
from empathy_eval.completions.models import toxicity_scorer
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.prompts import load_prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.generation.build import build
from empathy_eval.generation.preview import UnusedAnswers, unused_answers

from tests.completions.test_openai_endpoint import config_file
from tests.conftest import copy_world
from tests.doubles.server import Behaviour, Server, running
from tests.doubles.telling import WORDS

SIZE: dict[str, Any] = {"dialogues": 4, "controls": 2}
PRICES = {"prices": {"input": 1000, "output": 1000}}
LIMITS = {
    "helper_words_at_least": 8, "edit_ratio_below": 0.3, "overlap_at_most": 0.35,
    "toxicity": {"scorer": "alt-profanity-check", "at_most": 0.5},
}  # fmt: skip


@dataclass
class Paid:
    """A build that was paid for, some of its first answers refused, and what a changed recipe would ask again."""

    folder: Path
    world: Path
    server: Server

    def recipe(self, templates: Path | None = None, scenarios: Path | None = None, **changes: Any) -> Recipe:
        config = config_file(self.folder / "changed", self.server.url, PRICES, **{**SIZE, **changes})
        return Recipe(load_configuration(config), load_catalogue(scenarios or self.world), load_prompts(templates))

    def again(self, recipe: Recipe, ledger: Path | None = None) -> UnusedAnswers | None:
        return unused_answers(recipe, ledger or self.ledger, [self.folder / "b"])

    @property
    def ledger(self) -> Path:
        return self.folder / "b" / "ledger.sqlite"

    def answers(self, where: str = "1") -> int:
        with sqlite3.connect(self.ledger) as ledger:
            (count,) = ledger.execute(f"SELECT count(*) FROM completions WHERE kind != 'score' AND {where}").fetchone()
        ledger.close()
        return int(count)


@pytest.fixture(scope="module")
def paid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Paid]:
    folder = tmp_path_factory.mktemp("paid")
    with running(Behaviour(faults={"turns": 0.1, "schema": 0.1, "length": 0.1, "cut": 0.1})) as server:
        made = Paid(folder, copy_world(folder / "scenarios"), server)
        build(made.recipe(), folder / "b")
        yield made


def test_what_is_as_it_was_and_what_was_refused_before_asks_nothing_again(paid: Paid) -> None:
    with sqlite3.connect(paid.ledger) as ledger:
        further = "SELECT count(*) - count(DISTINCT dialogue_id || kind || ifnull(turn, '')) FROM completions WHERE kind != 'score'"
        assert ledger.execute(further).fetchone()[0] > 10, "many first answers were refused"
    ledger.close()
    assert paid.again(paid.recipe()) is None
    assert paid.again(paid.recipe(samples=6, repairs=0, dialogues=6, checks={**LIMITS, "overlap_at_most": 0.3})) is None
    assert paid.again(paid.recipe(candidates=3, word_list=str(WORDS))) is None
    assert paid.again(paid.recipe(), paid.folder / "no.sqlite") is None


def test_a_build_that_was_cut_off_asks_nothing_again(paid: Paid, tmp_path: Path) -> None:
    ledger = Path(shutil.copy(paid.ledger, tmp_path / "ledger.sqlite"))
    with sqlite3.connect(ledger) as opened:
        opened.execute("DELETE FROM completions WHERE kind = 'far_empathetic' OR dialogue_id LIKE '007-%'")
    opened.close()
    assert paid.again(paid.recipe(), ledger) is None


def test_a_limit_that_stands_in_a_prompt_asks_again_for_what_it_is_a_part_of(paid: Paid) -> None:
    again = paid.again(paid.recipe(checks={**LIMITS, "edit_ratio_below": 0.2}))
    assert again is not None and set(again.kinds) == {"near_apathetic", "near_empathetic"}
    assert sum(again.kinds.values()) == paid.answers("kind LIKE 'near_%'") and again.exact and again.answers == paid.answers()
    assert again.changed == ("checks: edit_ratio_below (0.2, was 0.3)",)
    assert again.dollars == pytest.approx(again.tokens / 1000) and again.tokens > 1000
    assert "checks: edit_ratio_below (0.2, was 0.3)" in str(again) and f"of {paid.answers():,} answers in the ledger" in str(again)


def test_another_scorer_of_toxicity_is_not_asked_for_all_its_scores(paid: Paid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scored = list[int]()

    def score(texts: list[str]) -> list[float]:
        scored.append(len(texts))
        return [0.0] * len(texts)

    monkeypatch.setattr(toxicity_scorer, "load_scorer", lambda config: score)
    ledger = Path(shutil.copy(paid.ledger, tmp_path / "ledger.sqlite"))
    with sqlite3.connect(ledger) as opened:
        opened.execute("DELETE FROM completions WHERE kind = 'score'")
    opened.close()
    again = paid.again(paid.recipe(checks={**LIMITS, "edit_ratio_below": 0.2}), ledger)
    assert again is not None and set(again.kinds) == {"near_apathetic", "near_empathetic"} and not scored


def test_another_template_asks_again_for_all_that_is_made_of_it(paid: Paid, tmp_path: Path) -> None:
    templates = Path(shutil.copytree(data_folder("prompt_templates"), tmp_path / "templates"))
    path = templates / "self_chat.md.j2"
    path.write_text(path.read_text().replace("# The seeker", "# Who seeks help"))
    again = paid.again(paid.recipe(templates))
    assert again is not None and sum(again.kinds.values()) == paid.answers() and again.changed == ("template self_chat",)


def test_a_scenario_in_other_words_asks_again_for_its_dialogues_alone(paid: Paid, tmp_path: Path) -> None:
    world = Path(shutil.copytree(paid.world, tmp_path / "scenarios"))
    (path,) = world.glob("007-*.yaml")
    path.write_text(path.read_text().replace("definition: >-\n  ", "definition: >-\n  In other words: "))
    again = paid.again(paid.recipe(scenarios=world))
    assert again is not None and sum(again.kinds.values()) == paid.answers("dialogue_id LIKE '007-%'") > 0
    assert again.changed == () and "no build folder records the old ones" in str(again)


@pytest.mark.parametrize("text", ["[]", "3", "no JSON", '{"templates": []}'])
def test_a_damaged_header_only_leaves_out_what_was_changed(text: str, paid: Paid, tmp_path: Path) -> None:
    (tmp_path / "build.json").write_text(text)
    changed = paid.recipe(checks={**LIMITS, "edit_ratio_below": 0.25})
    told, whole = unused_answers(changed, paid.ledger, [tmp_path]), paid.again(changed)
    assert told and whole and (told.kinds, told.changed) == (whole.kinds, ())


def test_a_ledger_that_is_no_ledger_is_left_to_the_build_to_tell(paid: Paid, tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_text("nothing of the kind")
    assert paid.again(paid.recipe(), tmp_path / "ledger.sqlite") is None


def test_build_and_preview_say_so_before_anything_is_sent(
    paid: Paid, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    config = config_file(tmp_path, paid.server.url, PRICES, **SIZE, checks={**LIMITS, "edit_ratio_below": 0.2})
    ledger = Path(shutil.copy(paid.ledger, tmp_path / "ledger.sqlite"))
    shared = [str(config), "--scenarios", str(paid.world), "--ledger", str(ledger)]
    shutil.copy(paid.folder / "b" / "configuration.json", tmp_path)
    assert main(["preview", *shared, "-n", "0"]) == 0
    assert "asks again for " in capsys.readouterr().out
    assert main(["preview", *shared, "-n", "0", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["again"]
    assert said["changed"] == ["checks: edit_ratio_below (0.2, was 0.3)"] and set(said["kinds"]) == {"near_apathetic", "near_empathetic"}
    before = paid.server.seen.total()
    main(["build", *shared, "--out", str(tmp_path / "b"), "--budget-tokens", "1"])
    assert paid.server.seen.total() == before, "there was no budget for anything"
    (told,) = [record.getMessage() for record in caplog.records if record.name.endswith("execution")]
    assert told.startswith(f"{ledger}: asks again for {sum(said['kinds'].values())} of ")
    caplog.clear()
    main(["build", *shared, "--out", str(tmp_path / "b"), "--offline"])
    assert not [record for record in caplog.records if record.name.endswith("execution")]
