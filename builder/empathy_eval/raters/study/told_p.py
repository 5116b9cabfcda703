"""How a p-value is told: to four places, and as a bound where no smaller one could have come of so many draws."""

from __future__ import annotations

import math

PLACES = 4


def told_p(value: float, draws: int = 0, of: float | None = None) -> tuple[str, str]:
    """A relation ("=", "<" or "≤") and a number.

    A p of ``draws`` draws is never below 1 / (draws + 1): one that is there is only known to be no larger, and so is what corrects it
    (``of`` is the p before it was corrected). Without draws a p is as small as it is.
    """
    if draws and (value if of is None else of) * (draws + 1) <= 1 + 1e-9 and value < 1:
        # Rounded up, for it is a bound.
        up = math.ceil(round(value * 10**PLACES, 6)) / 10**PLACES
        return "≤", f"{up:.{PLACES}f}"
    return ("=", f"{value:.{PLACES}f}") if value >= 10**-PLACES else ("<", f"{10**-PLACES:.{PLACES}f}")
