"""The language of a build: what it must be given, said all at once."""

import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.language import RULES, english, load_language
from empathy_eval.design.recipe import Recipe, load_recipe

from tests.conftest import copy_world, demo_file

NONE = {"helper_words_at_least": 4, "edit_ratio_below": 0.5, "overlap_at_most": 0.5, "toxicity": "none"}
RULE = [{"name": "some", "patterns": [[{"LOWER": "wort"}]], "replace": ""}]


def rules_in(folder: Path, *names: str) -> Path:
    """Files of rules that are valid, each with all rules that a build looks for."""
    folder.mkdir(exist_ok=True)
    for name in names:
        named = ("opening", "first_person") if name == "description" else ("some",)
        (folder / f"{name}.yaml").write_text(yaml.safe_dump([{**RULE[0], "name": one} for one in named]))
    return folder


def refused(config: Path, **brought: Any) -> str:
    with pytest.raises(InputError) as caught:
        load_recipe(config, **brought)
    return str(caught.value)


def test_a_german_build_of_the_packaged_files_is_refused_with_all_that_it_lacks(tmp_path: Path) -> None:
    found = refused(demo_file(tmp_path, language="de", near_apathetic="rules"))
    for name, what in RULES.items():
        assert f"language: de: there is no {name}.yaml, which defines {what}" in found
    assert "name its folder with --rules DIR; none is shipped unreviewed" in found
    assert 'checks: toxicity: "alt-profanity-check" supports only English' in found and 'write "toxicity: none"' in found
    for metric in ("meteor", "vader"):
        assert f'report: metrics: "{metric}" supports only English' in found or "(meteor, vader)" in found
    assert "the packaged prompts are English\n  Fix: name your own folder with --templates DIR" in found
    assert "the packaged scenarios and their seed dialogues are English" in found


def test_what_is_brought_is_no_longer_asked_for(tmp_path: Path) -> None:
    config = demo_file(tmp_path, language="de", checks=NONE, report={"metrics": ["bleu"], "bootstrap": 10})
    scenarios, rules = copy_world(tmp_path / "scenarios"), rules_in(tmp_path / "rules", "safety", "pointers", "description")
    brought: dict[str, Any] = {"scenarios": scenarios, "templates": data_folder("prompt_templates")}
    assert refused(config, **brought, rules=rules).count("there is no") == 1, "crisis alone: near_apathetic is the model's"
    recipe = load_recipe(config, **brought, rules=rules_in(rules, "crisis"))
    assert recipe.language.code == "de" and sorted(recipe.language.hashes) == [
        "crisis.yaml", "description.yaml", "pointers.yaml", "safety.yaml",
    ]  # fmt: skip
    there = pickle.loads(pickle.dumps(recipe.language))
    assert there == recipe.language and there.rules["crisis"].content == recipe.language.rules["crisis"].content


def test_english_metrics_and_models_are_named_one_by_one(tmp_path: Path) -> None:
    report = {
        "metrics": ["bleu", "vader", "empathyscore", "bertscore"], "bootstrap": 10, "shortcuts": {"embedding": "all-MiniLM-L6-v2"},
        "bertscore": {"model": "all-MiniLM-L6-v2", "layer": 5},
    }  # fmt: skip
    found = refused(demo_file(tmp_path, language="de", checks=NONE, report=report))
    for where in ("metrics", "bertscore", "shortcuts"):
        assert f"report: {where}: " in found
    assert '"vader" supports' in found and '"empathyscore" supports' in found and '"bleu"' not in found


def test_files_of_rules_that_lack_rules_are_named(tmp_path: Path) -> None:
    folder = rules_in(tmp_path / "rules", *RULES)
    (folder / "description.yaml").write_text(yaml.safe_dump(RULE))
    (folder / "apathetic.yaml").write_text(yaml.safe_dump([{**RULE[0], "replace": None}]))
    config = demo_file(tmp_path, language="de", checks=NONE)
    assert "apathetic.yaml: 0: replace: null is not of type string" in refused(config, rules=folder)
    (folder / "apathetic.yaml").write_text(yaml.safe_dump([{"name": "some", "patterns": RULE[0]["patterns"]}]))
    found = refused(config, rules=folder)
    assert 'description.yaml: has no rule "opening"' in found and 'has no rule "first_person"' in found
    assert 'apathetic.yaml: some: has no "replace"' in found
    assert "is not a folder" in refused(config, rules=tmp_path / "nowhere")


def test_a_recipe_of_one_language_takes_no_rules_of_another(tmp_path: Path) -> None:
    recipe = load_recipe("demo")
    german = load_configuration(demo_file(tmp_path, language="de", checks=NONE))
    with pytest.raises(InputError, match='language: is "de" in the configuration, but the rules are for "en"'):
        Recipe(german, recipe.catalogue, recipe.prompts)


def test_english_said_is_the_build_of_english_unsaid(tmp_path: Path) -> None:
    plain, said = (load_configuration(demo_file(tmp_path, **more)) for more in ({}, {"language": "en"}))
    assert said == plain and said.identity == plain.identity and "language" not in said.published
    assert load_configuration(demo_file(tmp_path, language="de")).identity != plain.identity
    assert load_recipe("demo").language == english() == load_language("en", data_folder("rules"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"language": "German"}, 'language: "German" does not match'),
        ({"language": "de-AT"}, "does not match"),
        ({"checks": {**NONE, "toxicity": "off"}}, '"off" does not match ^none$'),
        ({"checks": {**NONE, "toxicity": None}}, "toxicity"),
    ],
)
def test_a_language_or_a_scorer_that_is_none_is_quoted(changes: dict[str, object], said: str, tmp_path: Path) -> None:
    assert said in refused(demo_file(tmp_path, **changes))
