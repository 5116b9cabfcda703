"""How reliable people and judges are, criterion by criterion and framework by framework: all that ``agree --page`` shows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from empathy_eval.raters.agreement.panel import Framework, Panel
from empathy_eval.raters.agreement.reliability_rows import ReliabilityRow


@dataclass(frozen=True)
class InFramework:
    """A framework and the rows of its criteria, in its order."""

    framework: Framework
    rows: tuple[ReliabilityRow, ...]


@dataclass(frozen=True)
class Reliability:
    """All figures of a page. ``weights`` are those of every kappa, ``level`` that of every alpha; ``resamples`` are draws of items."""

    level: str
    weights: str
    panel: Panel
    frameworks: tuple[InFramework, ...]
    overall: Any
    stability: Any
    styles: Any
    contradictions: Any
    signature: str

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON values; what is not defined is null, with its reason in ``why``."""
        return asdict(self)
