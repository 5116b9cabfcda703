"""Annotations as configs of a release: taken where they are of its very texts, written by split, and told in its manifest."""

from __future__ import annotations

import contextlib
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
from empathy_eval.design.dataset import JUDGED, SPLITS, column, file_of, split_of
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.design.taxonomy import Taxonomy, load_taxonomy
from empathy_eval.raters.judges.annotations import Annotated, AnnotationFolder, read_annotations
from empathy_eval.raters.judges.cases import Case, cases_of, describe_source, dialogues_of
from empathy_eval.raters.judges.replay import Replay

# What a row of each config is called in the provenance.
PROVENANCE_NAMES = {"annotations": "annotation", "comparisons": "comparison", "strategies": "strategy"}
SHOWN = 5
# What tells a row from the others of its config.
IDENTITY_COLUMNS = ("pair_id", "dialogue_id", "variant", "variant_1", "variant_2", "teacher", "rubric", "criterion", "sample")


@dataclass(frozen=True)
class IncludedAnnotations:
    """The cases of finished annotations that are in a release, in its order, and what its manifest says of them."""

    cases: tuple[Annotated, ...]
    said: dict[str, Any]


def read_annotation_folders(folders: Sequence[Path], trusted: Collection[str] = ()) -> list[AnnotationFolder]:
    """Finished annotations, by rubric and judge.

    A judge that they name as ``module:name`` is code, which is run to know its requests: it must be among the ``trusted``.

    Raises:
        InputError: if some are not there, not whole or not finished, are by code that is not trusted, or two of them are by one judge and
            rubric; all at once.
    """
    found, problems = list[AnnotationFolder](), list[Problem]()
    for path in folders:
        try:
            one = read_annotations(path)
        except InputError as error:
            problems += error.problems
            continue
        if missing := sum(case.status == "missing" for case in one.cases):
            problems.append(
                Problem(
                    str(path), f"{missing} of {len(one.cases)} cases are missing", "run the same annotate command again to ask for them"
                )
            )
        kind = one.header["configuration"]["judge"]["kind"]
        if ":" in kind and kind not in trusted:
            what = f'was made by the judge "{kind}", which is Python code that release must run to render its requests'
            problems.append(Problem(str(path), what, f"review that code, then allow it with --trust-judge {kind}"))
        for other in found:
            if (one.rubric, one.teacher) == (other.rubric, other.teacher):
                what = f'has the same judge "{one.teacher}" and rubric "{one.rubric}" as {other.path}'
                problems.append(Problem(str(path), what, "name only one of them"))
        found.append(one)
    refuse(problems)
    return sorted(found, key=lambda one: (one.rubric, one.teacher))


def add_annotations(folder: Path, annotations: Sequence[AnnotationFolder], facts: dict[str, Any]) -> dict[str, Any]:
    """Writes the configs of annotations into a release whose data is written, and their requests into its provenance.

    Returns what its manifest says otherwise than ``facts`` do: ``annotations``, and ``counts`` by config and split.

    Raises:
        InputError: if annotations are of other texts, or of none of this release; all such at once.
    """
    taken, problems, catalogue = list[IncludedAnnotations](), list[Problem](), load_catalogue()
    for annotation in annotations:
        with collecting(problems):
            taken.append(_match_release(folder, annotation, f"{facts['name']} {facts['version']}", catalogue))
    refuse(problems)
    return {"counts": facts["counts"] | _write_configs(folder, taken, canary_entry(facts)), "annotations": [one.said for one in taken]}


def _match_release(folder: Path, annotations: AnnotationFolder, name: str, catalogue: Catalogue) -> IncludedAnnotations:
    """The cases that are of texts of this release; those of turns and dialogues that it does not have are left out."""
    said = describe_annotations(annotations)
    check(said, "annotated_by", annotations.path)
    replay = Replay(said, catalogue, annotations.path, own=True)
    by_place = {(case.dialogue_id, case.turn): case for case in annotations.cases}
    cases = released_cases(folder, said, by_place.keys())
    pairs = [(by_place[case.dialogue_id, case.turn], case) for case in cases]
    others = [one.pair_id or one.dialogue_id for one, case in pairs if not replay.matches(one, case)]
    if others or not pairs:
        judged = describe_source(said["release"])
        what = (
            f"annotates {judged}, but {name} has other texts at {some_of(others, SHOWN)}"
            if others
            else f"annotates {judged}, but {name} has none of its texts"
        )
        fix = f"annotate {name} itself: the ledger has the answers about unchanged texts"
        if said["judge"]["kind"] == "given":
            fix += "; a judge that was passed in from Python must add nothing to its requests, or must be named as module:name"
        raise InputError([Problem(str(annotations.path), what, fix)])
    kept = [one for one, _ in pairs]
    left_out = sorted({case.pair_id or case.dialogue_id for case in annotations.cases} - {one.pair_id or one.dialogue_id for one in kept})
    return IncludedAnnotations(tuple(kept), said | count_annotations(kept) | {"cases": len(kept), "left_out": left_out})


def describe_annotations(annotations: AnnotationFolder) -> dict[str, Any]:
    """What a manifest says of annotations before it is known which of them are taken."""
    header = annotations.header
    made = header["configuration"]
    return {
        "teacher": annotations.teacher,
        "rubric": annotations.rubric,
        "rubric_hash": made["rubric_hash"],
        "release": made["release"],
        "turns": made["turns"],
        "variants": made["variants"],
        "samples": made["samples_of_a_text"],
        "tries": {"samples": made["samples"], "repairs": made["repairs"]},
        "judge": made["judge"],
        "says": header["rubric"],
        "templates": header["templates"],
        "schemas": header["schemas"],
        "builder": header["builder"],
        "cases": len(annotations.cases),
        "left_out": [],
        **count_annotations(annotations.cases),
    }


