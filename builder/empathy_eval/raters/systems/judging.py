"""Judging replies: systems as the texts of cases, a tournament of every two of them, and what was judged, found again."""

from __future__ import annotations

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
Two = tuple[str, str]


def named(replied: Replied) -> dict[str, str]:
    """What annotations say of replies. It stays the same where systems or contexts are added."""
    made = replied.configuration
    release = {name: made["release"][name] for name in ("name", "version")}
    return {**release, REPLIES_TO: made["release"]["seal"], "split": made["split"], "seed": str(made["seed"])}


def replies_as_material(replied: Replied, folder: Path, rubric: Rubric, design: AnnotationPlan) -> Material:
    """The replies of some systems (the variants of the design) to the first contexts, and which of them are compared.

    Raises:
        InputError: for a rubric for whole dialogues.
    """
    if rubric.unit == "dialogue":
        raise input_error(folder, f'holds replies, but "{rubric.name}" rates whole dialogues', "use a rubric for replies")
    shown = {one.pair_id for one in rubric.examples}
    contexts = [one for one in replied.contexts if one.pair_id not in shown][: design.turns]
    texts = {name: replied.texts[name] for name in design.variants}
    names = [one.pair_id for one in contexts]
    games = tournament(names, texts, design.comparisons, replied.configuration["seed"]) if rubric.kind == "preference" else {}
    cases = tuple(
        Case(
            one.dialogue_id, one.turn, one.pair_id, one.turns,
            {name: some[one.pair_id] for name, some in texts.items() if one.pair_id in some}, compared=games.get(one.pair_id, ()),
        )
        for one in contexts
    )  # fmt: skip
    canary = {CANARY: replied.header[CANARY]} if CANARY in replied.header else {}
    kept = tuple(one for one in cases if (one.compared if rubric.kind == "preference" else one.texts))
    texts_of = {name: digest({one.pair_id: one.texts[name] for one in kept if name in one.texts}) for name in texts}
    return Material(named(replied), kept, {**canary, "texts": texts_of})


def tournament(contexts: Sequence[str], texts: Mapping[str, Mapping[str, str]], most: int | None, seed: int) -> dict[str, tuple[Two, ...]]:
    """By context which systems are compared: every two over ``most`` contexts (None: all) that both reply to.

    For each two the contexts have an order of their own, by a SHA-256: more comparisons, contexts or systems only append to it.
    """
    found = dict[str, list[Two]]()
    for one, other in combinations(sorted(texts), 2):
        both = [name for name in contexts if name in texts[one] and name in texts[other]]
        for name in sorted(both, key=lambda name: digest_bytes(f"{seed}:{one}:{other}:{name}".encode()))[:most]:
            found.setdefault(name, []).append((one, other))
    return {name: tuple(sorted(some)) for name, some in found.items()}


def judged(paths: Iterable[Path], replied: Sequence[Replied]) -> list[AnnotationFolder]:
    """Finished annotations of these replies.

    Raises:
        InputError: if a folder holds none, or those of other replies: of another release or sample, or of texts that have changed since.
    """
    folders, problems = [read_annotations(path) for path in paths], list[Problem]()
    for folder in folders:
        of = folder.header["configuration"]["release"]
        mine = [one for one in replied if named(one) == of]
        if not mine:
            problems.append(Problem(str(folder.path), "holds annotations of something else than these replies", "annotate these replies"))
            continue
        pairs = {case.pair_id for case in folder.cases}
        for name, known in folder.header.get("texts", {}).items():
            now = [
                digest({pair: text for pair, text in sorted(one.texts[name].items()) if pair in pairs}) for one in mine if name in one.texts
            ]
            if known not in now:
                what = (
                    f'judged other replies of "{name}" than there are now' if now else f'judged "{name}", which is not one of the systems'
                )
                problems.append(Problem(str(folder.path), what, "annotate the replies again: what is the same is not asked for again"))
    refuse(problems)
    return folders
