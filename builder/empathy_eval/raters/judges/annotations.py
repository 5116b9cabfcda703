"""Annotations by judges: the results of a case, their folder, which is read whole or not at all, and the scores in it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.json_text import fields_from_json
from empathy_eval.base.schemas import read_json
from empathy_eval.base.tabular import json_rows, schema_of, table_batches
from empathy_eval.completions.requests import Failure
from empathy_eval.design.canary import CANARY, canary_warnings, numbered_lines
from empathy_eval.design.dataset import JUDGED, files_of, read_manifest
from empathy_eval.design.rubrics import REWARD, Rubric, rubric_of
from empathy_eval.design.taxonomy import strategy_flow
from empathy_eval.evaluation.external.custom_texts import REPLY, SIDES, SUFFIX
from empathy_eval.evaluation.external.judges import ANNOTATIONS, COLUMNS, FLOW, ReleaseAnnotations
from empathy_eval.generation.outcomes import BUILD, OUTCOMES, folder_canary_warnings
from empathy_eval.metrics.protocol import reply_of
from empathy_eval.raters.judges.cases import AGAIN, finished_lines


@dataclass(frozen=True)
class Rating:
    """The value of one criterion for one text, or for a whole dialogue (without a variant where it has its references), and the reason that
    came before it."""

    variant: str | None
    criterion: str
    sample: int
    value: float
    reason: str
    request_key: str


@dataclass(frozen=True)
class JudgeComparison:
    """A judge's preference of two texts in both orders: ``winner_12`` with the first by name as A, ``winner_21`` with it as B."""

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
        """The text that won twice; None for a tie."""
        return self.winner_12 if self.consistent else None

    @property
    def share_of_first(self) -> float:
        """Share of both orders that the first by name won: one half if the position decided."""
        return ((self.winner_12 == self.variant_1) + (self.winner_21 == self.variant_1)) / 2


@dataclass(frozen=True)
class NamedStrategy:
    """The strategy that a judge names for a text, and the probabilities it gave before it saw one, by abbreviation."""

    variant: str
    sample: int
    named: str
    request_key: str
    ideal: dict[str, float]
    ideal_request_key: str


def flow_of(named: NamedStrategy) -> Rating:
    """The strategy that a text uses as a rating: its validity under what the judge thought right before it saw one."""
    names = list(named.ideal)
    value = float(strategy_flow(list(named.ideal.values()), names.index(named.named))[0])
    return Rating(named.variant, FLOW, named.sample, value, "", named.request_key)


