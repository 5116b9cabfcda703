"""What an editor is told of the files that people write: which schema they follow, in a form that it can read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import read_yaml
from empathy_eval.design.scenarios import load_catalogue

FOLDERS = ("release", "review", "rubrics", "rules", "scenarios")
SAYS = re.compile(r"# yaml-language-server: \$schema=(\S+)\n")
# What Python's regular expressions have and those of editors have not.
PYTHONS = ("\\Z", "\\A", "\\U", "(?i", "(?P", "(?s", "(?m", "(?x", "(?#")


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_that_people_edit_names_its_schema_and_follows_it(folder: str) -> None:
    paths = sorted(data_folder(folder).glob("*.yaml"))
    assert paths
    for path in paths:
        said = SAYS.match(path.read_text(encoding="utf-8"))
        assert said, f"{path}: begin it with a line '# yaml-language-server: $schema=../schemas/…'"
        named = path.parent / said[1]
        assert named.resolve().is_relative_to(data_folder("schemas").resolve()) and named.is_file(), path
        read_yaml(path, named.name.removesuffix(".schema.json"))


def patterns(value: Any) -> list[str]:
    """All patterns of a schema."""
    if not isinstance(value, dict | list):
        return []
    found = [value["pattern"]] if isinstance(value, dict) and isinstance(value.get("pattern"), str) else []
    return found + [one for part in (value.values() if isinstance(value, dict) else value) for one in patterns(part)]


def test_the_patterns_of_what_people_edit_mean_the_same_in_an_editor() -> None:
    for path in sorted(Path(data_folder("schemas") / "input").glob("*.json")):
        for pattern in patterns(json.loads(path.read_text(encoding="utf-8"))):
            assert not [one for one in PYTHONS if one in pattern], f"{path}: {pattern}"


def test_a_comment_changes_no_hash_of_what_a_build_is_made_of(world: Path) -> None:
    before = load_catalogue(world)
    for path in world.glob("*.yaml"):
        path.write_text(f"# A word on it.\n{path.read_text()}")
    after = load_catalogue(world)
    assert (after.files, after.seed_hash) == (before.files, before.seed_hash)
    (world / "telltale.yaml").write_text("words: [other]\n")
    assert load_catalogue(world).files["telltale.yaml"] != before.files["telltale.yaml"]
