"""Agreement of raters from the inputs of ``agree``: tables, annotations and reviews combined, roles assigned, results computed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, nearest, refuse
from empathy_eval.base.schemas import read_json
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.provenance import Provenance, file_of
from empathy_eval.design.rubrics import Rubric, load_rubric, rubric_of
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.generation.outcomes import BUILD
from empathy_eval.raters.agreement import Agreement, RatingTable, agree, read_tables
from empathy_eval.raters.agreement.agree import TagAudit, option_problems, unknown_raters
from empathy_eval.raters.agreement.experts import PANEL
from empathy_eval.raters.agreement.panel import CROWD, CROWD_AS, GROUPS, JudgeRater, Panel, frameworks_of, off_scale
from empathy_eval.raters.agreement.reliability import Reliability, reliability
from empathy_eval.raters.agreement.table import RaterFacts
from empathy_eval.raters.judges.annotations import AnnotationFolder, ratings_of, read_annotations, sampled
from empathy_eval.raters.judges.cases import AGAIN
from empathy_eval.raters.judges.tag_audit import audit_of
from empathy_eval.raters.review.record import TABLE_ROW, rating_rows, read_record

# item, rater, rating, criterion
RatingRow = tuple[str, str, float, str]


def agreement_of(
    paths: Sequence[Path], judges: Sequence[str], chance: ResamplingSettings, level: str, release_dir: Path | None = None
) -> Agreement:
    """Agreement of all ratings, and the audit of all strategy tags, in these inputs.

    A ``.json`` file is a record of a review, with both; a folder of annotations has ratings, or strategies whose plan is in
    ``release_dir``. Without ratings there is the audit alone.

    Raises:
        InputError: if something cannot be read, a judge is in no table, or strategies are of another release or none is given; all problems
            with tags at once.
    """
    inputs, tags = read_inputs(paths, chance, level, release_dir)
    if tags.rows and not (inputs.tables or inputs.rows):
        if judges:
            raise input_error("judge", f'"{judges[0]}" is not a rater: there are only tags, and no table of ratings', "leave --judge out")
        return Agreement(level, (), (), (), {}, tags, provenance=_provenance(paths, release_dir, chance, level=level))
    agreement = agree(_table(inputs), judges, chance.resamples, chance.seed, level)
    provenance = _provenance(paths, release_dir, chance, judges=list(judges), level=level)
    return replace(agreement, tags=tags if tags.rows else None, provenance=provenance)


def _provenance(paths: Sequence[Path], release_dir: Path | None, chance: ResamplingSettings, **settings: Any) -> Provenance:
    """Provenance of agreement figures: the tables, records and folders, and the release with the planned tags."""
    files = [file_of(path, BUILD) for path in paths]
    return Provenance.of(release_dir, files=files, **settings, resamples=chance.resamples, seed=chance.seed)


@dataclass(frozen=True)
class AgreementInput:
    """Ratings of the inputs: ``tables`` still to be read (files, and folders of ratings), and the rows of records."""

    tables: tuple[Path, ...]
    rows: tuple[RatingRow, ...]


def read_inputs(paths: Sequence[Path], chance: ResamplingSettings, level: str, release_dir: Path | None) -> tuple[AgreementInput, TagAudit]:
    """The tables, the ratings of records, and the audit of all tags.

    Raises:
        InputError: as :func:`agreement_of`.
    """
    refuse(option_problems(chance.resamples, level))
    records = [read_record(path) for path in paths if path.suffix == ".json"]
    naming = [path for path in paths if path.is_dir() and _names_strategies(path)]
    tables = [path for path in paths if path.suffix != ".json" and path not in naming]
    folders = [read_annotations(path) for path in naming]
    if folders:
        _check(folders, release_dir)
    tags = audit_of(records, folders, release_dir, chance)
    return AgreementInput(tuple(tables), tuple(map(TABLE_ROW, (row for record in records for row in rating_rows(record))))), tags


def _table(inputs: AgreementInput) -> RatingTable:
    """Table of the ratings of tables and records."""
    if inputs.tables and inputs.rows:
        return RatingTable.of([*inputs.rows, *read_tables(inputs.tables).rows()])
    return RatingTable.of(inputs.rows) if inputs.rows or not inputs.tables else read_tables(inputs.tables)


def _names_strategies(path: Path) -> bool:
    header = path / BUILD
    return header.is_file() and bool(read_json(header, "annotations", AGAIN)["rubric"]["kind"] == "strategies")


def _check(folders: Sequence[AnnotationFolder], release_dir: Path | None) -> None:
    if release_dir is None:
        where, fix = str(folders[0].path), "name the release that was annotated: --release RELEASE"
        raise input_error(where, "holds strategies, but not the planned ones", fix)
    seal, problems, known = read_manifest(release_dir)["seal"], list[Problem](), set[tuple[str, str]]()
    for folder in folders:
        if folder.header["configuration"]["release"].get("seal") != seal:
            what = f"holds annotations of another release than {release_dir}"
            problems.append(Problem(str(folder.path), what, "name the release that was annotated"))
        if (folder.teacher, folder.rubric) in known:
            what = f'is by "{folder.teacher}" and "{folder.rubric}", like another folder'
            problems.append(Problem(str(folder.path), what, "name one of them"))
        known.add((folder.teacher, folder.rubric))
    refuse(problems)


# A further sample of a judge, by the name of its rater.
SAMPLE = re.compile(r"(.+)#([1-9][0-9]{0,3})", re.DOTALL)


@dataclass(frozen=True)
class PanelOptions:
    """Options for roles and rubrics, beyond what tables and folders state; a rubric is a file or the name of a packaged one."""

    judges: Sequence[str] = ()
    crowd: Sequence[str] = ()
    crowd_as: str = "mean"
    rubrics: Sequence[str | Path] = ()


@dataclass
class _Loaded:
    """The table of all inputs, and the facts in its columns and in the headers of folders."""

    table: RatingTable
    facts: RaterFacts
    judges: dict[str, JudgeRater] = field(default_factory=dict)
    rubrics: list[Rubric] = field(default_factory=list)


def reliability_of(
    paths: Sequence[Path], named: PanelOptions, chance: ResamplingSettings, level: str, release_dir: Path | None = None
) -> tuple[Agreement, Reliability]:
    """Agreement of experts and judges, and all figures of the reliability page.

    Folders of annotations are judges, and records of reviews have experts.

    Raises:
        InputError: as ``agreement_of``; for an unknown rater or rubric or one that does not fit, a rater of two roles, no expert at all,
            and ratings off the scale of their rubric.
    """
    inputs, tags = read_inputs(paths, chance, level, release_dir)
    rubrics = [load_rubric(rubric) for rubric in named.rubrics]
    loaded = _load([path for path in inputs.tables if not path.is_dir()], [path for path in inputs.tables if path.is_dir()], inputs.rows)
    loaded = _with_self_reports(loaded)
    _check_panels(loaded.table, named, rubrics)
    panel = _panel(loaded, named)
    frameworks = frameworks_of(loaded.table.without(panel.crowd), loaded.facts.stated["framework"], [*rubrics, *loaded.rubrics])
    refuse(off_scale(loaded.table, frameworks, panel.crowd))
    judges = [judge.rater for judge in panel.judges]
    agreement = agree(loaded.table.without(panel.crowd), judges, chance.resamples, chance.seed, level)
    roles = {"judges": judges, "crowd": list(named.crowd), "crowd_as": named.crowd_as, "rubrics": [rubric.name for rubric in rubrics]}
    provenance = _provenance(paths, release_dir, chance, **roles, level=level)
    agreed = replace(agreement, tags=tags if tags.rows else None, provenance=provenance)
    return agreed, reliability(loaded.table, panel, frameworks, agreement, chance).of(provenance)


def _load(files: Sequence[Path], folders: Sequence[Path], rows: Sequence[RatingRow]) -> _Loaded:
    facts, annotated = RaterFacts(), [read_annotations(path) for path in folders]
    names = _names(annotated)
    if not (annotated or rows) and files:
        return _Loaded(read_tables(files, facts), facts)
    parts = [*rows, *(read_tables(files, facts).rows() if files else ())]
    parts += [row for folder, name in zip(annotated, names, strict=True) for row in ratings_of(folder, name)]
    loaded = _Loaded(RatingTable.of(parts), facts)
    for folder, name in zip(annotated, names, strict=True):
        rubric, samples = rubric_of(folder.header["rubric"]), folder.header["configuration"]["samples_of_a_text"]
        for sample in range(1, samples + 1):
            loaded.judges[sampled(name, sample)] = JudgeRater(sampled(name, sample), name, folder.teacher, rubric.style, sample)
        if rubric.kind == "rating" and rubric.hash not in {known.hash for known in loaded.rubrics}:
            loaded.rubrics.append(rubric)
    return loaded


# The role of people who rate what they were told themselves, and what they are called together.
SELF, SELF_REPORT = "self", "self-report"


def _with_self_reports(loaded: _Loaded) -> _Loaded:
    """With the raters of the role ``self`` as one, who is held against the experts as a judge is: each of them knows one item alone.

    Raises:
        InputError: if two of them rated one item, or another rater is called as they are together.
    """
    stated = loaded.facts.stated
    own = {name for name, role in stated["role"].items() if role == SELF}
    if not own:
        return loaded
    if SELF_REPORT in loaded.table.raters:
        raise input_error(f'rater "{SELF_REPORT}"', "has the name of all raters of the role self together", "rename this rater")
    rows = ((item, SELF_REPORT if rater in own else rater, *rest) for item, rater, *rest in loaded.table.rows())
    stated["role"] = {name: role for name, role in stated["role"].items() if name not in own} | {SELF_REPORT: "judge"}
    return replace(loaded, table=RatingTable.of(rows))


def _names(folders: Sequence[AnnotationFolder]) -> list[str]:
    """Names of the judges of folders: their model, with their style if one model judges in several."""
    styles: dict[str, set[str]] = {}
    for folder in folders:
        styles.setdefault(folder.teacher, set()).add(folder.header["rubric"]["style"])
    several = {name for name, known in styles.items() if len(known) > 1}
    return [f"{folder.teacher}, {folder.header['rubric']['style']}" if folder.teacher in several else folder.teacher for folder in folders]


def _check_panels(table: RatingTable, named: PanelOptions, rubrics: Sequence[Rubric]) -> None:
    problems = [*unknown_raters(table, "judge", named.judges), *unknown_raters(table, "crowd", named.crowd)]
    if named.crowd_as not in CROWD_AS:
        fix = f"use one of {', '.join(CROWD_AS)}{nearest(named.crowd_as, CROWD_AS)}"
        problems.append(Problem("crowd as", f'"{named.crowd_as}" is not known', fix))
    for rubric in rubrics:
        criteria = [criterion.name for criterion in rubric.criteria]
        if rubric.kind != "rating":
            problems.append(Problem(f'rubric "{rubric.name}"', f'is of kind "{rubric.kind}", which has no scales', "name one of ratings"))
        elif not set(criteria) & set(table.criteria):
            what = f"has none of the criteria of the table, {', '.join(table.criteria[:PANEL])}"
            problems.append(Problem(f'rubric "{rubric.name}"', what, f"leave it out; its criteria are {', '.join(criteria)}"))
    refuse(problems)


def _panel(loaded: _Loaded, named: PanelOptions) -> Panel:
    """Roles of raters from options, columns and folders, which must not contradict each other."""
    roles, problems = dict[str, str](), list[Problem]()
    for source, role, names in _stated_roles(loaded, named):
        for name in names:
            if roles.setdefault(name, role) != role:
                what = f'has the role "{roles[name]}", but {source} makes it "{role}"'
                problems.append(Problem(f'rater "{name}"', what, "keep one of the two"))
    for name in loaded.table.raters:
        if name not in roles and (part := SAMPLE.fullmatch(name)) and roles.get(part[1]) == "judge":
            roles[name] = "judge"
    experts = tuple(name for name in loaded.table.raters if roles.get(name, "expert") == "expert")
    crowd = tuple(name for name in loaded.table.raters if roles.get(name) == CROWD)
    if not experts:
        problems.append(Problem("raters", "none of them is an expert: all are judges or of the crowd", "leave one of them out"))
    for name in [group for group in GROUPS if group in loaded.table.raters and roles.get(group) != CROWD]:
        problems.append(Problem(f'rater "{name}"', "has the name of a group of raters on the page", "rename this rater"))
    judges, odd = _judges([name for name in loaded.table.raters if roles.get(name) == "judge"], loaded)
    refuse([*problems, *odd])
    return Panel(experts, judges, crowd, named.crowd_as)


def _stated_roles(loaded: _Loaded, named: PanelOptions) -> Iterator[tuple[str, str, Sequence[str]]]:
    """(source, role, raters) of all stated roles."""
    for role, names in (("judge", named.judges), (CROWD, named.crowd)):
        yield f"--{role}", role, names
    yield "its folder", "judge", [name for name in loaded.judges if name in loaded.table.raters]
    for name, role in loaded.facts.stated["role"].items():
        yield "the column role", role, [name]


def _judges(raters: Sequence[str], loaded: _Loaded) -> tuple[tuple[JudgeRater, ...], list[Problem]]:
    """The judges, each with the judge whose sample it is: by name (NAME#2), or by one model, style and numbered samples."""
    facts, judges, problems, first = loaded.facts.stated, list[JudgeRater](), list[Problem](), dict[tuple[str | None, ...], JudgeRater]()
    numbered = sorted(raters, key=lambda name: (int(facts["sample"].get(name, 1)), name))
    for name in numbered:
        part = SAMPLE.fullmatch(name)
        base, number = (part[1], int(part[2])) if part and part[1] in raters else (name, 1)
        model, style = (facts[column].get(name, facts[column].get(base)) for column in ("model", "style"))
        judge = loaded.judges.get(name) or JudgeRater(name, base, model, style, int(facts["sample"].get(name, number)))
        if name in facts["sample"] and (model or style) and base == name:
            judge = replace(judge, judge=first.setdefault((model, style), judge).judge)
        elif name in facts["sample"] and judge.sample > 1 and base == name:
            what = f"is sample {judge.sample} of a judge that is not named"
            problems.append(Problem(f'rater "{name}"', what, "give the samples of a judge one model or style, or call them NAME#2"))
        judges.append(judge)
    path_of = dict[tuple[str, int], str]()
    for judge in judges:
        if (other := path_of.setdefault((judge.judge, judge.sample), judge.rater)) != judge.rater:
            what = f'is sample {judge.sample} of "{judge.judge}", as "{other}" is'
            problems.append(Problem(f'rater "{judge.rater}"', what, "number the samples of a judge 1, 2, 3 …"))
    return tuple(sorted(judges, key=lambda judge: (judge.judge, judge.sample, judge.rater))), problems