@dataclass(frozen=True)
class Annotated:
    """Results of a case. ``failures`` hold the reasons for what is unannotated; ``missing`` is the status without an answer."""

    dialogue_id: str
    turn: int | None
    pair_id: str | None
    status: str
    reasons: tuple[str, ...] = ()
    ratings: tuple[Rating, ...] = ()
    comparisons: tuple[JudgeComparison, ...] = ()
    strategies: tuple[NamedStrategy, ...] = ()
    failures: tuple[Failure, ...] = ()
    usage: dict[str, dict[str, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


# Name of the subfolder with annotations of attacked texts, and of the key in its configuration.
ATTACKS = "attacks"


@dataclass(frozen=True)
class AnnotationFolder:
    """Finished annotations: their header and the cases, in the order of the sample."""

    path: Path
    header: dict[str, Any]
    cases: tuple[Annotated, ...]

    @property
    def teacher(self) -> str:
        """Name of the judge: that of its model, or the kind of a custom one."""
        return teacher_of(self.header["configuration"]["judge"])

    @property
    def rubric(self) -> str:
        """Name of the rubric."""
        return str(self.header["configuration"]["rubric"])

    @property
    def rubric_hash(self) -> str:
        """Hash of the rubric."""
        return str(self.header["configuration"]["rubric_hash"])

    @property
    def kind(self) -> str:
        """Kind of the rubric: rating, preference, strategies or reward."""
        return str(self.header["rubric"]["kind"])

    @property
    def name(self) -> str:
        """``teacher/rubric``, as ``score`` names it."""
        return f"{self.teacher}/{self.rubric}"

    def comparable_with(self, kind: str, rubric_hash: str) -> bool:
        """Whether it can be compared with ratings, preferences or rewards by a rubric: the same one, or preferences with numbers."""
        # Reward models share no scale.
        same = kind in ("rating", "preference") and self.rubric_hash == rubric_hash
        return same or (kind in ("rating", "reward") and self.kind == "preference")


def teacher_of(judge: Mapping[str, Any]) -> str:
    """Name of a judge with this configuration."""
    return str(judge.get("model", judge["kind"]))


def resumed(folder: Path) -> str:
    """The command that finishes the judging of attacked texts."""
    return f"run the same empathy-eval annotate … --out {folder} --attacks again"


def read_annotations(folder: Path, *, attacked: bool = False, crossed: bool = False) -> AnnotationFolder:
    """Read finished annotations after checking that they are unchanged; ``attacked`` and ``crossed`` say which texts they must be of.

    Raises:
        InputError: if there are none, they are not valid, not those of the header, or of the other kind.
    """
    path = folder / BUILD
    if not path.is_file():
        fix = resumed(folder.parent) if attacked else f"run empathy-eval annotate … --out {folder} to its end"
        raise input_error(folder, "holds no finished annotations", fix)
    header = read_json(path, "annotations", AGAIN)
    configuration, rubric = header["configuration"], rubric_of(header["rubric"])
    if (ATTACKS in configuration) != attacked:
        other = "holds annotations of attacked texts, which are not texts of a release"
        what = "holds no annotations of attacked texts" if attacked else other
        raise input_error(folder, what, "name the folder of the annotations themselves")
    if configuration.get("crossed", False) != crossed:
        raise input_error(folder, "holds annotations of crossed items", "give the files in its folder scores to score --scores")
    if (rubric.name, rubric.hash) != (configuration["rubric"], configuration["rubric_hash"]):
        raise input_error(path, f'the text of the rubric "{configuration["rubric"]}" does not match its hash', AGAIN)
    if any(criterion.scale and not criterion.scale.low < criterion.scale.high for criterion in rubric.criteria):
        raise input_error(path, f'the rubric "{rubric.name}" has a scale of width 0', AGAIN)
    return AnnotationFolder(folder, header, tuple(_cases(folder / OUTCOMES, header["outcomes"], rubric)))


def _cases(path: Path, digest: str, rubric: Rubric) -> Iterator[Annotated]:
    """Cases of a file, each once, with ratings on the scales of the rubric."""
    seen = set[str]()
    for where, value in finished_lines(path, digest, "annotated", "annotations"):
        case: Annotated = fields_from_json(Annotated, value, {})
        if (name := case.pair_id or case.dialogue_id) in seen:
            raise input_error(where, f'"{name}" occurs twice', AGAIN)
        seen.add(name)
        refuse(Problem(where, what, AGAIN) for what in _rating_problems(case, rubric))
        yield case


def _rating_problems(case: Annotated, rubric: Rubric) -> Iterator[str]:
    """Problems of the ratings of a case in view of the rubric."""
    scales = {criterion.name: criterion.scale for criterion in rubric.criteria}
    for rating in case.ratings:
        scale = scales.get(rating.criterion)
        if scales and rating.criterion not in scales:
            yield f'"{rating.criterion}" is not a criterion of the rubric'
        elif scale and (fault := scale.fault(rating.value)):
            yield f'the value {rating.value} for "{rating.criterion}" {fault}'
    if len({(rating.variant, rating.criterion, rating.sample) for rating in case.ratings}) < len(case.ratings):
        yield "rates the same text by the same criterion twice"


# A pair or a dialogue, and one of its variants; a dialogue with its references has an empty one, two texts that are compared have both,
# "apathetic - reference".
TextKey = tuple[str, str]
# Means are rounded, so that the order of summation does not matter.
PLACES = 9
# Rewards have no scale: only their order is used.
BARE: dict[str, Any] = {"name": REWARD, "scale": None, "better": None}


@dataclass(frozen=True)
class CriterionScores:
    """Scores of a judge on one criterion, by text and sample, on a scale from ``low`` to ``high``; ``better`` is the better end.

    A preference is on a scale from 0 to 1: the share of both orders that the first by name won. A reward may be any number.
    """

    name: str
    low: float
    high: float
    better: str
    by_sample: Mapping[TextKey, Mapping[int, float]]

    @cached_property
    def means(self) -> dict[TextKey, float]:
        """Mean over the samples of each text."""
        return {text: round(math.fsum(values.values()) / len(values), PLACES) for text, values in self.by_sample.items()}

    @cached_property
    def merits(self) -> dict[TextKey, float]:
        """The means on a scale from 0 (worst) to 1 (best)."""
        shares = {text: (value - self.low) / (self.high - self.low) for text, value in self.means.items()}
        return {text: round(1 - share if self.better == "low" else share, PLACES) for text, share in shares.items()}

    def hundredth(self, value: float) -> int:
        """Nearest hundredth of the scale to a value; alpha is computed in such steps."""
        return round(round((value - self.low) / (self.high - self.low) * 100, PLACES))


def criterion_scores(folder: AnnotationFolder) -> tuple[CriterionScores, ...]:
    """Scores of annotations, by criterion in the order of the rubric; empty for strategies."""
    rubric = folder.header["rubric"]
    criteria = [BARE] if rubric["kind"] == "reward" else rubric["criteria"]
    values: dict[str, dict[TextKey, dict[int, float]]] = {criterion["name"]: {} for criterion in criteria}
    for case in folder.cases:
        name = case.pair_id or case.dialogue_id
        for rating in case.ratings:
            values[rating.criterion].setdefault((name, rating.variant or ""), {})[rating.sample] = rating.value
        for comparison in case.comparisons:
            compared = values[rubric["criteria"][0]["name"]].setdefault((name, pair_name(comparison.variant_1, comparison.variant_2)), {})
            compared[comparison.sample] = comparison.share_of_first
    scales = [criterion["scale"] or {"low": 0.0, "high": 1.0} for criterion in criteria]
    return tuple(
        CriterionScores(criterion["name"], scale["low"], scale["high"], criterion["better"] or "high", values[criterion["name"]])
        for criterion, scale in zip(criteria, scales, strict=True)
    )


def pair_name(first: str, other: str) -> str:
    """Name of a pair of compared variants, whichever comes first."""
    return " - ".join(sorted((first, other)))


def dialogue_of(name: str) -> str:
    """Dialogue of a pair, or of a dialogue itself."""
    return name.partition("-t")[0]


# Ratings per record batch: smaller batches are slower.
TOGETHER = 50_000


def annotations_in(paths: Sequence[Path], release_dir: Path) -> ReleaseAnnotations:
    """Ratings of folders that ``annotate`` finished for a release.

    Raises:
        InputError: if a folder holds no finished annotations, or those of another release.
    """
    folders, seal = [read_annotations(path) for path in paths], read_manifest(release_dir)["seal"]
    fix = "score the release that was annotated, or annotate this one; release --annotations takes annotations of a build"
    stray = (folder for folder in folders if folder.header["configuration"]["release"].get("seal") != seal)
    refuse(Problem(str(folder.path), f"holds annotations of another release than {release_dir}", fix) for folder in stray)
    rubrics = {folder.rubric_hash: folder.header["rubric"] for folder in folders}
    parts = [part for folder in folders for part in _parts(folder)]
    return ReleaseAnnotations(paths[0], lambda: parts, rubrics)


def _parts(folder: AnnotationFolder) -> list[pa.RecordBatch]:
    by = {"teacher": folder.teacher, "rubric": folder.rubric, "rubric_hash": folder.rubric_hash}
    rated = [(case, rating) for case in folder.cases for rating in (*case.ratings, *map(flow_of, case.strategies))]
    rated_columns = {name: [getattr(rating, name) for _, rating in rated] for name in ("variant", "criterion", "sample", "value")}
    columns = {name: [value] * len(rated) for name, value in by.items()} | rated_columns
    columns |= {name: [getattr(case, name) for case, _ in rated] for name in ("pair_id", "dialogue_id")}
    return list(pa.table(columns, COLUMNS).to_batches(TOGETHER))


def reasons_in(paths: Sequence[Path], release_dir: Path, pairs: Collection[str]) -> dict[tuple[str, str, str], str]:
    """By judge (``teacher/rubric:criterion``), pair and variant the reason of its first sample: of folders, or of what a release holds."""
    reason_of: dict[tuple[str, str, str], str] = {}
    for folder in map(read_annotations, paths):
        for case in folder.cases:
            for rating in case.ratings if case.pair_id in pairs else ():
                if rating.sample == 0 and rating.variant:
                    reason_of[f"{folder.name}:{rating.criterion}", str(case.pair_id), rating.variant] = rating.reason
    names = ["pair_id", "variant", "teacher", "rubric", "criterion", "sample", "reason"]
    for path in () if paths else [rating for rating in files_of(release_dir, ANNOTATIONS) if rating.is_file()]:
        for batch in table_batches(path, names):
            for row in batch.filter(pc.is_in(batch.column("pair_id"), pa.array(sorted(pairs), pa.string()))).to_pylist():
                if row["sample"] == 0 and row["variant"]:
                    reason_of[f"{row['teacher']}/{row['rubric']}:{row['criterion']}", row["pair_id"], row["variant"]] = row["reason"] or ""
    return {key: reason for key, reason in reason_of.items() if reason}


def ratings_of(folder: AnnotationFolder, judge: str | None = None) -> Iterator[tuple[str, str, float, str]]:
    """(item, rater, rating, criterion) of annotations as in the table of a review; the rater is ``judge``, by default the teacher.

    Each further sample of a judge is a rater of its own.
    """
    for case in folder.cases:
        name = case.pair_id or case.dialogue_id
        for rating in case.ratings:
            item = f"{name}:{rating.variant}" if rating.variant else name
            yield item, sampled(judge or folder.teacher, rating.sample + 1), rating.value, rating.criterion


def sampled(judge: str, sample: int) -> str:
    """Name of a sample of a judge as a rater."""
    return f"{judge}#{sample}" if sample > 1 else judge


def canary_scan(source: Path, files: Sequence[Path], annotations: Sequence[Path], *, judged: bool) -> list[str]:
    """A warning for each of what is put on a stand in which the canary stands.

    These are the replies of a file of texts; lines of files of scores, but for the head of a table; answers in folders of annotations, and
    with ``judged`` the reasons in the annotations of the release.

    Args:
        source: the release, or a ``.jsonl`` file of texts; all are known to be readable.
    """
    own = source.suffix.lower() == SUFFIX
    canary = None if own else read_manifest(source).get(CANARY)
    warnings = canary_warnings(_replies(source)) if own else []
    for path in files:
        warnings += canary_warnings(numbered_lines(path, head=path.suffix.lower() != SUFFIX), canary)
    for folder in annotations:
        warnings += folder_canary_warnings(folder) + folder_canary_warnings(folder / ATTACKS)
    return warnings + (canary_warnings(_reasons(source), canary) if judged and not own else [])


def _replies(path: Path) -> Iterator[tuple[str, str]]:
    """What was asked for comes from elsewhere: the replies alone."""
    for number, row in json_rows(path):
        if isinstance(row, dict):
            yield f"{path}: line {number}", " ".join(reply_of(row[name]) for name in (REPLY, *SIDES) if name in row)


def _reasons(release_dir: Path) -> Iterator[tuple[str, str]]:
    """The reasons that judges gave, of each config of annotations that the release has."""
    for config in [config_name for config_name in JUDGED if config_name in read_manifest(release_dir)["counts"]]:
        for path in files_of(release_dir, config):
            names = [name for name in schema_of(path).names if name.startswith("reason")]
            rows = (row for batch in (table_batches(path, names) if names else ()) for row in batch.to_pylist())
            yield from ((f"{path}: row {number}", " ".join(filter(None, row.values()))) for number, row in enumerate(rows))
