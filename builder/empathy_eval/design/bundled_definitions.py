"""What a build is made under, as files that go along with it: taxonomy, personas, definitions of scenarios, rules, templates.

The texts of seed dialogues and crossed items are not among them: those that were built are in the data.
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
from empathy_eval.base.parsing import text_of, yaml_value
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
OTHER = "does not match its hash in the manifest"


def carried(named: Mapping[str, Any], catalogue: Catalogue, language: Language, prompts: Prompts) -> dict[str, str]:
    """The texts of all files by their path in the folder, of those that the header of a build or a manifest names."""
    said: dict[str, Any] = {name: catalogue.said[name] for name in named.get("scenario_files", {}) if name != CROSSED}
    said |= {f"{SCENARIOS}/{one.file_name}": definition(one) for one in (catalogue[int(number)] for number in named["scenarios"])}
    said |= {f"{RULE_FILES}/{name}": language.rules[Path(name).stem].said for name in named["rules"]}
    texts = {path: written(value) for path, value in said.items()}
    texts |= {f"{TEMPLATES}/{name}.md.j2": prompts.sources[name] for name in named["templates"]}
    return dict(sorted(texts.items()))


def definition(one: Scenario) -> dict[str, Any]:
    """What the file of a scenario says but for the seed dialogue."""
    return {name: getattr(one, name) for name in ("number", "slug", "name", "share", "definition")} | {"openings": [*one.openings]}


def definitions_of(named: Mapping[str, Any], catalogue: Catalogue) -> str:
    """The hash of what the scenarios of a header say but for their seed dialogues."""
    return digest({one.file_name: definition(one) for one in (catalogue[int(number)] for number in named["scenarios"])})


def written(value: Any) -> str:
    """The one text form of a definition, which says the very same when it is read."""
    return _written(repr(value))


@lru_cache(maxsize=500)  # a process that builds, verifies or shows more than once writes the same ones
def _written(shown: str) -> str:
    value = literal_eval(shown)
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH)
    # A text that the form cannot hold on several lines is written as JSON has it.
    return text if yaml_value(text) == value else yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_style='"')


class _Dumper(yaml.SafeDumper):
    """Without anchors: what is said twice stands there twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def hashes_of(named: Mapping[str, Any]) -> dict[str, str]:
    """The hash of what each file says by its path in the folder, as a header or a manifest names it; scenarios have one in common."""
    files = {name: value for name, value in named.get("scenario_files", {}).items() if name != CROSSED}
    rules = {f"{RULE_FILES}/{name}": value for name, value in named["rules"].items()}
    return files | rules | {f"{TEMPLATES}/{name}.md.j2": value for name, value in named["templates"].items()}


def known(path: str) -> bool:
    """Whether a build may have a file of that path beside its scenarios."""
    rules, templates = {f"{RULE_FILES}/{name}.yaml" for name in RULES}, {f"{TEMPLATES}/{name}.md.j2" for name in VARIABLES}
    return path in {*COMMON, *rules, *templates}


def said_in(folder: Path, path: str) -> tuple[Any, str]:
    """What a file of the folder says, valid, and the hash of that.

    Raises:
        InputError: if it cannot be read, is too large, or is not valid.
    """
    where = folder / path
    try:
        if where.stat().st_size > MOST_BYTES:
            raise input_error(where, f"is larger than {MOST_BYTES:,} bytes", "make it shorter")
        if path.startswith(f"{TEMPLATES}/"):
            text = text_of(where)
            return text, digest_bytes(text.encode())
    except (OSError, ValueError) as error:
        raise input_error(where, f"cannot be read: {error}", "put it back as it was") from error
    kind = {SCENARIOS: "scenario", RULE_FILES: "rules"}.get(path.partition("/")[0], Path(path).stem)
    value = read_yaml(where, kind)
    return value, digest(value)


def wrong_in(folder: Path, named: Mapping[str, Any], there: Collection[str], fix: str) -> Iterator[Problem]:
    """What of a folder is not what a manifest names; ``there`` are the paths that are in it."""
    hashes, said = hashes_of(named), dict[str, Any]()
    if sum((folder / path).stat().st_size for path in there) > MOST_TOGETHER:
        yield Problem(str(folder), TOO_MUCH, "make them shorter")
        return
    for path in sorted(hashes.keys() - set(there)):
        yield Problem(str(folder / path), "is missing", fix)
    problems = list[Problem]()
    for path in sorted(there):
        with collecting(problems):
            value, found = said_in(folder, path)
            if path.startswith(f"{SCENARIOS}/"):
                said[Path(path).name] = value
            elif path not in hashes:
                problems.append(Problem(str(folder / path), "is not named in the manifest", "remove it"))
            elif found != hashes[path]:
                problems.append(Problem(str(folder / path), OTHER, fix))
    yield from problems
    if not problems:
        yield from _wrong_scenarios(folder / SCENARIOS, said, named, fix)


def _wrong_scenarios(folder: Path, said: Mapping[str, Any], named: Mapping[str, Any], fix: str) -> Iterator[Problem]:
    """What definitions of scenarios are not what is said of them elsewhere, and what they hold beside a definition."""
    names = {number: one["name"] for number, one in named["scenarios"].items()}
    for name, value in said.items():
        number = f"{int(value['number']):03d}"
        if name != f"{number}-{value['slug']}.yaml" or number not in names:
            yield Problem(str(folder / name), "is not named by its number and slug, or is not one of these scenarios", fix)
        elif value["name"] != names[number]:
            yield Problem(str(folder / name), f'has the name "{value["name"]}", not "{names[number]}"', fix)
        if "seed" in value:
            yield Problem(str(folder / name), "holds a seed dialogue, whose texts belong in the data", fix)
    for number in sorted(names):
        if (times := sum(name[:3] == number for name in said)) != 1:
            yield Problem(str(folder / f"{number}-*.yaml"), f"occurs {times} times", fix)
    if "definitions" in named and digest(dict(said)) != named["definitions"]:
        yield Problem(str(folder), OTHER, fix)
