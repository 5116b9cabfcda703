"""A build grows: more dialogues and more controls over the old ledger ask only for what is new."""

from __future__ import annotations

import json
from pathlib import Path

from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.build import Run, build

from tests.completions.test_openai_endpoint import config_file
from tests.doubles.server import running


def test_a_larger_build_over_the_old_ledger_asks_for_nothing_again(tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> None:
    made: list[dict[str, dict[str, object]]] = []
    with running() as server:
        for name, dialogues, controls in (("small", 5, 5), ("large", 8, 9)):
            config = load_configuration(config_file(tmp_path, server.url, surplus=0.4, dialogues=dialogues, controls=controls))
            build(Recipe(config, catalogue, prompts), tmp_path / name, Run(ledger=tmp_path / "ledger.sqlite"))
            lines = (tmp_path / name / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
            made.append({one["dialogue_id"]: one["dialogue"] for one in map(json.loads, lines)})
        assert set(server.seen.values()) == {1}
    small, large = made
    assert (len(small), len(large)) == (7, 12) and small.items() <= large.items()
