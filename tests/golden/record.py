"""The record of the golden set, and how what was made now differs from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
AGAIN = "make golden"
# What is read by programs, and what is looked at.
LISTS = DATA, PAGES = "data", "pages"
# SHA-256 by entry, by list.
Golden = dict[str, dict[str, str]]


def recorded() -> Golden:
    """What was written down last; a list that is not there is empty."""
    paths = {name: HERE / f"{name}.json" for name in LISTS}
    return {name: json.loads(path.read_text()) if path.exists() else {} for name, path in paths.items()}


def write(golden: Golden) -> None:
    """Writes both lists down."""
    for name in LISTS:
        (HERE / f"{name}.json").write_text(json.dumps(golden[name], indent=2, sort_keys=True) + "\n")


def differences(before: Golden, after: Golden) -> Iterator[str]:
    """A line an entry that differs, is missing or is new."""
    for name in LISTS:
        old, new = before[name], after[name]
        for entry in sorted(old | new):
            if old.get(entry) != new.get(entry):
                how = "new" if entry not in old else "missing" if entry not in new else "differs"
                yield f"{name}: {entry}: {how}"