def count_annotations(cases: Sequence[Annotated]) -> dict[str, Any]:
    """Counts of what was said of cases and of what was not, and the usage of the answers."""
    counts = {
        "annotations": sum(len(one.ratings) for one in cases),
        "comparisons": sum(len(one.comparisons) for one in cases),
        "strategies": sum(len(one.strategies) for one in cases),
    }
    failed = Counter(
        f"{failure.kind}: {reason}" for case in cases for failure in case.failures if failure.final for reason in failure.reasons
    )
    usage: dict[str, Counter[str]] = {}
    for case in cases:
        for model, row in case.usage.items():
            usage.setdefault(model, Counter()).update(row)
    return {
        "counts": {name: count for name, count in counts.items() if count},
        "unannotated_by_reason": dict(sorted(failed.items())),
        "usage": {model: dict(sorted(row.items())) for model, row in sorted(usage.items())},
    }


def released_cases(folder: Path, said: dict[str, Any], places: Any) -> list[Case]:
    """The cases at places (dialogue, turn) that a release has, with its texts and in its order."""
    wanted = set(places)
    if said["says"]["unit"] == "dialogue":
        names = column(folder, "dialogues", "dialogue_id")
        cases = [one for one in dialogues_of(folder, None, said["variants"]) if (one.dialogue_id, None) in wanted] if wanted else []
    else:
        names = column(folder, "pairs", "pair_id")
        turns = zip(names, column(folder, "pairs", "dialogue_id"), column(folder, "pairs", "turn"), strict=True)
        others = frozenset(name for name, *place in turns if tuple(place) not in wanted)
        cases = cases_of(folder, None, said["variants"], others)
    order = {name: number for number, name in enumerate(names)}
    return sorted(cases, key=lambda one: order[one.pair_id or one.dialogue_id])


def annotation_rows(one: Annotated, said: dict[str, Any], taxonomy: Taxonomy) -> Iterator[tuple[str, TableRow]]:
    """(config, row) of all that was said of a case; strategies by their names, as in ``pairs``."""
    judged = {"teacher": said["teacher"], "rubric": said["rubric"], "rubric_hash": said["rubric_hash"]}
    pair = {"pair_id": one.pair_id}
    for rating in one.ratings:
        yield "annotations", {**pair, "dialogue_id": one.dialogue_id, "turn": one.turn, **judged, **vars(rating)}
    for compared in one.comparisons:
        yield "comparisons", {**pair, **judged, **vars(compared), "consistent": compared.consistent, "winner": compared.winner}
    for used in one.strategies:
        ideal = [used.ideal[strategy.abbreviation] for strategy in taxonomy.strategies]
        yield "strategies", {**pair, **judged, **vars(used), "ideal": ideal, "named": taxonomy[used.named].name}


def row_identity(row: TableRow) -> tuple[Any, ...]:
    """What a row is about, whoever says what of it."""
    return tuple(row.get(name) for name in IDENTITY_COLUMNS)


def request_keys_of(config: str, row: TableRow) -> list[str]:
    """The keys of the requests behind a row."""
    return [row[name] for name in JUDGED[config].names if "request_key" in name]


def _write_configs(folder: Path, taken: Sequence[IncludedAnnotations], about: dict[str, str]) -> dict[str, dict[str, int]]:
    """The configs that have rows, a file a split; returns the number of rows by config and split."""
    taxonomy = load_taxonomy()
    there = {config for one in taken for config in one.said["counts"]}
    configs = {config: schema for config, schema in JUDGED.items() if config in there}
    counts = {config: dict.fromkeys(SPLITS, 0) for config in configs}
    requests = dict[tuple[str, str | None, str, str, str], None]()
    with contextlib.ExitStack() as stack:
        data = {
            (config, split): stack.enter_context(TableWriter(file_of(folder, config, split), schema, about))
            for config, schema in configs.items()
            for split in SPLITS
        }
        for one in taken:
            for case in one.cases:
                split = split_of(case.dialogue_id)
                for config, row in annotation_rows(case, one.said, taxonomy):
                    data[config, split].add(row)
                    counts[config][split] += 1
                    requests.update(
                        ((case.dialogue_id, case.pair_id, PROVENANCE_NAMES[config], one.said["teacher"], key), None)
                        for key in request_keys_of(config, row)
                    )
    _add_provenance(folder, list(requests))
    return counts


def _add_provenance(folder: Path, requests: Sequence[tuple[str, str | None, str, str, str]]) -> None:
    """Writes the requests behind annotations below those behind texts."""
    path = folder / "provenance.parquet"
    partial = path.with_suffix(".partial")
    with pq.ParquetFile(path) as table, TableWriter(partial, table.schema_arrow) as writer:
        for group in range(table.num_row_groups):
            writer.add_table(table.read_row_group(group))
        for dialogue_id, pair_id, what, model, key in requests:
            values = {"dialogue_id": dialogue_id, "pair_id": pair_id, "what": what, "method": "judge", "model": model}
            writer.add({**values, "request_key": key})
    partial.replace(path)
