"""What is read beside the data, against the data: card, changelog, description for machines, licence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem
from empathy_eval.base.parsing import text_of
from empathy_eval.design.dataset import SPLITS
from empathy_eval.releases.verify_rows import RESTORE

CARD_ROW = re.compile(r"^\| `(\w+)` \| .{0,200} \| (\d{1,12}) \| (\d{1,12}) \| (\d{1,12}) \|$", re.MULTILINE)


def paper_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """The counts of the card are those of the data."""
    try:
        text = text_of(folder / "README.md")
    except ValueError as error:
        yield Problem(str(folder / "README.md"), f"cannot be read: {error}", RESTORE)
        return
    said = {config: dict(zip(SPLITS, map(int, counts), strict=True)) for config, *counts in CARD_ROW.findall(text)}
    for config, counts in manifest["counts"].items():
        if said.get(config) != counts:
            yield Problem(f"{folder / 'README.md'}: {config}", f"the card says {said.get(config)}, the data holds {counts}", RESTORE)
