"""A release whose report leaves a metric of the configuration out, such as one whose packages are not installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import empathy_eval
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.prompts import load_prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.evaluation.measure import score
from empathy_eval.generation.build import build
from empathy_eval.releases.assemble.write import Released, release
from empathy_eval.releases.compare.diff import diff
from empathy_eval.releases.verify.verify import verify
from empathy_eval.reports.report import report

import tests
from tests.conftest import demo_file
from tests.doubles import made_once
from tests.doubles.hub import WRITER, running
from tests.releases.test_verify import rehash

LINE = "Excluded from this release: bertscore, embedding."
BOTH = ("bertscore", "embedding")


@pytest.fixture(scope="module")
def bare(released: tuple[Path, Released]) -> Iterator[None]:
    """A machine without the packages of BERTScore; the release that has it was made before."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("bert_score", "bert_score.utils"):
            patch.setitem(sys.modules, name, None)
        yield


@pytest.fixture(scope="module")
def left(built: Path, tmp_path_factory: pytest.TempPathFactory, bare: None) -> Path:
    def make(folder: Path) -> None:
        release(built, folder / "release", "0.1.0", without=["bertscore", "embedding", "bertscore"])

    return made_once.copied(tmp_path_factory, "without", make)[0] / "release"


def manifest_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return found


def test_missing_packages_are_told_with_both_ways_out(built: Path, tmp_path: Path, bare: None) -> None:
    with pytest.raises(InputError) as found:
        release(built, tmp_path / "release", "0.1.0")
    said = str(found.value)
    assert "needs packages that are not installed" in said
    assert "[bertscore]', or leave it out of the release with --without bertscore" in said
    assert "[bertscore]', or leave it out with --without embedding" in said
    with pytest.raises(InputError, match="--without embedding") as found:
        release(built, tmp_path / "release", "0.1.0", without=["bertscore"])
    assert "--without bertscore" not in str(found.value)
    assert not (tmp_path / "release").exists()


def test_what_is_left_out_is_said_in_manifest_page_and_card_and_the_configuration_stays(
    left: Path, released: tuple[Path, Released]
) -> None:
    ours, whole = manifest_of(left), manifest_of(released[0])
    assert ours["without"] == list(BOTH) and "without" not in whole
    differ = {name for name in ours if ours[name] != whole.get(name)}
    assert differ == {"without", "metrics", "files", "seal"}, "configuration and identity are those of the build"
    changed = {name for name, value in ours["files"].items() if value != whole["files"][name]}
    assert {name for name in changed if not name.startswith("report/")} == {"README.md", "explore/index.html"}
    card, page = (left / "README.md").read_text(), (left / "report" / "index.html").read_text()
    assert LINE in card and "release build --out release --version 0.1.0 --without bertscore --without embedding\n" in card
    assert LINE in page.replace("<bdi>", "").replace("</bdi>", "") and "BERTScore" not in page.split("<nav")[0]
    assert not any(
        "Excluded from this release" in path.read_text() for path in (released[0] / "README.md", released[0] / "report" / "index.html")
    )


def test_the_audit_has_every_shortcut_but_the_embedding(left: Path, released: tuple[Path, Released]) -> None:
    (ours, whole) = (json.loads((one / "report" / "tables.json").read_text())["shortcuts"] for one in (left, released[0]))
    for one, other in zip(ours["contrasts"], whole["contrasts"], strict=True):
        assert one["shortcuts"] == other["shortcuts"][:-1] and other["shortcuts"][-1]["name"] == "embedding"
    assert all(one["line"] for one in ours["contrasts"])


@pytest.mark.e2e
def test_verify_report_and_score_miss_nothing(left: Path, tmp_path: Path) -> None:
    assert verify(left) == []
    made = report(left, tmp_path / "report")
    assert made.left == () and "BERTScore F1" not in {row.metric for row in made.measured.inversion}
    for name in ("tables.json", "index.html"):
        assert (tmp_path / "report" / name).read_bytes() == (left / "report" / name).read_bytes()
    assert score(left, ["rouge-l"]).inversion[0].metric == "ROUGE-L"


