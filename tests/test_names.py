"""Names: retired words do not return, a class name means one class, and locals are nouns."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.test_rooms import SOURCES, _module

TESTS = sorted(Path(__file__).parent.rglob("*.py"))
# Former names of modules and classes: each named a clause or an image, not a thing.
MODULES = {
    "carried", "duels", "freezing", "keeper", "lessons", "look", "papers", "reception", "reckoning", "retrace", "stand", "stand_ins",
    "take_back", "telling", "ways", "worth",
}  # fmt: skip
CLASSES = {
    "Again", "Appended", "Begun", "Beside", "Chance", "Closing", "Course", "Crosser", "Doubled", "Duels", "Echoed", "Fooled", "Found",
    "Given", "GivenCrossed", "Jobs", "Keeper", "Lessons", "Look", "Margin", "Measured", "Named", "Noted", "Noter", "OfAnother", "OfRun",
    "OfStages", "Outside", "OwnMeasured", "Pace", "Readings", "Reception", "Reckoning", "Rests", "Seen", "Stand", "Standing", "Taken",
    "Telltale", "Told", "Under", "Won", "WordsBeside", "Work", "Workshop",
}  # fmt: skip
# Words that no test of a finished room has in its name.
TEST_WORDS = {"crosser", "duels", "heard", "keeper", "lessons", "reckoned", "reckoning", "retold", "stand", "stands", "told", "workshop"}
# Names that say nothing of what they hold, and the rooms without them; a room joins when its last one is renamed.
LOCALS = {"one", "found", "told", "said", "made", "there", "gone"}
DONE = {
    "base", "statistics", "design", "completions", "generation", "metrics", "evaluation", "raters", "training", "reports", "releases",
    "commands", "cli", "__init__",
}  # fmt: skip
DONE_TESTS = {"commands", "evaluation", "metrics", "reports", "statistics", "training"}
TREES = {path: ast.parse(path.read_text()) for path in SOURCES}


def _class_names() -> Counter[str]:
    return Counter(node.name for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def _bound(tree: ast.Module) -> set[str]:
    """Names of variables, parameters and functions that a module binds."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return names | {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.unit
def test_no_module_or_class_has_a_retired_name() -> None:
    assert not {path.stem for path in SOURCES} & MODULES
    assert not {name.strip("_") for name in _class_names()} & CLASSES


@pytest.mark.unit
def test_a_class_name_is_defined_once() -> None:
    assert not [name for name, count in _class_names().items() if count > 1]


@pytest.mark.unit
def test_rooms_that_are_done_bind_no_name_without_a_meaning() -> None:
    odd = {
        _module(path): names
        for path, tree in TREES.items()
        if _module(path).split(".")[0] in DONE and (names := {name for name in _bound(tree) if name.strip("_") in LOCALS})
    }
    assert not odd


@pytest.mark.unit
def test_tests_are_named_in_the_words_of_the_sources() -> None:
    named = [
        (path.name, name)
        for path in TESTS
        if path.parent.name in DONE_TESTS
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    ]
    assert named and not [place for place in named if set(place[1].split("_")) & TEST_WORDS]


@pytest.mark.unit
def test_no_source_mentions_a_retired_module() -> None:
    imported = re.compile(rf"empathy_eval\.[\w.]*\b(?:{'|'.join(sorted(MODULES))})\b(?! *=)")
    assert not [(path.name, line) for path in (*SOURCES, *TESTS) for line in path.read_text().splitlines() if imported.search(line)]
