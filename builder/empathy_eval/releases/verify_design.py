"""What a release was built under, as it carries it: taxonomy, scenarios, rules and templates, against the hashes of its manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.base.parsing import text_of
from empathy_eval.design.carried import DESIGN, RULE_FILES, SCENARIOS, TEMPLATES, definition, said_in, written, wrong_in
from empathy_eval.design.configuration import language_of
from empathy_eval.design.crossed import CROSSED
from empathy_eval.design.dataset import MANIFEST
from empathy_eval.design.language import Language, load_language
from empathy_eval.design.prompts import OPTIONAL, load_prompts
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.metrics.trust import Told
from empathy_eval.releases.made_by import is_before, is_ours
from empathy_eval.releases.verify_rows import RESTORE

KINDS = {TEMPLATES: "templates", RULE_FILES: "rules"}
READ_THEM = "read them: they define this release"
# Repeated tokens of a pattern: with more, the ways through a text are without number.
MOST_REPEATED = 2


@dataclass(frozen=True)
class Under:
    """What the texts of a release were made and checked under; None where that is neither packaged nor to be had from the release."""

    language: Language | None
    catalogue: Catalogue | None


def carries(manifest: Mapping[str, Any]) -> bool:
    """Whether a release has, or should have, what it was built under."""
    return not is_before(dict(manifest)) or any(name.startswith(f"{DESIGN}/") for name in manifest["files"])


def design_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Definitions that are not those of the manifest; where they are not those of this program, that is told."""
    if not carries(manifest):
        yield from _of_before(folder, manifest)
        return
    there = {name.removeprefix(f"{DESIGN}/") for name in manifest["files"] if name.startswith(f"{DESIGN}/")}
    wrong = list(wrong_in(folder / DESIGN, manifest, there, RESTORE))
    if not is_before(manifest) and "definitions" not in manifest:
        wrong.append(Problem(str(folder / MANIFEST), 'has no "definitions"', RESTORE))
    if not wrong:
        try:
            under = built_under(folder, manifest)
        except InputError as error:
            wrong = list(error.problems)
    wrong = wrong or [*_otherwise(folder / DESIGN, there, manifest)]
    yield from wrong
    if wrong:
        return
    own = _own_files(folder / DESIGN, there)
    for kind, names in own.items():
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        yield Told(str(folder / DESIGN), f"was built with its own {kind}: {shown}", READ_THEM, kind)
    if under.language is None:
        what = "its rules are not applied to the texts: they hold regular expressions, or repetitions that take unbounded time"
        yield Told(str(folder / DESIGN / RULE_FILES), what, "write the rules as words", "rules of texts")


def _otherwise(own: Path, there: Set[str], manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Definitions that say what they should in another form than that in which they are written: with a comment, say."""
    for path in sorted(there) if is_ours(dict(manifest)) else ():
        if not path.startswith(f"{TEMPLATES}/") and text_of(own / path) != written(said_in(own, path)[0]):
            yield Problem(str(own / path), "is not in the form in which release writes definitions", RESTORE)


def _of_before(folder: Path, manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """What of a release that carries nothing is not here either."""
    under = built_under(folder, manifest)
    for kind, found in (("rules", under.language), ("scenarios", under.catalogue)):
        if found is None:
            what = f"was built with {kind} that are neither in the release nor packaged, so they are not applied to its texts"
            yield Told(str(folder), what, "verify it with the program that made it", kind)


def built_under(folder: Path, manifest: Mapping[str, Any]) -> Under:
    """The rules and the scenarios of a release: the packaged ones where all hashes are theirs, else those that it carries.

    Nothing of them is run, and no template is rendered. A catalogue that is carried has no seed dialogues. Rules that could make a text
    be looked at without end are not taken.

    Raises:
        InputError: if what it carries is not valid; all problems of a kind at once.
    """
    code, own = language_of(manifest["configuration"]), folder / DESIGN
    packaged, there = load_language(code), carries(manifest)
    language: Language | None = packaged
    if packaged.hashes != manifest["rules"]:
        language = load_language(code, own / RULE_FILES) if there and (own / RULE_FILES).is_dir() else None
        language = language if language is not None and bounded(language) else None
    catalogue: Catalogue | None = _catalogue()
    if not _is_packaged(own if there else None, manifest):
        catalogue = load_catalogue(own, code, SCENARIOS) if there else None
    return Under(language, catalogue)


@cache
def _catalogue() -> Catalogue:
    return load_catalogue()


def _is_packaged(own: Path | None, manifest: Mapping[str, Any]) -> bool:
    """Whether the scenarios, the seed dialogues and what goes with them are this program's."""
    here = _catalogue()
    names = {f"{one.number:03d}": one.name for one in here.scenarios}
    files = {name: value for name, value in manifest.get("scenario_files", {}).items() if name != CROSSED}
    same = manifest["seeds"] == here.seed_hash and files == {name: value for name, value in here.files.items() if name != CROSSED}
    same = same and all(names.get(number) == one["name"] for number, one in manifest["scenarios"].items())
    if not same or own is None:
        return same
    found = {path.name: said_in(own, f"{SCENARIOS}/{path.name}")[0] for path in (own / SCENARIOS).iterdir()}
    return found == {name: value for name, value in _definitions().items() if name in found}


def _own_files(own: Path, there: Set[str]) -> dict[str, list[str]]:
    """The files that are not this program's, by kind, and those of this program that are not there."""
    found: dict[str, list[str]] = {}
    for path in sorted(there):
        if _packaged().get(path) != said_in(own, path)[0]:
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
    said = {**here.said, **{f"{SCENARIOS}/{name}": value for name, value in _definitions().items()}}
    said |= {f"{RULE_FILES}/{name}.yaml": one.said for name, one in load_language().rules.items()}
    return said | {f"{TEMPLATES}/{name}.md.j2": source for name, source in load_prompts().sources.items()}


def bounded(language: Language) -> bool:
    """Whether all patterns are words: no expression, no token of any number more than twice in one."""
    patterns = [pattern for rules in language.rules.values() for rule in rules.said for pattern in rule["patterns"]]
    return not any(
        "REGEX" in _keys(pattern) or sum(token.get("OP", "1") not in ("1", "?", "!") for token in pattern) > MOST_REPEATED
        for pattern in patterns
    )


def _keys(value: Any) -> set[str]:
    """The names in a value at any depth, in capitals."""
    if isinstance(value, dict):
        return {str(name).upper() for name in value}.union(*map(_keys, value.values()))
    return set().union(*map(_keys, value)) if isinstance(value, list) else set()
