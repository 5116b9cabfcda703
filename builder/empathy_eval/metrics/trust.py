"""What a manifest may ask for: the one border between the metrics that strangers name and what is run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from empathy_eval.base.findings import Finding
from empathy_eval.metrics.registry import known, names_of, unfit
from empathy_eval.metrics.weights import at_hand, is_hash

WHERE = "manifest.json: configuration: report: metrics"
FIX = "review its code, then allow it with --trust-metrics"


@dataclass(frozen=True)
class Chosen:
    """The metrics of a manifest that are measured, those whose settings are trusted too, and what is left out."""

    names: tuple[str, ...]
    own: frozenset[str]
    left: tuple[Finding, ...]


def chosen(settings: Mapping[str, Any], trusted: Collection[str] = (), without: Collection[str] = (), pinned: Sequence[str] = ()) -> Chosen:
    """Which metrics of the part ``report`` of a manifest's configuration are taken: built-in names and installed entry points, with
    settings that their schema allows, and whatever the user trusts by name; none that the release was made ``without``.

    Where the configuration names none, those that the manifest has ``pinned`` are asked for, whatever is built in here. Nothing is loaded
    to decide this.

    Raises:
        InputError: as :func:`~empathy_eval.metrics.registry.names_of`.
    """
    names = list(pinned) if pinned and not settings.get("metrics") else names_of(settings, without)
    why = {name: reason for name in names if name not in trusted and (reason := _reason(name, settings))}
    left = [
        Finding(WHERE, f'"{name}" is not recomputed: {why[name]}', f"{FIX} '{name}'", "unchecked", name) for name in names if name in why
    ]
    return Chosen(tuple(name for name in names if name not in why), frozenset(trusted) & set(names), tuple(left))


def _reason(name: str, settings: Mapping[str, Any]) -> str:
    """Why a metric is not taken from a manifest; empty if it is."""
    if ":" in name:
        return "it is code that the manifest names, not a built-in or installed metric"
    offers = known().get(name, [])
    if not offers:
        return "it is not installed here"
    if len(offers) > 1:
        return f"it is offered by {' and by '.join(offers)}"
    if wrong := unfit(name, settings):
        return f"its settings are not accepted from a manifest: {wrong}"
    model = settings[name]["model"] if name == "bertscore" and name in settings else ""
    return f'the weights "{model}" are not available' if is_hash(model) and not at_hand(model) else ""
