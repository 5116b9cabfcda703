"""Packaged files as a beginning for one's own: the same value, each key explained, what is left out in comments."""

import re
from pathlib import Path

import pytest
import yaml
from empathy_eval.base.files import data_folder
from empathy_eval.base.parsing import yaml_value
from empathy_eval.base.schemas import schema
from empathy_eval.design.commented import commented
from empathy_eval.design.configuration import parse_configuration

FILES = [
    *(data_folder("release") / f"{name}.yaml" for name in ("demo", "full")),
    *(data_folder("scenarios") / f"{name}.yaml" for name in ("taxonomy", "personas", "telltale", "001-breakups-or-divorce", "crossed/001")),
]
FULL = (data_folder("release") / "full.yaml").read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_says_the_same_with_comments_and_names_its_schema_where_it_is(path: Path) -> None:
    text = path.read_text()
    made = commented(text)
    assert yaml_value(made) == yaml_value(text) and set(text.splitlines()[1:]) <= set(made.splitlines())
    named = made.splitlines()[0].partition("$schema=")[2]
    assert Path(named).is_file() and Path(named).name == Path(text.splitlines()[0].partition("$schema=")[2]).name


def test_each_key_of_the_first_level_is_explained_before_it_and_one_that_is_left_out_stands_with_its_default() -> None:
    made, whole = commented(FULL), schema("configuration")
    for key, said in whole["properties"].items():
        before, key_is_there, _ = re.split(rf"^(# )?{key}:", made, maxsplit=1, flags=re.MULTILINE)
        words = " ".join(line.removeprefix("# ") for line in before.rpartition("\n\n")[2].splitlines())
        assert words.strip() == said["description"], key
        assert (key_is_there is None) == (key in yaml_value(FULL)), key
    assert "\n# candidates: 1\n" in made and "\n# word_list: …\n" in made


def test_what_models_and_checks_leave_out_stands_among_their_keys() -> None:
    made = commented(FULL)
    assert "\n    # base_url: …\n" in made and "\n    # prices: {input: …, output: …}\n" in made and "\n  # own: {}\n" in made
    address = made.replace("# base_url: …", "base_url: http://localhost:8000/v1").replace("{input: …, output: …}", "{input: 1, output: 2}")
    raw = yaml_value(address.replace("# prices:", "prices:"))
    assert parse_configuration(raw, "mine").models["near"].base_url == "http://localhost:8000/v1"


def test_a_key_that_a_plan_does_not_take_is_not_offered() -> None:
    assert "# dialogues:" not in commented((data_folder("release") / "demo.yaml").read_text())


def test_a_text_of_several_lines_is_left_as_it_is() -> None:
    text = "# yaml-language-server: $schema=taxonomy.schema.json\nphases:\n  - name: >-\n      name: no key\n    strategies: []\n"
    made = commented(text)
    assert yaml.safe_load(made) == yaml.safe_load(text) and "  - name: >-\n      name: no key\n" in made


def test_a_file_without_a_schema_is_no_packaged_one() -> None:
    with pytest.raises(ValueError, match="names no schema"):
        commented("name: x\n")
