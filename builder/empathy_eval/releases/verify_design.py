"""What a release was built under, as it carries it: taxonomy, scenarios, rules and templates, against the hashes of its manifest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem
from empathy_eval.design.configuration import language_of
from empathy_eval.design.language import Language, load_language
from empathy_eval.design.scenarios import Catalogue, load_catalogue


@dataclass(frozen=True)
class Under:
    """What the texts of a release were made and checked under; None where that is neither carried nor packaged."""

    language: Language | None
    catalogue: Catalogue | None


def design_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Definitions that are not those of the manifest; where they are not those of this program, that is told."""
    yield from ()


def built_under(folder: Path, manifest: dict[str, Any]) -> Under:
    """The rules and the scenarios of a release: the packaged ones where all hashes are theirs, else those that it carries.

    Nothing of them is run, and no template is rendered. A catalogue that is carried has no seed dialogues.

    Raises:
        InputError: if what it carries is not valid; all problems of a kind at once.
    """
    language = load_language(language_of(manifest["configuration"]))
    return Under(language if language.hashes == manifest["rules"] else None, load_catalogue())
