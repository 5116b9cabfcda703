"""What a release was built under goes along with it, and is held against its hashes; what is of one's own is told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest
from empathy_eval.design.bundled_definitions import DESIGN, definition, definition_files, definition_text
from empathy_eval.design.language import load_language
from empathy_eval.design.recipe import load_recipe
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.generation.build import build
from empathy_eval.releases.assemble.build_definitions import BuildDefinitions
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.verify.verify import verify

from tests.conftest import demo_file
from tests.releases.test_verify_files import copy, faults, forge, said

__all__ = ["copy"]
REPORT = {"metrics": ["length"], "bootstrap": 10}


def manifest_of(folder: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return value


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def edit(path: Path, **changes: Any) -> None:
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **changes}, sort_keys=False, allow_unicode=True))


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue) -> Path:
    """A build and a release under scenarios, rules and templates of one's own."""
    folder = tmp_path_factory.mktemp("own")
    for name, of in (("rules", "rules"), ("templates", "prompt_templates")):
        shutil.copytree(data_folder(of), folder / name)
    (folder / "templates" / "repair.md.j2").write_text((folder / "templates" / "repair.md.j2").read_text() + "{# ours #}")
    for name, lower in (("safety", "xyzzy"), ("crisis", "plugh")):
        (folder / "rules" / f"{name}.yaml").write_text(yaml.safe_dump([{"name": name, "patterns": [[{"LOWER": lower}]]}]))
    shutil.copytree(data_folder("scenarios"), folder / "all")
    (folder / "scenarios").mkdir()
    for name in ("taxonomy", "personas", "telltale", *(one.file_name.removesuffix(".yaml") for one in catalogue.scenarios)):
        shutil.copy(folder / "all" / f"{name}.yaml", folder / "scenarios")
    edit(folder / "scenarios" / "017-dealing-with-the-loss-of-a-pet.yaml", definition="An animal has died: 'é' — \"so\"\u00a0it is.")
    recipe = load_recipe(
        demo_file(folder, report=REPORT), scenarios=folder / "scenarios", rules=folder / "rules", templates=folder / "templates"
    )
    build(recipe, folder / "build")
    release(folder / "build", folder / "release", "1.0.0")
    return folder


def test_a_release_carries_what_its_build_was_made_under(light: Path, catalogue: Catalogue) -> None:
    there = load_catalogue(light / DESIGN, scenarios_in="scenarios")
    assert there.taxonomy == catalogue.taxonomy and there.personas == catalogue.personas and there.telltale == catalogue.telltale
    assert there.file_contents == catalogue.file_contents and list(map(definition, there.scenarios)) == list(
        map(definition, catalogue.scenarios)
    )
    assert [one.seed for one in there.scenarios] == [None] * 3
    assert load_language(folder=light / DESIGN / "rules") == load_language()
    shown = manifest_of(light)
    assert {path.name.removesuffix(".md.j2") for path in (light / DESIGN / "templates").iterdir()} == shown["templates"].keys()
    assert "`design/` holds the inputs of the build" in (light / "README.md").read_text()


def test_no_seed_dialogue_is_in_it(light: Path, catalogue: Catalogue) -> None:
    texts = "\n".join(" ".join(one.decode().split()) for one in files(light / DESIGN).values())
    for scenario in catalogue.scenarios:
        assert scenario.seed and scenario.name in texts
        assert not any(" ".join(text.split()) in texts for turn in scenario.seed.turns for text in turn.texts if len(text.split()) > 3)


def test_all_packaged_definitions_come_back_as_they_were() -> None:
    recipe = load_recipe("demo")
    named: dict[str, Any] = {
        "scenario_files": recipe.scenario_files, "rules": recipe.language.hashes, "templates": recipe.templates,
        "scenarios": {f"{one.number:03d}": {} for one in recipe.catalogue.scenarios},
    }  # fmt: skip
    texts = definition_files(named, recipe.catalogue, recipe.language, recipe.prompts)
    assert len(texts) == 60 + 3 + len(named["rules"]) + len(named["templates"])
    assert all(digest(yaml.safe_load(texts[name])) == value for name, value in recipe.scenario_files.items() if name != "crossed")
    assert all(yaml.safe_load(texts[f"scenarios/{one.file_name}"]) == definition(one) for one in recipe.catalogue.scenarios)


def test_a_definition_with_all_its_hashes_renewed_is_told_as_one_of_its_own(copy: Path) -> None:
    rules = copy / DESIGN / "rules" / "crisis.yaml"
    fewer = yaml.safe_load(rules.read_text())[:-1]
    rules.write_text(definition_text(fewer), encoding="utf-8")
    forge(copy, rules=manifest_of(copy)["rules"] | {"crisis.yaml": digest(fewer)})
    assert f"was built with its own rules: {DESIGN}/rules/crisis.yaml" in said(copy)


