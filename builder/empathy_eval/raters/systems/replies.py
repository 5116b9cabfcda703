"""Replies of systems: a row each, what checks say of it, and the finished folder, which is read whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import digest_file
from empathy_eval.base.parsing import ParseError, json_value
from empathy_eval.base.schemas import check, read_json
from empathy_eval.base.text import words
from empathy_eval.completions.requests import Failure
from empathy_eval.design.bundled_definitions import DESIGN
from empathy_eval.design.canary import holds_canary
from empathy_eval.design.language import Language
from empathy_eval.generation.checks.built_in import harmless, in_crisis, points_to_help
from empathy_eval.generation.outcomes import BUILD, OUTCOMES
from empathy_eval.generation.patterns import load_patterns
from empathy_eval.raters.systems.baselines import REFUSALS
from empathy_eval.raters.systems.contexts import Context, contexts_in

CONTEXTS = "contexts.jsonl"
AGAIN = "run the same empathy-eval respond again: it replays from the ledger"


@dataclass(frozen=True)
class Checked:
    """What the checks of helper turns say of a reply: it is reported, and nothing is refused for it. None is what was not looked at."""

    words: int
    toxicity: float | None
    toxic: bool | None
    pointer_missing: bool | None
    harmful: tuple[str, ...]
    refusal: bool | None
    canary: bool


@dataclass(frozen=True)
class Checks:
    """The checks of a release: the rules of its language, its limit of toxicity, and its canary."""

    language: Language
    toxic_above: float | None
    canary: str | None

    def of(self, last: str, text: str, toxicity: float | None) -> Checked:
        """What they say of a reply to the seeker's last message; English rules find nothing where a language has none."""
        rules, known = self.language.rules, self.language
        needed = {"crisis", "pointers"} <= rules.keys() and in_crisis(last, known)
        return Checked(
            len(words(text, known.code)),
            toxicity,
            None if toxicity is None or self.toxic_above is None else toxicity > self.toxic_above,
            not points_to_help(text, known) if needed else None,
            tuple(dict.fromkeys(flaw.reason for flaw in harmless(text, known))) if "safety" in rules else (),
            bool(load_patterns(REFUSALS, known).find(text)) if REFUSALS in rules else None,
            holds_canary(text, self.canary),
        )


@dataclass(frozen=True)
class SystemReply:
    """What became of a context and a system. ``failures`` hold the reasons for refused answers; a missing one has no answer yet."""

    pair_id: str
    dialogue_id: str
    turn: int
    system: str
    status: str
    reasons: tuple[str, ...] = ()
    text: str | None = None
    checks: Checked | None = None
    request_key: str | None = None
    failures: tuple[Failure, ...] = ()
    usage: dict[str, dict[str, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> SystemReply:
        """From what :meth:`to_json` gave; the value must be valid under ``reply.schema.json``."""
        failures = tuple(Failure(**{**one, "reasons": tuple(one["reasons"])}) for one in value["failures"])
        found = value["checks"]
        checks = found and Checked(**{**found, "harmful": tuple(found["harmful"])})
        return cls(**{**value, "reasons": tuple(value["reasons"]), "failures": failures, "checks": checks})


@dataclass(frozen=True)
class Replied:
    """Finished replies: the manifest, the contexts in the order of the sample, and the rows."""

    folder: Path
    header: Mapping[str, Any]
    contexts: tuple[Context, ...]
    rows: tuple[SystemReply, ...]

    @property
    def configuration(self) -> Mapping[str, Any]:
        """What they were made by."""
        found: Mapping[str, Any] = self.header["configuration"]
        return found

    @property
    def systems(self) -> tuple[str, ...]:
        """All systems, baselines last."""
        return (*self.configuration["systems"], *self.configuration["baselines"])

    @cached_property
    def texts(self) -> dict[str, dict[str, str]]:
        """The replies by system and pair."""
        found: dict[str, dict[str, str]] = {name: {} for name in self.systems}
        for row in self.rows:
            if row.text is not None:
                found[row.system][row.pair_id] = row.text
        return found


def is_replies(folder: Path) -> bool:
    """Whether a folder holds finished replies."""
    if not (folder / BUILD).is_file():
        return False
    header = read_json(folder / BUILD, None, AGAIN)
    return "systems" in header.get("configuration", {})


def read_replied(folder: Path) -> Replied:
    """Replies that were finished, after they were found unchanged.

    Raises:
        InputError: if there are none, they are not valid, or not the ones the manifest was written for.
    """
    path = folder / BUILD
    if not is_replies(folder):
        raise input_error(folder, "holds no finished replies", f"run empathy-eval respond … --out {folder} to its end")
    header = read_json(path, "replies", AGAIN)
    where = folder / DESIGN / CONTEXTS
    for file, digest in ((where, header["design"].get(CONTEXTS)), (folder / OUTCOMES, header["outcomes"])):
        if not file.is_file() or digest_file(file) != digest:
            raise input_error(file, "is missing, or was changed after the replies were made", AGAIN)
    contexts = contexts_in(where.read_text(encoding="utf-8"), where)
    rows = tuple(_rows(folder / OUTCOMES))
    known, systems = {one.pair_id for one in contexts}, {*header["configuration"]["systems"], *header["configuration"]["baselines"]}
    for row in rows:
        if row.pair_id not in known or row.system not in systems:
            what = f'"{row.pair_id}" is not a context' if row.pair_id not in known else f'"{row.system}" is not a system'
            raise input_error(folder / OUTCOMES, f"{what} of these replies", AGAIN)
    return Replied(folder, header, contexts, rows)


def _rows(path: Path) -> Iterator[SystemReply]:
    seen = set[tuple[str, str]]()
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            where = f"{path}: line {number}"
            try:
                value = json_value(line.decode())
            except (ParseError, UnicodeDecodeError) as error:
                raise input_error(where, f"cannot be read: {error}", AGAIN) from error
            check(value, "reply", where)
            row = SystemReply.from_json(value)
            if (row.pair_id, row.system) in seen:
                raise input_error(where, f'"{row.system}" replies to "{row.pair_id}" twice', AGAIN)
            seen.add((row.pair_id, row.system))
            yield row
