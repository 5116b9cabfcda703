"""Judges as metrics: annotations of pairs' texts as precomputed scores, one row per criterion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from empathy_eval.base.errors import InputError, Problem, input_error, nearest
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest, signature_line
from empathy_eval.base.tabular import WHOLE, table_batches
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import CONTRASTS, JUDGED, TEXT, column, files_of, read_manifest
from empathy_eval.design.rubrics import REWARDS, load_rubric, packaged_rubrics
from empathy_eval.design.taxonomy import load_taxonomy, strategy_flow
from empathy_eval.evaluation.external.score_file import VARIANTS, PrecomputedScores

ANNOTATIONS, STRATEGIES = "annotations", "strategies"
# What the strategies that a judge names give a text: S_flow by strategy.
FLOW = "flow"
# What is read of annotations; they hold more.
COLUMNS = pa.schema(
    [*((name, TEXT) for name in ("pair_id", "dialogue_id", "variant", "teacher", "rubric", "rubric_hash", "criterion")),
     ("sample", pa.int64()), ("value", pa.float64())]
)  # fmt: skip
MADE = "annotate the release, and release it again with --annotations DIR; or score it with --annotations DIR"


@dataclass(frozen=True)
class JudgedCriterion:
    """A criterion of a rubric by which a judge rated texts, or ``whole`` dialogues."""

    teacher: str
    rubric: str
    rubric_hash: str
    name: str
    whole: bool = False

    @property
    def judge(self) -> str:
        """``teacher/rubric``."""
        return f"{self.teacher}/{self.rubric}"

    @property
    def row(self) -> str:
        """The name of its row: ``teacher/rubric:criterion``."""
        return f"{self.judge}:{self.name}"


@dataclass(frozen=True)
class ReleaseAnnotations:
    """Ratings of the texts of a release: the columns of ``COLUMNS`` in parts, which can be read repeatedly.

    ``rubrics`` hold, by hash, what the rubrics say; of packaged ones it is known without.
    """

    where: Path
    parts: Callable[[], Iterable[pa.RecordBatch]]
    rubrics: Mapping[str, Mapping[str, Any]]

    def criteria(self) -> list[JudgedCriterion]:
        """Returns all criteria, in the order of first occurrence."""
        names = ("teacher", "rubric", "rubric_hash", "criterion", "whole")
        parts = (zip(*(part.column(name).to_pylist() for name in names), strict=True) for part in self._of_texts())
        return [JudgedCriterion(*row) for row in dict.fromkeys(row for rows in parts for row in rows)]

    def precomputed_scores(self, names: Sequence[str], known: Mapping[bool, set[str]]) -> list[PrecomputedScores]:
        """The criteria of judges by name, ``teacher/rubric`` or ``teacher/rubric:criterion`` (none: all), as scores of known texts.

        Args:
            known: the ids of the release: of pairs, and of dialogues that it holds ``whole`` in their variants.

        Raises:
            InputError: if there is no such judge, or what it said cannot be put on the stand.
        """
        criteria = self.criteria()
        if not criteria:
            fix = "annotate it with a rubric that rates replies, or whole dialogues in their variants"
            raise input_error(self.where, "holds no rating of a text", fix)
        unknown = [name for name in names if not any(name in (criterion.judge, criterion.row) for criterion in criteria)]
        if unknown:
            fix, known_names = (
                f"name one of {', '.join(_listed(criteria))}",
                [name for criterion in criteria for name in (criterion.judge, criterion.row)],
            )
            what = 'there is no judge "{}" in its annotations'
            raise InputError([Problem(str(self.where), what.format(name), fix + nearest(name, known_names)) for name in unknown])
        chosen = [criterion for criterion in criteria if not names or {criterion.judge, criterion.row} & set(names)]
        if twice := [criterion.row for criterion in chosen if [other.row for other in chosen].count(criterion.row) > 1]:
            raise input_error(
                self.where, f'"{twice[0]}" was annotated with more than one version of its rubric', "keep the annotations of one version"
            )
        return [self._criterion_scores(criterion, known[criterion.whole]) for criterion in chosen]

    def _criterion_scores(self, criterion: JudgedCriterion, known: set[str]) -> PrecomputedScores:
        better = self._better(criterion)
        ratings = pa.Table.from_batches([_of(part, criterion) for part in self._of_texts()], _SAID)
        if stray := set(ratings.column("pair_id").unique().to_pylist()) - known:
            raise input_error(
                self.where, f'"{min(stray)}" is annotated, but is not a {"dialogue" if criterion.whole else "pair"} of this release', WHOLE
            )
        if stray := set(ratings.column("variant").unique().to_pylist()) - set(VARIANTS):
            raise input_error(self.where, f'"{min(stray)}" is annotated, but is not a text of a pair', WHOLE)
        # In one thread: the sum of a mean goes in the order of the rows.
        table = ratings.group_by(["pair_id", "variant"], use_threads=False).aggregate(
            [("value", "mean"), ("value", "count"), ("sample", "count_distinct")]
        )
        if table.column("value_count") != table.column("sample_count_distinct"):
            raise input_error(self.where, f'"{criterion.row}" has the same sample of a text twice', "keep one annotation of each sample")
        texts = zip(table.column("pair_id").to_pylist(), table.column("variant").to_pylist(), strict=True)
        scores = _comparable(dict(zip(texts, table.column("value_mean").to_pylist(), strict=True)))
        signature = signature_line(
            teacher=criterion.teacher, rubric=f"{criterion.rubric}@{criterion.rubric_hash[:16]}", criterion=criterion.name,
            samples=pc.max(table.column("value_count")).as_py() or 0,
            values=digest(sorted([*text, value] for text, value in scores.items()))[:16], reads="context",
        )  # fmt: skip
        return PrecomputedScores(criterion.row, signature, scores, better == "high", family=criterion.judge, whole=criterion.whole)

    def _of_texts(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows on texts with a value, and whether they are of whole dialogues, whose ids replace those of pairs."""
        for part in map(_with_wholes, self.parts()):
            rows = part.filter(pc.and_(part.column("pair_id").is_valid(), part.column("value").is_valid()))
            if rows.num_rows and any(column.null_count for column in rows.columns):
                raise input_error(self.where, "an annotation of a text does not match the data contract", WHOLE)
            if not pc.all(pc.less_equal(pc.abs(rows.column("value")), REWARDS.high), min_count=0).as_py():  # NaN is not either
                raise input_error(self.where, f"the value of an annotation is not between {REWARDS.low:g} and {REWARDS.high:g}", WHOLE)
            yield rows

    def _better(self, criterion: JudgedCriterion) -> str:
        """Returns the better end of a criterion's values.

        Raises:
            InputError: if nothing says it.
        """
        rubric = self.rubrics.get(criterion.rubric_hash) or _packaged(criterion)
        if rubric and rubric["kind"] in ("reward", "strategies"):
            return "high"
        better = next((other["better"] for other in rubric["criteria"] if other["name"] == criterion.name), None) if rubric else None
        if better not in ("high", "low"):
            fix = "score the folder of annotations itself, with --annotations DIR: it holds its rubric"
            raise input_error(self.where, f'it is not known which values of "{criterion.row}" are better', fix)
        return str(better)


