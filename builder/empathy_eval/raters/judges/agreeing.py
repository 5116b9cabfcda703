"""What ``agree`` is given, as one: tables of ratings, folders of annotations and records of reviews."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.base.schemas import read_json
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.provenance import Provenance, file_of
from empathy_eval.evaluation.inversion import Chance
from empathy_eval.generation.build_folder import BUILD
from empathy_eval.raters.agreement import Agreement, Table, agree, read_tables
from empathy_eval.raters.agreement.agree import odd_options
from empathy_eval.raters.agreement.tags import Tag, TagAudit
from empathy_eval.raters.judges.folder import AGAIN, Folder, read_annotations
from empathy_eval.raters.judges.tag_audit import PEOPLE, planned_in, signed_by, signed_by_people, tag_audit, tags_of_judge, tags_of_people
from empathy_eval.raters.review.record import rating_rows, read_record

# item, rater, rating, criterion
Row = tuple[str, str, float, str]


def agreement_of(paths: Sequence[Path], judges: Sequence[str], chance: Chance, level: str, release_dir: Path | None = None) -> Agreement:
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
        return Agreement(level, (), (), (), {}, tags, provenance=provenance_of(paths, release_dir, level=level, **_drawn(chance)))
    found = agree(_table(given), judges, chance.resamples, chance.seed, level)
    provenance = provenance_of(paths, release_dir, judges=list(judges), level=level, **_drawn(chance))
    return replace(found, tags=tags if tags.rows else None, provenance=provenance)


def provenance_of(paths: Sequence[Path], release_dir: Path | None, **settings: Any) -> Provenance:
    """What figures of agreement are of: the tables, records and folders that were read, and the release with the plan of tags."""
    return Provenance.of(release_dir, files=[file_of(path, BUILD) for path in paths], **settings)


def _drawn(chance: Chance) -> dict[str, int]:
    return {"resamples": chance.resamples, "seed": chance.seed}


@dataclass(frozen=True)
class Given:
    """What there is beside tags: ``tables`` that are still to be read (files, and folders of ratings), and the ratings of records."""

    tables: tuple[Path, ...]
    rows: tuple[Row, ...]


def given_in(paths: Sequence[Path], chance: Chance, level: str, release_dir: Path | None) -> tuple[Given, TagAudit]:
    """The tables, the ratings of records, and the audit of all tags.

    Raises:
        InputError: as :func:`agreement_of`.
    """
    if wrong := odd_options(chance.resamples, level):
        raise InputError(wrong)
    records = [read_record(path) for path in paths if path.suffix == ".json"]
    naming = [path for path in paths if path.is_dir() and _names_strategies(path)]
    tables = [path for path in paths if path.suffix != ".json" and path not in naming]
    tags = _audit(records, [read_annotations(path) for path in naming], chance, release_dir)
    return Given(tuple(tables), tuple(row for record in records for row in _ratings(record))), tags


def _table(given: Given) -> Table:
    """The ratings of tables and of records."""
    if given.tables and given.rows:
        return Table.of([*given.rows, *read_tables(given.tables).rows()])
    return Table.of(given.rows) if given.rows or not given.tables else read_tables(given.tables)


def _names_strategies(path: Path) -> bool:
    header = path / BUILD
    return header.is_file() and bool(read_json(header, "annotations", AGAIN)["rubric"]["kind"] == "strategies")


def _ratings(record: dict[str, Any]) -> Iterator[Row]:
    for row in rating_rows(record):
        yield row["item"], row["rater"], row["rating"], row["criterion"]


def _audit(records: Sequence[dict[str, Any]], folders: Sequence[Folder], chance: Chance, release_dir: Path | None) -> TagAudit:
    """The audit of the tags of all records, as people's, and of each folder."""
    if folders:
        _check(folders, release_dir)
    people = [tag for record in records for tag in tags_of_people(record)]
    given: dict[str, tuple[str, Sequence[Tag]]] = {PEOPLE: (signed_by_people(records), people)}
    planned = planned_in(release_dir) if folders and release_dir else {}
    given |= {f"{one.teacher}/{one.rubric}": (signed_by(one), list(tags_of_judge(one, planned))) for one in folders}
    return tag_audit(given, chance)


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
    if problems:
        raise InputError(problems)
