"""What a release was built under, as it carries it: taxonomy, scenarios, rules and templates, against the hashes of its manifest."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Set
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
from empathy_eval.design.dataset import MANIFEST, TABLES
from empathy_eval.design.language import load_language
from empathy_eval.design.prompts import OPTIONAL, load_prompts
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.releases.assemble.build_definitions import BuildDefinitions
from empathy_eval.releases.assemble.manifest import SOFTWARE, software_versions
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
    said, here = manifest["software"], software_versions()
    where = f"{folder / MANIFEST}: software"
    if manifest["builder"] == __version__:
        if strange := sorted(said.keys() - {"python", *SOFTWARE}):
            yield Finding(where, f'"{strange[0][:80]}" is not software that a manifest names')
        if lacking := sorted({"python", "pyarrow", "numpy"} - said.keys()):
            yield Finding(where, f'does not name "{lacking[0]}", which every release needs')
    for name in sorted(one for one in manifest["files"] if one.endswith(".parquet")):
        yield from (Finding(str(folder / name), what) for what in _odd_file(folder / name, said.get("pyarrow", "")))
    names = [name for name in ("python", *SOFTWARE) if said.get(name, here.get(name)) != here.get(name)]
    if others := [f"{name} {said[name][:40]}, here {here.get(name, 'none')}" for name in names]:
        what = f"was made with {'; '.join(others)}"
        yield Finding(where, what, "nothing needs to be done: numbers are compared within their tolerances", "note", "software")


def _odd_file(path: Path, named: str) -> Iterator[str]:
    """What is wrong with a parquet file that another version wrote than the named one, or that has bytes in no column: nobody reads them,
    and everybody downloads them."""
    table = pq.read_metadata(path)
    wrote = WRITER.fullmatch(table.created_by or "")
    if PLAIN.fullmatch(named) and (not wrote or wrote[1] != named):
        yield f'was written by "{str(table.created_by)[:80]}", but the manifest says pyarrow {named}'
    groups = [table.row_group(number) for number in range(table.num_row_groups)]
    held = sum(group.column(number).total_compressed_size for group in groups for number in range(group.num_columns))
    # Four letters before the columns; after them the description, its length, and four letters again.
    if more := path.stat().st_size - (4 + held + table.serialized_size + 8):
        yield f"has {more:,} bytes that are in no column"


KINDS = {TEMPLATES: "templates", RULE_FILES: "rules"}
READ_THEM = "read them: they define this release"


def design_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Definitions that are not those of the manifest; where they are not those of this program, that is told."""
    there = {name.removeprefix(f"{DESIGN}/") for name in manifest["files"] if name.startswith(f"{DESIGN}/")}
    wrong = list(faults_of(definition_problems(folder / DESIGN, manifest, there, FIX_RESTORE)))
    if "definitions" not in manifest:
        wrong.append(Finding(str(folder / MANIFEST), 'has no "definitions"'))
    if not wrong:
        try:
            under = BuildDefinitions(manifest, folder, strict=True)
            language, _ = under.language, under.catalogue
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
    if language is None:
        what = "its rules are not applied to the texts: they hold regular expressions, or repetitions that take unbounded time"
        yield Finding(str(folder / DESIGN / RULE_FILES), what, "write the rules as words", "note", "rules of texts")


def _otherwise(own: Path, there: Set[str]) -> Iterator[Finding]:
    """Definitions that say what they should in another form than that in which they are written: with a comment, say."""
    for path in sorted(there):
        if not path.startswith(f"{TEMPLATES}/") and read_text(own / path) != definition_text(read_definition(own, path)[0]):
            yield Finding(str(own / path), "is not in the form in which release writes definitions")


def _own_files(own: Path, there: Set[str]) -> dict[str, list[str]]:
    """The files that are not this program's, by kind, and those of this program that are not there."""
    found, packaged = defaultdict[str, list[str]](list), _packaged()
    for path in sorted(there):
        if packaged.get(path) != read_definition(own, path)[0]:
            found[_kind(path)].append(f"{DESIGN}/{path}")
    for path in sorted(packaged.keys() - there - {f"{TEMPLATES}/{name}.md.j2" for name in OPTIONAL}):
        if not path.startswith(f"{SCENARIOS}/"):
            found[_kind(path)].append(f"no {path}")
    return found


def _kind(path: str) -> str:
    return KINDS.get(path.partition("/")[0], "scenarios")


@cache
def _packaged() -> dict[str, Any]:
    """What each packaged file says, by its path in a release."""
    here = load_catalogue()
    said = {**here.file_contents, **{f"{SCENARIOS}/{one.file_name}": definition(one) for one in here.scenarios}}
    said |= {f"{RULE_FILES}/{name}.yaml": one.content for name, one in load_language().rules.items()}
    return said | {f"{TEMPLATES}/{name}.md.j2": source for name, source in load_prompts().sources.items()}
