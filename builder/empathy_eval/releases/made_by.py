"""Which version of this program made a release: what it holds, and how it is compared, goes by that."""

from __future__ import annotations

from typing import Any

from empathy_eval.base.version import __version__

# Before canaries, definitions that travel along, and preferences at equal closeness.
BEFORE = "0.1.0"


def is_ours(manifest: dict[str, Any]) -> bool:
    """Whether this version made a release: what it writes anew has the very bytes of what was written."""
    return bool(manifest["builder"] == __version__)


def is_before(manifest: dict[str, Any]) -> bool:
    """Whether the version before made it, which had no canary and no definitions in a release."""
    return bool(manifest["builder"] == BEFORE)
