"""The time that passes while something runs, and how it is said."""

from __future__ import annotations

import asyncio
import time

# A unit is used from one and a half of it on: 80 s, 90 s, 2 min.
UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))


def now() -> float:
    """The time of the running event loop, which a test may let go as it likes; without a loop that of the machine. In seconds."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


def span(seconds: float) -> str:
    """So many seconds in words: ``12 s``, ``15 min``, ``3 h``."""
    for length, unit in UNITS:
        if seconds >= 1.5 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
