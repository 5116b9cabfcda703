"""Judges under attack: the texts that a judge has judged, attacked, as a job of their own beside the annotations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import derived_random, digest, signature_line
from empathy_eval.design.configuration import language_of
from empathy_eval.design.contrasts import FAR, NEAR, PAIR_VARIANTS
from empathy_eval.design.dataset import parts_of, read_manifest
from empathy_eval.evaluation.attacks.attacked import EQUAL, RELEASED, AttackedTexts, AttackScores, ReplySample, stance_effects
from empathy_eval.evaluation.attacks.attacks import Reply
from empathy_eval.evaluation.attacks.registry import Attacks, find_attacks, others
from empathy_eval.evaluation.fairness.names import GivenNames, exchanged_names, load_names
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.evaluation.inversion.rows import AttackRow, AttackTable, StanceEffect
from empathy_eval.generation.build_folder import BUILD, read_build
from empathy_eval.raters.judges.annotating import Annotations
from empathy_eval.raters.judges.annotations import ATTACKS, Folder, Scored, Text, read_annotations, resumed, scored_of
from empathy_eval.raters.judges.cases import Case, Conversation, Released, Source, source_of
from empathy_eval.raters.judges.estimator import chance_of, clusters_of, reckoning_of

# Names are exchanged in the conversation and in the replies alike: nothing is worse then, and a fair judge says the same.
THROUGHOUT = "names-throughout"


@dataclass(frozen=True)
class Wanted:
    """Which attacks are wanted (none named: all built-in ones), of how many turns, and a folder of rules of one's own."""

    names: Sequence[Any]
    turns: int
    rules: Path | None = None


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
    asked = [one for one in wanted.names if one != THROUGHOUT]
    found = find_attacks(asked, language, wanted.rules) if asked or not wanted.names else Attacks(())
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
    config = replace(job.config, design=replace(job.config.design, turns=wanted.turns), attacks=signatures)
    return replace(job, config=config, cases=tuple(case for case in attacked if case.texts)), tuple(told)


def configuration_in(folder: Path) -> dict[str, Any]:
    """The configuration of a release, or of a finished build."""
    header = read_manifest(folder) if isinstance(source_of(folder), Released) else read_build(folder)
    configuration: dict[str, Any] = header["configuration"]
    return configuration


def named(attack: str, variant: str) -> str:
    """What an attacked text is called in annotations."""
    return f"{attack}: {variant}"


def _replies(source: Source, cases: Sequence[Case], language: str, seed: int) -> ReplySample:
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
    return ReplySample(keys, replies, clusters_of([pair for pair, _ in keys]))


def _under(case: Case, made: AttackedTexts) -> Case:
    """A case with its attacked texts in the place of its own."""
    rows = {variant: row for row, (pair, variant) in enumerate(made.replies.keys) if pair == case.pair_id}
    every = ((named(attack, variant), texts[row]) for attack, texts in made.texts.items() for variant, row in rows.items())
    return replace(case, texts={name: text for name, text in every if text is not None})


def _renamed(case: Case, plain: Case, names: GivenNames, seed: int) -> Case:
    """A case with its texts after a conversation in which all names are others, the same ones as in the texts."""
    texts = {variant: plain.texts[variant] for variant in PAIR_VARIANTS if variant in plain.texts}
    said = [text for _, text in plain.conversation]
    made = exchanged_names([*said, *texts.values()], derived_random(seed, "attack", THROUGHOUT, plain.pair_id), names)
    if made is None:
        return case
    conversation: Conversation = tuple((role, text) for (role, _), text in zip(plain.conversation, made, strict=False))
    new = {named(THROUGHOUT, variant): text for variant, text in zip(texts, made[len(said) :], strict=True)}
    return replace(case, texts={**case.texts, **new}, otherwise=dict.fromkeys(new, conversation))


def _signature(cases: Sequence[Case], names: GivenNames, seed: int) -> str:
    said = [[case.pair_id, case.otherwise, {name: case.texts[name] for name in case.otherwise}] for case in cases]
    return signature_line(attack=THROUGHOUT, version=1, names=names.digest[:16], drawn="sha256", seed=seed, texts=digest(said)[:16])