@pytest.mark.parametrize(("of", "name"), [("scenario_files", "personas.yaml"), ("rules", "pointers.yaml"), ("templates", "repair")])
def test_a_definition_that_is_taken_away_with_its_hash_is_told(of: str, name: str, copy: Path) -> None:
    path = {"rules": f"rules/{name}", "templates": f"templates/{name}.md.j2"}.get(of, name)
    (copy / DESIGN / path).unlink()
    forge(copy, **{of: {one: value for one, value in manifest_of(copy)[of].items() if one != name}})
    kind = "scenarios" if of == "scenario_files" else of
    assert f"was built with its own {kind}: no {path}" in said(copy)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("rules/crisis.yaml", "[" * 100, "is nested"),
        ("rules/crisis.yaml", "x: &a [*a]", "holds itself"),
        ("taxonomy.yaml", "phases: []", "phases"),
        ("scenarios/017-dealing-with-the-loss-of-a-pet.yaml", "number: 1.0e+999", "number"),
        ("templates/repair.md.j2", "\udcff", "cannot be read"),
        ("personas.yaml", "#" * 2**21, "is larger than"),
    ],
)
def test_a_definition_of_any_shape_is_told_in_words(name: str, text: str, told: str, copy: Path) -> None:
    (copy / DESIGN / name).write_bytes(text.encode(errors="surrogateescape"))
    forge(copy)
    found = faults(copy)
    assert found and all(name in one.where for one in found) and told in said(copy)


def test_a_release_under_rules_of_its_own_is_what_it_claims_and_says_so(own: Path) -> None:
    found = [one for one in verify(own / "release") if "its own" in one.what]
    assert {one.about for one in found if one.severity == "note"} == {"rules", "scenarios", "templates"} and len(found) == 3
    assert "design/rules/crisis.yaml, design/rules/safety.yaml" in "\n".join(map(str, found))
    under = BuildDefinitions(manifest_of(own / "release"), own / "release", strict=True)
    assert under.language == load_language(folder=own / "rules") and under.catalogue
    assert under.catalogue[17].definition.startswith("An animal has died") and under.catalogue[17].seed


def test_rules_that_could_be_gone_through_without_end_are_not_taken(own: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(own / "release", tmp_path / "r")
    for pattern in ([{"LOWER": {"REGEX": "(a+)+$"}}], [{"OP": "*"}, {"LOWER": "a"}, {"OP": "+"}, {"OP": "{1,}"}]):
        rules = [{"name": "slow", "patterns": [pattern]}]
        (folder / DESIGN / "rules" / "crisis.yaml").write_text(yaml.safe_dump(rules))
        forge(folder, rules=manifest_of(folder)["rules"] | {"crisis.yaml": digest(rules)})
        assert BuildDefinitions(manifest_of(folder), folder, strict=True).language is None
        assert "its rules are not applied to the texts" in said(folder)


def test_the_bytes_are_the_same_on_two_runs(own: Path, tmp_path: Path) -> None:
    recipe = load_recipe(own / "config.yaml", scenarios=own / "scenarios", rules=own / "rules", templates=own / "templates")
    before = files(own / "build" / DESIGN)
    build(recipe, own / "build")
    assert files(own / "build" / DESIGN) == before == files(own / "release" / DESIGN) and len(before) > 12
    release(own / "build", tmp_path / "again", "1.0.0")
    assert files(tmp_path / "again" / DESIGN) == before


def test_definitions_that_were_changed_after_the_build_are_not_released(own: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(own / "build", tmp_path / "build")
    (folder / DESIGN / "taxonomy.yaml").unlink()
    (folder / DESIGN / "rules" / "crisis.yaml").write_text("[]")
    with pytest.raises(InputError) as found:
        release(folder, tmp_path / "r", "1.0.0")
    assert "taxonomy.yaml: cannot be read" in str(found.value) and "crisis.yaml: was changed after the build" in str(found.value)
    assert not (tmp_path / "r").exists()


@pytest.mark.e2e
def test_a_build_without_its_definitions_is_refused(own: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(own / "build", tmp_path / "other")
    shutil.rmtree(folder / DESIGN)
    header = json.loads((folder / "build.json").read_text())
    (folder / "build.json").write_text(json.dumps({name: value for name, value in header.items() if name not in (DESIGN, "definitions")}))
    with pytest.raises(InputError, match="run the same build again"):
        release(folder, tmp_path / "r2", "1.0.0")
