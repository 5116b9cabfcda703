"""All JSON of the program comes from one writer, and holds no NaN."""

from __future__ import annotations

import ast
import json
import math

import pytest
from empathy_eval.base.json_text import json_text
from hypothesis import given
from hypothesis import strategies as st

from tests.test_rooms import MODULES

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda of: st.lists(of, max_size=4) | st.dictionaries(st.text(max_size=5), of, max_size=4),
    max_leaves=12,
)
# Where JSON is made and is no output of the program.
QUOTED = "quotes a stranger's value in an error"
REQUESTED = "a part of a request body, whose bytes are its key"
ANSWERED = "an answer, as the ledger keeps it"
ALIKE = "a value taken through JSON, to be compared or kept as it is read back"
NO_OUTPUT = {
    "base.json_text": "the writer itself",
    "base.parsing": QUOTED, "base.schemas": QUOTED, "completions.batch_files": QUOTED, "completions.ledger_file": QUOTED,
    "completions.ledger_rows": QUOTED, "design.word_list": QUOTED, "raters.agreement.table": QUOTED, "raters.study.ratings": QUOTED,
    "raters.study.raters_table": QUOTED, "releases.hub.publish": QUOTED,
    "design.judge_prompts": REQUESTED, "generation.self_chat": REQUESTED,
    "completions.models.local": "the key of a grammar",
    "completions.models.openai_endpoint": ANSWERED, "completions.models.seed_bank": ANSWERED,
    "completions.models.toxicity_scorer": ANSWERED,
    "reports.report": ALIKE, "raters.judges.judge_section": ALIKE,
    "completions.models.transport": "a form of a secret that is looked for",
    "generation.preview": "a parameter of a query",
    "base.streams": "how a sign that nobody sees is written out", "design.commented": "a default in a comment of YAML",
    "base.array_files": "the header of a file of tensors, whose form is not ours",
    "training.students": "the state of a training that was stopped, which only it reads",
}  # fmt: skip


def writes(source: str) -> bool:
    """Whether a module calls ``json.dumps`` or ``json.dump``, or takes them by name."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in ("dumps", "dump")
            and isinstance(node.value, ast.Name)
            and node.value.id == "json"
        ):
            return True
        if isinstance(node, ast.ImportFrom) and node.module == "json" and {one.name for one in node.names} & {"dump", "dumps"}:
            return True
    return False


def test_no_other_module_writes_json_as_output() -> None:
    assert {name for name, path in MODULES.items() if writes(path.read_text(encoding="utf-8"))} == set(NO_OUTPUT)


@given(VALUES)
def test_no_number_that_is_not_finite_is_written(value: object) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    def nulled(one: object) -> object:
        if isinstance(one, dict):
            return {name: nulled(other) for name, other in one.items()}
        if isinstance(one, list):
            return [nulled(other) for other in one]
        return None if isinstance(one, float) and not math.isfinite(one) else one

    assert json.loads(json_text(value), parse_constant=refuse) == nulled(value)


@pytest.mark.parametrize("indent", [None, 1, 2])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_a_value_of_json_is_written_as_the_library_writes_it(indent: int | None, ascii_only: bool) -> None:
    value = {"b": ["ä", 1.5, None, True], "a": {}}
    for ordered in (False, True):
        said = json_text(value, indent=indent, ascii_only=ascii_only, sort_keys=ordered)
        assert said == json.dumps(value, indent=indent, ensure_ascii=ascii_only, sort_keys=ordered)


def test_what_json_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError):
        json_text({"a": object()})
