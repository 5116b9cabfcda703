"""Prompt templates."""

import shutil
from pathlib import Path

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.design.prompts import VARIABLES, Prompts, load_prompts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(data_folder("prompt_templates"), tmp_path / "templates"))


def test_every_kind_has_a_template_and_a_hash(prompts: Prompts) -> None:
    assert set(prompts.templates) == set(prompts.hashes) == set(VARIABLES)


def test_a_variable_that_is_not_given_is_named_with_file_and_line(folder: Path) -> None:
    path = folder / "far_empathetic.md.j2"
    path.write_text(path.read_text().replace("# The strategy of the reply", "{{ reference }}"))
    line = path.read_text().splitlines().index("{{ reference }}") + 1
    with pytest.raises(InputError) as caught:
        load_prompts(folder)
    assert f'far_empathetic.md.j2: line {line}: variable "reference" is not given to this template' in str(caught.value)
    assert caught.value.exit_code == 2


def test_broken_syntax_and_a_missing_block_come_at_once(folder: Path) -> None:
    (folder / "repair.md.j2").write_text("{% block user %}{{ violations")
    (folder / "near_apathetic.md.j2").write_text("just text")
    with pytest.raises(InputError) as caught:
        load_prompts(folder)
    assert len(caught.value.problems) == 2


def test_a_block_that_no_message_is_made_of_is_named(folder: Path) -> None:
    path = folder / "near_apathetic.md.j2"
    path.write_text(path.read_text().replace("{% block system %}", "{% block sytem %}"))
    with pytest.raises(InputError, match=r'near_apathetic\.md\.j2: line 1: has a block "sytem", which is not part of a prompt'):
        load_prompts(folder)
    path.write_text("{% block user %}{% block inner %}{{ reference }}{% endblock %}{% endblock %}")
    assert load_prompts(folder).render("near_apathetic", reference="As it is.") == [{"role": "user", "content": "As it is."}]


def test_a_missing_template_is_named(folder: Path) -> None:
    (folder / "repair.md.j2").unlink()
    with pytest.raises(InputError, match=r"repair\.md\.j2: cannot be read"):
        load_prompts(folder)


def test_the_static_text_of_a_kind_is_the_same_for_every_request(prompts: Prompts) -> None:
    assert [message["role"] for message in prompts.render("repair", violations=["x"])] == ["user"]
