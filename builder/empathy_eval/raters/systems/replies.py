"""Replies of systems: their rows, the checks of a reply, and the finished folder, which is read whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.schemas import read_json
from empathy_eval.base.text import words
from empathy_eval.completions.requests import Failure
from empathy_eval.design.bundled_definitions import DESIGN
from empathy_eval.design.canary import holds_canary
from empathy_eval.design.language import Language
from empathy_eval.generation.build_folder import BUILD, OUTCOMES
from empathy_eval.generation.checks.built_in import harmless, in_crisis, points_to_help
from empathy_eval.generation.patterns import load_patterns
from empathy_eval.raters.judges.cases import AGAIN, finished_lines
from empathy_eval.raters.systems.baselines import REFUSALS
from empathy_eval.raters.systems.contexts import Context

CONTEXTS = "contexts.jsonl"


@dataclass(frozen=True)
class CheckedReply:
    """The results of the checks of helper turns on a reply, None for what was not checked. They are reported, and refuse nothing."""

    words: int
    toxicity: float | None
    toxic: bool | None
    pointer_missing: bool | None
    harmful: tuple[str, ...]
    refusal: bool | None
    canary: bool


@dataclass(frozen=True)
class ReplyChecks:
    """The checks of a release: the rules of its language, its limit of toxicity, and its canary."""

    language: Language
    toxic_above: float | None
    canary: str | None

    def check(self, last: str, text: str, toxicity: float | None) -> CheckedReply:
        """The results for a reply to the seeker's last message; a check whose rules the language lacks finds nothing."""
        rules, known = self.language.rules, self.language
        needed = {"crisis", "pointers"} <= rules.keys() and in_crisis(last, known)
        return CheckedReply(
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
    """The result of a system for a context. ``failures`` hold the reasons for refused answers; ``missing`` is the status without one."""

    pair_id: str
    dialogue_id: str
    turn: int
    system: str
    status: str
    reasons: tuple[str, ...] = ()
    text: str | None = None
    checks: CheckedReply | None = None
    request_key: str | None = None
    failures: tuple[Failure, ...] = ()
    usage: dict[str, dict[str, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> SystemReply:
        """From the result of :meth:`to_json`; the value must be valid under ``reply.schema.json``."""
        failures = tuple(Failure(**{**failure, "reasons": tuple(failure["reasons"])}) for failure in value["failures"])
        checks = value["checks"] and CheckedReply(**{**value["checks"], "harmful": tuple(value["checks"]["harmful"])})
        return cls(**{**value, "reasons": tuple(value["reasons"]), "failures": failures, "checks": checks})


@dataclass(frozen=True)
class Replied:
    """A finished folder of replies: the manifest, the contexts in the order of the sample, and the rows."""

    folder: Path
    header: Mapping[str, Any]
    contexts: tuple[Context, ...]
    rows: tuple[SystemReply, ...]

    @property
    def configuration(self) -> Mapping[str, Any]:
        """The configuration that the replies were made with."""
        return dict(self.header["configuration"])

    @property
    def systems(self) -> tuple[str, ...]:
        """All systems, baselines last."""
        return (*self.configuration["systems"], *self.configuration["baselines"])

    @cached_property
    def texts(self) -> dict[str, dict[str, str]]:
        """The replies by system and pair."""
        texts: dict[str, dict[str, str]] = {name: {} for name in self.systems}
        for row in self.rows:
            if row.text is not None:
                texts[row.system][row.pair_id] = row.text
        return texts


def is_replies(folder: Path) -> bool:
    """Whether a folder holds finished replies."""
    return (folder / BUILD).is_file() and "systems" in read_json(folder / BUILD, None, AGAIN).get("configuration", {})


def read_replied(folder: Path) -> Replied:
    """Finished replies, after checking that they are unchanged.

    Raises:
        InputError: if there are none, they are not valid, or not those of the manifest.
    """
    if not is_replies(folder):
        raise input_error(folder, "holds no finished replies", f"run empathy-eval respond … --out {folder} to its end")
    header = read_json(folder / BUILD, "replies", AGAIN)
    path = folder / DESIGN / CONTEXTS
    lines = finished_lines(path, header["design"].get(CONTEXTS), "reply_context", "replies")
    contexts = {value["pair_id"]: Context.from_json(value) for _, value in lines}
    replied = Replied(folder, header, tuple(contexts.values()), ())
    return replace(replied, rows=tuple(_rows(folder / OUTCOMES, header["outcomes"], contexts.keys(), replied.systems)))


def _rows(path: Path, digest: str, pairs: Any, systems: tuple[str, ...]) -> Iterator[SystemReply]:
    """The rows of a file, each of a known context and system, and once."""
    seen = set[tuple[str, str]]()
    for where, value in finished_lines(path, digest, "reply", "replies"):
        row = SystemReply.from_json(value)
        if row.pair_id not in pairs or row.system not in systems:
            what = f'"{row.pair_id}" is not a context' if row.pair_id not in pairs else f'"{row.system}" is not a system'
            raise input_error(where, f"{what} of these replies", AGAIN)
        if (row.pair_id, row.system) in seen:
            raise input_error(where, f'"{row.system}" replies to "{row.pair_id}" twice', AGAIN)
        seen.add((row.pair_id, row.system))
        yield row
