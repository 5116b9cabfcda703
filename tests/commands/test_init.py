"""``init``: what it writes, and that it overwrites nothing."""

from pathlib import Path

import empathy_eval as ee
import pytest
from empathy_eval.cli import main
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.recipe import load_recipe


@pytest.mark.parametrize("kind", ["demo", "full"])
def test_a_configuration_is_the_packaged_one(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", kind, "--out", str(tmp_path / "mine")]) == 0
    path = tmp_path / "mine" / f"{kind}.yaml"
    assert load_configuration(path).identity == load_recipe(kind).config.identity
    out = capsys.readouterr().out
    assert f"wrote {path}\n" in out and f"  empathy-eval preview {path}" in out and f"  empathy-eval build {path} --out" in out


def test_without_a_word_it_is_the_demo_where_the_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["demo.yaml"]


def test_a_folder_of_scenarios_has_an_example_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    begun = ee.init("scenarios", tmp_path)
    recipe = load_recipe("demo", scenarios=tmp_path / "scenarios")
    (scenario,) = recipe.catalogue.scenarios
    assert scenario.seed and recipe.catalogue.crossed[scenario.number] and recipe.catalogue.personas and recipe.catalogue.telltale
    assert set(begun.files) == {path for path in tmp_path.rglob("*") if path.is_file()}
    assert f"empathy-eval build demo --scenarios {tmp_path / 'scenarios'} --out build/scenarios" in str(begun)


def test_nothing_is_overwritten_and_nothing_written_beside_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = tmp_path / "scenarios" / "taxonomy.yaml"
    there.parent.mkdir()
    there.write_text("mine")
    (tmp_path / "scenarios" / "telltale.yaml").symlink_to("nowhere")
    assert main(["init", "scenarios", "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert f"{there}: already exists\n  Fix: remove it" in said and "telltale.yaml: already exists" in said
    assert there.read_text() == "mine" and len(list(tmp_path.rglob("*.yaml"))) == 2


def test_a_kind_that_there_is_not_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ee.InputError, match='did you mean "scenarios"'):
        ee.init("scenario", tmp_path)


@pytest.mark.parametrize("where", ["file", "file/inside", "x" * 300])
def test_a_place_where_no_file_can_be_is_reported(where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["init", "--out", str(tmp_path / where)]) in (1, 2)
    assert "Fix: " in capsys.readouterr().err
