"""Quality of a judge: consistency, agreement with judges, preferences and people, accuracy beyond shortcuts, and on crossed items."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import Problem, collecting, input_error, refuse
from empathy_eval.base.files import write_whole
from empathy_eval.base.hashing import signature_line
from empathy_eval.base.json_text import fields_json
from empathy_eval.base.table_text import aligned
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import read_manifest
from empathy_eval.evaluation.crossed_items import crossed_table, read_items, scorer_of_file
from empathy_eval.evaluation.external.score_file import CROSSED_CELLS, CROSSED_COLUMNS, read_crossed_scores
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.evaluation.inversion.rows import CrossedTable
from empathy_eval.evaluation.shortcuts.shortcuts import WORDS_ALONE
from empathy_eval.raters.agreement import Estimate
from empathy_eval.raters.judges import comparisons
from empathy_eval.raters.judges.annotating import Annotating
from empathy_eval.raters.judges.annotations import AnnotationFolder, CriterionScores, TextKey, criterion_scores, read_annotations
from empathy_eval.raters.judges.cases import crossed_text, describe_source
from empathy_eval.raters.judges.comparisons import ALL, JUDGE, LENGTH, Shortcuts
from empathy_eval.raters.judges.estimator import Estimator, chance_of, estimator_of
from empathy_eval.raters.review.record import CRITERIA, read_record

# The two criteria on a reply as a whole; their correlation shows whether they are distinct.
WHOLE = ("flow", "content")


@dataclass(frozen=True)
class ComparedWith:
    """What a judge is compared with: finished annotations of the same release, and the record of a review."""

    folders: tuple[AnnotationFolder, ...] = ()
    reviews: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class CriterionQuality:
    """Figures of one criterion; those that do not apply are None or empty.

    ``with_decisions`` is by teacher and rubric of the preferences, ``with_people`` by figure, ``stance`` by judge and shortcut.
    """

    name: str
    texts: int
    with_itself: Estimate
    with_judges: Estimate | None
    with_decisions: dict[str, Estimate]
    with_people: dict[str, Estimate]
    on_grid: Estimate | None
    distinct: Estimate | None
    stance: dict[str, Estimate]


@dataclass(frozen=True)
class JudgeQuality:
    """Quality of a judge by a rubric; ``together`` is the correlation of flow and content."""

    teacher: str
    rubric: str
    rubric_hash: str
    kind: str
    samples: int
    compared_with: tuple[str, ...] = field(metadata={"name": "beside"})
    criteria: tuple[CriterionQuality, ...]
    together: Estimate | None
    preferences: dict[str, Any] | None
    strategies: dict[str, Any] | None
    missing: int
    unannotated: dict[str, int]
    usage: dict[str, dict[str, int]]

    def to_json(self) -> dict[str, Any]:
        """Figures as JSON values; undefined values are null, with a reason in ``why``."""
        return fields_json(self)


def read_compared(config: Annotating, out: Path, folders: Sequence[Path], reviews: Path | None) -> ComparedWith:
    """Read what annotations of a configuration, in the folder ``out``, are to be compared with.

    Raises:
        InputError: if a folder holds no finished annotations, is ``out`` or named twice, or is of another release, or of another rubric and
            no preferences beside ratings; if the record is not valid, or the rubric has no criterion of it. All problems at once.
    """
    problems, annotated, paths, record = list[Problem](), list[AnnotationFolder](), {out.resolve()}, None
    for path in folders:
        with collecting(problems):
            annotated.append(read_annotations(path))
            problems += [Problem(f"--beside {path}", *misfit) for misfit in _misfits(annotated[-1], config, again=path.resolve() in paths)]
            paths.add(path.resolve())
    if reviews:
        if config.rubric.kind != "rating" or not set(CRITERIA).intersection(criterion.name for criterion in config.rubric.criteria):
            what = f'has no ratings by a criterion of "{config.rubric.name}": people rate {", ".join(CRITERIA)}'
            problems.append(Problem(f"--reviews {reviews}", what, "leave it out, or rate by a rubric with one of these"))
        with collecting(problems):
            record = read_record(reviews)
    refuse(problems)
    return ComparedWith(tuple(annotated), record)


def _misfits(folder: AnnotationFolder, config: Annotating, *, again: bool) -> Iterator[tuple[str, str]]:
    """(what, fix) for annotations that cannot be compared with those of a configuration."""
    configuration, kind = folder.header["configuration"], config.rubric.kind
    if again:
        yield "is --out, or named twice", "name each other folder once"
    if configuration["release"] != config.release:
        yield f"is of another release, {describe_source(configuration['release'])}", "name annotations of this one"
    if folder.comparable_with(kind, config.rubric.hash):
        return
    if kind == "strategies":
        yield "cannot be compared with strategies, which are compared with the plan alone", "leave it out"
    elif kind == "reward":
        yield "cannot be compared with rewards: each reward model has its own scale", "score them together; leave it out here"
    else:
        what = f'is by "{folder.rubric}", but these are by the current text of "{config.rubric.name}"'
        yield what, "name annotations by the same rubric, or preferences beside ratings"


def judge_quality(folder: AnnotationFolder, release_dir: Path, compared: ComparedWith | None = None) -> JudgeQuality:
    """Quality of the judge of finished annotations, compared with what :func:`read_compared` read.

    Raises:
        InputError: if a file of the release is missing, or does not hold what the data contract says.
    """
    manifest = read_manifest(release_dir)
    chance = chance_of(manifest)
    shortcuts = Shortcuts(release_dir, chance.seed, language_of(manifest["configuration"]))
    return quality_with(folder, chance, compared or ComparedWith(), shortcuts)


def quality_with(folder: AnnotationFolder, chance: ResamplingSettings, compared: ComparedWith, shortcuts: Shortcuts) -> JudgeQuality:
    """The same with given shortcuts, which judges of one release share."""
    configuration, kind, release_dir = folder.header["configuration"], folder.kind, shortcuts.release_dir
    inputs = _QualityInputs(folder, compared, shortcuts, estimator_of(folder, chance))
    scored, people = (
        {criterion.name: criterion for criterion in criterion_scores(folder)},
        comparisons.rated_by_people(compared.reviews, release_dir),
    )
    summary = folder.header["summary"]
    return JudgeQuality(
        folder.teacher, folder.rubric, configuration["rubric_hash"], kind, configuration["samples_of_a_text"],
        tuple(f"{folder.teacher}, {folder.rubric}" for folder in compared.folders),
        tuple(inputs.criterion(criterion, people.get(criterion.name)) for criterion in scored.values()),
        _flow_with_content(scored, inputs.estimator),
        comparisons.preferences(folder, inputs.estimator) if kind == "preference" else None,
        comparisons.strategies(folder, release_dir, inputs.estimator) if kind == "strategies" else None,
        summary["missing"], summary["unannotated_by_reason"], summary["usage"],
    )  # fmt: skip


def crossed_quality(annotations: Path, release_dir: Path) -> CrossedTable:
    """Returns what the scores of a judge decide on crossed items, by criterion.

    Writes the scores into the folder ``scores`` of the annotations, a CSV file a criterion that ``score --scores`` reads. A score is the
    mean of the samples, on a scale from 0 (worst) to 1 (best); a reward is as it is.
    """
    folder = read_annotations(annotations, crossed=True)
    names, samples = sorted(case.pair_id or "" for case in folder.cases), folder.header["configuration"]["samples_of_a_text"]
    items, scorers = read_items(release_dir), []
    for criterion in criterion_scores(folder):
        values = criterion.means if folder.kind == "reward" else criterion.merits
        rows = [[(name, *cell, values.get((name, crossed_text(*cell)))) for cell in CROSSED_CELLS] for name in names]
        whole = [row for four in rows if not any(row[-1] is None for row in four) for row in four]
        path = annotations / "scores" / f"{criterion.name}.csv"
        path.parent.mkdir(exist_ok=True)
        write_whole(path, "".join(",".join(map(str, row)) + "\n" for row in [CROSSED_COLUMNS, *whole]))
        if whole and items:
            scores = read_crossed_scores(path, names)
            settings = signature_line(judge=folder.name, rubric_hash=folder.rubric_hash, samples=samples)
            scorers.append(scorer_of_file(replace(scores, signature=f"{settings}|{scores.signature}"), items))
    if not items:
        raise input_error(release_dir, "holds no crossed items", "name the release that was annotated")
    return crossed_table(items, scorers, (), chance_of(read_manifest(release_dir)))


@dataclass(frozen=True)
class _QualityInputs:
    """What each criterion of annotations is compared with."""

    folder: AnnotationFolder
    compared: ComparedWith
    shortcuts: Shortcuts
    estimator: Estimator

    def criterion(self, scored: CriterionScores, people: Mapping[TextKey, float] | None) -> CriterionQuality:
        """Figures of one criterion; ``people`` are their ratings of it, if any."""
        estimator, kind = self.estimator, self.folder.kind
        numbers = kind in ("rating", "reward")
        values = [value for by_sample in scored.by_sample.values() for value in by_sample.values()]
        tenths = sum(math.isclose(value * 10, round(value * 10), abs_tol=1e-9) for value in values)
        preferring = [folder for folder in self.compared.folders if folder.kind == "preference"] if numbers else []
        return CriterionQuality(
            scored.name,
            len(scored.by_sample),
            self._with_itself(scored),
            self._with_judges(scored),
            {f"{folder.teacher}, {folder.rubric}": comparisons.decided(scored, folder, estimator) for folder in preferring},
            {} if people is None else comparisons.beside_people(scored, people, estimator),
            estimator.count(tenths / max(len(values), 1), len(values), share="values-on-the-0.1-grid") if kind == "rating" else None,
            estimator.count(len(set(values)), len(values), number="distinct-values") if numbers else None,
            comparisons.at_equal_closeness(scored, self.shortcuts, estimator),
        )

    def _with_itself(self, scored: CriterionScores) -> Estimate:
        if self.folder.header["configuration"]["samples_of_a_text"] < 2:
            return Estimate.undefined("only one sample", self.estimator.line(len(scored.by_sample), raters="samples"))
        values = {text: [scored.hundredth(value) for value in by_sample.values()] for text, by_sample in scored.by_sample.items()}
        return self.estimator.alpha(values, raters="samples")

    def _with_judges(self, scored: CriterionScores) -> Estimate | None:
        same = [folder for folder in self.compared.folders if folder.rubric_hash == self.folder.rubric_hash]
        if not same:
            return None
        values: dict[TextKey, list[int]] = {text: [scored.hundredth(mean)] for text, mean in scored.means.items()}
        for folder in same:
            other = next(criterion for criterion in criterion_scores(folder) if criterion.name == scored.name)
            for text, mean in other.means.items():
                values.setdefault(text, []).append(scored.hundredth(mean))
        return self.estimator.alpha(values, raters="judges,means-of-samples", beside=",".join(folder.teacher for folder in same))


def _flow_with_content(scored: Mapping[str, CriterionScores], estimator: Estimator) -> Estimate | None:
    if not scored.keys() >= set(WHOLE):
        return None
    flow, other = (scored[name].means for name in WHOLE)
    texts = [text for text in flow if text in other]
    x, y = (np.array([means[text] for text in texts]) for means in (flow, other))
    return estimator.correlation(x, y, [name for name, _ in texts], of=",".join(WHOLE))


NONE = "–"
# Heading, meaning if the heading does not say it, and cell of each column.
COLUMNS: tuple[tuple[str, str, Callable[[CriterionQuality], str]], ...] = (
    ("texts", "", lambda row: f"{row.texts:,}"),
    ("itself", "Krippendorff's alpha over its samples", lambda row: _cell(row.with_itself)),
    ("judges", "Krippendorff's alpha with the other judges", lambda row: _cell(row.with_judges)),
    ("decisions", "share of winners with the better value", lambda row: " ".join(map(_cell, row.with_decisions.values())) or NONE),
    ("people", "quadratic kappa with people", lambda row: _cell(row.with_people.get("kappa"))),
    ("ranks", "Spearman's correlation with people", lambda row: _cell(row.with_people.get("spearman"))),
    ("on 0.1", "share of values on that grid", lambda row: _cell(row.on_grid)),
    ("values", "number of different values", lambda row: _cell(row.distinct, 0)),
    ("right", "share of empathetic texts rated above the equally close apathetic text", lambda row: _with_interval(row.stance.get(JUDGE))),
    ("length", "the same share by length alone", lambda row: _cell(row.stance.get(LENGTH))),
    ("words", "the same share by words alone", lambda row: _cell(row.stance.get(WORDS_ALONE))),
)


def quality_text(quality: JudgeQuality) -> str:
    """Figures as a short table; columns without figures are left out."""
    times = "once" if quality.samples == 1 else f"{quality.samples} times"
    lines = [f'quality of the judge "{quality.teacher}" by "{quality.rubric}", asked {times} per text']
    lines += _table(quality.criteria) if quality.criteria else []
    if quality.together:
        lines.append(f"correlation of flow with content: {quality.together}")
    lines += _preferences(quality.preferences) if quality.preferences else []
    lines += _strategies(quality.strategies) if quality.strategies else []
    if quality.compared_with:
        lines.append(f"beside: {'; '.join(quality.compared_with)}")
    return "\n".join([*lines, f"--json has all figures with their settings, and the reason for each that is not defined ({NONE})"])


def _cell(measure: Estimate | None, places: int = 2) -> str:
    # Adding 0 takes the sign off a negative zero.
    return NONE if measure is None or measure.value is None else f"{round(measure.value, places) + 0.0:.{places}f}"


def _with_interval(measure: Estimate | None) -> str:
    return _cell(measure) + ("" if measure is None or measure.low is None else f" [{measure.low:.2f}, {measure.high:.2f}]")


def _table(criteria: Sequence[CriterionQuality]) -> Iterator[str]:
    """A line a criterion in aligned columns, then the meaning of the columns; columns without a figure are left out."""
    columns = [(heading, meaning, [cell(criterion) for criterion in criteria]) for heading, meaning, cell in COLUMNS]
    columns = [column for column in columns if set(column[2]) != {NONE}]
    rows = zip(["", *(criterion.name for criterion in criteria)], *([heading, *cells] for heading, _, cells in columns), strict=True)
    yield from aligned(list(rows), len(columns) + 1)
    yield "; ".join(f"{heading}: {meaning}" for heading, meaning, _ in columns if meaning)


def _preferences(figures: Mapping[str, Any]) -> Iterator[str]:
    yield f"first place wins: {figures['first']}; flips with the order: {figures['flipped']}"
    for two, shares in figures["won"].items():
        yield f"  {two}: " + ", ".join(f"{name} {_cell(share)}" for name, share in shares.items())


def _strategies(figures: Mapping[str, Any]) -> Iterator[str]:
    overall = figures["named"][ALL]
    yield f"named as planned: {overall['accuracy']}, kappa {overall['kappa']}"
    for variant, named in figures["named"].items():
        if variant != ALL:
            yield f"  {variant}: {_cell(named['accuracy'])}, kappa {_cell(named['kappa'])}"
    yield f"probability of the planned strategy before a reply is seen: {figures['ideal']}"