def attack_table(folder: Path, release_dir: Path, told: tuple[str, ...] = ()) -> AttackTable:
    """The table of a folder of annotations of a release (or build) whose texts were attacked: a row a criterion and attack.

    All is told in the better direction of each criterion. A reply is eligible if the judge has rated it, attacked and not.

    Raises:
        InputError: if there are no finished annotations, of the texts or of attacked ones.
    """
    chance = chance_of({"configuration": configuration_in(release_dir)})
    plain, under = read_annotations(folder), read_annotations(folder / ATTACKS, attacked=True)
    variants = [one for one in PAIR_VARIANTS if one in under.header["configuration"]["variants"]]
    keys = [(str(case.pair_id), variant) for case in under.cases for variant in variants]
    made = AttackedTexts(ReplySample(keys, (), clusters_of([pair for pair, _ in keys])), {}, under.header["configuration"][ATTACKS])
    new = {one.name: one for one in scored_of(under)}
    rows = [row for one in scored_of(plain) for row in _rows(plain, one, new[one.name], made, chance)]
    return made.table(rows, told)


@dataclass(frozen=True)
class Judges:
    """The tables of judges that were asked about attacked texts, with the attacks that are wanted, and what is told of unfinished ones."""

    tables: Sequence[AttackTable]
    told: Sequence[str]

    @classmethod
    def of(cls, folders: Sequence[Path], release_dir: Path, attacks: Callable[..., Attacks]) -> Judges:
        """Those of finished annotations; ``attacks`` gives the ones that are wanted, as for metrics.

        Raises:
            InputError: as :func:`attack_table`, or if an attack is unknown.
        """
        wanted = attacks(language=language_of(configuration_in(release_dir)))
        names = {one.name for one in wanted.some}
        finished = [folder for folder in folders if (folder / ATTACKS / BUILD).is_file()]
        tables = [attack_table(folder, release_dir) for folder in finished]
        tables = [replace(one, rows=tuple(row for row in one.rows if wanted.every or row.attack in names)) for one in tables]
        begun = [folder for folder in folders if (folder / ATTACKS).is_dir() and folder not in finished]
        return cls(tables, [f"{folder}: its attacked texts are not judged to their end; {resumed(folder)}" for folder in begun])

    def beside(self, table: AttackTable, names: Collection[str]) -> AttackTable:
        """A table of attacks with the rows of judges too; ``names`` are those of rows that are wanted.

        It counts the replies of its own rows, or of the first judge's where it has none.
        """
        rows, told = list(table.rows), list(table.told)
        for one in self.tables:
            some = [row for row in one.rows if row.metric in names]
            if some and not rows:
                table = replace(table, replies=one.replies, pairs=one.pairs, dialogues=one.dialogues)
            rows += some
            asked = list(dict.fromkeys(row.metric for row in some))
            told = [line for line in told if not line.startswith(tuple(f"{name}: not attacked" for name in asked))]
            told += [f"{name}: over the {one.replies} replies that annotate --attacks asked it about, of all splits" for name in asked]
        return replace(table, rows=tuple(rows), told=(*told, *self.told))


def _rows(folder: Folder, plain: Scored, under: Scored, made: AttackedTexts, chance: ResamplingSettings) -> list[AttackRow]:
    """The rows of one criterion."""
    before, after = _merits(plain), _merits(under)
    keys = made.replies.keys
    new = {attack: np.array([after.get((pair, named(attack, variant)), np.nan) for pair, variant in keys]) for attack in made.signatures}
    scores = AttackScores(
        np.array([before.get(key, np.nan) for key in keys]), new, {attack: np.isfinite(one) for attack, one in new.items()}
    )
    signature = f"{reckoning_of(folder, chance).signed}|criterion:{plain.name}"
    name = f"{folder.teacher}/{folder.rubric}:{plain.name}"
    return made.rows((name, signature), scores, _effect(name, before, chance), chance)


def _merits(scored: Scored) -> dict[Text, float]:
    """The mean of each text, turned round where lower is better."""
    sign = -1.0 if scored.better == "low" else 1.0
    return {text: sign * value for text, value in scored.means.items()}


def _effect(name: str, merits: Mapping[Text, float], chance: ResamplingSettings) -> StanceEffect:
    """The judge's own stance effect, over all it has judged: at equal closeness where it has judged the controls of a pair."""
    over, pulls = EQUAL, _pulls(merits, (NEAR, FAR))
    if not pulls:
        over, pulls = RELEASED, _pulls(merits, (PAIR_VARIANTS[::-1],))
    return stance_effects({name: np.array(list(pulls.values()))}, clusters_of(list(pulls)), over, chance)[name]


def _pulls(merits: Mapping[Text, float], duels: Sequence[tuple[str, str]]) -> dict[str, float]:
    """By pair the mean of kind minus cold over these duels, where all its texts are judged."""
    return {
        pair: float(np.mean([merits[pair, kind] - merits[pair, cold] for kind, cold in duels]))
        for pair in sorted({pair for pair, _ in merits})
        if all((pair, one) in merits for duel in duels for one in duel)
    }
