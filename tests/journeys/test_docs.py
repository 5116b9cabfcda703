"""The documents: what they tell a reader to run, run as written."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.dataset import SPLITS, file_of
from empathy_eval.releases.assemble.write import Released

from tests.conftest import demo_file
from tests.doubles import warm
from tests.doubles.raters import FORMS, fill, kind_and_cold

ROOT = Path(__file__).parent.parent.parent


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "docs" / name).read_text(), re.MULTILINE | re.DOTALL)


def commands(name: str) -> str:
    return "\n".join(blocks(name, "sh"))


def ran(script: str, folder: Path, base: Mapping[str, str] = os.environ) -> str:
    """What a script of bash prints; ``empathy-eval`` in it is the one that need not start."""
    environment = {**base, "PATH": os.pathsep.join([str(warm.commands()), str(Path(sys.executable).parent), base["PATH"]])}
    command = ["bash", "-c", f"set -euo pipefail\n{script}"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def ee(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder in which documents are run as written: modules are found there, and paths are below it."""
    import empathy_eval
    from empathy_eval.commands.build import build
    from empathy_eval.completions.models.custom import TextModel
    from empathy_eval.completions.requests import Flaw
    from empathy_eval.generation.checks.custom import Check

    for one in (build, Check, Flaw, TextModel):
        monkeypatch.setattr(empathy_eval, one.__name__, one, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_maintainers_walk_through_runs_as_written(world: Path, tmp_path: Path) -> None:
    (tmp_path / "release").mkdir()
    # Four reports: of all scenarios, and with what is tested elsewhere, they would take most of the time of all tests.
    demo_file(tmp_path, report={"metrics": ["bleu", "rouge-l", "length"], "bootstrap": 10}).rename(tmp_path / "release" / "demo.yaml")
    script = re.sub(r"^(empathy-eval (build|preview) \S+)", rf"\1 --scenarios {world}", commands("maintainers.md"), flags=re.MULTILINE)
    said = ran(script, tmp_path)
    assert "build/demo/release: is what it claims" in said
    assert "withdrawn       2  003-seed-t03, 017-seed" in said


def test_the_auditors_walk_through_runs_as_written(light: Path, tmp_path: Path) -> None:
    shutil.copytree(light.parent / "build", tmp_path / "build" / "demo")
    shutil.copytree(light, tmp_path / "build" / "demo" / "release")
    export, *rest = blocks("auditors.md", "sh")
    ran(export, tmp_path)

    def judge(code: str, entry: dict[str, Any]) -> dict[str, Any]:
        remove = {"decision": "remove", "reason": "taken out to show how it is done"}
        return kind_and_cold(code, entry) | (remove if entry.get("dialogue_id") == "017-seed" else {})

    review = tmp_path / "build" / "review"
    for number, rater in enumerate(sorted(path.name for path in (review / "raters").iterdir())):
        fill(review, rater, FORMS[number % len(FORMS)], judge, tmp_path / "build" / "returned")
    said = ran("".join(rest), tmp_path)
    assert "1 of 3 dialogues to remove, 0 strategy tags found wrong\n  017-seed: 3 of 3 say remove" in said
    assert "build/demo/release-2: is what it claims" in said
    assert "by review       1  017-seed" in said


def test_the_metric_of_ones_own_is_fifteen_lines_and_works_as_written(ee: Path) -> None:
    from empathy_eval.metrics.protocol import Pairs
    from empathy_eval.metrics.registry import find
    from empathy_eval.metrics.scoring import statistics_of

    (code,) = blocks("metrics.md", "python")
    assert len(code.strip().splitlines()) <= 15
    (ee / "shared_words.py").write_text(code)
    (toml,) = blocks("metrics.md", "toml")
    ((name, place),) = tomllib.loads(toml)["project"]["entry-points"]["empathy_eval.metrics"].items()
    (metric,) = find([place], {}).metrics
    found = statistics_of([metric], Pairs(["p"], ["I hear you"], {"near": ["You hear"], "far": ["no"]}))
    assert name == "shared-words" and found[metric.name].rows["near"].tolist() == [[2 / 3, 1]]


def test_the_attack_of_ones_own_is_ten_lines_and_works_as_written(ee: Path) -> None:
    from empathy_eval.evaluation.attacks.registry import BUILT_IN, GROUP, Reply, apply_attack, find_attacks

    (code,) = blocks("attacks.md", "python")
    assert len(code.strip().splitlines()) <= 10
    (ee / "shouting.py").write_text(code)
    ((group, names),) = tomllib.loads(blocks("attacks.md", "toml")[0])["project"]["entry-points"].items()
    (attack,) = find_attacks(list(names.values())).some
    assert (group, list(names)) == (GROUP, ["shouted"]) and apply_attack(attack, Reply("So sad.", ()), ("p", "v"), 7) == "SO SAD."
    told = re.findall(r"^\| `([a-z-]+)` \|", (ROOT / "docs" / "attacks.md").read_text(), re.MULTILINE)
    assert list(dict.fromkeys(told)) == list(BUILT_IN)


def configured(document: str, folder: Path) -> Path:
    """The demo's configuration with the part that a document shows last."""
    return demo_file(folder, **yaml.safe_load(blocks(document, "yaml")[-1]))


def test_the_check_of_ones_own_is_twenty_five_lines_and_works_as_written(ee: Path, world: Path) -> None:
    from empathy_eval.commands.build import build
    from empathy_eval.design.recipe import load_recipe
    from empathy_eval.generation.checks.custom import GROUP

    code, call = blocks("checks.md", "python")
    assert len(code.strip().splitlines()) <= 25
    (ee / "few_questions.py").write_text(code)
    exec(call, {})  # noqa: S102 (as a reader would)
    header = json.loads((ee / "build" / "demo" / "build.json").read_text())
    assert header["checks"] == {"few_questions": "most:0|version:1"}
    assert "far_empathetic: too_many_questions" in header["summary"]["failed_for_good"]
    assert "dialogue_asks" in header["summary"]["rejected_by_reason"]
    build(load_recipe(configured("checks.md", ee), scenarios=world), ee / "named")
    assert json.loads((ee / "named" / "build.json").read_text())["checks"] == {"few_questions": "most:1|version:1"}
    ((group, names),) = tomllib.loads(blocks("checks.md", "toml")[0])["project"]["entry-points"].items()
    assert (group, names) == (GROUP, {"few-questions": "few_questions:FewQuestions"})


def test_the_model_of_ones_own_works_as_written(ee: Path, world: Path) -> None:
    from empathy_eval.commands.build import build
    from empathy_eval.completions.models.custom import GROUP, TextModel
    from empathy_eval.design.recipe import load_recipe

    code, call = blocks("models.md", "python")
    (ee / "one_reply.py").write_text(code)
    exec(call, {})  # noqa: S102 (as a reader would)
    summary = json.loads((ee / "build" / "one-reply" / "build.json").read_text())["summary"]
    assert summary["accepted"] == 60 and "one-reply-1" in summary["usage"]
    handed = build(load_recipe(configured("models.md", ee), scenarios=world), ee / "named")
    assert handed.summary is not None and handed.summary.pairs > 15
    ((group, names),) = tomllib.loads(blocks("models.md", "toml")[0])["project"]["entry-points"].items()
    assert (group, names) == (GROUP, {"one-reply": "one_reply:OneReply"})
    assert (TextModel.endpoint, TextModel.in_flight) == ("own", 8)


def test_the_table_of_metrics_and_its_configuration_are_true(tmp_path: Path) -> None:
    from empathy_eval.metrics.registry import BUILT_IN

    named = re.findall(r"`([^`]+)`", "".join(re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "metrics.md").read_text(), re.MULTILINE)))
    assert sorted(named) == sorted(BUILT_IN)
    (report,) = blocks("metrics.md", "yaml")
    load_configuration(demo_file(tmp_path, **yaml.safe_load(report)))


