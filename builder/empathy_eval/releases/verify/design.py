"""What a release was built under, as it carries it: taxonomy, scenarios, rules and templates, against the hashes of its manifest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from empathy_eval.base.errors import FIX_RESTORE, Finding, InputError, faults_of
from empathy_eval.base.parsing import read_text
from empathy_eval.base.tabular import schema_of
from empathy_eval.base.version import __version__
from empathy_eval.design.bundled_definitions import (
    DESIGN,
    RULE_FILES,
    SCENARIOS,
    TEMPLATES,
    definition,
    definition_problems,
    definition_text,
    read_definition,
)
from empathy_eval.design.canary import CANARY, canary_of, notice_of
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import MANIFEST, TABLES
from empathy_eval.design.language import Language, load_language
from empathy_eval.design.prompts import OPTIONAL, load_prompts
from empathy_eval.design.scenarios import CROSSED, Catalogue, load_catalogue
from empathy_eval.releases.assemble.manifest import SOFTWARE, software
from empathy_eval.reports.explorer import PAGE

# Beside all tables these hold texts: the card an example, the report and its tables some, the page of the explorer a sample.
WITH_TEXTS = ("README.md", f"report/{TABLES}", "report/index.html", PAGE)


def canary_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Another canary than that of the name, and files with texts that do not hold the line with it."""
    if (told := manifest.get(CANARY)) != (canary := canary_of(manifest["name"])):
        what = f'"{told}" is not the canary of "{manifest["name"]}"' if told else f'has no canary; the canary of its name is "{canary}"'
        yield Finding(f"{folder / MANIFEST}: {CANARY}", what)
        return
    notice = notice_of(manifest) or ""
    for name in sorted(manifest["files"]):
        if not name.endswith(".parquet") and name not in WITH_TEXTS:
            continue
        try:
            holds = _holds(folder / name, notice)
        except InputError as error:
            yield from faults_of(error.problems)
            continue
        except (OSError, ValueError) as error:
            yield Finding(str(folder / name), f"cannot be read: {error}")
            continue
        if not holds:
            yield Finding(str(folder / name), f'does not hold the line with the canary "{canary}"')


def _holds(path: Path, notice: str) -> bool:
    if path.suffix == ".parquet":
        # And nothing beside it, which no column has and no reader sees.
        return dict(schema_of(path).metadata or {}) == {CANARY.encode(): notice.encode()}
    return notice in read_text(path)


WRITER = re.compile(r"parquet-cpp-arrow version (\d+\.\d+\.\d+)")
PLAIN = re.compile(r"\d+\.\d+\.\d+")


def software_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Files that other software wrote than the manifest says; that other versions are here is told and no fault."""
    said = manifest["software"]
    where = f"{folder / 'manifest.json'}: software"
    if manifest["builder"] == __version__:
        for name in sorted(said.keys() ^ {"python", *SOFTWARE}):
            if name in said:
                yield Finding(where, f'"{name[:80]}" is not software that a manifest names')
            elif name in ("python", "pyarrow", "numpy"):
                yield Finding(where, f'does not name "{name}", which every release needs')
    yield from _writers(folder, manifest)
    yield from _unread(folder, manifest)
    here = software()
    others = [
        f"{name} {said[name][:40]}, here {here.get(name, 'none')}"
        for name in ("python", *SOFTWARE)
        if said.get(name, here.get(name)) != here.get(name)
    ]
    if others:
        what = f"was made with {'; '.join(others)}"
        yield Finding(where, what, "nothing needs to be done: numbers are compared within their tolerances", "note", "software")


def _writers(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Parquet files that another version wrote than the one that is named."""
    named = manifest["software"].get("pyarrow", "")
    if not PLAIN.fullmatch(named):
        return
    for name in sorted(one for one in manifest["files"] if one.endswith(".parquet")):
        created = pq.read_metadata(folder / name).created_by
        wrote = WRITER.fullmatch(created or "")
        if not wrote or wrote[1] != named:
            what = f'was written by "{str(created)[:80]}", but the manifest says pyarrow {named}'
            yield Finding(str(folder / name), what)


