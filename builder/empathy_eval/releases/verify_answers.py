"""What judges said, as a release holds it, against the answers in a ledger: asked for again without asking, and compared row by row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.base.tabular import TableRow
from empathy_eval.design.dataset import JUDGED, SPLITS, file_of, parts_of, split_of
from empathy_eval.design.rubric_json import rubric_of
from empathy_eval.design.rubrics import Rubric, load_rubric, packaged_rubrics
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.metrics.trust import NotRecomputed
from empathy_eval.raters.judges.annotations import Annotated
from empathy_eval.raters.judges.replay import Ledgers, Replay
from empathy_eval.releases.annotations import SHOWN, annotation_rows, identity_of, released_cases, told_of
from empathy_eval.releases.verify_report import shown
from empathy_eval.releases.verify_rows import RESTORE, read_rows

Place = tuple[str, int | None]
# By config and what it is about, the rows of a case.
Said = dict[tuple[str, tuple[Any, ...]], TableRow]


def answer_faults(folder: Path, manifest: dict[str, Any], ledgers: Ledgers) -> list[Problem]:
    """All that the rows of annotations say otherwise than the answers of their ledgers, or do not say.

    Annotations whose requests cannot be known here are no fault: a :class:`~empathy_eval.metrics.trust.NotRecomputed` names them.

    Raises:
        JobError: if a ledger is damaged.
    """
    rows, catalogue = _rows(folder, manifest), load_catalogue()
    return [
        problem
        for said in manifest["annotations"]
        for problem in _faults(folder, said, rows[said["teacher"], said["rubric"]], ledgers, catalogue)
    ]


def _rows(folder: Path, manifest: dict[str, Any]) -> dict[tuple[str, str], dict[Place, Said]]:
    """All rows, by judge and rubric and by case."""
    found: dict[tuple[str, str], dict[Place, Said]] = defaultdict(lambda: defaultdict(dict))
    for config in [one for one in JUDGED if one in manifest["counts"]]:
        for split in SPLITS:
            for _, row in read_rows(folder, config, split):
                found[row["teacher"], row["rubric"]][_place(row["pair_id"] or row["dialogue_id"])][config, identity_of(row)] = row
    return found


def _faults(folder: Path, said: dict[str, Any], rows: dict[Place, Said], ledgers: Ledgers, catalogue: Catalogue) -> Iterator[Problem]:
    """The faults of the annotations by one judge and rubric."""
    where = f"{folder}: {said['teacher']}, {said['rubric']}"
    try:
        replay = Replay(said, catalogue, where, ledgers)
    except InputError as error:
        yield from (
            NotRecomputed(one.where, f"not compared with the ledger: {one.what}", one.fix, said["teacher"]) for one in error.problems
        )
        return
    yield from _unsent(where, said)
    asked = ledgers.judged()
    shown = {one["pair_id"] for one in said["says"]["examples"]}
    answered = replay.again(one for one in released_cases(folder, said, rows.keys() | asked) if one.pair_id not in shown)
    by_place: dict[Place, Annotated] = {(one.dialogue_id, one.turn): one for one in answered}
    if not any(by_place[place].status == "accepted" for place in rows if place in by_place):
        yield Problem(where, "none of the given ledgers holds its answers", "give the ledger of these annotations with --ledger too")
        return
    for place, found in rows.items():
        yield from _compared(folder, said, place, found, by_place.get(place))
    yield from _lost(where, said, rows, by_place, asked)


def _unsent(where: str, said: dict[str, Any]) -> Iterator[Problem]:
    """What a rubric that goes by the name of one that is here says otherwise, where no request and so no answer tells of it."""

    def beside(rubric: Rubric) -> dict[str, str | None]:
        more = {f"{one.name}: {name}": getattr(one, name) for one in rubric.criteria for name in ("better", "opposite")}
        return {"title": rubric.title, "source": rubric.source, **more}

    if said["rubric"] not in packaged_rubrics():
        return
    here, there = beside(load_rubric(said["rubric"])), beside(rubric_of(said["says"]))
    if others := [name for name in there if name in here and there[name] != here[name]]:
        what = f'not compared with the ledger: no request holds {_some(others)}, and the packaged rubric "{said["rubric"]}"'
        fix = "ask who made the release, or verify with the version that made it"
        yield NotRecomputed(where, f"{what} has other values", fix, said["teacher"])


def _compared(folder: Path, said: dict[str, Any], place: Place, found: Said, answered: Annotated | None) -> Iterator[Problem]:
    """What the rows of a case say otherwise than the answers."""
    if answered is None or answered.status != "accepted":
        path = file_of(folder, next(iter(found))[0], split_of(place[0]))
        why = answered.reasons[0] if answered else "it is an example of the rubric"
        yield Problem(f"{path}: {_named(place)}", f"the ledger has no answer about this text: {why}", RESTORE)
        return
    told = {(config, identity_of(row)): row for config, row in annotation_rows(answered, said, load_taxonomy())}
    for key in sorted(found.keys() | told.keys(), key=str):
        about = " ".join(str(one) for one in key[1] if one is not None)
        where = f"{file_of(folder, key[0], split_of(place[0]))}: {about}"
        if key not in found or key not in told:
            what = "is missing: the ledger holds its answer" if key not in found else "is not an answer of the ledger"
            yield Problem(where, what, RESTORE)
            continue
        for name, value in told[key].items():
            if name in found[key] and found[key][name] != value:
                yield Problem(f"{where}: {name}", f"says {shown(found[key][name])}, but the answer says {shown(value)}", RESTORE)


def _lost(
    where: str, said: dict[str, Any], rows: dict[Place, Said], answered: dict[Place, Annotated], asked: set[Place]
) -> Iterator[Problem]:
    """Cases that the ledger answers and the release is silent about, unless the ledger was filled for a larger sample."""
    others = [one for place, one in answered.items() if place not in rows and one.status == "accepted"]
    silent = [one for one in others if not told_of([one])["counts"]]
    lost = [_named((one.dialogue_id, one.turn)) for one in others if told_of([one])["counts"]]
    if strange := [name for name in said["left_out"] if _place(name) not in asked or _place(name) in answered]:
        yield Problem(where, f"lists as left out what no judge was asked about, or what the release holds: {_some(strange)}", RESTORE)
    whole = said["turns"] is not None and said["cases"] + len(said["left_out"]) >= said["turns"]
    if lost and not whole:
        yield Problem(where, f"has no row of {_some(lost)}, which the ledger answers", RESTORE)
    if not len(rows) <= said["cases"] <= len(rows) + len(silent):
        yield Problem(where, f"says {said['cases']} cases, but the rows and the ledger give {len(rows) + len(silent)}", RESTORE)
    elif said["cases"] == len(rows) + len(silent):
        anew = told_of([answered[place] for place in rows if place in answered] + silent)
        yield from (
            Problem(f"{where}: {name}", f"says {shown(said[name])}, but the ledger gives {shown(value)}", RESTORE)
            for name, value in anew.items()
            if said[name] != value
        )


def _place(name: str) -> Place:
    return parts_of(name) if "-t" in name else (name, None)


def _named(place: Place) -> str:
    return place[0] if place[1] is None else f"{place[0]}-t{place[1]:02d}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
