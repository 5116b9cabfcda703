"""What a judge is worth: with itself, with other judges, with decisions and with people, and what it tells apart that shortcuts do not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import Problem, collecting, refuse
from empathy_eval.base.table_text import lined
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import read_manifest
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.evaluation.shortcuts.shortcuts import WORDS_ALONE
from empathy_eval.raters.agreement import Measure
from empathy_eval.raters.judges.annotating import Annotating
from empathy_eval.raters.judges.annotations import Folder, Scored, Text, read_annotations, scored_of
from empathy_eval.raters.judges.cases import told
from empathy_eval.raters.judges.comparisons import (
    ALL,
    JUDGE,
    LENGTH,
    Shortcuts,
    at_equal_closeness,
    beside_people,
    decided,
    preferences,
    rated_by_people,
    strategies,
)
from empathy_eval.raters.judges.estimator import Estimator, chance_of, reckoning_of
from empathy_eval.raters.review.record import CRITERIA, read_record

# The two criteria on the whole of a reply, whose correlation says whether they are two.
WHOLE = ("flow", "content")


@dataclass(frozen=True)
class Beside:
    """What a judge is held against: finished annotations of the same release, and the record of a review."""

    folders: tuple[Folder, ...] = ()
    reviews: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class CriterionWorth:
    """The figures of one criterion; those that do not apply are None or empty.

    ``with_decisions`` is by teacher and rubric of the preferences, ``with_people`` by figure, ``stance`` by who tells the texts apart.
    """

    name: str
    texts: int
    with_itself: Measure
    with_judges: Measure | None
    with_decisions: dict[str, Measure]
    with_people: dict[str, Measure]
    on_grid: Measure | None
    distinct: Measure | None
    stance: dict[str, Measure]


@dataclass(frozen=True)
class Worth:
    """What a judge is worth by a rubric; ``together`` is the correlation of flow and content."""

    teacher: str
    rubric: str
    rubric_hash: str
    kind: str
    samples: int
    beside: tuple[str, ...]
    criteria: tuple[CriterionWorth, ...]
    together: Measure | None
    preferences: dict[str, Any] | None
    strategies: dict[str, Any] | None
    missing: int
    unannotated: dict[str, int]
    usage: dict[str, dict[str, int]]

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON values; what is not defined is null, with its reason in ``why``."""
        return asdict(self)


def beside_of(config: Annotating, out: Path, folders: Sequence[Path], reviews: Path | None) -> Beside:
    """Reads what annotations of a configuration, in the folder ``out``, are to be held against.

    Raises:
        InputError: if a folder holds no finished annotations, is ``out`` or named twice, or is of another release, or of another rubric
            and no preferences beside ratings; if the record is not valid, or the rubric has no criterion of it. All problems at once.
    """
    problems, found, seen, record = list[Problem](), list[Folder](), {out.resolve()}, None
    for path in folders:
        with collecting(problems):
            found.append(read_annotations(path))
            problems += [Problem(f"--beside {path}", *one) for one in _misfits(found[-1], config, again=path.resolve() in seen)]
            seen.add(path.resolve())
    if reviews:
        if config.rubric.kind != "rating" or not set(CRITERIA).intersection(one.name for one in config.rubric.criteria):
            what = f'has no ratings by a criterion of "{config.rubric.name}": people rate {", ".join(CRITERIA)}'
            problems.append(Problem(f"--reviews {reviews}", what, "leave it out, or rate by a rubric with one of these"))
        with collecting(problems):
            record = read_record(reviews)
    refuse(problems)
    return Beside(tuple(found), record)


def _misfits(folder: Folder, config: Annotating, *, again: bool) -> Iterator[tuple[str, str]]:
    """(what, fix) for annotations that do not go beside those of a configuration."""
    theirs, kind = folder.header["configuration"], config.rubric.kind
    if again:
        yield "is --out, or named twice", "name each other folder once"
    if theirs["release"] != config.release:
        yield f"is of another release, {told(theirs['release'])}", "name annotations of this one"
    if folder.goes_beside(kind, config.rubric.hash):
        return
    if kind == "strategies":
        yield "cannot be compared with strategies, which are compared with the plan alone", "leave it out"
    elif kind == "reward":
        yield "cannot be compared with rewards: each reward model has its own scale", "score them together; leave it out here"
    else:
        what = f'is by "{folder.rubric}", but these are by the current text of "{config.rubric.name}"'
        yield what, "name annotations by the same rubric, or preferences beside ratings"


