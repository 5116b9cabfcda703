"""Replies of any systems to contexts of a release, read from a file to be rated beside one another."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, nearest_column
from empathy_eval.base.hashing import digest_file
from empathy_eval.base.schemas import violations
from empathy_eval.base.tabular import headed_rows, json_rows
from empathy_eval.design.canary import holds_canary
from empathy_eval.design.contrasts import CELLS
from empathy_eval.evaluation.external.score_file import meant, raise_at_most

COLUMNS = ("pair_id", "system", "text")
FORM = f"the first line names the columns: {','.join(COLUMNS)}"
# What a judgement of the release's own texts is told by.
TAKEN = {*CELLS, "reference"}


@dataclass(frozen=True)
class Replies:
    """What each system replied, by context: only of contexts that all systems answered.

    ``hash`` is that of the file; ``notes`` are what whoever sends the replies out should know.
    """

    hash: str
    systems: tuple[str, ...]
    texts: Mapping[str, Mapping[str, str]]
    notes: tuple[str, ...] = ()


def read_replies(path: Path, pair_ids: Collection[str], canary: str | None = None) -> Replies:
    """The replies of a CSV, TSV or JSONL file, by its suffix: a row a reply (``pair_id``, ``system``, ``text``).

    Other columns are passed over. White space around a text goes, as it could tell one system from another.

    Raises:
        InputError: for another suffix, rows that break the schema ``replies_row``, contexts that are none of ``pair_ids``, systems called
            as a variant is, and a system that answers a context twice; all at once with their lines. And if no context is answered by all.
    """
    problems, first, known = list[Problem](), dict[tuple[str, str], str](), frozenset(pair_ids)
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    for where, row in _rows(path):
        found = [row] if isinstance(row, Problem) else list(_problems(where, row, known, problems))
        if not isinstance(row, Problem) and not found:
            name, system = row["pair_id"], row["system"]
            if (before := first.setdefault((name, system), where)) != where:
                what = f'"{system}" replies to "{name}" again, after {before.rpartition(": ")[2]}'
                found.append(Problem(where, what, "keep one of the two"))
            texts[name][system] = row["text"]
        problems += found
    systems = tuple(sorted({system for some in texts.values() for system in some}))
    if not systems and not problems:
        problems.append(Problem(str(path), "holds no reply", "write a row for each reply of each system"))
    raise_at_most(problems, path)
    whole = {name: some for name, some in sorted(texts.items()) if len(some) == len(systems)}
    if not whole:
        what = f"has no context that all {len(systems)} systems replied to: {', '.join(systems)[:200]}"
        raise input_error(path, what, "write the replies of all systems to the same contexts; use the same name for each in all rows")
    left_out, naming = len(texts) - len(whole), _naming(systems, whole)
    leaking = sum(holds_canary(text, canary) for some in whole.values() for text in some.values())
    notes = {
        f"{left_out} contexts that not all systems answered are left out; {len(whole)} remain": left_out,
        f"{naming} replies contain the name of a system, which raters can read": naming,
        f"{leaking} replies contain the canary: the training data of the system may contain this benchmark": leaking,
    }
    return Replies(digest_file(path), systems, whole, tuple(note for note, count in notes.items() if count))


def _naming(systems: Sequence[str], texts: Mapping[str, Mapping[str, str]]) -> int:
    """How many replies hold the name of a system, as a word and in any case; names of two signs are of many words."""
    named = [(one.lower(), re.compile(rf"(?<!\w){re.escape(one.lower())}(?!\w)")) for one in systems if len(one) > 2]
    said = (text.lower() for some in texts.values() for text in some.values())
    return sum(any(name in text and pattern.search(text) for name, pattern in named) for text in said)


def _problems(where: str, row: Mapping[str, Any], known: Collection[str], told: Sequence[Problem]) -> Iterator[Problem]:
    """What is wrong with a row by itself."""
    wrong = list(violations(row, "replies_row", by_hand=True))
    yield from (Problem(f"{where}: {place}" if place else where, what, fix) for place, what, fix in wrong)
    if wrong:
        return
    if row["pair_id"] not in known:
        fix = f"name the release whose contexts were replied to{meant(row['pair_id'], known, told)}"
        yield Problem(where, f'"{row["pair_id"]}" is not a pair of this release', fix)
    if re.sub(r"[\W_]+", "_", row["system"]).strip("_").lower() in TAKEN:
        yield Problem(where, f'"{row["system"]}" is the name of a text of the release', "give the system a name of its own")


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any] | Problem]]:
    """(place, its three columns) of each row, or what is wrong with it."""
    if path.suffix.lower() == ".jsonl":
        for number, row in json_rows(path):
            yield f"{path}: line {number}", row if isinstance(row, Problem) else _plain(row)
        return
    names, lines = headed_rows(path, "name a .csv, .tsv or .jsonl file")
    if odd := [f'{names.count(name) or "no"} "{name}"' for name in COLUMNS if names.count(name) != 1]:
        lacking = [name for name in COLUMNS if name not in names]
        what = f'the header "{",".join(names)[:80]}" has {" and ".join(odd)}'
        raise input_error(f"{path}: line 1", what, FORM + nearest_column(names, lacking))
    for number, cells in lines:
        where = f"{path}: line {number}"
        if len(cells) == len(names):
            yield where, _plain(dict(zip(names, cells, strict=True)))
        elif any(cell.strip() for cell in cells):
            what = f"has {len(cells)} cells, but the header has {len(names)}"
            yield where, Problem(where, what, "quote cells that contain commas or line breaks")


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of interest, without white space around them."""
    return {name: value.strip() if isinstance(value := row[name], str) else value for name in COLUMNS if name in row}
