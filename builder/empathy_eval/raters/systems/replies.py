"""Replies of systems: their rows and finished folder, and the cases in which judges rate and compare them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.hashing import digest, digest_bytes
from empathy_eval.base.json_text import fields_from_json
from empathy_eval.base.schemas import read_json
from empathy_eval.base.text import words
from empathy_eval.completions.requests import Failure
from empathy_eval.design.bundled_definitions import DESIGN
from empathy_eval.design.canary import CANARY, holds_canary
from empathy_eval.design.language import Language
from empathy_eval.design.rubrics import Rubric
from empathy_eval.generation.checks.built_in import harmless, in_crisis, points_to_help
from empathy_eval.generation.outcomes import BUILD, OUTCOMES
from empathy_eval.generation.patterns import load_patterns
from empathy_eval.raters.judges.annotating import AnnotationPlan
from empathy_eval.raters.judges.annotations import AnnotationFolder, read_annotations
from empathy_eval.raters.judges.cases import AGAIN, REPLIES_TO, Case, Conversation, Material, finished_lines, read_conversation
from empathy_eval.raters.systems.contexts import REFUSALS, Context

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


def check_reply(language: Language, canary: str | None, last: str, text: str) -> CheckedReply:
    """The results for a reply to the seeker's ``last`` message; a check whose rules the language lacks finds nothing."""
    rules = language.rules
    needed = {"crisis", "pointers"} <= rules.keys() and in_crisis(last, language)
    return CheckedReply(
        len(words(text, language.code)), None, None,
        not points_to_help(text, language) if needed else None,
        tuple(dict.fromkeys(flaw.reason for flaw in harmless(text, language))) if "safety" in rules else (),
        bool(load_patterns(REFUSALS, language).find(text)) if REFUSALS in rules else None,
        holds_canary(text, canary),
    )  # fmt: skip


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
    contexts = {value["pair_id"]: fields_from_json(Context, value, {Conversation: read_conversation}) for _, value in lines}
    replied = Replied(folder, header, tuple(contexts.values()), ())
    return replace(replied, rows=tuple(_rows(folder / OUTCOMES, header["outcomes"], contexts.keys(), replied.systems)))


def _rows(path: Path, digest: str, pairs: Any, systems: tuple[str, ...]) -> Iterator[SystemReply]:
    """The rows of a file, each of a known context and system, and once."""
    keys = set[tuple[str, str]]()
    for where, value in finished_lines(path, digest, "reply", "replies"):
        row: SystemReply = fields_from_json(SystemReply, value, {})
        if row.pair_id not in pairs or row.system not in systems:
            what = f'"{row.pair_id}" is not a context' if row.pair_id not in pairs else f'"{row.system}" is not a system'
            raise input_error(where, f"{what} of these replies", AGAIN)
        if (row.pair_id, row.system) in keys:
            raise input_error(where, f'"{row.system}" replies to "{row.pair_id}" twice', AGAIN)
        keys.add((row.pair_id, row.system))
        yield row


# Two systems, the first by name first.
SystemPair = tuple[str, str]


def identify(replied: Replied) -> dict[str, str]:
    """What annotations name of replies. It stays the same where systems or contexts are added."""
    config, release = replied.configuration, replied.configuration["release"]
    source = {"name": release["name"], "version": release["version"], REPLIES_TO: release["seal"]}
    return {**source, "split": config["split"], "seed": str(config["seed"])}


def replies_as_material(replied: Replied, folder: Path, rubric: Rubric, design: AnnotationPlan) -> Material:
    """The replies of some systems (the variants of the design) to the first contexts, and which of them are compared.

    Raises:
        InputError: for a rubric for whole dialogues.
    """
    if rubric.unit == "dialogue":
        raise input_error(folder, f'holds replies, but "{rubric.name}" rates whole dialogues', "use a rubric for replies")
    examples, prefers = {example.pair_id for example in rubric.examples}, rubric.kind == "preference"
    contexts = [context for context in replied.contexts if context.pair_id not in examples][: design.turns]
    texts = {name: replied.texts[name] for name in design.variants}
    pairs, seed = [context.pair_id for context in contexts], replied.configuration["seed"]
    games = tournament(pairs, texts, design.comparisons, seed) if prefers else {}
    cases = [
        Case(
            context.dialogue_id, context.turn, context.pair_id, context.turns,
            {name: some[context.pair_id] for name, some in texts.items() if context.pair_id in some},
            compared=games.get(context.pair_id, ()),
        )
        for context in contexts
    ]  # fmt: skip
    judged = tuple(case for case in cases if (case.compared if prefers else case.texts))
    hashes = {name: digest({case.pair_id: case.texts[name] for case in judged if name in case.texts}) for name in texts}
    canary = {CANARY: replied.header[CANARY]} if CANARY in replied.header else {}
    return Material(identify(replied), judged, {**canary, "texts": hashes})


def tournament(
    pairs: Sequence[str], texts: Mapping[str, Mapping[str, str]], most: int | None, seed: int
) -> dict[str, tuple[SystemPair, ...]]:
    """By context which systems are compared: every two over ``most`` contexts (None: all) that both reply to.

    For each two the contexts have an order of their own, by a SHA-256: more comparisons, contexts or systems only append to it.
    """
    games = defaultdict[str, list[SystemPair]](list)
    for first, second in combinations(sorted(texts), 2):
        both = [pair for pair in pairs if pair in texts[first] and pair in texts[second]]
        for pair in sorted(both, key=lambda pair: digest_bytes(f"{seed}:{first}:{second}:{pair}".encode()))[:most]:
            games[pair].append((first, second))
    return {pair: tuple(sorted(some)) for pair, some in games.items()}


def read_reply_annotations(paths: Iterable[Path], replied: Sequence[Replied]) -> list[AnnotationFolder]:
    """Finished annotations of these replies.

    Raises:
        InputError: if a folder holds none, or those of other replies: of another release or sample, or of texts that have changed since.
    """
    folders, problems = [read_annotations(path) for path in paths], list[Problem]()
    for folder in folders:
        mine = [replies for replies in replied if identify(replies) == folder.header["configuration"]["release"]]
        if not mine:
            problems.append(Problem(str(folder.path), "holds annotations of something else than these replies", "annotate these replies"))
        pairs = {case.pair_id for case in folder.cases}
        for name, known in folder.header.get("texts", {}).items() if mine else ():
            texts = [{pair: text for pair, text in some.texts[name].items() if pair in pairs} for some in mine if name in some.texts]
            if known not in map(digest, texts):
                what = f'other replies of "{name}" than there are now' if texts else f'"{name}", which is not one of the systems'
                fix = "annotate the replies again: what is the same is not asked for again"
                problems.append(Problem(str(folder.path), f"judged {what}", fix))
    refuse(problems)
    return folders
