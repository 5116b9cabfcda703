"""A release of another format is told in a word, and later programs verify one that pins what it was measured with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.cli import main
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.metrics import registry
from empathy_eval.releases.assemble.manifest import manifest_text, seal_manifest
from empathy_eval.releases.verify.manifest import manifest_faults
from empathy_eval.releases.verify.verify import verify
from empathy_eval.reports.report import release_metrics, report

from tests.conftest import released_quickly
from tests.doubles import made_once

LATER = ("empathy_eval.metrics.lexical:Sentlink", dict[str, Any]())


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue, prompts: Prompts) -> Path:
    """A release whose configuration names no metrics."""
    return made_once.copied(tmp_path_factory, "usual", lambda one: released_quickly(one, catalogue, prompts, bootstrap=10))[0] / "release"


def changed(folder: Path, copy: Path, *without: str, **facts: Any) -> Path:
    """A copy of a release whose manifest says something else, or less, and is sealed again."""
    shutil.copytree(folder, copy)
    value = {name: one for name, one in (read_manifest(copy) | facts).items() if name not in without}
    (copy / "manifest.json").write_text(manifest_text(seal_manifest(value)))
    return copy


def test_a_manifest_pins_each_metric_of_its_report_with_the_signature_that_stands_in_the_tables(usual: Path) -> None:
    pinned = {one["metric"]: one["signature"] for one in read_manifest(usual)["metrics"]}
    assert list(pinned) == registry.default_names({}) and "metrics" not in read_manifest(usual)["configuration"]["report"]
    rows = {row["metric"]: row["signature"] for row in json.loads((usual / "report" / "tables.json").read_text())["inversion"]}
    assert len(pinned) == len(rows) and pinned["rouge-l"] == rows["ROUGE-L"]
    # How many words were counted is of the data.
    assert rows["Dist-2"].startswith(f"{pinned['dist-2']}|")


@pytest.mark.e2e
def test_a_metric_that_is_built_in_later_breaks_no_release_of_before(
    usual: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(registry.BUILT_IN, "linked", LATER)
    assert "linked" in registry.default_names({})
    (told,) = verify(usual)
    assert told.severity == "note" and told.about == "linked" and "the report has no row of it" in told.what
    assert main(["verify", str(usual), "--strict", "--fast"]) == 0
    assert f"{usual}: is what it claims" in capsys.readouterr().out
    report(usual, tmp_path / "again")
    assert (tmp_path / "again" / "tables.json").read_bytes() == (usual / "report" / "tables.json").read_bytes()


def test_a_metric_whose_settings_are_others_here_is_told_once(usual: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("empathy_eval.metrics.ngrams.ChrF.signature", "chars:7")
    (fault,) = verify(usual)
    assert (
        "metrics: chrf" in fault.where
        and fault.what.endswith(', but here its signature is "chars:7"')
        and "the program that made it" in fault.fix
    )


def test_what_a_manifest_pins_is_run_only_where_strangers_may_name_it(usual: Path) -> None:
    manifest = read_manifest(usual)
    strange = [{"metric": name, "signature": ""} for name in ("os:getcwd", "no-such-metric")]
    found, left = release_metrics(manifest | {"metrics": [*strange, *manifest["metrics"]]})
    assert [one.about for one in left] == ["os:getcwd", "no-such-metric"] and "it is code that the manifest names" in left[0].what
    assert len(found.metrics) + len(found.diversities) == len(manifest["metrics"])


def test_a_manifest_that_pins_other_metrics_than_its_configuration_names_is_a_fault(light: Path, usual: Path) -> None:
    for folder, change in ((light, lambda pins: pins[:1]), (light, lambda pins: pins[::-1]), (usual, lambda pins: [*pins, pins[0]])):
        manifest = read_manifest(folder)
        assert list(manifest_faults(folder, manifest)) == []
        said = "\n".join(map(str, manifest_faults(folder, manifest | {"metrics": change(manifest["metrics"])})))
        assert "manifest.json: metrics: says " in said
    missing = {name: value for name, value in read_manifest(usual).items() if name != "metrics"}
    assert "metrics: says nothing" in "\n".join(map(str, manifest_faults(usual, missing)))


def test_another_format_is_told_in_one_word(light: Path, tmp_path: Path) -> None:
    for number in (1, 3):
        (fault,) = verify(changed(light, tmp_path / str(number), format=number, unheard="of"))
        assert f'is a release of format "{number}", but this program verifies format 2' in fault.what
    (fault,) = verify(changed(light, tmp_path / "none", "format"))
    assert 'is a release of format "None"' in fault.what and "version of the program that made it" in fault.fix
