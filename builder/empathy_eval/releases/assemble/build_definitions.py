"""Definitions of a build: the scenarios, templates and rules of a header, packaged or from its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from empathy_eval.base.errors import InputError
from empathy_eval.base.files import entries
from empathy_eval.base.hashing import digest
from empathy_eval.design.bundled_definitions import DESIGN, MOST_TOGETHER, RULE_FILES, SCENARIOS, TEMPLATES, definitions_of
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import MANIFEST
from empathy_eval.design.language import Language, load_language
from empathy_eval.design.prompts import Prompts, load_prompts
from empathy_eval.design.scenarios import CROSSED, Catalogue, crossed_content, load_catalogue

T = TypeVar("T")
# Repeated tokens in a pattern: with more, matching may take exponential time.
MOST_REPEATED = 2


@dataclass(frozen=True)
class BuildDefinitions:
    """The definitions behind a header: packaged ones if the hashes match, otherwise those in its ``folder``. The user's own folders
    ``scenarios``, ``templates`` and ``rules`` replace both.

    Nothing in the folder is run. Of a release, which may be untrusted, no template is rendered, and no rules are used that could take
    exponential time. If definitions in the folder cannot be read, ``notes`` say that packaged ones are used; if ``strict``, this is an
    InputError with all problems of a kind.
    """

    header: Mapping[str, Any]
    folder: Path | None
    scenarios: Path | None = None
    templates: Path | None = None
    rules: Path | None = None
    strict: bool = False
    notes: list[str] = field(default_factory=list)

    @cached_property
    def _own(self) -> Path | None:
        """The definitions folder, if there is one and it is not too large."""
        own = self.folder / DESIGN if self.folder is not None and "seeds" in self.header else None
        if own is None or not own.is_dir():
            return None
        return own if sum(path.stat().st_size for path, kind in entries(own) if kind == "file") <= MOST_TOGETHER else None

    def _read_own(self, name: str, read: Callable[[Path], T], packaged: T) -> T:
        """Reads definitions of the folder; returns the packaged ones if there are none or they cannot be read."""
        if self._own is None or not (self._own / name).is_dir():
            return packaged
        try:
            return read(self._own)
        except InputError as error:
            if self.strict:
                raise
            self.notes.append(f"the {name} of its build cannot be read, so the packaged {name} are used: {error.problems[0]}")
            return packaged

    @cached_property
    def catalogue(self) -> Catalogue:
        """The scenarios. Those of the folder have seed dialogues only if their hash is that of the packaged ones."""
        code = language_of(self.header["configuration"])
        if self.scenarios:
            return load_catalogue(self.scenarios, code)
        packaged = load_catalogue()
        if self._is_packaged(packaged):
            return packaged
        return self._read_own(SCENARIOS, lambda own: self._seeded(load_catalogue(own, code, SCENARIOS), packaged), packaged)

    def _is_packaged(self, packaged: Catalogue) -> bool:
        header, numbers = self.header, {scenario.number for scenario in packaged.scenarios}
        if header.get("seeds") != packaged.seed_hash or not {int(number) for number in header.get("scenarios", {})} <= numbers:
            return False
        files = {name: value for name, value in header.get("scenario_files", {}).items() if name != CROSSED}
        same = all(packaged.files.get(name) == value for name, value in files.items())
        return same and header.get("definitions") in (None, definitions_of(header, packaged))

    def _seeded(self, own: Catalogue, packaged: Catalogue) -> Catalogue:
        """Returns scenarios of the folder with the packaged seed dialogues of their numbers, if the hash in the header is that of these."""
        raw = {scenario.number: packaged.seed_contents.get(scenario.number) for scenario in own.scenarios}
        if digest([[number, raw[number]] for number in sorted(raw)]) != self.header["seeds"]:
            return own
        crossed = {number: items for number, items in packaged.crossed.items() if number in raw}
        return replace(
            own,
            scenarios=tuple(replace(scenario, seed=packaged[scenario.number].seed) for scenario in own.scenarios),
            seed_hash=self.header["seeds"],
            crossed=crossed,
            files={**own.files, **({CROSSED: digest(crossed_content(crossed))} if crossed else {})},
        )

    @cached_property
    def prompts(self) -> Prompts:
        """The templates; those in a release are not used."""
        packaged, hashes = load_prompts(self.templates), self.header.get("templates", {})
        released = self.folder is not None and (self.folder / MANIFEST).is_file()
        if self.templates or released or all(packaged.hashes.get(name) == value for name, value in hashes.items()):
            return packaged
        return self._read_own(TEMPLATES, lambda own: load_prompts(own / TEMPLATES), packaged)

    @cached_property
    def language(self) -> Language | None:
        """The language with its rules; None if they are not packaged, and those in the folder are missing or not bounded."""
        code = language_of(self.header["configuration"])
        packaged = load_language(code, self.rules)
        if self.rules or packaged.hashes == self.header.get("rules"):
            return packaged
        own = self._read_own(RULE_FILES, lambda own: load_language(code, own / RULE_FILES), None)
        return own if own is not None and is_bounded(own) else None


def is_bounded(language: Language) -> bool:
    """Whether matching takes bounded time: no regular expression, and at most two repeated tokens in a pattern."""
    patterns = [pattern for rules in language.rules.values() for rule in rules.content for pattern in rule["patterns"]]
    return not any(
        "REGEX" in _keys(pattern) or sum(token.get("OP", "1") not in ("1", "?", "!") for token in pattern) > MOST_REPEATED
        for pattern in patterns
    )


def _keys(value: Any) -> set[str]:
    """Returns the keys in a value at any depth, in capitals."""
    if isinstance(value, dict):
        return {str(name).upper() for name in value}.union(*map(_keys, value.values()))
    return set().union(*map(_keys, value)) if isinstance(value, list) else set()
