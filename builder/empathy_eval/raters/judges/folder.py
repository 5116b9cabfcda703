"""The folder of annotations: read whole or not at all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import digest_file
from empathy_eval.base.schemas import check, read_json
from empathy_eval.generation.build_folder import BUILD, OUTCOMES
from empathy_eval.raters.judges.annotations import Annotated

AGAIN = "run the same command again: it replays from the ledger"


@dataclass(frozen=True)
class Folder:
    """Finished annotations: their header and the cases, in the order of the sample."""

    path: Path
    header: dict[str, Any]
    cases: tuple[Annotated, ...]

    @property
    def teacher(self) -> str:
        """What the judge goes by: the name of its model, or what it is named by where that is one of one's own."""
        judge = self.header["configuration"]["judge"]
        return str(judge.get("model", judge["kind"]))

    @property
    def rubric(self) -> str:
        """The name of the rubric."""
        return str(self.header["configuration"]["rubric"])


def read_annotations(folder: Path) -> Folder:
    """Annotations that were finished, after they were found unchanged.

    Raises:
        InputError: if there are none, they are not valid, or not the ones the header was written for.
    """
    path = folder / BUILD
    if not path.is_file():
        raise input_error(folder, "holds no finished annotations", f"run empathy-eval annotate … --out {folder} to its end")
    header = read_json(path, "annotations", AGAIN)
    if digest_file(folder / OUTCOMES) != header["outcomes"]:
        raise input_error(folder / OUTCOMES, "was changed after the annotations were made", AGAIN)
    cases = []
    for number, line in enumerate((folder / OUTCOMES).read_text(encoding="utf-8").splitlines(), 1):
        value = json.loads(line)
        check(value, "annotated", f"{folder / OUTCOMES}: line {number}")
        cases.append(Annotated.from_json(value))
    return Folder(folder, header, tuple(cases))
