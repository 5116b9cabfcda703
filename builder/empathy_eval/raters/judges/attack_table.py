"""What attacks did to what a judge says: the table that metrics have, of finished annotations and of those of attacked texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from empathy_eval.design.configuration import language_of
from empathy_eval.design.contrasts import FAR, NEAR, PAIR_VARIANTS
from empathy_eval.evaluation.attack_figures import EQUAL, RELEASED, Scores, stance_effects
from empathy_eval.evaluation.attack_registry import Attacks
from empathy_eval.evaluation.attack_rows import AttackRow, AttackTable, StanceEffect
from empathy_eval.evaluation.attacked import AttackedTexts, Replies
from empathy_eval.evaluation.inversion import Chance
from empathy_eval.generation.build_folder import BUILD
from empathy_eval.raters.judges.attacking import clusters_of, configuration_in, named
from empathy_eval.raters.judges.folder import ATTACKS, Folder, read_annotations, resumed
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
    variants = [one for one in PAIR_VARIANTS if one in under.header["configuration"]["variants"]]
    keys = [(str(case.pair_id), variant) for case in under.cases for variant in variants]
    made = AttackedTexts(Replies(keys, (), clusters_of([pair for pair, _ in keys])), {}, under.header["configuration"][ATTACKS])
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
