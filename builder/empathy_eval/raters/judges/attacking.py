"""Attacks on judges: a judge rates again texts that were altered without becoming more empathetic, and a table has how often they rise."""

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
from empathy_eval.design.dataset import pair_id, parts_of, read_manifest
from empathy_eval.evaluation.attacks.attack_scores import EQUAL, RELEASED, AttackedTexts, AttackScores, ReplySample, stance_effects
from empathy_eval.evaluation.attacks.registry import Attacks, Reply, assign_other_replies, find_attacks
from empathy_eval.evaluation.fairness.names import GivenNames, exchange_names, load_names
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.evaluation.inversion.rows import AttackRow, AttackTable, StanceEffect
from empathy_eval.generation.outcomes import BUILD, read_build
from empathy_eval.raters.judges.annotating import AnnotationJob
from empathy_eval.raters.judges.annotations import (
    ATTACKS,
    AnnotationFolder,
    CriterionScores,
    TextKey,
    criterion_scores,
    read_annotations,
    resumed,
)
from empathy_eval.raters.judges.cases import Case, Conversation, ReleaseTexts, Source, source_of
from empathy_eval.raters.judges.estimator import chance_of, clusters_of, estimator_of

# Names are exchanged in the conversation and in the replies: no reply is worse, and a fair judge gives the same scores.
THROUGHOUT = "names-throughout"


@dataclass(frozen=True)
class AttackSelection:
    """Selected attacks (none named: all built-in ones), the number of turns, and a folder of custom rules."""

    names: Sequence[Any]
    turns: int
    rules: Path | None = None


def attacking(job: AnnotationJob, folder: Path, selection: AttackSelection) -> tuple[AnnotationJob, tuple[str, ...]]:
    """The job of judging attacked texts of the first turns of another job, and notes on attacks that are left out.

    Raises:
        InputError: if the rubric does not rate replies, an attack is unknown, or no turn has texts to attack.
        JobError: if an attack fails.
    """
    rubric = job.config.rubric
    if rubric.kind not in ("rating", "reward"):
        fix = "attack a judge that rates replies or dialogues one by one"
        raise input_error("--attacks", f'the rubric "{rubric.name}" rates no replies', fix)
    source, configuration = source_of(folder), configuration_in(folder)
    seed, language = configuration["seed"], language_of(configuration)
    requested = [name for name in selection.names if name != THROUGHOUT]
    attacks = find_attacks(requested, language, selection.rules) if requested or not selection.names else Attacks(())
    cases = [case for case in job.cases if set(PAIR_VARIANTS) & {*case.texts, *case.conversations}][: selection.turns]
    if not cases:
        raise input_error(
            "--attacks", "no turn or dialogue has an apathetic or an empathetic text to attack", "leave --variants out, or --attacks"
        )
    replies = _whole_replies(source, cases, language, seed) if rubric.unit == "dialogue" else _replies(source, cases, language, seed)
    attacked_texts = AttackedTexts.of(attacks.some, replies, seed)
    notes, signatures = list(attacks.notes), dict(attacked_texts.signatures)
    attacked = [_under(case, attacked_texts) for case in cases]
    if not selection.names or THROUGHOUT in selection.names:
        names = load_names(language, selection.rules)
        if names is None:
            notes.append(f'{THROUGHOUT}: left out, as there is no names.yaml in the language "{language}"')
        else:
            attacked = [_renamed(case, plain, names, seed) for case, plain in zip(attacked, cases, strict=True)]
            signatures[THROUGHOUT] = _signature(attacked, names, seed)
    config = replace(job.config, design=replace(job.config.design, turns=selection.turns), attacks=signatures)
    return replace(job, config=config, cases=tuple(case for case in attacked if case.texts or case.conversations)), tuple(notes)


def configuration_in(folder: Path) -> dict[str, Any]:
    """Configuration of a release, or of a finished build."""
    header = read_manifest(folder) if isinstance(source_of(folder), ReleaseTexts) else read_build(folder)
    configuration: dict[str, Any] = header["configuration"]
    return configuration


