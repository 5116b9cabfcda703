"""A recipe: what a build is made of, by names, paths and objects of one's own."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.recipe import PACKAGED, Recipe, configuration_file, load_recipe

from tests.conftest import demo_file


@dataclass(frozen=True)
class Model:
    name: Any = "mine"
    endpoint: Any = "here"


@dataclass(frozen=True)
class Check:
    name: Any = "few_questions"
    signature: Any = "most:1"


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return load_recipe("demo")


def refused(recipe: Recipe, models: dict[str, Any], *checks: Any) -> str:
    with pytest.raises(InputError) as caught:
        recipe.with_custom(models, checks)
    return str(caught.value)


def test_packaged_configurations_go_by_their_names() -> None:
    for name in PACKAGED:
        assert load_recipe(name).config == load_configuration(data_folder("release") / f"{name}.yaml")


def test_the_seeds_differ_from_the_demo_in_their_name_alone() -> None:
    demo, seeds = load_recipe("demo").config.raw, load_recipe("seeds").config.raw
    assert {name for name in demo.keys() | seeds.keys() if demo.get(name) != seeds.get(name)} == {"name"}


def test_a_path_is_a_path_and_a_file_goes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mine = demo_file(tmp_path, seed=7)
    assert load_recipe(mine).config.seed == load_recipe("config.yaml").config.seed == 7
    mine.rename(tmp_path / "demo")
    assert load_recipe("demo").config.seed == 7
    assert configuration_file("full") == data_folder("release") / "full.yaml"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tiny", 'configuration "tiny": is not a file, and no packaged one has that name\n  Fix: name a file, or one of demo, full, seeds'),
        ("demo.yaml", "demo.yaml: cannot be read: No such file"),
        ("./demo", "demo: cannot be read: No such file"),
        ("release/demo", "release/demo: cannot be read: No such file"),
    ],
)
def test_what_is_neither_a_file_nor_a_name_is_told(name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        load_recipe(name)
    assert said in str(caught.value) and caught.value.exit_code == 2


def test_scenarios_templates_and_the_model_may_be_ones_own(world: Path, tmp_path: Path) -> None:
    templates = Path(shutil.copytree(data_folder("prompt_templates"), tmp_path / "templates"))
    (templates / "repair.md.j2").write_text("{% block user %}Again: {{ violations }}{% endblock %}")
    made = load_recipe("full", model="m", base_url="http://localhost:1/v1", scenarios=str(world), templates=str(templates))
    plain = load_recipe("full")
    assert [one.number for one in made.catalogue.scenarios] == [3, 7, 17] and len(plain.catalogue.scenarios) > 3
    assert {name for name, found in made.prompts.hashes.items() if found != plain.prompts.hashes[name]} == {"repair"}
    assert {(one.model, one.base_url) for one in made.config.models.values()} == {("m", "http://localhost:1/v1")}


def test_nothing_of_ones_own_is_the_same_recipe(recipe: Recipe) -> None:
    assert recipe.with_custom({}) is recipe


def test_objects_stand_in_the_configuration_by_what_they_call_themselves(recipe: Recipe) -> None:
    model, check = Model(), Check()
    own = recipe.with_custom({"far": model}, [check])
    assert own.models == {"far": model} and own.checks == {check.name: check}
    assert own.config.published["models"]["far"] == {"kind": "given", "model": "mine", "endpoint": "here"}
    assert own.config.published["models"]["near"] == {"kind": "seed-bank"}
    assert own.config.published["checks"]["own"] == {"few_questions": {"given": "most:1"}} == own.config.custom_checks
    assert recipe.models == {} and "own" not in recipe.config.published["checks"], "the recipe itself is as it was"


def test_the_identity_is_that_of_models_and_checks_with_their_signatures_and_of_nothing_else(recipe: Recipe) -> None:
    def identity(models: dict[str, Any], *checks: Any) -> str:
        return recipe.with_custom(models, checks).config.identity

    assert identity({"far": Model()}, Check()) == identity({"far": Model()}, Check()), "equal for equal"
    assert identity({"far": Model(), "near": Model("n")}) == identity({"near": Model("n"), "far": Model()})
    assert identity({}, Check(), Check("other")) == identity({}, Check("other"), Check())
    by_two_calls = recipe.with_custom({"far": Model()}).with_custom({}, [Check()])
    assert by_two_calls.config.identity == identity({"far": Model()}, Check())
    assert by_two_calls.models == {"far": Model()} and list(by_two_calls.checks.values()) == [Check()]
    others = [
        identity({}), identity({"far": Model()}), identity({"near": Model()}), identity({"far": Model("n")}),
        identity({"far": Model("mine", "e")}), identity({}, Check()), identity({}, Check("other")),
        identity({}, Check(signature="most:2")), identity({}, Check(), Check("other")),
    ]  # fmt: skip
    assert len(set(others)) == len(others)


def test_settings_of_a_named_check_and_a_named_model_are_part_of_the_identity(tmp_path: Path) -> None:
    def identity(check: dict[str, Any] | None, parameters: dict[str, Any]) -> str:
        raw = load_configuration(data_folder("release") / "demo.yaml").raw
        path = demo_file(
            tmp_path, checks={**raw["checks"], "own": {"mine:Check": check}},
            models={**raw["models"], "far": {"kind": "mine:Model", "parameters": parameters}},
        )  # fmt: skip
        return load_configuration(path).identity

    found = [identity({}, {}), identity({"most": 1}, {}), identity({"most": 2}, {}), identity({}, {"t": 1})]
    assert len(set(found)) == 4 and identity({"most": 1}, {}) == found[1]


def test_a_recipe_that_is_handed_its_objects_again_is_the_one_it_was(recipe: Recipe) -> None:
    own = recipe.with_custom({"far": Model()}, [Check()])
    read = replace(recipe, config=own.config)  # as it stands in build.json
    again = read.with_custom({"far": Model()}, [Check()])
    assert again == own and again.config.identity == own.config.identity == read.config.identity


def test_what_is_wrong_with_objects_is_told_at_once(recipe: Recipe) -> None:
    said = refused(recipe, {"far": object(), "near": Model(3)}, object(), Check(signature=None), Check("twice"), Check("twice", "other"))
    for part in (
        "models: far: object has no name, endpoint",
        "models: near: Model has no name",
        "checks[0]: object has no name, signature",
        "checks[1]: Check has no signature",
        'check "twice": is the name of two checks',
    ):
        assert part in said
    assert said.count("Fix:") == 5


def test_a_model_for_nothing_and_a_check_with_an_odd_name_are_refused(recipe: Recipe) -> None:
    assert 'demo: models: has unknown "judge"\n  Fix: use one of crossed, crossed_judge, far, near, self_chat' in refused(
        recipe, {"judge": Model()}
    )
    assert 'demo: checks: own: "no name!" does not match' in refused(recipe, {}, Check("no name!"))
    assert 'demo: models: far: model: "" does not match' in refused(recipe, {"far": Model("")})


def test_the_seed_bank_may_answer_beside_a_model_of_ones_own_but_not_for_dialogues_that_one_writes(recipe: Recipe) -> None:
    assert recipe.with_custom({"near": Model(), "far": Model()}).config.models["self_chat"].kind == "seed-bank"
    said = refused(recipe, {"self_chat": Model()})
    assert "the seed bank answers only for its own dialogues (near, far), beside a model that writes others" in said