def worth_of(folder: Folder, release_dir: Path, beside: Beside | None = None) -> Worth:
    """What the judge of finished annotations is worth, beside what :func:`beside_of` read.

    Raises:
        InputError: if a file of the release is not there, or does not hold what the data contract says.
    """
    manifest = read_manifest(release_dir)
    chance = chance_of(manifest)
    return worth_by(folder, chance, beside or Beside(), Shortcuts(release_dir, chance.seed, language_of(manifest["configuration"])))


def worth_by(folder: Folder, chance: ResamplingSettings, beside: Beside, shortcuts: Shortcuts) -> Worth:
    """The same of a release whose shortcuts are given: judges of one release share them."""
    configuration, kind, release_dir = folder.header["configuration"], folder.header["rubric"]["kind"], shortcuts.release_dir
    bench = _Bench(folder, beside, shortcuts, reckoning_of(folder, chance))
    scored, people = {one.name: one for one in scored_of(folder)}, rated_by_people(beside.reviews, release_dir)
    summary = folder.header["summary"]
    return Worth(
        folder.teacher, folder.rubric, configuration["rubric_hash"], kind, configuration["samples_of_a_text"],
        tuple(f"{one.teacher}, {one.rubric}" for one in beside.folders),
        tuple(bench.criterion(one, people.get(one.name)) for one in scored.values()),
        _together(scored, bench.reckoning),
        preferences(folder, bench.reckoning) if kind == "preference" else None,
        strategies(folder, release_dir, bench.reckoning) if kind == "strategies" else None,
        summary["missing"], summary["unannotated_by_reason"], summary["usage"],
    )  # fmt: skip


@dataclass(frozen=True)
class _Bench:
    """What each criterion of annotations is held against."""

    folder: Folder
    beside: Beside
    shortcuts: Shortcuts
    reckoning: Estimator

    def criterion(self, scored: Scored, people: Mapping[Text, float] | None) -> CriterionWorth:
        """The figures of one criterion, which ``people`` rated by too where it is one of theirs."""
        reckoning, kind = self.reckoning, self.folder.header["rubric"]["kind"]
        numbers = kind in ("rating", "reward")
        values = [value for some in scored.given.values() for value in some.values()]
        tenths = sum(math.isclose(value * 10, round(value * 10), abs_tol=1e-9) for value in values)
        preferring = [one for one in self.beside.folders if one.header["rubric"]["kind"] == "preference"] if numbers else []
        return CriterionWorth(
            scored.name,
            len(scored.given),
            self._with_itself(scored),
            self._with_judges(scored),
            {f"{one.teacher}, {one.rubric}": decided(scored, one, reckoning) for one in preferring},
            {} if people is None else beside_people(scored, people, reckoning),
            reckoning.count(tenths / max(len(values), 1), len(values), share="values-on-the-0.1-grid") if kind == "rating" else None,
            reckoning.count(len(set(values)), len(values), number="distinct-values") if numbers else None,
            at_equal_closeness(scored, self.shortcuts, reckoning),
        )

    def _with_itself(self, scored: Scored) -> Measure:
        if self.folder.header["configuration"]["samples_of_a_text"] < 2:
            return Measure.undefined("only one sample", self.reckoning.line(len(scored.given), raters="samples"))
        given = {text: [scored.hundredth(one) for one in some.values()] for text, some in scored.given.items()}
        return self.reckoning.alpha(given, raters="samples")

    def _with_judges(self, scored: Scored) -> Measure | None:
        hashed = self.folder.header["configuration"]["rubric_hash"]
        same = [one for one in self.beside.folders if one.header["configuration"]["rubric_hash"] == hashed]
        if not same:
            return None
        given: dict[Text, list[int]] = {text: [scored.hundredth(mean)] for text, mean in scored.means.items()}
        for folder in same:
            other = next(one for one in scored_of(folder) if one.name == scored.name)
            for text, mean in other.means.items():
                given.setdefault(text, []).append(scored.hundredth(mean))
        return self.reckoning.alpha(given, raters="judges,means-of-samples", beside=",".join(one.teacher for one in same))