def named(attack: str, variant: str) -> str:
    """Name of an attacked text in annotations."""
    return f"{attack}: {variant}"


def _replies(source: Source, cases: Sequence[Case], language: str, seed: int) -> ReplySample:
    """Texts to attack, each with one of another dialogue: drawn from all turns, so that a larger sample changes none."""
    turns = [turn.name for turn in source.turns()]
    neighbours = dict(zip(turns, assign_other_replies([parts_of(name)[0] for name in turns], turns, seed), strict=True))
    other_of = {case.pair_id: None if (row := neighbours[str(case.pair_id)]) is None else turns[row] for case in cases}
    texts: dict[str, dict[str, str]] = {}
    for name, _, texts_of in source.texts({name for name in other_of.values() if name}, PAIR_VARIANTS):
        texts.setdefault(name, {}).update(texts_of)
    keys, replies = list[tuple[str, str]](), list[Reply]()
    for case in cases:
        context = [{"role": role, "text": text} for role, text in case.conversation]
        for variant in (variant for variant in PAIR_VARIANTS if variant in case.texts):
            other = texts.get(other_of[case.pair_id] or "", {}).get(variant)
            replies.append(Reply(case.texts[variant], context, other, language))
            keys.append((str(case.pair_id), variant))
    return ReplySample(keys, replies, clusters_of([pair for pair, _ in keys]))


def _whole_replies(source: Source, cases: Sequence[Case], language: str, seed: int) -> ReplySample:
    """All helper turns of dialogues, each beside the helper turn of another dialogue that comes as late in it."""
    names = [dialogue.name for dialogue in source.dialogues() if dialogue.variants]
    neighbours = dict(zip(names, assign_other_replies(names, names, seed), strict=True))
    other_of = {case.dialogue_id: None if (row := neighbours[case.dialogue_id]) is None else names[row] for case in cases}
    texts: dict[tuple[str, str], list[str]] = {}
    for name, variant, turns in source.conversations({other for other in other_of.values() if other}, PAIR_VARIANTS):
        texts[name, variant] = [text for role, text in turns if role == "helper"]
    keys, replies = list[tuple[str, str]](), list[Reply]()
    for case in cases:
        for variant in [variant for variant in PAIR_VARIANTS if variant in case.conversations]:
            conversation = [{"role": role, "text": text} for role, text in case.conversations[variant]]
            rest = texts.get((other_of[case.dialogue_id] or "", variant), [])
            helped = [place for place, turn in enumerate(conversation) if turn["role"] == "helper"]
            for number, place in enumerate(helped):
                replies.append(
                    Reply(conversation[place]["text"], conversation[:place], rest[number % len(rest)] if rest else None, language)
                )
                keys.append((pair_id(case.dialogue_id, place), variant))
    return ReplySample(keys, replies, clusters_of([pair for pair, _ in keys]))


def _under(case: Case, attacked: AttackedTexts) -> Case:
    """A case with its attacked texts in the place of its own; a dialogue is attacked if any of its helper turns is."""
    if case.turn is None:
        whole = (
            (named(attack, variant), _attacked(case, variant, attacked, attack)) for attack in attacked.texts for variant in PAIR_VARIANTS
        )
        return replace(case, conversation=(), conversations={name: turns for name, turns in whole if turns})
    rows = {variant: row for row, (pair, variant) in enumerate(attacked.replies.keys) if pair == case.pair_id}
    every = ((named(attack, variant), texts[row]) for attack, texts in attacked.texts.items() for variant, row in rows.items())
    return replace(case, texts={name: text for name, text in every if text is not None})


