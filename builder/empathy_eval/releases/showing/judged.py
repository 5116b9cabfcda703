"""What judges said of a case, as a folder of annotations holds it, with the answers in its ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.completions.ledger import Ledger
from empathy_eval.generation.build_folder import LEDGER
from empathy_eval.raters.judges.annotations import Annotated
from empathy_eval.raters.judges.folder import Folder, read_annotations
from empathy_eval.raters.judges.sources import told
from empathy_eval.releases.showing.names import Place, place_of, unknown
from empathy_eval.releases.showing.requests import rows_about
from empathy_eval.releases.showing.shown import Asked, Refused, Shown

ROWS = ("ratings", "comparisons", "strategies")
NOT_HERE = (
    "the requests hold the judged texts, so they are not shown here: show the texts from {}; "
    "verify --ledger compares annotations with the answers"
)


def show_judged(folder: Path, name: str, ledger: Path | None) -> Shown:
    """All that a judge said of a pair or a dialogue, or by the request of a key.

    Raises:
        InputError: if the annotations are not valid, or have no such case.
        JobError: if a row of the ledger is damaged.
    """
    judged, said = read_annotations(folder), place_of(name)
    named = f"the annotations of {judged.teacher} by {judged.rubric}"
    places = {one.pair_id or one.dialogue_id: one for one in judged.cases}
    if isinstance(said, Place):
        case, key = places.get(said.name), None
    else:
        keyed = [(one, key) for one in judged.cases for key in keys_of(one) if key.startswith(said)]
        if len({key for _, key in keyed}) > 1:
            raise input_error("ID", f'"{said}…" is the beginning of several keys', "give more digits of the key")
        case, key = keyed[0] if keyed else (None, None)
    if case is None:
        raise unknown(said.name if isinstance(said, Place) else said, named, places)
    rows = {one: tuple(row for row in (asdict(made) for made in getattr(case, one)) if _of(row, key)) for one in ROWS}
    asked = tuple(one for one in _asked(case, ledger or folder / LEDGER) if key in (None, one.key))
    notes = (NOT_HERE.format(told(judged.header["configuration"]["release"])),)
    known = {one: found for one, found in rows.items() if found}
    return Shown(key or name, named, case.status, case.reasons, asked=asked, said=known, notes=notes)


def refused_by(judged: Folder, ledger: Path | None) -> Iterator[Refused]:
    """The answers of a judge that were not taken."""
    for case in judged.cases:
        texts = {one.key: one for one in _asked(case, ledger or judged.path / LEDGER)} if case.failures else {}
        for one in case.failures:
            text = texts[one.request_key].text if one.request_key in texts else None
            yield Refused(one.reasons, case.dialogue_id, one.kind, one.turn, one.request_key, text)


def keys_of(case: Annotated) -> list[str]:
    """The keys of all requests about a case."""
    rows = [asdict(one) for name in ROWS for one in getattr(case, name)]
    found = [value for row in rows for name, value in row.items() if "request_key" in name]
    return [*dict.fromkeys([*found, *(one.request_key for one in case.failures if one.request_key)])]


def _of(row: Mapping[str, Any], key: str | None) -> bool:
    return key is None or key in row.values()


def _asked(case: Annotated, path: Path) -> Iterator[Asked]:
    """The answers about a case, good and bad."""
    if not path.is_file():
        return
    reasons = {one.request_key: one.reasons for one in case.failures}
    known = set(keys_of(case))
    with Ledger(path, create=False, write=False) as ledger:
        for row in rows_about(ledger, case.dialogue_id):
            if row.key in known:
                why = tuple((one, "") for one in reasons.get(row.key, ()))
                about, completion, verdict = row.about, row.completion, "refused" if why else "taken"
                yield Asked(
                    row.key, about.kind, about.turn, verdict, model=completion.model, finish=completion.finish, text=completion.text,
                    tokens=asdict(completion.usage), reasons=why,
                )  # fmt: skip