def test_the_commands_of_score_run_as_written(released: tuple[Path, Released], tmp_path: Path) -> None:
    shutil.copytree(released[0], tmp_path / "build" / "demo" / "release")
    (tmp_path / "shared_words.py").write_text(blocks("metrics.md", "python")[0])
    pairs = pq.read_table(released[0] / "data" / "pairs" / "train.parquet").column("pair_id").to_pylist()
    lines = [f"{pair},{variant},{place}" for pair in pairs for place, variant in enumerate(("apathetic", "empathetic"))]
    (tmp_path / "judge.csv").write_text("\n".join(["pair_id,variant,score", *lines]))
    split = next(name for name in ("test", "train") if released[1].manifest["counts"]["pairs"][name])
    script = "\n".join(blocks("scoring.md", "sh"))
    said = ran(script.replace("--split test", f"--split {split}"), tmp_path)
    assert "shared words, pairs, " in said and "judge, pairs, " in said


def test_scores_under_attack_and_of_crossed_items_are_as_written(light: Path, tmp_path: Path) -> None:
    shutil.copytree(light, tmp_path / "build" / "demo" / "release")
    rows = [row for path in (light / "data" / "crossed").iterdir() for row in pq.read_table(path).to_pylist()]
    (tmp_path / "crossed.csv").write_text(blocks("crossed_scores.md", "csv")[0].replace("017-seed-x1", rows[0]["crossed_id"]))
    # Each command takes a start of the program and its audit: a page of them is made of some.
    attacked, *_ = commands("attacks.md").replace("--attacks", "--no-shortcuts --attacks").splitlines()
    *_, crossed = commands("crossed_scores.md").strip().splitlines()
    assert "under attack: " in ran(attacked, tmp_path) and "crossed  " in ran(f"{crossed} --no-shortcuts", tmp_path)
    ran(f"{sys.executable} -c '{blocks('crossed.md', 'python')[0]}'", tmp_path)


