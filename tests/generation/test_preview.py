"""Looking before paying: what can be shown without any seed, and templates that fail before anything is asked for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.prompts import load_prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import CROSSED, load_catalogue
from empathy_eval.generation.build import build
from empathy_eval.generation.job import try_templates
from empathy_eval.generation.preview import preview

from tests.conftest import demo_file

DRAWN = {"plan": "drawn", "dialogues": 3, "surplus": 0, "controls": 1}
MODEL = {"kind": "openai", "model": "m", "endpoint": "e", "max_tokens": 100, "base_url": "http://localhost:9/v1"}


def seedless(world: Path, tmp_path: Path) -> Recipe:
    for path in world.glob("0*.yaml"):
        value = yaml.safe_load(path.read_text())
        del value["seed"]
        path.write_text(yaml.safe_dump(value, sort_keys=False))
    shutil.rmtree(world / CROSSED)
    config = demo_file(tmp_path, **DRAWN, models=dict.fromkeys(("self_chat", "near", "far"), MODEL))
    return Recipe(load_configuration(config), load_catalogue(world), load_prompts())


def test_scenarios_without_any_seed_are_previewed_with_words_in_the_place_of_a_dialogue(world: Path, tmp_path: Path) -> None:
    recipe = seedless(world, tmp_path)
    made = preview(recipe, None, 1)
    assert made.placeholders == ("003-00000",)
    assert {one.about.kind for one in made.requests} == {
        "self_chat", "near_apathetic", "far_empathetic", "near_empathetic", "far_apathetic",
    }  # fmt: skip
    assert "word word word" in str(made.requests[-1].body)
    try_templates(recipe)


def test_a_plan_of_seeds_without_any_is_refused_in_words(world: Path, tmp_path: Path) -> None:
    recipe = seedless(world, tmp_path)
    seeds = Recipe(load_configuration(demo_file(tmp_path)), recipe.catalogue, recipe.prompts)
    with pytest.raises(InputError, match="no scenario has a seed dialogue"):
        build(seeds, tmp_path / "b")


@pytest.mark.parametrize(
    ("name", "before", "after", "said"),
    [
        ("near_apathetic", "{{ edit.words }}", "{{ edit.wrods }}", "is not known; use one of least, most, words"),
        ("near_apathetic", "{{ edit.words }}", "{% if context | length > 4 %}{{ edit.wrods }}{% endif %}", "is not known; use one of"),
        ("repair", "{{ violation }}", "{{ violation.what }}", "'str object' has no attribute 'what'"),
    ],
)
def test_a_template_that_fails_is_told_before_a_folder_is_made_or_anything_paid_for(
    name: str, before: str, after: str, said: str, world: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(data_folder("prompt_templates"), tmp_path / "templates"))
    path = folder / f"{name}.md.j2"
    path.write_text(path.read_text().replace(before, after))
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if after in text)
    recipe = Recipe(load_configuration(demo_file(tmp_path)), load_catalogue(world), load_prompts(folder))
    with pytest.raises(InputError) as caught:
        build(recipe, tmp_path / "b")
    assert f"{name}.md.j2: line {line}: cannot be rendered" in str(caught.value) and said in str(caught.value)
    assert not (tmp_path / "b").exists()
