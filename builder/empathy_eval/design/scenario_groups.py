"""Groups of scenarios, by which scorers are compared; no build goes by them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest
from empathy_eval.base.schemas import read_yaml

FILE = "groups.yaml"


@dataclass(frozen=True)
class ScenarioGroup:
    """Some scenarios, by their names, and in a line what they have in common."""

    name: str
    definition: str
    scenarios: tuple[str, ...]


@dataclass(frozen=True)
class ScenarioGroups:
    """All groups in their order, and the hash of what the file says."""

    groups: tuple[ScenarioGroup, ...]
    digest: str


def load_groups(path: Path | None = None) -> ScenarioGroups:
    """The groups of a file, by default those that are packaged.

    Raises:
        InputError: if the file is not valid, or two groups have one name.
    """
    path = path or data_folder("scenarios") / FILE
    said = read_yaml(path, "groups")
    names = [one["name"] for one in said]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise InputError([Problem(str(path), f'the group "{name}" occurs twice', "give each group its own name") for name in twice])
    return ScenarioGroups(tuple(ScenarioGroup(one["name"], one["definition"], tuple(one["scenarios"])) for one in said), digest(said))
