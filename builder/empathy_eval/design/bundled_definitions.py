"""Definition files of a build: taxonomy, personas, scenario definitions, rules and templates.

Texts of seed dialogues and crossed items are not among them: those that were built are in the data.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from empathy_eval.base.errors import Problem, collecting, input_error
from empathy_eval.base.hashing import digest, digest_bytes
from empathy_eval.base.parsing import read_text, yaml_value
from empathy_eval.base.schemas import read_yaml
from empathy_eval.design.language import RULES, Language
from empathy_eval.design.prompts import VARIABLES, Prompts
from empathy_eval.design.scenarios import COMMON, CROSSED, Catalogue, Scenario

# The folder in a build and in a release, and those in it.
DESIGN, SCENARIOS, RULE_FILES, TEMPLATES = "design", "scenarios", "rules", "templates"
# No definition is larger, nor all together: those of a stranger would be read for long.
MOST_BYTES, MOST_TOGETHER = 2**20, 2**22
TOO_MUCH = f"holds more than {MOST_TOGETHER:,} bytes of definitions"
WIDTH = 140
HASH_MISMATCH = "does not match its hash in the manifest"


def definition_files(named: Mapping[str, Any], catalogue: Catalogue, language: Language, prompts: Prompts) -> dict[str, str]:
    """The texts of all files named by the header of a build or a manifest, by their path in the folder."""
    definitions: dict[str, Any] = {name: catalogue.file_contents[name] for name in named.get("scenario_files", {}) if name != CROSSED}
    definitions |= {
        f"{SCENARIOS}/{scenario.file_name}": definition(scenario) for scenario in (catalogue[int(number)] for number in named["scenarios"])
    }
    definitions |= {f"{RULE_FILES}/{name}": language.rules[Path(name).stem].content for name in named["rules"]}
    texts = {path: definition_text(value) for path, value in definitions.items()}
    texts |= {f"{TEMPLATES}/{name}.md.j2": prompts.sources[name] for name in named["templates"]}
    return dict(sorted(texts.items()))


def definition(scenario: Scenario) -> dict[str, Any]:
    """The content of a scenario file without the seed dialogue."""
    return {name: getattr(scenario, name) for name in ("number", "slug", "name", "share", "definition")} | {
        "openings": [*scenario.openings]
    }


def definitions_of(named: Mapping[str, Any], catalogue: Catalogue) -> str:
    """The hash of the definitions of all scenarios in a header."""
    return digest({scenario.file_name: definition(scenario) for scenario in (catalogue[int(number)] for number in named["scenarios"])})


def definition_text(value: Any) -> str:
    """The canonical YAML text of a definition, which reads back to the same value."""
    return _cached_text(repr(value))


@lru_cache(maxsize=500)  # a process that builds, verifies or shows more than once writes the same ones
def _cached_text(shown: str) -> str:
    value = literal_eval(shown)
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH)
    # A text that the form cannot hold on several lines is written as JSON has it.
    return text if yaml_value(text) == value else yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_style='"')


class _Dumper(yaml.SafeDumper):
    """A YAML dumper without anchors: repeated values are written out."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def hashes_of(named: Mapping[str, Any]) -> dict[str, str]:
    """The content hash of each file by its path in the folder, as a header or manifest names it; scenarios share one hash."""
    files = {name: value for name, value in named.get("scenario_files", {}).items() if name != CROSSED}
    rules = {f"{RULE_FILES}/{name}": value for name, value in named["rules"].items()}
    return files | rules | {f"{TEMPLATES}/{name}.md.j2": value for name, value in named["templates"].items()}


def is_known_file(path: str) -> bool:
    """Whether a build may have a file of that path besides its scenarios."""
    rules, templates = {f"{RULE_FILES}/{name}.yaml" for name in RULES}, {f"{TEMPLATES}/{name}.md.j2" for name in VARIABLES}
    return path in {*COMMON, *rules, *templates}


def read_definition(folder: Path, path: str) -> tuple[Any, str]:
    """The validated content of a file in the folder, and its hash. Raises InputError if it cannot be read, is too large, or is invalid."""
    where = folder / path
    try:
        if where.stat().st_size > MOST_BYTES:
            raise input_error(where, f"is larger than {MOST_BYTES:,} bytes", "make it shorter")
        if path.startswith(f"{TEMPLATES}/"):
            text = read_text(where)
            return text, digest_bytes(text.encode())
    except (OSError, ValueError) as error:
        raise input_error(where, f"cannot be read: {error}", "put it back as it was") from error
    kind = {SCENARIOS: "scenario", RULE_FILES: "rules"}.get(path.partition("/")[0], Path(path).stem)
    value = read_yaml(where, kind)
    return value, digest(value)


def definition_problems(folder: Path, named: Mapping[str, Any], paths: Collection[str], fix: str) -> Iterator[Problem]:
    """Differences between a folder and its manifest; ``paths`` are the files in the folder."""
    hashes, definitions = hashes_of(named), dict[str, Any]()
    if sum((folder / path).stat().st_size for path in paths) > MOST_TOGETHER:
        yield Problem(str(folder), TOO_MUCH, "make them shorter")
        return
    for path in sorted(hashes.keys() - set(paths)):
        yield Problem(str(folder / path), "is missing", fix)
    problems = list[Problem]()
    for path in sorted(paths):
        with collecting(problems):
            value, actual = read_definition(folder, path)
            if path.startswith(f"{SCENARIOS}/"):
                definitions[Path(path).name] = value
            elif path not in hashes:
                problems.append(Problem(str(folder / path), "is not named in the manifest", "remove it"))
            elif actual != hashes[path]:
                problems.append(Problem(str(folder / path), HASH_MISMATCH, fix))
    yield from problems
    if not problems:
        yield from _wrong_scenarios(folder / SCENARIOS, definitions, named, fix)


def _wrong_scenarios(folder: Path, definitions: Mapping[str, Any], named: Mapping[str, Any], fix: str) -> Iterator[Problem]:
    """Problems of scenario definitions: wrong names, seed dialogues, missing or repeated files, another hash."""
    names = {number: scenario["name"] for number, scenario in named["scenarios"].items()}
    for name, value in definitions.items():
        number = f"{int(value['number']):03d}"
        if name != f"{number}-{value['slug']}.yaml" or number not in names:
            yield Problem(str(folder / name), "is not named by its number and slug, or is not one of these scenarios", fix)
        elif value["name"] != names[number]:
            yield Problem(str(folder / name), f'has the name "{value["name"]}", not "{names[number]}"', fix)
        if "seed" in value:
            yield Problem(str(folder / name), "holds a seed dialogue, whose texts belong in the data", fix)
    for number in sorted(names):
        if (times := sum(name[:3] == number for name in definitions)) != 1:
            yield Problem(str(folder / f"{number}-*.yaml"), f"occurs {times} times", fix)
    if "definitions" in named and digest(dict(definitions)) != named["definitions"]:
        yield Problem(str(folder), HASH_MISMATCH, fix)