def _with_wholes(part: pa.RecordBatch) -> pa.RecordBatch:
    """Returns ratings with dialogue ids for whole dialogues; ratings of reference dialogues are dropped, as no contrast has them."""
    whole = part.column("pair_id").is_null()
    unit = pc.if_else(
        pc.and_(whole, part.column("variant").is_null()), None, pc.coalesce(part.column("pair_id"), part.column("dialogue_id"))
    )
    columns = {name: part.column(name) for name in COLUMNS.names if name not in ("pair_id", "dialogue_id")}
    return pa.RecordBatch.from_pydict({"pair_id": unit, **columns, "whole": whole})


_SAID = pa.schema([COLUMNS.field(name) for name in ("pair_id", "variant", "sample", "value")])


def release_annotations(release_dir: Path) -> ReleaseAnnotations:
    """Returns the ratings that a release holds.

    Raises:
        InputError: if it holds none, or a file is damaged or of other columns.
    """
    if not any(path.is_file() for name in (ANNOTATIONS, STRATEGIES) for path in files_of(release_dir, name)):
        raise input_error(release_dir, "holds no annotations", MADE)
    entries = read_manifest(release_dir).get(ANNOTATIONS, [])
    return ReleaseAnnotations(release_dir, lambda: _parts(release_dir), {entry["rubric_hash"]: entry["says"] for entry in entries})


