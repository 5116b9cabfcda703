"""Outcomes of a build: dialogues, pairs with their variants, the fate of each item, and the folder that holds them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.files import whole_folder, write_whole
from empathy_eval.base.hashing import digest_bytes, digest_file
from empathy_eval.base.parsing import read_text
from empathy_eval.base.schemas import check, read_json
from empathy_eval.base.text import ENGLISH, words
from empathy_eval.completions.asker import Trail
from empathy_eval.completions.requests import About, Failure, Flaw
from empathy_eval.design.bundled_definitions import DESIGN, MOST_TOGETHER, TOO_MUCH
from empathy_eval.design.canary import CANARY, canary_warnings, numbered_lines, release_identity
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS, REFERENCE
from empathy_eval.design.endpoints import JobConfig
from empathy_eval.design.errata import withdrawn_dialogues, withdrawn_pairs
from empathy_eval.design.kinds import KINDS, Kind
from empathy_eval.design.planning import PlannedTurn
from empathy_eval.design.scenarios import CrossedItem
from empathy_eval.design.taxonomy import Role

Status = Literal["accepted", "rejected", "missing"]


@dataclass(frozen=True)
class Turn:
    """An utterance; a seeker's has no strategy."""

    role: Role
    text: str
    strategy: str | None = None


@dataclass(frozen=True)
class Dialogue:
    """An accepted dialogue, with the request that wrote it."""

    dialogue_id: str
    scenario_id: int
    description: str
    turns: tuple[Turn, ...]
    flags: tuple[str, ...]
    source: str
    model: str
    request_key: str
    helper_voice: str | None = None
    far_voice: str | None = None


@dataclass(frozen=True)
class Scene:
    """A helper turn in its context: the turns before, the turn itself, its plan, flags, language and voices."""

    dialogue_id: str
    scenario_id: int
    context: tuple[Turn, ...]
    reference: Turn
    planned: PlannedTurn
    flags: tuple[str, ...]
    language: str = ENGLISH
    voices: tuple[str | None, str | None] = (None, None)

    @property
    def place(self) -> int:
        """The index of the turn in its dialogue."""
        return len(self.context)

    def strategy(self, kind: Kind) -> str:
        """The strategy of a variant: near ones keep the reference's, far ones have the planned other one."""
        return (self.reference.strategy if kind.near else self.planned.empathetic_strategy) or ""

    def way(self, kind: Kind) -> str | None:
        """The manner or device of a variant; None if it has none."""
        return self.planned.ways.get(kind.variant or "")

    def voice(self, kind: Kind) -> str | None:
        """The voice of a variant: the dialogue's for near ones, another for far ones; None without voices."""
        return self.voices[not kind.near]

    def length(self, kind: Kind) -> int | None:
        """The planned words of a variant, for a near one relative to the reference; None if not planned."""
        planned = self.planned.lengths.get(kind.variant or "")
        return planned + len(words(self.reference.text, self.language)) if kind.near and planned is not None else planned

    def about(self, kind: Kind) -> About:
        """What a request of that kind is about."""
        return About(self.dialogue_id, kind.name, self.place)


@dataclass(frozen=True)
class Variant:
    """A rewritten helper turn: its method, its closeness to the reference, its toxicity (None: not scored), its request."""

    text: str
    strategy: str
    method: str
    model: str
    edit_ratio: float
    overlap: float
    toxicity: float | None
    request_key: str | None
    way: str | None = None


@dataclass(frozen=True)
class Pair:
    """A helper turn with its variants; controls are None if none were planned or one failed."""

    turn: int
    flags: tuple[str, ...]
    reference_toxicity: float | None
    apathetic: Variant
    empathetic: Variant
    near_empathetic: Variant | None = None
    far_apathetic: Variant | None = None


def contrasted(dialogue: Dialogue, pairs: Sequence[Pair]) -> dict[str, tuple[tuple[Role, str], ...]]:
    """The (role, text) of all turns of a dialogue by variant, with all helper turns of that variant and the seeker's turns as they are.

    A variant is there if every helper turn has it, the reference only beside another one, and the controls together.
    """
    turns = list(enumerate(dialogue.turns))
    texts = {index: turn.text for index, turn in turns if turn.role == "helper"}
    if not texts or texts.keys() != {pair.turn for pair in pairs}:
        return {}
    whole = [*PAIR_VARIANTS, *(CONTROLS if all(getattr(pair, name) for pair in pairs for name in CONTROLS) else ())]
    by_variant = {REFERENCE: texts} | {name: {pair.turn: getattr(pair, name).text for pair in pairs} for name in whole}
    return {name: tuple((turn.role, some.get(index, turn.text)) for index, turn in turns) for name, some in by_variant.items()}


