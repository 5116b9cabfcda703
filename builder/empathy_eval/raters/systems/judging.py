"""Judging of replies: the cases of systems, a tournament of every two of them, and finished annotations of replies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.hashing import digest, digest_bytes
from empathy_eval.design.canary import CANARY
from empathy_eval.design.rubrics import Rubric
from empathy_eval.raters.judges.annotating import AnnotationPlan
from empathy_eval.raters.judges.annotations import AnnotationFolder, read_annotations
from empathy_eval.raters.judges.cases import REPLIES_TO, Case, Material
from empathy_eval.raters.systems.replies import Replied

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


def judged(paths: Iterable[Path], replied: Sequence[Replied]) -> list[AnnotationFolder]:
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