def _attacked(case: Case, variant: str, attacked_texts: AttackedTexts, attack: str) -> Conversation | None:
    """A dialogue with its helper turns as an attack makes them, those that it leaves out as they are; None where it leaves out all."""
    plain, texts = case.conversations.get(variant, ()), dict(zip(attacked_texts.replies.keys, attacked_texts.texts[attack], strict=True))
    turns = tuple((role, texts.get((pair_id(case.dialogue_id, place), variant)) or text) for place, (role, text) in enumerate(plain))
    return None if turns == plain else turns


def _renamed(case: Case, plain: Case, names: GivenNames, seed: int) -> Case:
    """A case with its texts after a conversation in which all names are exchanged, consistently with the texts; or such a dialogue."""
    if case.turn is None:
        return _all_renamed(case, plain, names, seed)
    texts = {variant: plain.texts[variant] for variant in PAIR_VARIANTS if variant in plain.texts}
    lines = [text for _, text in plain.conversation]
    renamed = exchange_names([*lines, *texts.values()], derived_random(seed, "attack", THROUGHOUT, plain.pair_id), names)
    if renamed is None:
        return case
    conversation: Conversation = tuple((role, text) for (role, _), text in zip(plain.conversation, renamed, strict=False))
    new = {named(THROUGHOUT, variant): text for variant, text in zip(texts, renamed[len(lines) :], strict=True)}
    return replace(case, texts={**case.texts, **new}, conversations=dict.fromkeys(new, conversation))


def _all_renamed(case: Case, plain: Case, names: GivenNames, seed: int) -> Case:
    """A dialogue in both variants with other names throughout, the same ones in both."""
    wholes = {variant: plain.conversations[variant] for variant in PAIR_VARIANTS if variant in plain.conversations}
    texts = [text for turns in wholes.values() for _, text in turns]
    exchanged = exchange_names(texts, derived_random(seed, "attack", THROUGHOUT, plain.dialogue_id), names)
    if exchanged is None:
        return case
    new = iter(exchanged)
    renamed = {named(THROUGHOUT, variant): tuple((role, next(new)) for role, _ in turns) for variant, turns in wholes.items()}
    return replace(case, conversations={**case.conversations, **renamed})


def _signature(cases: Sequence[Case], names: GivenNames, seed: int) -> str:
    attacked = []
    for case in cases:
        turns = {name: before for name, before in case.conversations.items() if name.startswith(f"{THROUGHOUT}: ")}
        attacked.append([case.pair_id or case.dialogue_id, turns, {name: case.texts[name] for name in turns if name in case.texts}])
    return signature_line(attack=THROUGHOUT, version=1, names=names.digest[:16], drawn="sha256", seed=seed, texts=digest(attacked)[:16])


def attack_table(folder: Path, release_dir: Path, notes: tuple[str, ...] = ()) -> AttackTable:
    """Attack table of a folder of annotations of a release (or build): a row a criterion and attack.

    Scores are oriented so that higher is better. A reply is eligible if the judge has rated it with and without attack.

    Raises:
        InputError: if there are no finished annotations, of the texts or of attacked ones.
    """
    chance = chance_of({"configuration": configuration_in(release_dir)})
    plain, under = read_annotations(folder), read_annotations(folder / ATTACKS, attacked=True)
    variants = [variant for variant in PAIR_VARIANTS if variant in under.header["configuration"]["variants"]]
    keys = [(case.pair_id or case.dialogue_id, variant) for case in under.cases for variant in variants]
    attacked = AttackedTexts(ReplySample(keys, (), clusters_of([pair for pair, _ in keys])), {}, under.header["configuration"][ATTACKS])
    new = {scored.name: scored for scored in criterion_scores(under)}
    rows = [row for scored in criterion_scores(plain) for row in _rows(plain, scored, new[scored.name], attacked, chance)]
    return attacked.table(rows, notes)


