"""Judges under attack: the texts that a judge has judged, attacked, as a job of their own beside the annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import derived_random, digest, signature_line
from empathy_eval.design.configuration import language_of
from empathy_eval.design.contrasts import PAIR_VARIANTS
from empathy_eval.design.dataset import parts_of, read_manifest
from empathy_eval.evaluation.attack_registry import Attacks, find_attacks, others
from empathy_eval.evaluation.attacked import AttackedTexts, Replies
from empathy_eval.evaluation.attacks import Reply
from empathy_eval.evaluation.names import Names, exchanged_names, load_names
from empathy_eval.evaluation.resampling import Clusters
from empathy_eval.generation.build_folder import read_build
from empathy_eval.raters.judges.annotating import Annotating, Annotations
from empathy_eval.raters.judges.cases import Case
from empathy_eval.raters.judges.folder import ATTACKS
from empathy_eval.raters.judges.sources import Conversation, Released, Source, source_of

# Names are exchanged in the conversation and in the replies alike: nothing is worse then, and a fair judge says the same.
THROUGHOUT = "names-throughout"


@dataclass(frozen=True)
class Wanted:
    """Which attacks are wanted (none named: all built-in ones), of how many turns, and a folder of rules of one's own."""

    names: Sequence[Any]
    turns: int
    rules: Path | None = None


@dataclass(frozen=True)
class Attacking(Annotating):
    """Annotating of attacked texts: ``attacks`` are the settings of each attack with the hash of its texts, by its name."""

    attacks: Mapping[str, str] = field(default_factory=dict)

    @property
    def published(self) -> dict[str, Any]:
        """As it is shown, with the attacks."""
        return {**super().published, ATTACKS: dict(sorted(self.attacks.items()))}

    def misfit(self, published: dict[str, Any]) -> str | None:
        """What a folder of that configuration holds, if it is none of this one's; other attacks, and more turns, only add to it."""
        if not isinstance(published, dict) or ATTACKS not in published:
            return "holds no annotations of attacked texts"
        plain = Annotating(**{one.name: getattr(self, one.name) for one in fields(Annotating)})
        return plain.misfit({name: value for name, value in published.items() if name != ATTACKS})


def attacking(job: Annotations, folder: Path, wanted: Wanted) -> tuple[Annotations, tuple[str, ...]]:
    """The job of judging attacked texts of the first turns of another job, and what is told of attacks that are left out.

    Raises:
        InputError: if the rubric does not rate replies, an attack is unknown, or no turn has texts to attack.
        JobError: if an attack fails.
    """
    rubric = job.config.rubric
    if rubric.kind not in ("rating", "reward") or rubric.unit == "dialogue":
        raise input_error("--attacks", f'the rubric "{rubric.name}" rates no replies', "attack a judge that rates replies one by one")
    source, configuration = source_of(folder), configuration_in(folder)
    seed, language = configuration["seed"], language_of(configuration)
    found = find_attacks([one for one in wanted.names if one != THROUGHOUT], language, wanted.rules) if _others(wanted) else Attacks(())
    cases = [case for case in job.cases if set(PAIR_VARIANTS) & set(case.texts)][: wanted.turns]
    if not cases:
        raise input_error("--attacks", "no turn has an apathetic or an empathetic text to attack", "leave --variants out, or --attacks")
    made = AttackedTexts.of(found.some, _replies(source, cases, language, seed), seed)
    told, signatures = list(found.told), dict(made.signatures)
    attacked = [_under(case, made) for case in cases]
    if not wanted.names or THROUGHOUT in wanted.names:
        names = load_names(language, wanted.rules)
        if names is None:
            told.append(f'{THROUGHOUT}: left out, as there is no names.yaml in the language "{language}"')
        else:
            attacked = [_renamed(case, plain, names, seed) for case, plain in zip(attacked, cases, strict=True)]
            signatures[THROUGHOUT] = _signature(attacked, names, seed)
    named = {one.name: getattr(job.config, one.name) for one in fields(Annotating)}
    config = Attacking(**{**named, "design": replace(job.config.design, turns=wanted.turns)}, attacks=signatures)
    return replace(job, config=config, cases=tuple(case for case in attacked if case.texts)), tuple(told)