@dataclass(frozen=True)
class Candidate:
    """A variant's text that was checked and is not released: refused for its reasons, or of a pair that is left out.

    ``attempt`` numbers all such texts of a variant from 1, including the released one, which has the missing number. It is None if no more
    was requested after one had passed: then the order tells.
    """

    kind: str
    turn: int
    text: str
    reasons: tuple[str, ...]
    attempt: int | None = None


@dataclass(frozen=True)
class CrossedOutcome(CrossedItem):
    """A crossed item of a dialogue: ``reply_1`` is for the turns before ``turn``, ``reply_2`` for them with ``twin`` as the last one.

    A curated one (``source`` is ``seed``) has no writer, judge or requests; otherwise they are the writer's request, then the checks'.
    """

    source: str
    writer: str | None = None
    judge: str | None = None
    request_keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """The fate of one item. ``usage`` sums the ledger rows that its replay used."""

    dialogue_id: str
    scenario_id: int
    status: Status
    reasons: tuple[str, ...] = ()
    dialogue: Dialogue | None = None
    pairs: tuple[Pair, ...] = ()
    failures: tuple[Failure, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    usage: dict[str, dict[str, int]] = field(default_factory=dict)
    crossed: tuple[CrossedOutcome, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The outcome as JSON values; crossed items only if there are any."""
        value: dict[str, Any] = _plain(self)
        if not self.crossed:
            del value["crossed"]
        for candidate in value["candidates"]:
            if candidate["attempt"] is None:
                del candidate["attempt"]
        return value

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Outcome:
        """An outcome from :meth:`to_json`; the value must be valid under ``outcome.schema.json``."""
        dialogue = value["dialogue"]
        if dialogue:
            dialogue = Dialogue(
                **{**dialogue, "turns": tuple(Turn(**turn) for turn in dialogue["turns"]), "flags": tuple(dialogue["flags"])}
            )
        return cls(
            **{
                **value,
                "reasons": tuple(value["reasons"]),
                "dialogue": dialogue,
                "pairs": tuple(_pair(pair) for pair in value["pairs"]),
                "failures": tuple(Failure(**{**failure, "reasons": tuple(failure["reasons"])}) for failure in value["failures"]),
                "candidates": tuple(
                    Candidate(**{**candidate, "reasons": tuple(candidate["reasons"])}) for candidate in value["candidates"]
                ),
                "crossed": tuple(
                    CrossedOutcome(**{**item, "request_keys": tuple(item["request_keys"])}) for item in value.get("crossed", ())
                ),
            }
        )


def _plain(value: Any) -> Any:
    """Dataclasses as dicts and tuples as lists. Unlike ``dataclasses.asdict`` it copies no leaf, which is most of its cost."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _pair(value: dict[str, Any]) -> Pair:
    variants = {name: Variant(**value[name]) for name in VARIANTS if value[name] is not None}
    return Pair(value["turn"], tuple(value["flags"]), value["reference_toxicity"], **variants)


VARIANTS = tuple(attribute.name for attribute in fields(Pair) if "Variant" in str(attribute.type))


@dataclass
class ItemTrail(Trail):
    """The trail of an item, with the texts of variants that were judged."""

    candidates: list[Candidate] = field(default_factory=list)

    def record_candidate(self, kind: str, turn: int, text: str, flaws: Sequence[Flaw]) -> None:
        """Records a variant's text with the reasons against it, if any."""
        self.candidates.append(Candidate(kind, turn, text, tuple(sorted({flaw.reason for flaw in flaws}))))

    def candidates_beside(self, pairs: Sequence[Pair]) -> tuple[Candidate, ...]:
        """The judged texts that are not in these pairs, by turn and kind, in the order they were judged."""
        taken = {(pair.turn, kind) for pair in pairs for kind, row in KINDS.items() if row.variant and getattr(pair, row.variant)}
        left = [candidate for candidate in self.candidates if candidate.reasons or (candidate.turn, candidate.kind) not in taken]
        return tuple(sorted(left, key=lambda candidate: (candidate.turn, candidate.kind)))


OUTCOMES, BUILD, CONFIGURATION, LEDGER = "outcomes.jsonl", "build.json", "configuration.json", "ledger.sqlite"
FIX_REBUILD = "run the same build again: it replays from the ledger"


def claim_folder(out: Path, config: JobConfig) -> None:
    """Checks that a folder can be used by a job of this configuration.

    Raises:
        InputError: if it is a file, cannot be a folder, or holds another configuration's build or other files.
    """
    try:
        file = out.exists() and not out.is_dir()
    except OSError as error:  # a name that is too long
        raise input_error(out, f"cannot be a folder: {error.strerror}", "name another folder with --out") from error
    if file:
        raise input_error(out, "is a file", "name a folder with --out")
    written = out / CONFIGURATION
    fix = "name another folder with --out; a ledger can be shared with --ledger"
    if written.is_file() and (held := config.mismatch(read_json(written, None, fix))):
        raise input_error(out, held, fix)
    # A ledger alone is no obstacle: it was put there, or the disk was full before anything else could be written.
    if out.is_dir() and not written.is_file() and not all(path.name.startswith(LEDGER) for path in out.iterdir()):
        raise input_error(out, "is not empty and holds no build", "name another folder with --out")


def write_definitions(out: Path, texts: Mapping[str, str]) -> dict[str, Any]:
    """Writes the definition files of a build atomically; returns their hashes for the header. Does nothing without texts."""
    if not texts:
        return {}
    # Its own, whatever was left of it: a folder that was changed by hand is written anew too.
    shutil.rmtree(out / DESIGN, ignore_errors=True)
    with whole_folder(out / DESIGN, made_by=next(iter(texts))) as folder:
        for path, text in texts.items():
            write_whole(folder / path, text)
    return {DESIGN: {path: digest_bytes(text.encode()) for path, text in texts.items()}}


def read_definitions(build_dir: Path, header: Mapping[str, Any]) -> dict[str, str]:
    """The definition files of a finished build, as texts by path.

    Raises:
        InputError: if they were changed after the build, or are missing.
    """
    if DESIGN not in header:
        raise input_error(build_dir, f"does not hold the definitions that it was built with (no {DESIGN} in it)", FIX_REBUILD)
    texts, problems = dict[str, str](), list[Problem]()
    for path, value in header[DESIGN].items():
        where = build_dir / DESIGN / path
        try:
            texts[path] = read_text(where)
        except (OSError, ValueError) as error:
            problems.append(Problem(str(where), f"cannot be read: {error}", FIX_REBUILD))
            continue
        if digest_bytes(texts[path].encode()) != value:
            problems.append(Problem(str(where), "was changed after the build", FIX_REBUILD))
    if sum(map(len, texts.values())) > MOST_TOGETHER:
        problems.append(Problem(str(build_dir / DESIGN), TOO_MUCH, "make them shorter"))
    refuse(problems)
    return texts


def read_build(build_dir: Path) -> dict[str, Any]:
    """The header of a finished build; its outcomes are checked by hash.

    Raises:
        InputError: if there is none, or the outcomes were changed.
    """
    path = build_dir / BUILD
    if not path.is_file():
        raise input_error(build_dir, "holds no finished build", f"run empathy-eval build CONFIG --out {build_dir} to its end")
    header = read_json(path, "build", FIX_REBUILD)
    if digest_file(build_dir / OUTCOMES) != header["outcomes"]:
        raise input_error(build_dir / OUTCOMES, "was changed after the build", FIX_REBUILD)
    return header


def accepted_outcomes(build_dir: Path, *, checked: bool = False) -> Iterator[Outcome]:
    """The accepted outcomes of a build in plan order, without withdrawals; ``checked`` skips validation."""
    configuration = json.loads((build_dir / BUILD).read_text(encoding="utf-8"))["configuration"]
    withdrawals = configuration.get("withdrawn", [])
    withdrawn, pairs = withdrawn_dialogues(withdrawals), withdrawn_pairs(withdrawals, configuration.get("corrected", ()))
    with (build_dir / OUTCOMES).open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            value = json.loads(line)
            if value["status"] == "accepted" and value["dialogue_id"] not in withdrawn:
                if not checked:
                    check(value, "outcome", f"{build_dir / OUTCOMES}: line {number}")
                outcome = Outcome.from_json(value)
                yield _without(outcome, pairs) if pairs else outcome


def _without(outcome: Outcome, pairs: Collection[str]) -> Outcome:
    """An outcome without some of its pairs and their candidates."""
    # Here, because it loads pyarrow, which a build has no use for.
    from empathy_eval.design.dataset import pair_id

    def stay(item: Pair | Candidate) -> bool:
        return pair_id(outcome.dialogue_id, item.turn) not in pairs

    return replace(outcome, pairs=tuple(filter(stay, outcome.pairs)), candidates=tuple(filter(stay, outcome.candidates)))


def folder_canary_warnings(folder: Path) -> list[str]:
    """Contamination check: scans the answers in a finished folder of a build, annotations or replies for the canary."""
    if not (folder / BUILD).is_file() or not (folder / OUTCOMES).is_file():
        return []
    configuration = read_json(folder / BUILD, None, "run the same command again")["configuration"]
    name = configuration["release"]["name"] if "release" in configuration else configuration["name"]
    return canary_warnings(numbered_lines(folder / OUTCOMES), release_identity({"name": name})[CANARY])
