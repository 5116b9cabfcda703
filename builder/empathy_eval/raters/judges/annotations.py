"""What judges said: the annotations of a case, their folder, which is read whole or not at all, and the numbers in it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.hashing import digest_file
from empathy_eval.base.parsing import Refused, json_value
from empathy_eval.base.schemas import check, read_json
from empathy_eval.completions.requests import Failure
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.rubrics import REWARD, Rubric, rubric_of
from empathy_eval.evaluation.external.judges import COLUMNS, ReleaseAnnotations
from empathy_eval.generation.build_folder import BUILD, OUTCOMES


@dataclass(frozen=True)
class Rating:
    """The value of one criterion for one text, or for a whole dialogue (then without a variant), and the reason that came before it."""

    variant: str | None
    criterion: str
    sample: int
    value: float
    reason: str
    request_key: str


@dataclass(frozen=True)
class Comparison:
    """Which of two texts a judge prefers, asked in both orders: ``winner_12`` with the first by name as A, ``winner_21`` with it as B."""

    variant_1: str
    variant_2: str
    sample: int
    winner_12: str
    winner_21: str
    reason_12: str
    reason_21: str
    request_key_12: str
    request_key_21: str

    @property
    def consistent(self) -> bool:
        """Whether the same text won twice."""
        return self.winner_12 == self.winner_21

    @property
    def winner(self) -> str | None:
        """The text that won twice; None for a tie, which is never asked for."""
        return self.winner_12 if self.consistent else None

    @property
    def share_of_first(self) -> float:
        """The share of both orders that the first by name won: one half where it was the place that won."""
        return ((self.winner_12 == self.variant_1) + (self.winner_21 == self.variant_1)) / 2


@dataclass(frozen=True)
class Judged:
    """The strategy that a judge says a text uses, and how likely it thought each to be right, by abbreviation, before it saw one."""

    variant: str
    sample: int
    named: str
    request_key: str
    ideal: dict[str, float]
    ideal_request_key: str


@dataclass(frozen=True)
class Annotated:
    """What became of a case. ``failures`` hold the reasons for what is unannotated; ``missing`` is what no answer came to yet."""

    dialogue_id: str
    turn: int | None
    pair_id: str | None
    status: str
    reasons: tuple[str, ...] = ()
    ratings: tuple[Rating, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    strategies: tuple[Judged, ...] = ()
    failures: tuple[Failure, ...] = ()
    usage: dict[str, dict[str, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Annotated:
        """From what :meth:`to_json` gave; the value must be valid under ``annotated.schema.json``."""
        kinds: dict[str, Any] = {"ratings": Rating, "comparisons": Comparison, "strategies": Judged}
        rows: dict[str, Any] = {name: tuple(kind(**one) for one in value[name]) for name, kind in kinds.items()}
        failures = tuple(Failure(**{**one, "reasons": tuple(one["reasons"])}) for one in value["failures"])
        return cls(**{**value, **rows, "reasons": tuple(value["reasons"]), "failures": failures})


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

    @property
    def name(self) -> str:
        """``teacher/rubric``, as on the stand."""
        return f"{self.teacher}/{self.rubric}"

    def goes_beside(self, kind: str, rubric_hash: str) -> bool:
        """Whether it can be held against ratings, preferences or rewards by a rubric: by the same one, or preferences beside numbers."""
        # Reward models share no scale.
        same = kind in ("rating", "preference") and self.header["configuration"]["rubric_hash"] == rubric_hash
        return same or (kind in ("rating", "reward") and self.header["rubric"]["kind"] == "preference")


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
                refuse(Problem(where, what, AGAIN) for what in _odd(case, rubric))
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
        return round(round((value - self.low) / (self.high - self.low) * 100, PLACES))


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
            compared[one.sample] = one.share_of_first
    scales = [one["scale"] or {"low": 0.0, "high": 1.0} for one in criteria]
    return tuple(
        Scored(one["name"], scale["low"], scale["high"], one["better"] or "high", given[one["name"]])
        for one, scale in zip(criteria, scales, strict=True)
    )


def both(one: str, other: str) -> str:
    """How two variants that are compared are called, whichever comes first."""
    return " - ".join(sorted((one, other)))


def dialogue_of(name: str) -> str:
    """The dialogue of a pair, and of a dialogue itself."""
    return name.partition("-t")[0]


# As many ratings are a part: with few, what is done a part takes the time.
TOGETHER = 50_000


def annotations_in(paths: Sequence[Path], release_dir: Path) -> ReleaseAnnotations:
    """The ratings of folders that ``annotate`` finished for a release.

    Raises:
        InputError: if a folder holds no finished annotations, or those of another release.
    """
    folders, seal = [read_annotations(path) for path in paths], read_manifest(release_dir)["seal"]
    fix = "score the release that was annotated, or annotate this one; release --annotations takes annotations of a build"
    stray = (one for one in folders if one.header["configuration"]["release"].get("seal") != seal)
    refuse(Problem(str(one.path), f"holds annotations of another release than {release_dir}", fix) for one in stray)
    rubrics = {one.header["configuration"]["rubric_hash"]: one.header["rubric"] for one in folders}
    parts = [part for one in folders for part in _parts(one)]
    return ReleaseAnnotations(paths[0], lambda: parts, rubrics)


def _parts(folder: Folder) -> list[pa.RecordBatch]:
    by = {"teacher": folder.teacher, "rubric": folder.rubric, "rubric_hash": folder.header["configuration"]["rubric_hash"]}
    rated = [(case.pair_id, one) for case in folder.cases for one in case.ratings]
    said = {name: [getattr(one, name) for _, one in rated] for name in ("variant", "criterion", "sample", "value")}
    columns = {name: [value] * len(rated) for name, value in by.items()} | said | {"pair_id": [pair for pair, _ in rated]}
    return list(pa.table(columns, COLUMNS).to_batches(TOGETHER))


def ratings_of(folder: Folder, judge: str | None = None) -> Iterator[tuple[str, str, float, str]]:
    """(item, rater, rating, criterion) of annotations in the form of the table of a review, by a judge of that name or the teacher's.

    Each further sample of a judge is a rater of its own.
    """
    for case in folder.cases:
        for one in case.ratings:
            item = f"{case.pair_id}:{one.variant}" if one.variant else case.dialogue_id
            yield item, sampled(judge or folder.teacher, one.sample + 1), one.value, one.criterion


def sampled(judge: str, sample: int) -> str:
    """What a sample of a judge is called as a rater, by its number."""
    return f"{judge}#{sample}" if sample > 1 else judge
