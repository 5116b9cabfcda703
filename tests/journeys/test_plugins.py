"""A stranger's package with a metric, a check and a model: installed, named, built with, released, scored and verified."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from tests.conftest import copy_world, demo_file

MODULE = """
import json

from empathy_eval.completions.models.custom import TextModel
from empathy_eval.completions.requests import Flaw
from empathy_eval.generation.checks.custom import Check
from empathy_eval.metrics.protocol import MeanMetric


class Warmth(MeanMetric):
    name, signature, reads, higher_is_better = "warmth", "words:warm|version:1", (), True

    def score(self, text):
        return float("warm" in text)


class NoShouting(Check):
    name = "no-shouting"

    def __init__(self, most):
        self.most, self.signature = most, f"most:{most}"

    def variant(self, variant, text, scene):
        if text.count("!") > self.most:
            yield Flaw("shouts", "the reply shouts; take the exclamation marks out")


class Warm(TextModel):
    name = "warm-1"

    def __init__(self, ending):
        self.parameters = {"ending": ending}

    def answer(self, messages, answer_schema):
        return json.dumps({"text": "There is a warm corner here, and all the time that this needs" + self.parameters["ending"]})
"""
OFFERS = {"metrics": ("warmth", "Warmth"), "checks": ("no-shouting", "NoShouting"), "models": ("warm", "Warm")}


def install(folder: Path, package: str) -> Path:
    """The folder of an installed package, as pip leaves it."""
    module = package.replace("-", "_")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / f"{module}.py").write_text(MODULE)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "INSTALLER").write_text("pip\n")
    points = [f"[empathy_eval.{group}]\n{name} = {module}:{thing}\n" for group, (name, thing) in OFFERS.items()]
    (info / "entry_points.txt").write_text("\n".join(points))
    return folder


# Several commands in one process: most of what each takes alone goes into loading libraries.
RUN = """
import json, sys
from empathy_eval.cli import main
for words in json.loads(sys.argv[1]):
    print("$", main(words), flush=True)
    print("$", file=sys.stderr, flush=True)
"""


class Shell:
    """The command line where some packages are installed."""

    def __init__(self, folder: Path, *sites: Path) -> None:
        self.folder, self.sites = folder, sites

    def all(self, *commands: tuple[str, ...], statuses: Sequence[int]) -> list[str]:
        """What each of some commands says, run one after the other."""
        path = os.pathsep.join([*map(str, self.sites), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-c", RUN, json.dumps(commands)]
        done = subprocess.run(command, cwd=self.folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
        parts = [one.partition("\n") for one in ("\n" + done.stdout).split("\n$ ")]
        ended = [status for status, _, _ in parts[1:]]
        assert ended == list(map(str, statuses)) and "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
        said = [parts[0][2], *(rest for _, _, rest in parts[1:-1])]
        return [out + err for out, err in zip(said, done.stderr.split("$\n"), strict=False)]

    def __call__(self, *arguments: str, status: int = 0) -> str:
        return self.all(arguments, statuses=[status])[0]


def my_yaml(folder: Path, ending: str = "!") -> None:
    raw = yaml.safe_load(demo_file(folder).read_text())
    demo_file(
        folder,
        models={**raw["models"], "far": {"kind": "warm", "parameters": {"ending": ending}}},
        checks={**raw["checks"], "own": {"no-shouting": {"most": 1}}},
        report={"metrics": ["warmth", "length"], "bootstrap": 10},
    ).rename(folder / "my.yaml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy_world(tmp_path / "scenarios")
    my_yaml(tmp_path)
    return tmp_path


BUILD = ("build", "my.yaml", "--scenarios", "scenarios", "--out")


def test_what_a_package_offers_goes_by_its_names_from_the_build_to_its_release_and_back(folder: Path) -> None:
    shell = Shell(folder, install(folder / "site", "warm-words"))
    release, score, verify = ("release", "b", "--out", "r", "--version", "1.0.0"), ("score", "r", "--metric", "warmth"), ("verify", "r")
    built, released, scored, verified = shell.all((*BUILD, "b"), release, score, verify, statuses=[0] * 4)
    assert "3 planned: 3 accepted" in built
    header = json.loads((folder / "b" / "build.json").read_text())
    assert header["checks"] == {"no-shouting": "most:1"} and "warm-1" in header["summary"]["usage"]

    assert "warmth" in released
    manifest = json.loads((folder / "r" / "manifest.json").read_text())
    assert manifest["checks"] == header["checks"]
    assert manifest["configuration"]["models"]["far"] == {"kind": "warm", "parameters": {"ending": "!"}}

    assert "warmth, pairs, " in scored
    assert "r: is what it claims" in verified
    # Who does not have the package can verify all but its metric, and scores with what is there.
    verified, scored, built = Shell(folder).all(verify, score, (*BUILD, "c"), statuses=[0, 2, 2])
    assert "warmth" in verified
    assert 'metric "warmth": is not known' in scored
    assert 'check "no-shouting": is not known\n  Fix: use one of module:name' in built


def test_reasons_of_a_packages_check_are_counted(folder: Path) -> None:
    my_yaml(folder, ending="!!")
    said = Shell(folder, install(folder / "site", "warm-words"))(*BUILD, "b")
    assert "0 pairs" in said and "far_empathetic: shouts (20)" in said


def test_a_name_that_two_packages_offer_is_an_error_that_names_both(folder: Path) -> None:
    one, other = install(folder / "one", "warm-words"), install(folder / "two", "kind-words")
    shell = Shell(folder, one, other)
    both = "is offered by warm-words and by kind-words\n  Fix: uninstall one of them, or write module:name"
    assert f'check "no-shouting": {both}' in shell(*BUILD, "b", status=2)
    raw = yaml.safe_load((folder / "my.yaml").read_text())
    raw["checks"]["own"] = {"warm_words:NoShouting": {"most": 1}}
    (folder / "my.yaml").write_text(yaml.safe_dump(raw))
    assert f'model "warm": {both}' in shell(*BUILD, "c", status=2)
    raw["models"]["far"]["kind"] = "kind_words:Warm"
    (folder / "my.yaml").write_text(yaml.safe_dump(raw))
    assert "3 accepted" in shell(*BUILD, "d")
    assert f'metric "warmth": {both}' in shell("release", "d", "--out", "r", "--version", "1.0.0", status=2)