def configuration_in(folder: Path) -> dict[str, Any]:
    """The configuration of a release, or of a finished build."""
    header = read_manifest(folder) if isinstance(source_of(folder), Released) else read_build(folder)
    configuration: dict[str, Any] = header["configuration"]
    return configuration


def _others(wanted: Wanted) -> bool:
    """Whether any attack is wanted beside the exchange of names throughout."""
    return not wanted.names or any(one != THROUGHOUT for one in wanted.names)


def named(attack: str, variant: str) -> str:
    """What an attacked text is called in annotations."""
    return f"{attack}: {variant}"


def _replies(source: Source, cases: Sequence[Case], language: str, seed: int) -> Replies:
    """The texts to attack, each beside one of another dialogue: of all turns there are, so that a larger sample changes none."""
    turns = [one.name for one in source.turns()]
    beside = dict(zip(turns, others([parts_of(name)[0] for name in turns], turns, seed), strict=True))
    other_of = {case.pair_id: None if (row := beside[str(case.pair_id)]) is None else turns[row] for case in cases}
    texts: dict[str, dict[str, str]] = {}
    for name, _, some in source.texts({one for one in other_of.values() if one}, PAIR_VARIANTS):
        texts.setdefault(name, {}).update(some)
    keys, replies = list[tuple[str, str]](), list[Reply]()
    for case in cases:
        context = [{"role": role, "text": text} for role, text in case.conversation]
        for variant in (one for one in PAIR_VARIANTS if one in case.texts):
            other = texts.get(other_of[case.pair_id] or "", {}).get(variant)
            replies.append(Reply(case.texts[variant], context, other, language))
            keys.append((str(case.pair_id), variant))
    return Replies(keys, replies, clusters_of([pair for pair, _ in keys]))


def clusters_of(pair_ids: Sequence[str]) -> Clusters:
    """The dialogues of pairs, and their scenarios, which ids begin with."""
    dialogues = [parts_of(one)[0] for one in pair_ids]
    return Clusters.of(dialogues, [int(one[:3]) for one in dialogues])


def _under(case: Case, made: AttackedTexts) -> Case:
    """A case with its attacked texts in the place of its own."""
    rows = {variant: row for row, (pair, variant) in enumerate(made.replies.keys) if pair == case.pair_id}
    every = ((named(attack, variant), texts[row]) for attack, texts in made.texts.items() for variant, row in rows.items())
    return replace(case, texts={name: text for name, text in every if text is not None})


def _renamed(case: Case, plain: Case, names: Names, seed: int) -> Case:
    """A case with its texts after a conversation in which all names are others, the same ones as in the texts."""
    texts = {variant: plain.texts[variant] for variant in PAIR_VARIANTS if variant in plain.texts}
    said = [text for _, text in plain.conversation]
    made = exchanged_names([*said, *texts.values()], derived_random(seed, "attack", THROUGHOUT, plain.pair_id), names)
    if made is None:
        return case
    conversation: Conversation = tuple((role, text) for (role, _), text in zip(plain.conversation, made, strict=False))
    new = {named(THROUGHOUT, variant): text for variant, text in zip(texts, made[len(said) :], strict=True)}
    return replace(case, texts={**case.texts, **new}, otherwise=dict.fromkeys(new, conversation))


def _signature(cases: Sequence[Case], names: Names, seed: int) -> str:
    said = [[case.pair_id, case.otherwise, {name: case.texts[name] for name in case.otherwise}] for case in cases]
    return signature_line(attack=THROUGHOUT, version=1, names=names.digest[:16], drawn="sha256", seed=seed, texts=digest(said)[:16])
