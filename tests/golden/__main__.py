"""Writes the golden set anew, and prints which entries changed: the changelog says why."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.golden.making import make
from tests.golden.record import differences, recorded, write

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        made = make(Path(folder))
    print("\n".join(differences(recorded(), made)) or "nothing changed")  # noqa: T201
    write(made)
