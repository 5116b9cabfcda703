"""Replies of made-up systems to the contexts of a release, in a file as whoever sends them out for rating has it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from empathy_eval.design.dataset import column

SYSTEMS = ("anton", "berta", "Caesar 7B (v1.0)")
HOSTILE = (
    '=HYPERLINK("http://127.0.0.1","x")',
    "</script><script>document.title='run'</script>",
    "'\"><img src=x onerror=alert(1)>\n@SUM(1)",
)
Row = Mapping[str, object]


def rows_for(release: Path, systems: Iterable[str] = SYSTEMS, contexts: int | None = None) -> list[dict[str, str]]:
    """A reply of each system to the first so many contexts; nothing in a reply tells its system."""
    names = column(release, "pairs", "pair_id")[:contexts]
    return [
        {"pair_id": name, "system": system, "text": f"I hear you, {place}. {name}: {HOSTILE[(at + place) % len(HOSTILE)]}"}
        for at, name in enumerate(names)
        for place, system in enumerate(systems)
    ]


def written(path: Path, rows: Iterable[Row]) -> Path:
    """The rows as CSV, TSV or JSONL, by the suffix."""
    rows = list(rows)
    if path.suffix == ".jsonl":
        text = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        stream = io.StringIO()
        writer = csv.DictWriter(stream, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writeheader()
        writer.writerows(rows)
        text = stream.getvalue()
    path.write_text(text, encoding="utf-8", newline="")
    return path