def read_judges(release_dir: Path, names: Sequence[str], annotations: ReleaseAnnotations | None = None) -> list[PrecomputedScores]:
    """Reads the named judges (none named: all) from the given annotations, or from those of the release.

    Those of whole dialogues are ``whole``, and their scores are of dialogues in the place of pairs.

    Raises:
        InputError: as :func:`release_annotations` and :meth:`ReleaseAnnotations.precomputed_scores`.
    """
    if not names and annotations is None:
        return []
    wholes = all(path.is_file() for path in files_of(release_dir, CONTRASTS))
    dialogues = column(release_dir, CONTRASTS, "dialogue_id") if wholes else ()
    return (annotations or release_annotations(release_dir)).precomputed_scores(
        names, {False: {*column(release_dir, "pairs", "pair_id")}, True: {*dialogues}}
    )


def _parts(release_dir: Path) -> Iterator[pa.RecordBatch]:
    for config, schema in ((ANNOTATIONS, COLUMNS), (STRATEGIES, _NAMED)):
        paths = files_of(release_dir, config)
        for path in paths if any(part.is_file() for part in paths) else ():
            for batch in table_batches(path, schema.names):
                part = batch.select(schema.names)
                try:
                    if part.schema.types != schema.types:
                        raise ValueError("other columns")
                    yield part if config == ANNOTATIONS else _flow(part)
                except ValueError as error:
                    raise input_error(path, "does not match the data contract", WHOLE) from error


_NAMED = pa.schema(
    [*(COLUMNS.field(name) for name in ("pair_id", "variant", "teacher", "rubric", "rubric_hash", "sample")),
     *(JUDGED[STRATEGIES].field(name) for name in ("ideal", "named"))]
)  # fmt: skip


def _flow(part: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the strategies that a judge names, as values of the criterion ``flow``."""
    names = [strategy.name for strategy in load_taxonomy().strategies]
    used = [names.index(name) for name in part.column("named").to_pylist()]
    values = strategy_flow(part.column("ideal").to_pylist(), used) if used else []
    added = {"criterion": pa.array([FLOW] * part.num_rows, TEXT), "value": pa.array(values, pa.float64())}
    added |= {"dialogue_id": pa.nulls(part.num_rows, COLUMNS.field("dialogue_id").type)}
    columns = [added[name] if name in added else part.column(name) for name in COLUMNS.names]
    return pa.RecordBatch.from_arrays(columns, schema=COLUMNS)


def _of(part: pa.RecordBatch, criterion: JudgedCriterion) -> pa.RecordBatch:
    """Returns the rows of one criterion of one judge."""
    key = {
        "teacher": criterion.teacher,
        "rubric": criterion.rubric,
        "rubric_hash": criterion.rubric_hash,
        "criterion": criterion.name,
        "whole": criterion.whole,
    }
    mask = pa.array([True] * part.num_rows, pa.bool_())
    for name, value in key.items():
        mask = pc.and_(mask, pc.equal(part.column(name), value))
    return pa.RecordBatch.from_arrays(part.filter(mask).select(_SAID.names).columns, schema=_SAID)


def _comparable(scores: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Returns scores of complete pairs: of a pair both variants, of its controls both or none."""
    pairs = {pair for pair, _ in scores if all((pair, name) in scores for name in PAIR_VARIANTS)}
    whole = {pair for pair in pairs if all((pair, name) in scores for name in CELLS)}
    return {(pair, name): value for (pair, name), value in scores.items() if pair in (whole if name in CONTROLS else pairs)}


def _packaged(criterion: JudgedCriterion) -> Mapping[str, Any] | None:
    """Returns a packaged rubric, if the judge used exactly this one."""
    rubric = load_rubric(data_folder("rubrics") / f"{criterion.rubric}.yaml") if criterion.rubric in packaged_rubrics() else None
    return asdict(rubric) if rubric and rubric.hash == criterion.rubric_hash else None


def _listed(criteria: Sequence[JudgedCriterion]) -> list[str]:
    """Returns the judges, each with its criteria, for messages."""
    by: dict[str, list[str]] = {}
    for criterion in criteria:
        by.setdefault(criterion.judge, []).append(criterion.name)
    return [f"{judge} (:{', :'.join(names)})" for judge, names in by.items()]
