"""The folder of annotations: read whole or not at all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.base.hashing import digest_file
from empathy_eval.base.parsing import Refused, json_value
from empathy_eval.base.schemas import check, read_json
from empathy_eval.design.rubrics import REWARD, Rubric, rubric_of
from empathy_eval.generation.build_folder import BUILD, OUTCOMES
from empathy_eval.raters.judges.annotations import Annotated, Comparison

# The folder beside annotations, and the key of its configuration, for what was said of attacked texts.
ATTACKS = "attacks"
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
        return teacher_of(self.header["configuration"]["judge"])

    @property
    def rubric(self) -> str:
        """The name of the rubric."""
        return str(self.header["configuration"]["rubric"])


def teacher_of(judge: Mapping[str, Any]) -> str:
    """What rows call a judge that is configured so."""
    return str(judge.get("model", judge["kind"]))


def resumed(folder: Path) -> str:
    """What brings the judging of attacked texts, beside the annotations of a folder, to its end."""
    return f"run the same empathy-eval annotate … --out {folder} --attacks again"


def read_annotations(folder: Path, *, attacked: bool = False) -> Folder:
    """Annotations that were finished, after they were found unchanged; of attacked texts only where that is asked for.

    Raises:
        InputError: if there are none, they are not valid, or not the ones the header was written for, or of attacked texts.
    """
    path = folder / BUILD
    if not path.is_file():
        fix = resumed(folder.parent) if attacked else f"run empathy-eval annotate … --out {folder} to its end"
        raise input_error(folder, "holds no finished annotations", fix)
    header = read_json(path, "annotations", AGAIN)
    made, rubric = header["configuration"], rubric_of(header["rubric"])
    if (ATTACKS in made) != attacked:
        what = (
            "holds no annotations of attacked texts"
            if attacked
            else "holds annotations of attacked texts, which are not texts of a release"
        )
        raise input_error(folder, what, "name the folder of the annotations themselves")
    if (rubric.name, rubric.hash) != (made["rubric"], made["rubric_hash"]):
        raise input_error(path, f'the text of the rubric "{made["rubric"]}" does not match its hash', AGAIN)
    if any(one.scale and not one.scale.low < one.scale.high for one in rubric.criteria):
        raise input_error(path, f'the rubric "{rubric.name}" has a scale of width 0', AGAIN)
    return Folder(folder, header, tuple(_cases(folder / OUTCOMES, header["outcomes"], rubric)))


def _cases(path: Path, digest: str, rubric: Rubric) -> Iterator[Annotated]:
    """The cases of a file, each there once, and its ratings on the scales of the rubric."""
    seen = set[tuple[str, int | None]]()
    try:
        if digest_file(path) != digest:
            raise input_error(path, "was changed after the annotations were made", AGAIN)
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                where = f"{path}: line {number}"
                value = json_value(line.decode())
                check(value, "annotated", where)
                case = Annotated.from_json(value)
                if (case.dialogue_id, case.turn) in seen:
                    raise input_error(where, f'"{case.pair_id or case.dialogue_id}" occurs twice', AGAIN)
                seen.add((case.dialogue_id, case.turn))
                if odd := list(_odd(case, rubric)):
                    raise InputError([Problem(where, what, AGAIN) for what in odd])
                yield case
    except OSError as error:
        raise input_error(path, f"cannot be read: {error.strerror}", AGAIN) from error
    except UnicodeDecodeError as error:
        raise input_error(where, "is not UTF-8", AGAIN) from error
    except Refused as error:
        raise input_error(where, str(error), AGAIN) from error


def _odd(case: Annotated, rubric: Rubric) -> Iterator[str]:
    """What ratings of a case have that is not of the rubric, or that another one has said."""
    scales = {one.name: one.scale for one in rubric.criteria}
    for one in case.ratings:
        scale = scales.get(one.criterion)
        if scales and one.criterion not in scales:
            yield f'"{one.criterion}" is not a criterion of the rubric'
        elif scale and (fault := scale.fault(one.value)):
            yield f'the value {one.value} for "{one.criterion}" {fault}'
    if len({(one.variant, one.criterion, one.sample) for one in case.ratings}) < len(case.ratings):
        yield "rates the same text by the same criterion twice"


# A pair and one of its variants; a whole dialogue has an empty one, two texts that are compared have both, "apathetic - reference".
Text = tuple[str, str]
# Means are equal where they differ by no more than the order of adding up.
PLACES = 9
HUNDREDTHS = 100
# The numbers of a reward model have no scale: they stay as they are, and only their order is read.
BARE: dict[str, Any] = {"name": REWARD, "scale": None, "better": None}


@dataclass(frozen=True)
class Scored:
    """What a judge gave by one criterion, by text and sample, on a scale from ``low`` to ``high``; ``better`` says which end is.

    A preference is on a scale from 0 to 1: the share of both orders that the first by name won. A reward may be any number.
    """

    name: str
    low: float
    high: float
    better: str
    given: Mapping[Text, Mapping[int, float]]

    @cached_property
    def means(self) -> dict[Text, float]:
        """The mean over the samples of each text."""
        return {text: round(math.fsum(some.values()) / len(some), PLACES) for text, some in self.given.items()}

    @cached_property
    def merits(self) -> dict[Text, float]:
        """The same on a scale from 0 (worst) to 1 (best)."""
        shares = {text: (value - self.low) / (self.high - self.low) for text, value in self.means.items()}
        return {text: round(1 - share if self.better == "low" else share, PLACES) for text, share in shares.items()}

    def hundredth(self, value: float) -> int:
        """The hundredth of the scale that is nearest to a value: in such steps alpha is reckoned."""
        return round(round((value - self.low) / (self.high - self.low) * HUNDREDTHS, PLACES))


def scored_of(folder: Folder) -> tuple[Scored, ...]:
    """The numbers of annotations, criterion by criterion in the order of the rubric; none where strategies are named."""
    rubric = folder.header["rubric"]
    criteria = [BARE] if rubric["kind"] == "reward" else rubric["criteria"]
    given: dict[str, dict[Text, dict[int, float]]] = {one["name"]: {} for one in criteria}
    for case in folder.cases:
        name = case.pair_id or case.dialogue_id
        for rating in case.ratings:
            given[rating.criterion].setdefault((name, rating.variant or ""), {})[rating.sample] = rating.value
        for one in case.comparisons:
            compared = given[rubric["criteria"][0]["name"]].setdefault((name, both(one.variant_1, one.variant_2)), {})
            compared[one.sample] = share_of_first(one)
    return tuple(_scored(one, given[one["name"]]) for one in criteria)


def _scored(criterion: dict[str, Any], given: Mapping[Text, Mapping[int, float]]) -> Scored:
    scale = criterion["scale"] or {"low": 0.0, "high": 1.0}
    return Scored(criterion["name"], scale["low"], scale["high"], criterion["better"] or "high", given)


def both(one: str, other: str) -> str:
    """How two variants that are compared are called, whichever comes first."""
    return " - ".join(sorted((one, other)))


def share_of_first(one: Comparison) -> float:
    """The share of both orders that the first by name won: one half where it was the place that won."""
    return ((one.winner_12 == one.variant_1) + (one.winner_21 == one.variant_1)) / 2


def dialogue_of(name: str) -> str:
    """The dialogue of a pair, and of a dialogue itself."""
    return name.partition("-t")[0]
