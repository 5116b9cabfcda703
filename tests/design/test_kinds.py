"""The kinds of request: a row says all that there is to say of one."""

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import schema
from empathy_eval.base.templates import environment
from empathy_eval.completions.asker import Asker, Trail
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.requests import About
from empathy_eval.design import prompts as prompts_module
from empathy_eval.design.configuration import CROSSED_ROLES, ROLES, Configuration
from empathy_eval.design.contrasts import CELLS, CONTROLS, NEAR
from empathy_eval.design.kinds import KINDS, SCORE, Kind, kinds_of_build, rewritings
from empathy_eval.design.prompts import Message, Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.build import build
from jinja2 import meta

from tests.doubles.models import Scripted, said

JUDGE = Kind("judge", "judge", "score_answer", frozenset({"reply"}))


class Noting(Prompts):
    """Prompts that note by kind which variables a template is given."""

    given: ClassVar[dict[str, set[str]]] = {}

    def render(self, kind: str, first: str | None = None, **values: Any) -> list[Message]:
        assert set(values) == self.given.setdefault(kind, set(values)), "every request of a kind is given the same"
        return super().render(kind, **values)


def test_a_template_is_given_exactly_the_variables_of_its_row_and_uses_no_other(
    demo: Configuration, catalogue: Catalogue, prompts: Prompts, tmp_path: Path
) -> None:
    build(Recipe(demo, catalogue, Noting(prompts.templates, prompts.hashes, prompts.sources)), tmp_path / "b")
    asked = kinds_of_build(crossed=False)  # what crossed items take is tested with them
    assert Noting.given == {"repair": {"violations"}} | {one.name: set(one.reads) for one in asked if one.reads}
    for name, given in Noting.given.items():
        assert meta.find_undeclared_variables(environment(None).parse(prompts.sources[name])) - {"self"} <= given


def test_there_is_a_template_for_each_kind_that_reads_something_and_for_repairs_alone(prompts: Prompts) -> None:
    files = {path.name.removesuffix(".md.j2") for path in data_folder("prompt_templates").glob("*.j2")}
    assert files == set(prompts.templates) == {"repair", *(one.name for one in KINDS.values() if one.reads)}


def test_each_answer_has_a_schema_and_each_role_a_model() -> None:
    assert all(schema(one.answer)["type"] for one in KINDS.values())
    assert {one.role for one in KINDS.values()} == {*ROLES, *CROSSED_ROLES, SCORE.role}


def test_a_row_goes_by_its_name() -> None:
    assert [one.name for one in KINDS.values()] == list(KINDS)


def test_each_cell_of_the_two_by_two_is_made_by_exactly_one_kind() -> None:
    made = [one.variant for one in KINDS.values() if one.variant]
    assert sorted(made) == sorted(CELLS)
    for one in rewritings(controls=True):
        assert one.near == (one.variant in NEAR) == (one.role == "near"), "only what sees the turn can edit it"
        assert one.control == (one.variant in CONTROLS)
    assert [one.variant for one in rewritings(controls=False)] == [one for one in made if one not in CONTROLS]


def prompts_anew(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What the module of prompts is where the table of kinds is as it is now."""
    spec = importlib.util.spec_from_file_location("prompts_anew", str(prompts_module.__file__))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    spec.loader.exec_module(module)
    return module


async def test_a_row_a_template_and_a_model_of_its_role_are_all_that_a_new_kind_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, JUDGE.name, JUDGE)
    folder = Path(shutil.copytree(data_folder("prompt_templates"), tmp_path / "templates"))
    (folder / "judge.md.j2").write_text("{% block user %}How warm is this, from 0 to 1?\n{{ reply }}{% endblock %}")
    prompts = prompts_anew(monkeypatch).load_prompts(folder)

    async def warm(value: dict[str, float]) -> float:
        return value["score"]

    model, about = Scripted(said({"score": 2}), said({"score": 0.75})), About("017-seed", JUDGE.name, 3)
    with Ledger(tmp_path / "l.sqlite") as ledger:
        asker = Asker(ledger, {"judge": model}, prompts, samples=1, repairs=1)
        messages = prompts.render(JUDGE.name, reply="That sounds hard.")
        answer = await asker.ask(about, messages, warm, trail := Trail())
        again = await Asker(ledger, {"judge": model}, prompts, repairs=1, offline=True).ask(about, messages, warm, Trail())
    assert answer == again and answer is not None and answer.value == 0.75
    assert messages == model.bodies[0]["messages"] == [{"role": "user", "content": "How warm is this, from 0 to 1?\nThat sounds hard."}]
    assert [one.reasons for one in trail.sorted_failures()] == [("schema",)], "what its schema does not allow is asked for again"


def test_what_the_template_of_a_new_kind_is_not_given_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, JUDGE.name, JUDGE)
    folder = Path(shutil.copytree(data_folder("prompt_templates"), tmp_path / "templates"))
    (folder / "judge.md.j2").write_text("{% block user %}{{ reference }}{% endblock %}")
    with pytest.raises(InputError, match=r'judge\.md\.j2: line 1: variable "reference" is not given to this template'):
        prompts_anew(monkeypatch).load_prompts(folder)
