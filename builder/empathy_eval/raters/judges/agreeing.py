"""What ``agree`` is given, as one: tables of ratings, folders of annotations and records of reviews."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, nearest, refuse
from empathy_eval.base.schemas import read_json
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.provenance import Provenance, file_of
from empathy_eval.design.rubrics import Rubric, load_rubric, rubric_of
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.generation.build_folder import BUILD
from empathy_eval.raters.agreement import Agreement, Table, agree, read_tables
from empathy_eval.raters.agreement.agree import TagAudit, odd_options, strangers
from empathy_eval.raters.agreement.experts import PANEL
from empathy_eval.raters.agreement.panel import CROWD, CROWD_AS, GROUPS, Judge, Panel, frameworks_of, off_scale
from empathy_eval.raters.agreement.reliability import Reliability, reliability
from empathy_eval.raters.agreement.table import Facts
from empathy_eval.raters.judges.annotations import AGAIN, Folder, ratings_of, read_annotations, sampled
from empathy_eval.raters.judges.tag_audit import audit_of
from empathy_eval.raters.review.record import rating_rows, read_record

# item, rater, rating, criterion
Row = tuple[str, str, float, str]
ROW = itemgetter("item", "rater", "rating", "criterion")


def agreement_of(
    paths: Sequence[Path], judges: Sequence[str], chance: ResamplingSettings, level: str, release_dir: Path | None = None
) -> Agreement:
    """The agreement of all ratings, and the audit of all strategy tags, that these hold.

    A file called ``.json`` is a record of a review, with both; a folder of annotations has ratings, or strategies that ``release_dir``
    has the plan of. Without ratings there is the audit alone.

    Raises:
        InputError: if something cannot be read, a judge is in no table, or strategies are of another release or none is given; all
            problems with tags at once.
    """
    given, tags = given_in(paths, chance, level, release_dir)
    if tags.rows and not (given.tables or given.rows):
        if judges:
            raise input_error("judge", f'"{judges[0]}" is not a rater: there are only tags, and no table of ratings', "leave --judge out")
        return Agreement(level, (), (), (), {}, tags, provenance=_provenance(paths, release_dir, chance, level=level))
    found = agree(_table(given), judges, chance.resamples, chance.seed, level)
    provenance = _provenance(paths, release_dir, chance, judges=list(judges), level=level)
    return replace(found, tags=tags if tags.rows else None, provenance=provenance)


def _provenance(paths: Sequence[Path], release_dir: Path | None, chance: ResamplingSettings, **settings: Any) -> Provenance:
    """What figures of agreement are of: the tables, records and folders that were read, and the release with the plan of tags."""
    files = [file_of(path, BUILD) for path in paths]
    return Provenance.of(release_dir, files=files, **settings, resamples=chance.resamples, seed=chance.seed)


@dataclass(frozen=True)
class AgreementInput:
    """What there is beside tags: ``tables`` that are still to be read (files, and folders of ratings), and the ratings of records."""

    tables: tuple[Path, ...]
    rows: tuple[Row, ...]


def given_in(paths: Sequence[Path], chance: ResamplingSettings, level: str, release_dir: Path | None) -> tuple[AgreementInput, TagAudit]:
    """The tables, the ratings of records, and the audit of all tags.

    Raises:
        InputError: as :func:`agreement_of`.
    """
    refuse(odd_options(chance.resamples, level))
    records = [read_record(path) for path in paths if path.suffix == ".json"]
    naming = [path for path in paths if path.is_dir() and _names_strategies(path)]
    tables = [path for path in paths if path.suffix != ".json" and path not in naming]
    folders = [read_annotations(path) for path in naming]
    if folders:
        _check(folders, release_dir)
    tags = audit_of(records, folders, release_dir, chance)
    return AgreementInput(tuple(tables), tuple(map(ROW, (row for record in records for row in rating_rows(record))))), tags


def _table(given: AgreementInput) -> Table:
    """The ratings of tables and of records."""
    if given.tables and given.rows:
        return Table.of([*given.rows, *read_tables(given.tables).rows()])
    return Table.of(given.rows) if given.rows or not given.tables else read_tables(given.tables)


def _names_strategies(path: Path) -> bool:
    header = path / BUILD
    return header.is_file() and bool(read_json(header, "annotations", AGAIN)["rubric"]["kind"] == "strategies")


def _check(folders: Sequence[Folder], release_dir: Path | None) -> None:
    if release_dir is None:
        where, fix = str(folders[0].path), "name the release that was annotated: --release RELEASE"
        raise input_error(where, "holds strategies, but not the planned ones", fix)
    seal, problems, seen = read_manifest(release_dir)["seal"], list[Problem](), set[tuple[str, str]]()
    for one in folders:
        if one.header["configuration"]["release"].get("seal") != seal:
            what = f"holds annotations of another release than {release_dir}"
            problems.append(Problem(str(one.path), what, "name the release that was annotated"))
        if (one.teacher, one.rubric) in seen:
            problems.append(Problem(str(one.path), f'is by "{one.teacher}" and "{one.rubric}", like another folder', "name one of them"))
        seen.add((one.teacher, one.rubric))
    refuse(problems)


# A further sample of a judge, by the name of its rater.
SAMPLE = re.compile(r"(.+)#([1-9][0-9]{0,3})", re.DOTALL)


@dataclass(frozen=True)
class Named:
    """What is said of raters and criteria beside what tables and folders say; a rubric is a file or the name of a packaged one."""

    judges: Sequence[str] = ()
    crowd: Sequence[str] = ()
    crowd_as: str = "mean"
    rubrics: Sequence[str | Path] = ()


@dataclass
class _Read:
    """The table of all that was given, and what its columns and the headers of folders say."""

    table: Table
    facts: Facts
    judges: dict[str, Judge] = field(default_factory=dict)
    rubrics: list[Rubric] = field(default_factory=list)


def reliability_of(
    paths: Sequence[Path], named: Named, chance: ResamplingSettings, level: str, release_dir: Path | None = None
) -> tuple[Agreement, Reliability]:
    """The agreement of experts and judges, and all figures of the page of reliability.

    Folders of annotations are judges by themselves, and the records of reviews hold experts.

    Raises:
        InputError: as ``agreement_of``; for a rater or a rubric that is not there or fits nothing, a rater of two roles, no expert at all,
            and ratings that are not on the scale of their rubric.
    """
    given, tags = given_in(paths, chance, level, release_dir)
    rubrics = [load_rubric(one) for one in named.rubrics]
    found = _read([path for path in given.tables if not path.is_dir()], [path for path in given.tables if path.is_dir()], given.rows)
    _check_panels(found.table, named, rubrics)
    panel = _panel(found, named)
    frameworks = frameworks_of(found.table.without(panel.crowd), found.facts.said["framework"], [*rubrics, *found.rubrics])
    refuse(off_scale(found.table, frameworks, panel.crowd))
    judges = [one.rater for one in panel.judges]
    agreement = agree(found.table.without(panel.crowd), judges, chance.resamples, chance.seed, level)
    roles = {"judges": judges, "crowd": list(named.crowd), "crowd_as": named.crowd_as, "rubrics": [one.name for one in rubrics]}
    provenance = _provenance(paths, release_dir, chance, **roles, level=level)
    agreed = replace(agreement, tags=tags if tags.rows else None, provenance=provenance)
    return agreed, reliability(found.table, panel, frameworks, agreement, chance).of(provenance)


def _read(files: Sequence[Path], folders: Sequence[Path], rows: Sequence[Row]) -> _Read:
    facts, annotated = Facts(), [read_annotations(path) for path in folders]
    names = _names(annotated)
    if not (annotated or rows) and files:
        return _Read(read_tables(files, facts), facts)
    parts = [*rows, *(read_tables(files, facts).rows() if files else ())]
    parts += [row for one, name in zip(annotated, names, strict=True) for row in ratings_of(one, name)]
    found = _Read(Table.of(parts), facts)
    for one, name in zip(annotated, names, strict=True):
        rubric, samples = rubric_of(one.header["rubric"]), one.header["configuration"]["samples_of_a_text"]
        for sample in range(1, samples + 1):
            found.judges[sampled(name, sample)] = Judge(sampled(name, sample), name, one.teacher, rubric.style, sample)
        if rubric.kind == "rating" and rubric.hash not in {known.hash for known in found.rubrics}:
            found.rubrics.append(rubric)
    return found


def _names(folders: Sequence[Folder]) -> list[str]:
    """What the judges of folders are called: their model, and with it their style where one model judges in several."""
    styles: dict[str, set[str]] = {}
    for one in folders:
        styles.setdefault(one.teacher, set()).add(one.header["rubric"]["style"])
    return [f"{one.teacher}, {one.header['rubric']['style']}" if len(styles[one.teacher]) > 1 else one.teacher for one in folders]


def _check_panels(table: Table, named: Named, rubrics: Sequence[Rubric]) -> None:
    problems = [*strangers(table, "judge", named.judges), *strangers(table, "crowd", named.crowd)]
    if named.crowd_as not in CROWD_AS:
        fix = f"use one of {', '.join(CROWD_AS)}{nearest(named.crowd_as, CROWD_AS)}"
        problems.append(Problem("crowd as", f'"{named.crowd_as}" is not known', fix))
    for rubric in rubrics:
        criteria = [one.name for one in rubric.criteria]
        if rubric.kind != "rating":
            problems.append(Problem(f'rubric "{rubric.name}"', f'is of kind "{rubric.kind}", which has no scales', "name one of ratings"))
        elif not set(criteria) & set(table.criteria):
            what = f"has none of the criteria of the table, {', '.join(table.criteria[:PANEL])}"
            problems.append(Problem(f'rubric "{rubric.name}"', what, f"leave it out; its criteria are {', '.join(criteria)}"))
    refuse(problems)


def _panel(found: _Read, named: Named) -> Panel:
    """Who is who: by options, by columns, and by folders, which must not contradict each other."""
    roles, problems = dict[str, str](), list[Problem]()
    for source, role, names in _said(found, named):
        for name in names:
            if roles.setdefault(name, role) != role:
                what = f'has the role "{roles[name]}", but {source} makes it "{role}"'
                problems.append(Problem(f'rater "{name}"', what, "keep one of the two"))
    for name in found.table.raters:
        if name not in roles and (part := SAMPLE.fullmatch(name)) and roles.get(part[1]) == "judge":
            roles[name] = "judge"
    experts = tuple(name for name in found.table.raters if roles.get(name, "expert") == "expert")
    crowd = tuple(name for name in found.table.raters if roles.get(name) == CROWD)
    if not experts:
        problems.append(Problem("raters", "none of them is an expert: all are judges or of the crowd", "leave one of them out"))
    for name in [one for one in GROUPS if one in found.table.raters and roles.get(one) != CROWD]:
        problems.append(Problem(f'rater "{name}"', "has the name of a group of raters on the page", "rename this rater"))
    judges, odd = _judges([name for name in found.table.raters if roles.get(name) == "judge"], found)
    refuse([*problems, *odd])
    return Panel(experts, judges, crowd, named.crowd_as)


def _said(found: _Read, named: Named) -> Iterator[tuple[str, str, Sequence[str]]]:
    """(source, role, raters) of all that is said of roles."""
    for role, names in (("judge", named.judges), (CROWD, named.crowd)):
        yield f"--{role}", role, names
    yield "its folder", "judge", [name for name in found.judges if name in found.table.raters]
    for name, role in found.facts.said["role"].items():
        yield "the column role", role, [name]


def _judges(raters: Sequence[str], found: _Read) -> tuple[tuple[Judge, ...], list[Problem]]:
    """The judges, each with the judge whose sample it is: by its name (NAME#2), or by one model, style and numbered samples."""
    said, judges, problems, first = found.facts.said, list[Judge](), list[Problem](), dict[tuple[str | None, ...], Judge]()
    numbered = sorted(raters, key=lambda name: (int(said["sample"].get(name, 1)), name))
    for name in numbered:
        part = SAMPLE.fullmatch(name)
        of, number = (part[1], int(part[2])) if part and part[1] in raters else (name, 1)
        model, style = (said[column].get(name, said[column].get(of)) for column in ("model", "style"))
        one = found.judges.get(name) or Judge(name, of, model, style, int(said["sample"].get(name, number)))
        if name in said["sample"] and (model or style) and of == name:
            one = replace(one, judge=first.setdefault((model, style), one).judge)
        elif name in said["sample"] and one.sample > 1 and of == name:
            what = f"is sample {one.sample} of a judge that is not named"
            problems.append(Problem(f'rater "{name}"', what, "give the samples of a judge one model or style, or call them NAME#2"))
        judges.append(one)
    taken = dict[tuple[str, int], str]()
    for one in judges:
        if (other := taken.setdefault((one.judge, one.sample), one.rater)) != one.rater:
            what = f'is sample {one.sample} of "{one.judge}", as "{other}" is'
            problems.append(Problem(f'rater "{one.rater}"', what, "number the samples of a judge 1, 2, 3 …"))
    return tuple(sorted(judges, key=lambda one: (one.judge, one.sample, one.rater))), problems
