"""The 15 support strategies and their three phases, and the ways of variants, read from ``scenarios/taxonomy.yaml``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem, nearest
from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import read_yaml, schema

# The variants that have a manner or a device.
VARIANT_WAYS = ("apathetic", "far_apathetic", "empathetic")


@dataclass(frozen=True)
class Strategy:
    """One way to support: its abbreviation is used in files and requests, its name in releases.

    One that ``asks`` waits for an answer: no other helper turn follows it in a drawn plan.
    """

    abbreviation: str
    name: str
    phase: str
    definition: str
    asks: bool = False


@dataclass(frozen=True)
class Way:
    """How a variant is made what it is: the manner of an apathetic one, the device of an empathetic one.

    ``near`` says whether an edit of few words can carry it, ``weight`` how often it is drawn beside others, ``not_with`` the strategies
    that it contradicts. One that is ``friendly`` often uses warm words.
    """

    name: str
    definition: str
    near: bool = False
    weight: int = 1
    not_with: tuple[str, ...] = ()
    friendly: bool = False


@dataclass(frozen=True)
class Taxonomy:
    """The phases in their order, the strategies of each, and the manners and devices of variants, if it has any."""

    phases: tuple[str, ...]
    strategies: tuple[Strategy, ...]
    manners: tuple[Way, ...] = ()
    devices: tuple[Way, ...] = ()

    def ways(self, variant: str) -> tuple[Way, ...]:
        """The manners or devices that a variant can have."""
        near = tuple(one for one in self.manners if one.near)
        return dict(zip(VARIANT_WAYS, (near, self.manners, self.devices), strict=True)).get(variant, ())

    @cached_property
    def _by_abbreviation(self) -> dict[str, Strategy]:
        return {strategy.abbreviation: strategy for strategy in self.strategies}

    def __contains__(self, abbreviation: str) -> bool:
        return abbreviation in self._by_abbreviation

    def __getitem__(self, abbreviation: str) -> Strategy:
        return self._by_abbreviation[abbreviation]

    def phase_of(self, abbreviation: str) -> str:
        """The phase that a strategy belongs to."""
        return self[abbreviation].phase

    def in_phase(self, phase: str) -> tuple[str, ...]:
        """The abbreviations of a phase's strategies, in the order of the file."""
        return tuple(strategy.abbreviation for strategy in self.strategies if strategy.phase == phase)


def load_taxonomy(folder: Path | None = None) -> Taxonomy:
    """Reads ``taxonomy.yaml`` of a scenario folder (by default the project's own).

    One of one's own says in its own words what phases and strategies are; a release calls them what the project does.

    Raises:
        InputError: if the file is missing or not valid, if names repeat, or if a strategy is none that a release has in that phase.
    """
    if folder is None or folder == data_folder("scenarios"):
        return _own()
    path = folder / "taxonomy.yaml"
    taxonomy = _read(path)
    problems = [*_repeated(taxonomy, path), *_unknown(taxonomy, _own(), path)]
    if problems:
        raise InputError(problems)
    return taxonomy


@cache
def _own() -> Taxonomy:
    # Rows by the thousand ask for it.
    path = data_folder("scenarios") / "taxonomy.yaml"
    taxonomy = _read(path)
    if problems := [*_repeated(taxonomy, path), *_in_no_schema(taxonomy, path)]:
        raise InputError(problems)
    return taxonomy


def _read(path: Path) -> Taxonomy:
    content = read_yaml(path, "taxonomy")
    strategies = tuple(Strategy(phase=phase["name"], **one) for phase in content["phases"] for one in phase["strategies"])
    manners, devices = (tuple(map(_way, content.get(name, ()))) for name in ("manners", "devices"))
    return Taxonomy(tuple(phase["name"] for phase in content["phases"]), strategies, manners, devices)


def _way(content: dict[str, Any]) -> Way:
    return Way(**{**content, "not_with": tuple(content.get("not_with", ()))})


def _repeated(taxonomy: Taxonomy, path: Path) -> Iterator[Problem]:
    """What goes by the name of another one."""
    named = {
        "phases": taxonomy.phases,
        "strategies": [one.abbreviation for one in taxonomy.strategies],
        **{kind: [one.name for one in getattr(taxonomy, kind)] for kind in ("manners", "devices")},
    }
    for kind, names in named.items():
        for name in [name for name, count in Counter(names).items() if count > 1]:
            yield Problem(f"{path}: {kind}", f'has "{name}" twice', "give each a name of its own")


def _unknown(taxonomy: Taxonomy, released: Taxonomy, path: Path) -> Iterator[Problem]:
    """Strategies that no release has, or has in another phase: only their wording is free."""
    for phase, wanted in zip(taxonomy.phases, released.phases, strict=True):
        known = released.in_phase(wanted)
        for strategy in taxonomy.in_phase(phase):
            if strategy not in known:
                what = f'strategy "{strategy}" is not a strategy of this phase in a release ("{wanted}" there)'
                fix = f"use some of {', '.join(known)}, which you may name and define in your own words{nearest(strategy, known)}"
                yield Problem(f"{path}: phases: {phase}", what, fix)


def _in_no_schema(taxonomy: Taxonomy, path: Path) -> Iterator[Problem]:
    """Phases and strategies that the schemas of releases and reviews do not know, each of which lists them: a test holds that all do."""
    columns = schema("pairs_row")["properties"]
    named = {"phase": taxonomy.phases, "strategy": [one.name for one in taxonomy.strategies]}
    for kind, names in named.items():
        known = columns[kind]["enum"]
        for name in [one for one in names if one not in known]:
            what = f'{kind} "{name}" is not known to the schemas of releases and reviews, so no release could hold it'
            fix = f"use some of {', '.join(known)}{nearest(name, known)}; or add it to every list of them in schemas/"
            yield Problem(f"{path}: phases", what, fix)