@pytest.mark.e2e
def test_publish_would_send_it_where_the_packages_are_not_installed_either(left: Path, tmp_path: Path) -> None:
    (tmp_path / "bert_score.py").write_text("raise ImportError")
    places = [str(tmp_path), *(str(Path(one.__file__ or "").parent.parent) for one in (empathy_eval, tests))]
    with running() as hub:
        own = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "hf"), "HF_TOKEN": WRITER, "NO_PROXY": "127.0.0.1"}
        command = [sys.executable, "-m", "empathy_eval", "publish", str(left), "--repo", "lab/set", "--dry-run"]
        env = os.environ | own | {"PYTHONPATH": os.pathsep.join(places)}
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0 and "v0.1.0 would be published to lab/set" in done.stdout and "recomputed" not in done.stderr, done.stderr


def test_diff_tells_of_it_without_a_word_of_settings(left: Path, released: tuple[Path, Released]) -> None:
    found = diff(released[0], left)
    assert found.made_by == {"without": (None, list(BOTH))}
    lines = [one for one in str(found).splitlines() if one.startswith("  BERTScore")]
    assert len(lines) == 2 and all("not measured" in one and "settings" not in one for one in lines)


def test_names_that_the_configuration_does_not_have_are_all_told_with_those_it_has(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["release", str(built), "--out", str(tmp_path / "r"), "--version", "0.1.0"]
    assert main([*command, "--without", "bertscor", "--without", "BLEU-4", "--without", "vader"]) == 2
    said = capsys.readouterr().err
    assert '--without: "bertscor" is not a metric' in said and '"BLEU-4" is not a metric' in said and '"vader"' not in said
    assert "bleu, rouge-l, meteor, chrf, bertscore, vader" in said and "dist-4, embedding\n" in said and not (tmp_path / "r").exists()


def test_something_must_be_left(built: Path, tmp_path: Path) -> None:
    names = ["bleu", "rouge-l", "meteor", "chrf", "bertscore", "vader", "length", "dist-1", "dist-2", "dist-4", "empathyscore"]
    with pytest.raises(InputError, match="--without: leaves no metric"):
        release(built, tmp_path / "r", "0.1.0", without=names)


def test_a_manifest_that_leaves_out_what_the_report_shows_or_nobody_asked_for_is_a_fault(left: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(left, tmp_path / "release"))
    pins = [one for one in manifest_of(copy)["metrics"] if one["metric"] != "vader"]
    rehash(copy, without=["bertscore", "embedding", "vader"], metrics=pins)
    assert 'README.md: says "Excluded from this release' in "\n".join(map(str, verify(copy, fast=True)))
    rehash(copy, without=["kindness"])
    assert "without: says ['kindness'], but the configuration gives []" in "\n".join(map(str, verify(copy, fast=True)))


@pytest.mark.e2e
@pytest.mark.parametrize("model", ["nobody/not-here", "/nope/weights"])
def test_the_weights_of_a_metric_that_is_left_out_need_not_be_here(model: str, world: Path, tmp_path: Path) -> None:
    report = {"metrics": ["length", "bertscore"], "bertscore": {"model": model, "layer": 1}, "bootstrap": 10}
    config = load_configuration(demo_file(tmp_path, report=report))
    build(Recipe(config, load_catalogue(world), load_prompts()), tmp_path / "b")
    manifest = release(tmp_path / "b", tmp_path / "r", "0.1.0", without=["bertscore"]).manifest
    assert manifest["configuration"]["report"]["bertscore"]["model"] == "left-out" and verify(tmp_path / "r") == []
    with pytest.raises(InputError, match="report: bertscore: model"):
        release(tmp_path / "b", tmp_path / "r2", "0.1.0")
