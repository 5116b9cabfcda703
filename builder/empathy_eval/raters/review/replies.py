"""Systems' replies to contexts of a release, read from a file to be rated side by side."""

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
from empathy_eval.evaluation.external.score_file import nearest_known, raise_at_most
from empathy_eval.generation.outcomes import BUILD
from empathy_eval.raters.systems.replies import read_replied

COLUMNS = ("pair_id", "system", "text")
FORM = f"the first line names the columns: {','.join(COLUMNS)}"
# Names of the release's own texts, which no system may have.
TAKEN = {*CELLS, "reference"}


@dataclass(frozen=True)
class SystemReplies:
    """Each system's replies by context, for the contexts that all systems answered.

    ``hash`` is that of the file; ``notes`` are warnings for the maintainer.
    """

    hash: str
    systems: tuple[str, ...]
    texts: Mapping[str, Mapping[str, str]]
    notes: tuple[str, ...] = ()


def read_replies(path: Path, pair_ids: Collection[str], canary: str | None = None) -> SystemReplies:
    """Read a CSV, TSV or JSONL file, by its suffix: a row a reply (``pair_id``, ``system``, ``text``).

    Of a folder that ``respond`` wrote the replies of systems are taken, not those of baselines.

    Other columns are ignored. White space around a text is removed, because it could identify a system.

    Raises:
        InputError: for another suffix, rows that break the schema ``replies_row``, contexts that are none of ``pair_ids``, systems named
            like a variant, and a system that answers a context twice; all at once with their lines. And if no context is answered by all.
    """
    problems, first, known = list[Problem](), dict[tuple[str, str], str](), frozenset(pair_ids)
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    for where, row in _rows(path):
        faults = [row] if isinstance(row, Problem) else list(_problems(where, row, known, problems))
        if not isinstance(row, Problem) and not faults:
            name, system = row["pair_id"], row["system"]
            if (before := first.setdefault((name, system), where)) != where:
                what = f'"{system}" replies to "{name}" again, after {before.rpartition(": ")[2]}'
                faults.append(Problem(where, what, "keep one of the two"))
            texts[name][system] = row["text"]
        problems += faults
    systems = tuple(sorted({system for by_system in texts.values() for system in by_system}))
    if not systems and not problems:
        problems.append(Problem(str(path), "holds no reply", "write a row for each reply of each system"))
    raise_at_most(problems, path)
    whole = {name: by_system for name, by_system in sorted(texts.items()) if len(by_system) == len(systems)}
    if not whole:
        what = f"has no context that all {len(systems)} systems replied to: {', '.join(systems)[:200]}"
        raise input_error(path, what, "write the replies of all systems to the same contexts; use the same name for each in all rows")
    left_out, naming = len(texts) - len(whole), _naming(systems, whole)
    leaking = sum(holds_canary(text, canary) for by_system in whole.values() for text in by_system.values())
    notes = {
        f"{left_out} contexts that not all systems answered are left out; {len(whole)} remain": left_out,
        f"{naming} replies contain the name of a system, which raters can read": naming,
        f"{leaking} replies contain the canary: the training data of the system may contain this benchmark": leaking,
    }
    file = path / BUILD if path.is_dir() else path
    return SystemReplies(digest_file(file), systems, whole, tuple(note for note, count in notes.items() if count))


def _naming(systems: Sequence[str], texts: Mapping[str, Mapping[str, str]]) -> int:
    """Number of replies that contain the name of a system, as a word in any case; names of one or two characters are ignored."""
    named = [(system.lower(), re.compile(rf"(?<!\w){re.escape(system.lower())}(?!\w)")) for system in systems if len(system) > 2]
    lowered = (text.lower() for by_system in texts.values() for text in by_system.values())
    return sum(any(name in text and pattern.search(text) for name, pattern in named) for text in lowered)


def _problems(where: str, row: Mapping[str, Any], known: Collection[str], problems: Sequence[Problem]) -> Iterator[Problem]:
    """Problems of a single row."""
    wrong = list(violations(row, "replies_row", by_hand=True))
    yield from (Problem(f"{where}: {path_in_value}" if path_in_value else where, what, fix) for path_in_value, what, fix in wrong)
    if wrong:
        return
    if row["pair_id"] not in known:
        fix = f"name the release whose contexts were replied to{nearest_known(row['pair_id'], known, problems)}"
        yield Problem(where, f'"{row["pair_id"]}" is not a pair of this release', fix)
    if re.sub(r"[\W_]+", "_", row["system"]).strip("_").lower() in TAKEN:
        yield Problem(where, f'"{row["system"]}" is the name of a text of the release', "give the system a name of its own")


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any] | Problem]]:
    """(location, the three columns) of each row, or its problem."""
    if path.is_dir():
        known = read_replied(path)
        own = [row for row in known.rows if row.text is not None and row.system in known.configuration["systems"]]
        yield from ((f"{path}: {row.pair_id}", {"pair_id": row.pair_id, "system": row.system, "text": row.text}) for row in own)
        return
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
    """The columns of interest, stripped."""
    return {name: value.strip() if isinstance(value := row[name], str) else value for name in COLUMNS if name in row}
