"""Which version of this program made a release, and in which format: what it holds, and how it is compared, goes by that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from empathy_eval.base.version import __version__
from empathy_eval.design.dataset import FORMAT

# Before canaries, definitions that travel along, and preferences at equal closeness.
BEFORE = "0.1.0"


def is_ours(manifest: dict[str, Any]) -> bool:
    """Whether this version made a release: what it writes anew has the very bytes of what was written."""
    return bool(manifest["builder"] == __version__)


def is_before(manifest: dict[str, Any]) -> bool:
    """Whether the version before made it, which had no canary and no definitions in a release."""
    return bool(manifest["builder"] == BEFORE)


def other_format(manifest: Mapping[str, Any]) -> tuple[str, str] | None:
    """(what, fix) of a release whose format is not that of this program; None for one that can be verified, as that of version 0.1.0."""
    told = manifest.get("format", 1)
    if told == FORMAT or ("format" not in manifest and manifest.get("builder") == BEFORE):
        return None
    if isinstance(told, int) and told < FORMAT:
        has = 'the column "difficulty" in pairs and controls, and no list of its metrics in the manifest'
        what = f"is a release of an older format ({told}; this program verifies {FORMAT}): it has {has}"
        return what, "verify it with the program that made it, or release its build again"
    return f'is a release of format "{str(told)[:20]}", which this program does not know', "install a newer version of this program"