def _together(scored: Mapping[str, Scored], reckoning: Estimator) -> Measure | None:
    if not scored.keys() >= set(WHOLE):
        return None
    one, other = (scored[name].means for name in WHOLE)
    texts = [text for text in one if text in other]
    x, y = (np.array([means[text] for text in texts]) for means in (one, other))
    return reckoning.correlation(x, y, [name for name, _ in texts], of=",".join(WHOLE))


NONE = "–"
# By figure the heading of its column, and what it says where that is not plain.
COLUMNS = {
    "texts": ("texts", ""),
    "itself": ("itself", "Krippendorff's alpha over its samples"),
    "judges": ("judges", "Krippendorff's alpha with the other judges"),
    "decisions": ("decisions", "share of winners with the better value"),
    "kappa": ("people", "quadratic kappa with people"),
    "spearman": ("ranks", "Spearman's correlation with people"),
    "grid": ("on 0.1", "share of values on that grid"),
    "distinct": ("values", "number of different values"),
    "right": ("right", "share of kind texts rated above the equally close cold text"),
    "length": ("length", "the same share by length alone"),
    "words": ("words", "the same share by words alone"),
}


def shown(worth: Worth) -> str:
    """The figures as a short table; those that nothing speaks of have no column."""
    times = "once" if worth.samples == 1 else f"{worth.samples} times"
    lines = [f'quality of the judge "{worth.teacher}" by "{worth.rubric}", asked {times} per text']
    lines += _table({one.name: _cells(one) for one in worth.criteria}) if worth.criteria else []
    if worth.together:
        lines.append(f"correlation of flow with content: {worth.together}")
    lines += _preferences(worth.preferences) if worth.preferences else []
    lines += _strategies(worth.strategies) if worth.strategies else []
    if worth.beside:
        lines.append(f"beside: {'; '.join(worth.beside)}")
    return "\n".join([*lines, f"--json has all figures with their settings, and the reason for each that is not defined ({NONE})"])


def _cells(one: CriterionWorth) -> dict[str, str]:
    decisions = " ".join(map(_plain, one.with_decisions.values()))
    return {
        "texts": f"{one.texts:,}",
        "itself": _plain(one.with_itself),
        "judges": _plain(one.with_judges),
        "decisions": decisions or NONE,
        "kappa": _plain(one.with_people.get("kappa")),
        "spearman": _plain(one.with_people.get("spearman")),
        "grid": _plain(one.on_grid),
        "distinct": f"{one.distinct.value:.0f}" if one.distinct and one.distinct.value is not None else NONE,
        "right": _whole(one.stance.get(JUDGE)),
        "length": _plain(one.stance.get(LENGTH)),
        "words": _plain(one.stance.get(WORDS_ALONE)),
    }


def _plain(measure: Measure | None) -> str:
    # Adding 0 takes the sign off a negative zero.
    return NONE if measure is None or measure.value is None else f"{round(measure.value, 2) + 0.0:.2f}"


def _whole(measure: Measure | None) -> str:
    interval = "" if measure is None or measure.low is None else f" [{measure.low:.2f}, {measure.high:.2f}]"
    return _plain(measure) + interval


def _table(rows: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """A line a criterion, its figures in columns of one width each, and what the columns say; those without a figure are left out."""
    kept = {key: said for key, said in COLUMNS.items() if any(row[key] != NONE for row in rows.values())}
    columns = [["", *rows], *([heading, *(row[key] for row in rows.values())] for key, (heading, _) in kept.items())]
    yield from lined(list(zip(*columns, strict=True)), len(columns))
    yield "; ".join(f"{heading}: {told}" for heading, told in kept.values() if told)


def _preferences(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"first place wins: {found['first']}; flips with the order: {found['flipped']}"
    for two, shares in found["won"].items():
        yield f"  {two}: " + ", ".join(f"{name} {_plain(one)}" for name, one in shares.items())


def _strategies(found: Mapping[str, Any]) -> Iterator[str]:
    overall = found["named"][ALL]
    yield f"named as planned: {overall['accuracy']}, kappa {overall['kappa']}"
    for variant, figures in found["named"].items():
        if variant != ALL:
            yield f"  {variant}: {_plain(figures['accuracy'])}, kappa {_plain(figures['kappa'])}"
    yield f"probability of the planned strategy before a reply is seen: {found['ideal']}"
