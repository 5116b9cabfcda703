"""How a p-value is told: to four places, and as a bound where no smaller one could have come of so many draws."""

from __future__ import annotations

PLACES = 4