def _unread(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Parquet files with bytes that are in no column: nobody reads them, and everybody downloads them."""
    for name in sorted(one for one in manifest["files"] if one.endswith(".parquet")):
        path = folder / name
        table = pq.read_metadata(path)
        groups = [table.row_group(number) for number in range(table.num_row_groups)]
        held = sum(group.column(number).total_compressed_size for group in groups for number in range(group.num_columns))
        # Four letters before the columns; after them the description, its length, and four letters again.
        if more := path.stat().st_size - (4 + held + table.serialized_size + 8):
            yield Finding(str(path), f"has {more:,} bytes that are in no column")


KINDS = {TEMPLATES: "templates", RULE_FILES: "rules"}
READ_THEM = "read them: they define this release"
# Repeated tokens of a pattern: with more, the ways through a text are without number.
MOST_REPEATED = 2


@dataclass(frozen=True)
class ReleaseRecipe:
    """What the texts of a release were made and checked under. ``language`` is None where its rules are not to be used."""

    language: Language | None
    catalogue: Catalogue


def design_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Definitions that are not those of the manifest; where they are not those of this program, that is told."""
    there = {name.removeprefix(f"{DESIGN}/") for name in manifest["files"] if name.startswith(f"{DESIGN}/")}
    wrong = list(faults_of(definition_problems(folder / DESIGN, manifest, there, FIX_RESTORE)))
    if "definitions" not in manifest:
        wrong.append(Finding(str(folder / MANIFEST), 'has no "definitions"'))
    if not wrong:
        try:
            under = built_under(folder, manifest)
        except InputError as error:
            wrong = list(faults_of(error.problems))
    wrong = wrong or [*_otherwise(folder / DESIGN, there)]
    yield from wrong
    if wrong:
        return
    own = _own_files(folder / DESIGN, there)
    for kind, names in own.items():
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        yield Finding(str(folder / DESIGN), f"was built with its own {kind}: {shown}", READ_THEM, "note", kind)
    if under.language is None:
        what = "its rules are not applied to the texts: they hold regular expressions, or repetitions that take unbounded time"
        yield Finding(str(folder / DESIGN / RULE_FILES), what, "write the rules as words", "note", "rules of texts")


def _otherwise(own: Path, there: Set[str]) -> Iterator[Finding]:
    """Definitions that say what they should in another form than that in which they are written: with a comment, say."""
    for path in sorted(there):
        if not path.startswith(f"{TEMPLATES}/") and read_text(own / path) != definition_text(read_definition(own, path)[0]):
            yield Finding(str(own / path), "is not in the form in which release writes definitions")


def built_under(folder: Path, manifest: Mapping[str, Any]) -> ReleaseRecipe:
    """The rules and the scenarios of a release: the packaged ones where all hashes are theirs, else those that it carries.

    Nothing of them is run, and no template is rendered. A catalogue that is carried has no seed dialogues. Rules that could make a text
    be looked at without end are not taken.

    Raises:
        InputError: if what it carries is not valid; all problems of a kind at once.
    """
    code, own = language_of(manifest["configuration"]), folder / DESIGN
    language: Language | None = load_language(code)
    if language is not None and language.hashes != manifest["rules"]:
        carried = load_language(code, own / RULE_FILES) if (own / RULE_FILES).is_dir() else None
        language = carried if carried is not None and bounded(carried) else None
    return ReleaseRecipe(language, _catalogue() if _is_packaged(own, manifest) else load_catalogue(own, code, SCENARIOS))


@cache
def _catalogue() -> Catalogue:
    return load_catalogue()


def _is_packaged(own: Path, manifest: Mapping[str, Any]) -> bool:
    """Whether the scenarios, the seed dialogues and what goes with them are this program's."""
    here = _catalogue()
    names = {f"{one.number:03d}": one.name for one in here.scenarios}
    files = {name: value for name, value in manifest.get("scenario_files", {}).items() if name != CROSSED}
    same = manifest["seeds"] == here.seed_hash and files == {name: value for name, value in here.files.items() if name != CROSSED}
    same = same and all(names.get(number) == one["name"] for number, one in manifest["scenarios"].items())
    if not same:
        return False
    found = {path.name: read_definition(own, f"{SCENARIOS}/{path.name}")[0] for path in (own / SCENARIOS).iterdir()}
    return found == {name: value for name, value in _definitions().items() if name in found}


def _own_files(own: Path, there: Set[str]) -> dict[str, list[str]]:
    """The files that are not this program's, by kind, and those of this program that are not there."""
    found: dict[str, list[str]] = {}
    for path in sorted(there):
        if _packaged().get(path) != read_definition(own, path)[0]:
            found.setdefault(_kind(path), []).append(f"{DESIGN}/{path}")
    optional = {f"{TEMPLATES}/{name}.md.j2" for name in OPTIONAL}
    for path in sorted(_packaged().keys() - there - optional):
        if not path.startswith(f"{SCENARIOS}/"):
            found.setdefault(_kind(path), []).append(f"no {path}")
    return found


def _kind(path: str) -> str:
    return KINDS.get(path.partition("/")[0], "scenarios")


@cache
def _definitions() -> dict[str, Any]:
    """What the packaged scenarios say, by the names of their files."""
    return {one.file_name: definition(one) for one in _catalogue().scenarios}


@cache
def _packaged() -> dict[str, Any]:
    """What each packaged file says, by its path in a release."""
    here = _catalogue()
    said = {**here.file_contents, **{f"{SCENARIOS}/{name}": value for name, value in _definitions().items()}}
    said |= {f"{RULE_FILES}/{name}.yaml": one.content for name, one in load_language().rules.items()}
    return said | {f"{TEMPLATES}/{name}.md.j2": source for name, source in load_prompts().sources.items()}


def bounded(language: Language) -> bool:
    """Whether all patterns are words: no expression, no token of any number more than twice in one."""
    patterns = [pattern for rules in language.rules.values() for rule in rules.content for pattern in rule["patterns"]]
    return not any(
        "REGEX" in _keys(pattern) or sum(token.get("OP", "1") not in ("1", "?", "!") for token in pattern) > MOST_REPEATED
        for pattern in patterns
    )


def _keys(value: Any) -> set[str]:
    """The names in a value at any depth, in capitals."""
    if isinstance(value, dict):
        return {str(name).upper() for name in value}.union(*map(_keys, value.values()))
    return set().union(*map(_keys, value)) if isinstance(value, list) else set()
