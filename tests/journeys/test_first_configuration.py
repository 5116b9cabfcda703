"""A first configuration without a document: what init writes and says is enough to look ahead and to build."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from empathy_eval.design.configuration import load_configuration

from tests.doubles import warm
from tests.doubles.server import running
from tests.journeys.test_docs import ROOT, blocks, commands, ran


def next_of(said: str) -> list[str]:
    """The commands that init says come next."""
    return [line.strip() for line in said.partition("\nnext:\n")[2].splitlines()]


def with_embedded_scorer(text: str) -> str:
    """The configuration without Detoxify, whose weights nobody fetched here."""
    without = re.sub(r"(?m)^    (checkpoint|config): .*\n", "", text)
    assert "scorer: detoxify\n" in text and without.count("\n") == text.count("\n") - 2
    return without.replace("scorer: detoxify\n", "scorer: alt-profanity-check\n")


def test_a_build_by_a_model_from_an_empty_folder_by_what_the_program_says_alone(tmp_path: Path) -> None:
    preview, build, release = next_of(ran("empathy-eval init full", tmp_path))
    path = tmp_path / "full.yaml"
    text = path.read_text()
    assert "# The number of dialogues in a release." in text
    path.write_text(with_embedded_scorer(re.sub(r"(?m)^(dialogues|controls): \d+$", r"\1: 2", text)))
    with running() as server:
        said = ran(preview.replace("NAME", "m"), tmp_path)
        assert len(said) < 2000 and "no prices" in said and server.seen.total() == 0
        said = ran(build.replace("NAME", "m").replace("http://localhost:8000/v1", server.url), tmp_path)
    assert "3 planned: 3 accepted" in said, "two, and a spare"
    assert release.startswith("empathy-eval release build/full --out ")
    assert "helper" in ran("empathy-eval show build/full 001-00000", tmp_path)


def test_scenarios_of_ones_own_are_begun_built_and_shown_as_written(tmp_path: Path) -> None:
    said = ran(commands("scenarios.md"), tmp_path)
    assert "1 planned: 1 accepted" in said and "001-seed-t01 in the build demo: accepted" in said
    assert next_of(said)[1].split() == blocks("scenarios.md", "sh")[0].splitlines()[2].replace("build/mine", "build/scenarios").split()


def told(folder: Path, *arguments: str) -> list[str]:
    """The lines that a refused command says."""
    environment = {**os.environ, "PATH": os.pathsep.join([str(warm.commands()), str(Path(sys.executable).parent), os.environ["PATH"]])}
    done = subprocess.run(["empathy-eval", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False)  # noqa: S607
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr.splitlines()


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("samples:", "smaples:", 'full.yaml: has unknown "smaples"'),
        ("    max_tokens:", "    max_token:", 'full.yaml: models: far: has unknown "max_token"'),
        ("plan: drawn", "plan: seeds", "full.yaml: control_dialogues: 300 is not allowed here"),
        ("phase_order: anchored", "phase_order: anchord", 'full.yaml: phase_order: "anchord" is not known'),
    ],
    ids=["key", "key-of-a-model", "plan", "value"],
)
def test_what_is_typed_wrong_is_named_in_the_first_message(right: str, wrong: str, said: str, tmp_path: Path) -> None:
    ran("empathy-eval init full", tmp_path)
    path = tmp_path / "full.yaml"
    text = path.read_text()
    assert f"\n{right}" in text
    path.write_text(text.replace(f"\n{right}", f"\n{wrong}", 1))
    first, fix, *_ = told(tmp_path, "preview", "full.yaml", "--model", "m")
    assert first == said and fix.startswith("  Fix: ")
    assert "did you mean" in fix or "leave it out" in fix


def test_the_short_configuration_of_the_document_is_one(tmp_path: Path) -> None:
    (text,) = [one for one in blocks("configuration.md", "yaml") if "plan:" in one]
    (tmp_path / "mine.yaml").write_text(text)
    config = load_configuration(tmp_path / "mine.yaml")
    assert config.dialogues == 60 and yaml.safe_load(text)["name"] == "mine" and (ROOT / "docs" / "scenarios.md").is_file()
