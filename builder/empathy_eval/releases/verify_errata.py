"""The errata of a release: of what was planned, and counted as they took something out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.base.tabular import table_batches
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.dataset import MANIFEST, cells, file_of, split_of
from empathy_eval.design.errata import Planned, errata_faults, errata_named, first_of, unknown_errata
from empathy_eval.design.planning import plan_of
from empathy_eval.design.quotas import places
from empathy_eval.releases.made_by import is_ours
from empathy_eval.releases.verify_design import built_under
from empathy_eval.releases.verify_rows import RESTORE

# A plan of strangers beyond this is not reckoned again.
MOST_DIALOGUES = 5_000_000


def taken_out(manifest: Mapping[str, Any]) -> dict[str, int] | None:
    """How many dialogues and pairs were withdrawn, as a manifest tells it; None for one of before, which does not."""
    counts: dict[str, int] | None = manifest.get("withdrawn_counts", {"dialogues": 0, "pairs": 0} if "format" in manifest else None)
    return counts


def errata_misfits(folder: Path, manifest: dict[str, Any], config: Configuration) -> Iterator[Problem]:
    """Errata that are not complete, that name what is not planned, or that are not counted."""
    where, configuration = str(folder / MANIFEST), manifest["configuration"]
    if is_ours(manifest):
        yield from errata_faults(where, configuration)
    if "format" in manifest and ("withdrawn_counts" in manifest) != bool(manifest["withdrawn"]):
        yield Problem(f"{where}: withdrawn_counts", f"does not match {len(manifest['withdrawn'])} withdrawals", RESTORE)
    # A plan that is larger is told elsewhere.
    if errata_named(configuration) and config.dialogues <= MOST_DIALOGUES and config.surplus <= 1:
        yield from (replace(one, fix=RESTORE) for one in unknown_errata(where, configuration, _planned(folder, manifest, config)))


def _planned(folder: Path, manifest: dict[str, Any], config: Configuration) -> Planned:
    """The plan of a release: dialogues that it holds by their turns, others as they are drawn again."""
    catalogue, there = built_under(folder, manifest).catalogue, _roles(folder, errata_named(manifest["configuration"]))
    drawn = places(config, catalogue) if catalogue and config.plan == "drawn" else None

    def roles(name: str) -> Sequence[str] | None:
        if name in there:
            return there[name]
        try:
            plan = plan_of(config, catalogue, name, drawn) if catalogue else None
        except InputError:  # no course of turns was found: the plan is none that was built
            return None
        if plan:
            return [turn.role for turn in plan.turns]
        # Nobody else has the seeds of a stranger, nor what a release of before was drawn from.
        seed = config.plan == "seeds" and first_of(name)[:3] in manifest["scenarios"] and first_of(name)[3:] == "-seed"
        return [] if seed or catalogue is None else None

    return Planned(lambda: cells(folder, "dialogues", "dialogue_id"), roles)


def _roles(folder: Path, named: set[str]) -> dict[str, list[str]]:
    """The roles of the turns of some dialogues, of those of them that a release holds."""
    found = {}
    for split in sorted({split_of(name) for name in named}):
        for batch in table_batches(file_of(folder, "dialogues", split), ["dialogue_id", "turns"]):
            for row in batch.to_pylist():
                if row["dialogue_id"] in named:
                    found[row["dialogue_id"]] = [turn["role"] for turn in row["turns"]]
    return found
