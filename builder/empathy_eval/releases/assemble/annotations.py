"""Annotations as configs of a release: matched with its texts, written by split, and listed in its manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from empathy_eval.base.errors import InputError, Problem, collecting, refuse, some_of
from empathy_eval.base.schemas import check
from empathy_eval.base.tabular import TableRow, TableWriter
from empathy_eval.design.canary import canary_entry
from empathy_eval.design.dataset import JUDGED, column, split_of
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.design.taxonomy import Taxonomy, load_taxonomy
from empathy_eval.raters.judges.annotations import Annotated, AnnotationFolder, read_annotations
from empathy_eval.raters.judges.cases import Case, cases_of, describe_source, dialogues_of
from empathy_eval.raters.judges.replay import Replay
from empathy_eval.releases.assemble.rows import ConfigWriter

# Name of a row of each config in the provenance.
PROVENANCE_NAMES = {"annotations": "annotation", "comparisons": "comparison", "strategies": "strategy"}
SHOWN = 5
# Columns that identify a row in its config.
IDENTITY_COLUMNS = ("pair_id", "dialogue_id", "variant", "variant_1", "variant_2", "teacher", "rubric", "criterion", "sample")


@dataclass(frozen=True)
class IncludedAnnotations:
    """Annotations in a release: their cases in its order, and their entry in its manifest."""

    cases: tuple[Annotated, ...]
    manifest_entry: dict[str, Any]


def read_annotation_folders(folders: Sequence[Path], trusted: Collection[str] = ()) -> list[AnnotationFolder]:
    """Returns finished annotations, by rubric and judge.

    A judge named as ``module:name`` is code that is run to render its requests: it must be among the ``trusted``.

    Raises:
        InputError: if some are missing, damaged or not finished, are by code that is not trusted, or have the same judge and rubric; all at
            once.
    """
    annotations, problems = list[AnnotationFolder](), list[Problem]()
    for path in folders:
        try:
            folder = read_annotations(path)
        except InputError as error:
            problems += error.problems
            continue
        if missing := sum(case.status == "missing" for case in folder.cases):
            what = f"{missing} of {len(folder.cases)} cases are missing"
            problems.append(Problem(str(path), what, "run the same annotate command again to ask for them"))
        kind = folder.header["configuration"]["judge"]["kind"]
        if ":" in kind and kind not in trusted:
            what = f'was made by the judge "{kind}", which is Python code that release must run to render its requests'
            problems.append(Problem(str(path), what, f"review that code, then allow it with --trust-judge {kind}"))
        for other in annotations:
            if (folder.rubric, folder.teacher) == (other.rubric, other.teacher):
                what = f'has the same judge "{folder.teacher}" and rubric "{folder.rubric}" as {other.path}'
                problems.append(Problem(str(path), what, "name only one of them"))
        annotations.append(folder)
    refuse(problems)
    return sorted(annotations, key=lambda folder: (folder.rubric, folder.teacher))


def add_annotations(folder: Path, annotations: Sequence[AnnotationFolder], facts: dict[str, Any]) -> dict[str, Any]:
    """Writes the configs of annotations into a release whose data is written, and their requests into its provenance.

    Returns the facts of the manifest that change: ``annotations``, and ``counts`` by config and split.

    Raises:
        InputError: if annotations are of other texts, or of none of this release; all at once.
    """
    included, problems, catalogue = list[IncludedAnnotations](), list[Problem](), load_catalogue()
    for judge in annotations:
        with collecting(problems):
            included.append(_match_release(folder, judge, f"{facts['name']} {facts['version']}", catalogue))
    refuse(problems)
    counts = facts["counts"] | _write_configs(folder, included, canary_entry(facts))
    return {"counts": counts, "annotations": [judge.manifest_entry for judge in included]}


def _match_release(folder: Path, annotations: AnnotationFolder, name: str, catalogue: Catalogue) -> IncludedAnnotations:
    """Returns the cases whose texts are in this release, without those of turns and dialogues that it does not have."""
    entry = describe_annotations(annotations)
    check(entry, "annotated_by", annotations.path)
    replay = Replay(entry, catalogue, annotations.path, own=True)
    by_place = {(case.dialogue_id, case.turn): case for case in annotations.cases}
    pairs = [(by_place[case.dialogue_id, case.turn], case) for case in released_cases(folder, entry, by_place.keys())]
    changed = [annotated.pair_id or annotated.dialogue_id for annotated, case in pairs if not replay.matches(annotated, case)]
    if changed or not pairs:
        has = f"other texts at {some_of(changed, SHOWN)}" if changed else "none of its texts"
        fix = f"annotate {name} itself: the ledger has the answers about unchanged texts"
        if entry["judge"]["kind"] == "given":
            fix += "; a judge that was passed in from Python must add nothing to its requests, or must be named as module:name"
        what = f"annotates {describe_source(entry['release'])}, but {name} has {has}"
        raise InputError([Problem(str(annotations.path), what, fix)])
    included = [annotated for annotated, _ in pairs]
    names, included_names = ({case.pair_id or case.dialogue_id for case in cases} for cases in (annotations.cases, included))
    own = {"cases": len(included), "left_out": sorted(names - included_names)}
    return IncludedAnnotations(tuple(included), entry | count_annotations(included) | own)


def describe_annotations(annotations: AnnotationFolder) -> dict[str, Any]:
    """Returns the manifest entry of annotations, before they are matched with a release."""
    header = annotations.header
    configuration = header["configuration"]
    return {
        "teacher": annotations.teacher,
        "rubric": annotations.rubric,
        "rubric_hash": configuration["rubric_hash"],
        "release": configuration["release"],
        "turns": configuration["turns"],
        "variants": configuration["variants"],
        "samples": configuration["samples_of_a_text"],
        "tries": {"samples": configuration["samples"], "repairs": configuration["repairs"]},
        "judge": configuration["judge"],
        "says": header["rubric"],
        "templates": header["templates"],
        "schemas": header["schemas"],
        "builder": header["builder"],
        "cases": len(annotations.cases),
        "left_out": [],
        **count_annotations(annotations.cases),
    }


def count_annotations(cases: Sequence[Annotated]) -> dict[str, Any]:
    """Counts rows by config, and refused answers by reason, of cases; sums the usage of their answers."""
    fields = {"annotations": "ratings", "comparisons": "comparisons", "strategies": "strategies"}
    counts = {config: sum(len(getattr(case, name)) for case in cases) for config, name in fields.items()}
    failures = (failure for case in cases for failure in case.failures if failure.final)
    failed = Counter(f"{failure.kind}: {reason}" for failure in failures for reason in failure.reasons)
    usage: dict[str, Counter[str]] = {}
    for case in cases:
        for model, row in case.usage.items():
            usage.setdefault(model, Counter()).update(row)
    return {
        "counts": {name: count for name, count in counts.items() if count},
        "unannotated_by_reason": dict(sorted(failed.items())),
        "usage": {model: dict(sorted(row.items())) for model, row in sorted(usage.items())},
    }


def released_cases(folder: Path, entry: dict[str, Any], places: Any) -> list[Case]:
    """Returns the cases at places (dialogue, turn) that a release has, with its texts and in its order."""
    annotated = set(places)
    if entry["says"]["unit"] == "dialogue":
        names = column(folder, "dialogues", "dialogue_id")
        dialogues = dialogues_of(folder, None, entry["variants"]) if annotated else ()
        cases = [case for case in dialogues if (case.dialogue_id, None) in annotated]
    else:
        names = column(folder, "pairs", "pair_id")
        turns = zip(names, column(folder, "pairs", "dialogue_id"), column(folder, "pairs", "turn"), strict=True)
        skipped = frozenset(name for name, *place in turns if tuple(place) not in annotated)
        cases = cases_of(folder, None, entry["variants"], skipped)
    order = {name: index for index, name in enumerate(names)}
    return sorted(cases, key=lambda case: order[case.pair_id or case.dialogue_id])


def annotation_rows(case: Annotated, entry: dict[str, Any], taxonomy: Taxonomy) -> Iterator[tuple[str, TableRow]]:
    """Yields (config, row) of all annotations of a case; strategies by their names, as in ``pairs``."""
    judge = {name: entry[name] for name in ("teacher", "rubric", "rubric_hash")}
    pair = {"pair_id": case.pair_id}
    for rating in case.ratings:
        yield "annotations", {**pair, "dialogue_id": case.dialogue_id, "turn": case.turn, **judge, **vars(rating)}
    for compared in case.comparisons:
        yield "comparisons", {**pair, **judge, **vars(compared), "consistent": compared.consistent, "winner": compared.winner}
    for named in case.strategies:
        ideal = [named.ideal[strategy.abbreviation] for strategy in taxonomy.strategies]
        yield "strategies", {**pair, **judge, **vars(named), "ideal": ideal, "named": taxonomy[named.named].name}


def row_identity(row: TableRow) -> tuple[Any, ...]:
    """Returns the values that identify a row in its config."""
    return tuple(row.get(name) for name in IDENTITY_COLUMNS)


def request_keys_of(config: str, row: TableRow) -> list[str]:
    """Returns the keys of the requests behind a row."""
    return [row[name] for name in JUDGED[config].names if "request_key" in name]


def _write_configs(folder: Path, included: Sequence[IncludedAnnotations], canary: dict[str, str]) -> dict[str, dict[str, int]]:
    """Writes the configs that have rows, and their requests; returns the number of rows by config and split."""
    taxonomy = load_taxonomy()
    requests = dict[tuple[str, str | None, str, str, str], None]()
    configs = [config for config in JUDGED if any(config in judge.manifest_entry["counts"] for judge in included)]
    with ConfigWriter(folder, canary, configs) as data:
        for case, entry in ((case, judge.manifest_entry) for judge in included for case in judge.cases):
            for config, row in annotation_rows(case, entry, taxonomy):
                data.add(config, split_of(case.dialogue_id), row)
                about = case.dialogue_id, case.pair_id, PROVENANCE_NAMES[config], row["teacher"]
                requests |= {(*about, key): None for key in request_keys_of(config, row)}
    _add_provenance(folder, list(requests))
    return data.counts


def _add_provenance(folder: Path, requests: Sequence[tuple[str, str | None, str, str, str]]) -> None:
    """Appends the requests behind annotations to the provenance."""
    path = folder / "provenance.parquet"
    partial = path.with_suffix(".partial")
    with pq.ParquetFile(path) as table, TableWriter(partial, table.schema_arrow) as writer:
        for group in range(table.num_row_groups):
            writer.add_table(table.read_row_group(group))
        for dialogue_id, pair_id, what, model, key in requests:
            values = {"dialogue_id": dialogue_id, "pair_id": pair_id, "what": what, "method": "judge", "model": model}
            writer.add({**values, "request_key": key})
    partial.replace(path)