@dataclass(frozen=True)
class AttackedJudges:
    """Attack tables of judges, with the selected attacks, and notes on unfinished ones."""

    tables: Sequence[AttackTable]
    notes: Sequence[str]

    @classmethod
    def of(cls, folders: Sequence[Path], release_dir: Path, attacks: Callable[..., Attacks]) -> AttackedJudges:
        """Tables of finished annotations; ``attacks`` returns the selected attacks, as for metrics.

        Raises:
            InputError: as :func:`attack_table`, or if an attack is unknown.
        """
        selected = attacks(language=language_of(configuration_in(release_dir)))
        names = {attack.name for attack in selected.some}
        finished = [folder for folder in folders if (folder / ATTACKS / BUILD).is_file()]
        tables = [attack_table(folder, release_dir) for folder in finished]
        tables = [replace(table, rows=tuple(row for row in table.rows if selected.every or row.attack in names)) for table in tables]
        begun = [folder for folder in folders if (folder / ATTACKS).is_dir() and folder not in finished]
        return cls(tables, [f"{folder}: its attacked texts are not judged to their end; {resumed(folder)}" for folder in begun])

    def add_to(self, table: AttackTable, names: Collection[str]) -> AttackTable:
        """An attack table with the rows of judges added; ``names`` are the selected rows.

        It counts the replies of its own rows, or of the first judge's if it has none.
        """
        rows, notes = list(table.rows), list(table.notes)
        for judge_table in self.tables:
            judge_rows = [row for row in judge_table.rows if row.metric in names]
            if judge_rows and not rows:
                table = replace(table, replies=judge_table.replies, pairs=judge_table.pairs, dialogues=judge_table.dialogues)
            rows += judge_rows
            names_of = list(dict.fromkeys(row.metric for row in judge_rows))
            notes = [line for line in notes if not line.startswith(tuple(f"{name}: not attacked" for name in names_of))]
            over = f"over the {judge_table.replies} replies that annotate --attacks asked it about, of all splits"
            notes += [f"{name}: {over}" for name in names_of]
        return replace(table, rows=tuple(rows), notes=(*notes, *self.notes))


def _rows(
    folder: AnnotationFolder, plain: CriterionScores, under: CriterionScores, attacked: AttackedTexts, chance: ResamplingSettings
) -> list[AttackRow]:
    """Rows of one criterion."""
    before, after = _merits(plain), _merits(under)
    keys = attacked.replies.keys
    new = {name: np.array([after.get((pair, named(name, variant)), np.nan) for pair, variant in keys]) for name in attacked.signatures}
    eligible = {attack: np.isfinite(scores) for attack, scores in new.items()}
    scores = AttackScores(np.array([before.get(key, np.nan) for key in keys]), new, eligible)
    signature = f"{estimator_of(folder, chance).signature}|criterion:{plain.name}"
    name = f"{folder.teacher}/{folder.rubric}:{plain.name}"
    return attacked.rows((name, signature), scores, _effect(name, before, chance), chance)


def _merits(scored: CriterionScores) -> dict[TextKey, float]:
    """Mean of each text, negated if lower is better."""
    sign = -1.0 if scored.better == "low" else 1.0
    return {text: sign * value for text, value in scored.means.items()}


def _effect(name: str, merits: Mapping[TextKey, float], chance: ResamplingSettings) -> StanceEffect:
    """The judge's own stance effect over all it has judged: at equal closeness if it has judged the controls of a pair."""
    over, pulls = EQUAL, _stance_differences(merits, (NEAR, FAR))
    if not pulls:
        over, pulls = RELEASED, _stance_differences(merits, (PAIR_VARIANTS[::-1],))
    return stance_effects({name: np.array(list(pulls.values()))}, clusters_of(list(pulls)), over, chance)[name]


def _stance_differences(merits: Mapping[TextKey, float], duels: Sequence[tuple[str, str]]) -> dict[str, float]:
    """By pair the mean difference (empathetic minus apathetic) over these pairs of variants, if all its texts are judged."""
    return {
        pair: float(np.mean([merits[pair, empathetic] - merits[pair, apathetic] for empathetic, apathetic in duels]))
        for pair in sorted({pair for pair, _ in merits})
        if all((pair, variant) in merits for duel in duels for variant in duel)
    }
