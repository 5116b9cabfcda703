"""What attacks did to what a judge says: the table that metrics have, of finished annotations and of those of attacked texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from empathy_eval.design.contrasts import FAR, NEAR, PAIR_VARIANTS
from empathy_eval.evaluation.attack_figures import EQUAL, RELEASED, Scores, stance_effects
from empathy_eval.evaluation.attack_rows import AttackRow, AttackTable, StanceEffect
from empathy_eval.evaluation.attacked import AttackedTexts, Replies
from empathy_eval.evaluation.inversion import Chance
from empathy_eval.raters.judges.attacking import clusters_of, configuration_in, named
from empathy_eval.raters.judges.folder import ATTACKS, Folder, read_annotations
from empathy_eval.raters.judges.reckoning import chance_of, reckoning_of
from empathy_eval.raters.judges.values import Scored, Text, scored_of


def attack_table(folder: Path, release_dir: Path, told: tuple[str, ...] = ()) -> AttackTable:
    """The table of a folder of annotations of a release (or build) whose texts were attacked: a row a criterion and attack.

    All is told in the better direction of each criterion. A reply is eligible if the judge has rated it, attacked and not.

    Raises:
        InputError: if there are no finished annotations, of the texts or of attacked ones.
    """
    chance = chance_of({"configuration": configuration_in(release_dir)})
    plain, under = read_annotations(folder), read_annotations(folder / ATTACKS, attacked=True)
    keys = [(str(case.pair_id), variant) for case in under.cases for variant in PAIR_VARIANTS]
    made = AttackedTexts(Replies(keys, (), clusters_of([pair for pair, _ in keys])), {}, under.header["configuration"][ATTACKS])
    new = {one.name: one for one in scored_of(under)}
    rows = [row for one in scored_of(plain) for row in _rows(plain, one, new[one.name], made, chance)]
    return made.table(rows, told)


def with_judges(table: AttackTable, folders: Sequence[Path], release_dir: Path, names: Collection[str]) -> AttackTable:
    """A table of attacks with the rows of those judges, of these folders, that were asked about attacked texts; ``names`` are rows wanted.

    Raises:
        InputError: as :func:`attack_table`.
    """
    rows, told = list(table.rows), list(table.told)
    for one in (attack_table(folder, release_dir) for folder in folders if (folder / ATTACKS).is_dir()):
        rows += (some := [row for row in one.rows if row.metric in names])
        asked = list(dict.fromkeys(row.metric for row in some))
        told = [line for line in told if not line.startswith(tuple(f"{name}: not attacked" for name in asked))]
        told += [f"{name}: over the {one.replies} replies that annotate --attacks asked it about, of all splits" for name in asked]
    return replace(table, rows=tuple(rows), told=tuple(told))


def _rows(folder: Folder, plain: Scored, under: Scored, made: AttackedTexts, chance: Chance) -> list[AttackRow]:
    """The rows of one criterion."""
    before, after = _merits(plain), _merits(under)
    keys = made.replies.keys
    new = {attack: np.array([after.get((pair, named(attack, variant)), np.nan) for pair, variant in keys]) for attack in made.signatures}
    scores = Scores(np.array([before.get(key, np.nan) for key in keys]), new, {attack: np.isfinite(one) for attack, one in new.items()})
    signature = f"{reckoning_of(folder, chance).signed}|criterion:{plain.name}"
    name = f"{folder.teacher}/{folder.rubric}:{plain.name}"
    return made.rows((name, signature), scores, _effect(name, before, chance), chance)


def _merits(scored: Scored) -> dict[Text, float]:
    """The mean of each text, turned round where lower is better."""
    sign = -1.0 if scored.better == "low" else 1.0
    return {text: sign * value for text, value in scored.means.items()}


def _effect(name: str, merits: Mapping[Text, float], chance: Chance) -> StanceEffect:
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
