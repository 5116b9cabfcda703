"""``annotate --attacks``: a judge is asked about attacked texts too, in a folder beside its annotations, over the same ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.json_text import json_text
from empathy_eval.commands.score_tables import attack_lines
from empathy_eval.commands.ways import Closing, RunOptions, do

if TYPE_CHECKING:
    from empathy_eval.evaluation.inversion.rows import AttackTable
    from empathy_eval.generation.summary import Handed
    from empathy_eval.raters.judges.annotating import Annotations

FIGURES = "figures.json"
# So many turns are attacked where nobody says otherwise: each is asked about some twenty times more.
TURNS = 25
MOST_TURNS = 1_000_000


@dataclass(frozen=True)
class Under:
    """The job of judging attacked texts, beside the annotations in a folder; ``told`` is what is left out and why."""

    job: Annotations
    release: Path
    out: Path
    told: tuple[str, ...]

    @classmethod
    def of(
        cls, release: str | Path, job: Annotations, out: Path, attacks: Sequence[Any] | None, turns: int, rules: str | Path | None
    ) -> Under | None:  # fmt: skip
        """The job beside another one; None where no attacks are asked for.

        Raises:
            InputError: if there is nothing to attack, an attack is unknown, or there are rules for no attacks.
        """
        if attacks is None:
            if rules:
                raise input_error("--rules", f'"{rules}" applies to attacks, but none are requested', "add --attacks, or leave it out")
            return None
        from empathy_eval.raters.judges.attacking import Wanted, attacking
        from empathy_eval.releases.hub.fetch import release_folder

        if not 1 <= turns <= MOST_TURNS:
            raise input_error("--attacked-turns", f"{turns:.3g} is out of range", f"use a number from 1 to {MOST_TURNS:,}")
        folder = release_folder(release)
        under, told = attacking(job, folder, Wanted(tuple(attacks), turns, Path(rules) if rules else None))
        return cls(under, folder, out, told)

    def then(self, first: Callable[[], Handed], ways: RunOptions) -> Handed:
        """What comes of both jobs, the second once the first is done; its figures are kept in its folder, where both are done whole.

        ``first`` does the first one. Batches of the second that are under way are taken in before: no other job may open their ledger.
        """
        begun = self._done(ways) if ways.batch and self._under_way(ways) else None
        if begun and begun.requests:
            return _both(None, begun)
        handed = first()
        if handed.requests:
            return handed
        second = begun or self._done(ways)
        if not (second.requests or ways.part):
            self.table()
        return _both(handed, second)

    def _done(self, ways: RunOptions) -> Handed:
        """What comes of the second job."""
        from empathy_eval.raters.judges.folder import ATTACKS

        return do(self.job, self.out / ATTACKS, replace(ways, ledger=self._ledger(ways)))

    def _ledger(self, ways: RunOptions) -> Path:
        """The ledger of both."""
        from empathy_eval.generation.build_folder import LEDGER

        return Path(ways.ledger or self.out / LEDGER)

    def _under_way(self, ways: RunOptions) -> bool:
        """Whether batches of the second job are under way."""
        from empathy_eval.completions.ledger import Ledger
        from empathy_eval.completions.pending import under_way

        if not (path := self._ledger(ways)).is_file():
            return False
        with Ledger(path, create=False, write=False) as ledger:
            return any(one.build == self.job.config.identity for one in under_way(ledger))

    def table(self) -> AttackTable:
        """The table of attacks, which is kept beside what was said of attacked texts."""
        from empathy_eval.base.files import write_whole
        from empathy_eval.raters.judges.attacking import attack_table
        from empathy_eval.raters.judges.folder import ATTACKS

        table = attack_table(self.out, self.release, self.told)
        write_whole(self.out / ATTACKS / FIGURES, json_text(table.to_json()) + "\n")
        return table


def _both(first: Handed | None, second: Handed) -> Handed:
    """What comes of both: the second's summary stands beside the first's. The first has nothing that is to be answered elsewhere."""
    from empathy_eval.generation.summary import Handed
    from empathy_eval.raters.judges.folder import ATTACKS

    beside = {ATTACKS: second.summary} if second.summary else {}
    return Handed(first.summary if first else None, second.requests, (first.reasons if first else Counter()) + second.reasons, beside)


@dataclass(frozen=True)
class WithTable:
    """What is said at the end, and the table of attacks below it."""

    said: Closing
    table: AttackTable

    def to_json(self) -> dict[str, Any]:
        """Beside what else is said, ``attacks``."""
        return {**self.said.to_json(), "attacks": self.table.to_json()}

    def __str__(self) -> str:
        return "\n".join([str(self.said), "", *attack_lines(self.table)])
