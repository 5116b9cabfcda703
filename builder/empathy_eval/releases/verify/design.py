"""Canary, software and definitions of a release, compared with its manifest and with this program."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from empathy_eval.base.errors import FIX_RESTORE, Finding, Problem, input_errors_as_faults, refuse, some_of
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
from empathy_eval.design.dataset import MANIFEST, TABLES
from empathy_eval.design.language import load_language
from empathy_eval.design.prompts import OPTIONAL, load_prompts
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.releases.assemble.build_definitions import BuildDefinitions
from empathy_eval.releases.assemble.manifest import SOFTWARE, software_versions
from empathy_eval.releases.verify.files import read_release_text
from empathy_eval.reports.explorer import PAGE

# The files with texts of dialogues, beside all tables: the card has an example, report and explorer have some.
WITH_TEXTS = ("README.md", f"report/{TABLES}", "report/index.html", PAGE)
WRITER = re.compile(r"parquet-cpp-arrow version (\d+\.\d+\.\d+)")
RELEASED_VERSION = re.compile(r"\d+\.\d+\.\d+")
KINDS = {TEMPLATES: "templates", RULE_FILES: "rules"}


def canary_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """A canary that is not that of the name, and files with texts that lack the line with it."""
    canary = canary_of(manifest["name"])
    if (stated := manifest.get(CANARY)) != canary:
        wrong = f'"{stated}" is not the canary of "{manifest["name"]}"'
        yield Finding(f"{folder / MANIFEST}: {CANARY}", wrong if stated else f'has no canary; the canary of its name is "{canary}"')
        return
    for name in sorted(manifest["files"]):
        if name.endswith(".parquet") or name in WITH_TEXTS:
            yield from _canary_fault(folder / name, canary, notice_of(manifest) or "")


@input_errors_as_faults
def _canary_fault(path: Path, canary: str, notice: str) -> Iterator[Finding]:
    if path.suffix == ".parquet":
        # And nothing beside it: no column has other metadata, and no reader sees them.
        holds = dict(schema_of(path).metadata or {}) == {CANARY.encode(): notice.encode()}
    else:
        holds = notice in read_release_text(path)
    if not holds:
        yield Finding(str(path), f'does not hold the line with the canary "{canary}"')


def software_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Files by other software than the manifest names; a note where this program has other versions."""
    stated, here, where = manifest["software"], software_versions(), f"{folder / MANIFEST}: software"
    if manifest["builder"] == __version__:
        if unknown := sorted(stated.keys() - {"python", *SOFTWARE}):
            yield Finding(where, f'"{unknown[0][:80]}" is not software that a manifest names')
        if missing := sorted({"python", "pyarrow", "numpy"} - stated.keys()):
            yield Finding(where, f'does not name "{missing[0]}", which every release needs')
    for path in sorted(folder / name for name in manifest["files"] if name.endswith(".parquet")):
        yield from (Finding(str(path), what) for what in _parquet_faults(path, stated.get("pyarrow", "")))
    names = [name for name in ("python", *SOFTWARE) if stated.get(name, here.get(name)) != here.get(name)]
    if versions := [f"{name} {stated[name][:40]}, here {here.get(name, 'none')}" for name in names]:
        what = f"was made with {'; '.join(versions)}"
        yield Finding(where, what, "nothing needs to be done: numbers are compared within their tolerances", "note", "software")


def _parquet_faults(path: Path, version: str) -> Iterator[str]:
    """What is wrong with a parquet file by another version of pyarrow, or with bytes in no column, which everybody downloads unread."""
    table = pq.read_metadata(path)
    writer = WRITER.fullmatch(table.created_by or "")
    if RELEASED_VERSION.fullmatch(version) and (not writer or writer[1] != version):
        yield f'was written by "{str(table.created_by)[:80]}", but the manifest says pyarrow {version}'
    groups = [table.row_group(number) for number in range(table.num_row_groups)]
    size = sum(group.column(number).total_compressed_size for group in groups for number in range(group.num_columns))
    # Four letters before the columns; after them the description, its length, and four letters again.
    if more := path.stat().st_size - (4 + size + table.serialized_size + 8):
        yield f"has {more:,} bytes that are in no column"


@input_errors_as_faults
def design_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Definitions that are not those of the manifest; a note where they are not those of this program."""
    own, paths = folder / DESIGN, {name.removeprefix(f"{DESIGN}/") for name in manifest["files"] if name.startswith(f"{DESIGN}/")}
    unnamed = [] if "definitions" in manifest else [Problem(str(folder / MANIFEST), 'has no "definitions"', FIX_RESTORE)]
    refuse([*definition_problems(own, manifest, paths, FIX_RESTORE), *unnamed])
    definitions = BuildDefinitions(manifest, folder, strict=True)
    language, _ = definitions.language, definitions.catalogue
    # A definition may have the right content in another form, with a comment for example.
    refuse(
        Problem(str(own / path), "is not in the form in which release writes definitions", FIX_RESTORE)
        for path in sorted(paths)
        if not path.startswith(f"{TEMPLATES}/") and read_text(own / path) != definition_text(read_definition(own, path)[0])
    )
    for kind, names in _own_files(own, paths).items():
        what = f"was built with its own {kind}: {some_of(names)}"
        yield Finding(str(own), what, "read them: they define this release", "note", kind)
    if language is None:
        what = "its rules are not applied to the texts: they hold regular expressions, or repetitions that take unbounded time"
        yield Finding(str(own / RULE_FILES), what, "write the rules as words", "note", "rules of texts")


def _own_files(own: Path, paths: Set[str]) -> dict[str, list[str]]:
    """The files that are not those of this program, by kind, and those of this program that are missing."""
    names, packaged = defaultdict[str, list[str]](list), _packaged()
    missing = packaged.keys() - paths - {f"{TEMPLATES}/{name}.md.j2" for name in OPTIONAL}
    files = {path: f"{DESIGN}/{path}" for path in sorted(paths) if packaged.get(path) != read_definition(own, path)[0]}
    files |= {path: f"no {path}" for path in sorted(missing) if not path.startswith(f"{SCENARIOS}/")}
    for path, text in files.items():
        names[KINDS.get(path.partition("/")[0], "scenarios")].append(text)
    return names


@cache
def _packaged() -> dict[str, Any]:
    """The content of each packaged file, by its path in a release."""
    catalogue = load_catalogue()
    contents: dict[str, Any] = {f"{SCENARIOS}/{scenario.file_name}": definition(scenario) for scenario in catalogue.scenarios}
    contents |= {f"{RULE_FILES}/{name}.yaml": rules.content for name, rules in load_language().rules.items()}
    contents |= {f"{TEMPLATES}/{name}.md.j2": source for name, source in load_prompts().sources.items()}
    return {**contents, **catalogue.file_contents}
