"""What was recorded in the golden set is what is made now."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.making import make
from tests.golden.record import AGAIN, differences, recorded


@pytest.mark.e2e
def test_what_is_recorded_is_what_is_made(tmp_path: Path) -> None:
    changed = list(differences(recorded(), make(tmp_path)))
    told = f"{AGAIN} records what is made now; where that is meant, the changelog says which entries change and why"
    assert not changed, "\n".join([*changed, told])