def test_ones_own_texts_are_scored_and_put_beside_people_as_written(tmp_path: Path) -> None:
    (own, _), (people, ensembles) = blocks("own_texts.md", "sh"), blocks("people.md", "sh")
    (tmp_path / "replies.jsonl").write_text(blocks("own_texts.md", "jsonl")[0])
    (tmp_path / "ratings.csv").write_text(blocks("people.md", "csv")[0])
    said = ran(own, tmp_path)
    kind, cold = (float(re.findall(rf"EmpathyScore \(plain\), {system} +3 +3 +([0-9.]+)", said)[0]) for system in "AB")
    assert "VADER, A - B" in said and kind > cold + 0.5 and "outside of what it was made for" not in said
    assert "rating: 12 ratings of 6 texts (3 contexts) by 2 raters" in ran(people, tmp_path)
    assert "huffman:vader,length on rating: fitted on 8 ratings of 4 texts of the validation split" in ran(ensembles, tmp_path)


def test_rows_of_preferences_are_scored_as_written(light: Path, ee: Path) -> None:
    shutil.copytree(light, ee / "build" / "demo" / "release")
    split = next(one for one in SPLITS if pq.read_metadata(file_of(light, "preferences", one)).num_rows)
    exec(blocks("own_texts.md", "python")[0].replace('"train"', f'"{split}"'), {})  # noqa: S102 (as a reader would)
    (command,) = blocks("own_texts.md", "bash")
    assert "VADER, chosen - rejected" in ran(command, ee)


def test_empathyscore_is_trained_and_scored_with_as_written(light: Path, tmp_path: Path) -> None:
    shutil.copytree(light, tmp_path / "build" / "demo" / "release")
    (tmp_path / "replies.jsonl").write_text(blocks("own_texts.md", "jsonl")[0].replace("It happens to most people at some point. ", ""))
    (tmp_path / "ratings.csv").write_text(blocks("people.md", "csv")[0])
    split = next(one for one in SPLITS if pq.read_metadata(file_of(light, "pairs", one)).num_rows)
    said = ran(commands("empathyscore.md").replace("--split test", f"--split {split}"), tmp_path)
    assert "EmpathyScore (plain) - EmpathyScore (model)" in said and "EmpathyScore (plain), A - B" in said
    assert "are outside of what it was made for: shorter than all training texts" in said and "given length" in said


def test_the_recipes_for_labels_of_others_give_what_train_reads(tmp_path: Path) -> None:
    from empathy_eval.training.examples import read_labelled

    posts = (
        'sp_id,rp_id,seeker_post,response_post,level,rationales\n1,2,"I lost\nmy job.",I am so sorry.,2,I am so sorry|\n3,4,Hello.,Hm.,0,\n'
    )
    (tmp_path / "emotional-reactions-reddit.csv").write_text(posts)
    said = [("seeker", "I feel low.", {}), ("supporter", "Since when?", {"strategy": "Question"}), ("seeker", "May.", {"feedback": "4"})]
    dialogue = {"dialog": [{"speaker": who, "content": text, "annotation": mark} for who, text, mark in said]}
    (tmp_path / "ESConv.json").write_text(json.dumps([dialogue]))
    subprocess.run([sys.executable, "-c", blocks("empathyscore.md", "python")[0]], cwd=tmp_path, check=True)
    rows = read_labelled([tmp_path / "epitome.csv", tmp_path / "esconv.csv"])
    assert [(one.reply, one.label) for one in rows] == [("I am so sorry.", 1), ("Hm.", 0), ("Since when?", 0.75)]
    assert rows[2].licence == "CC-BY-NC-4.0"


def test_a_release_is_browsed_as_written(light: Path, tmp_path: Path) -> None:
    shutil.copytree(light, tmp_path / "build" / "demo" / "release")
    assert "page: build/explore.html" in ran(commands("explore.md"), tmp_path)
    assert '"base": "demo/release/"' in (tmp_path / "build" / "explore.html").read_text()
    (python,) = blocks("explore.md", "python")
    said = subprocess.run([sys.executable, "-c", python], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert "BLEU-4" in said and "near_empathetic" in said


def test_the_commands_of_shortcuts_run_as_written(light: Path, tmp_path: Path) -> None:
    shutil.copytree(light, tmp_path / "build" / "demo" / "release")
    said = ran(commands("shortcuts.md"), tmp_path)
    assert "3 folds by dialogue" in said and "3 folds by scenario" in said
    assert len(json.loads((tmp_path / "shortcuts.json").read_text())["contrasts"]) == 5


def test_the_figures_of_shortcuts_are_those_that_are_tested() -> None:
    from tests.evaluation.test_shortcuts import SAID

    rows = re.findall(r"^\| `(.*?)` \| \d+ \| (.*?) \|$", (ROOT / "docs" / "shortcuts.md").read_text(), re.MULTILINE)
    assert {name: tuple(map(float, figures.split(" | "))) for name, figures in rows} == SAID
