"""What a recipe is made of again: folders that are given, else what the build or the release carries, else what is packaged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from empathy_eval.base.errors import InputError
from empathy_eval.base.files import entries
from empathy_eval.base.hashing import digest
from empathy_eval.design.carried import DESIGN, MOST_TOGETHER, RULE_FILES, SCENARIOS, TEMPLATES, definitions_of
from empathy_eval.design.configuration import language_of
from empathy_eval.design.crossed import CROSSED, content
from empathy_eval.design.dataset import MANIFEST
from empathy_eval.design.language import Language, load_language
from empathy_eval.design.prompts import Prompts, load_prompts
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.releases.verify_design import bounded

T = TypeVar("T")


@dataclass(frozen=True)
class Folders:
    """Folders of one's own in the place of what is carried or packaged, each if it is given."""

    scenarios: Path | None = None
    templates: Path | None = None
    rules: Path | None = None


class Under:
    """What the folder of a header was made under; ``notes`` say what of it cannot be used.

    Of a release that may be a stranger's no template is rendered, and no rules are used that a text could be looked at by without end.
    """

    def __init__(self, header: Mapping[str, Any], given: Folders, folder: Path | None) -> None:
        self._header, self._given, self.notes = header, given, list[str]()
        self._code = language_of(header["configuration"])
        self._own = folder / DESIGN if folder is not None and "seeds" in header and self._bounded(folder / DESIGN) else None
        self._stranger = folder is not None and (folder / MANIFEST).is_file()

    def _bounded(self, own: Path) -> bool:
        """Whether a folder is there and holds no more than definitions may."""
        return own.is_dir() and sum(path.stat().st_size for path, kind in entries(own) if kind == "file") <= MOST_TOGETHER

    def _carried(self, name: str, read: Callable[[Path], T | None], packaged: T) -> T:
        """What the folder carries in a folder of that name, or what is packaged where that cannot be read."""
        if self._own is None or not (self._own / name).is_dir():
            return packaged
        try:
            return read(self._own) or packaged
        except InputError as error:
            self.notes.append(f"the {name} of its build cannot be read, so the packaged {name} are used: {error.problems[0]}")
            return packaged

    def catalogue(self) -> Catalogue:
        """The scenarios. Carried ones have no seed dialogues but where those that are packaged are theirs."""
        if self._given.scenarios:
            return load_catalogue(self._given.scenarios, self._code)
        packaged = load_catalogue()
        if self._is_packaged(packaged):
            return packaged
        return self._carried(SCENARIOS, lambda own: self._seeded(load_catalogue(own, self._code, SCENARIOS), packaged), packaged)

    def _is_packaged(self, packaged: Catalogue) -> bool:
        header, numbers = self._header, {one.number for one in packaged.scenarios}
        if header.get("seeds") != packaged.seed_hash or not {int(one) for one in header.get("scenarios", {})} <= numbers:
            return False
        others = [name for name, value in header.get("scenario_files", {}).items() if name != CROSSED and packaged.files.get(name) != value]
        return not others and header.get("definitions") in (None, definitions_of(header, packaged))

    def _seeded(self, own: Catalogue, packaged: Catalogue) -> Catalogue:
        """Carried scenarios with the packaged seed dialogues of their numbers, if the hash of the header says that these are theirs."""
        raw = {one.number: packaged.seeds_said.get(one.number) for one in own.scenarios}
        if digest([[number, raw[number]] for number in sorted(raw)]) != self._header["seeds"]:
            return own
        crossed = {number: items for number, items in packaged.crossed.items() if number in raw}
        return replace(
            own,
            scenarios=tuple(replace(one, seed=packaged[one.number].seed) for one in own.scenarios),
            seed_hash=self._header["seeds"],
            crossed=crossed,
            files={**own.files, **({CROSSED: digest(content(crossed))} if crossed else {})},
        )

    def prompts(self) -> Prompts:
        """The templates; those that a release carries are left as they are."""
        packaged = load_prompts(self._given.templates)
        wanted = self._header.get("templates", {})
        if self._given.templates or self._stranger or all(packaged.hashes.get(name) == value for name, value in wanted.items()):
            return packaged
        return self._carried(TEMPLATES, lambda own: load_prompts(own / TEMPLATES), packaged)

    def language(self) -> Language:
        """The language with its rules."""
        packaged = load_language(self._code, self._given.rules)
        if self._given.rules or packaged.hashes == self._header.get("rules"):
            return packaged

        def read(own: Path) -> Language | None:
            found = load_language(self._code, own / RULE_FILES)
            return found if bounded(found) else None

        return self._carried(RULE_FILES, read, packaged)
