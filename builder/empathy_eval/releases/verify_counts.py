"""The arithmetic of a manifest: what it counts of its build, against what the release holds and what the configuration plans."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.base.hashing import digest
from empathy_eval.base.schemas import schema
from empathy_eval.design.configuration import Configuration, checked, identity_of
from empathy_eval.design.dataset import MANIFEST, split_of
from empathy_eval.design.kinds import FAR_EMPATHETIC, NEAR_APATHETIC, kinds_of_build
from empathy_eval.design.quotas import places
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.releases.duplicates import PREFERENCE
from empathy_eval.releases.made_by import is_ours
from empathy_eval.releases.showing.again import MOST_DIALOGUES
from empathy_eval.releases.verify_design import built_under
from empathy_eval.releases.verify_order import Place, place_of
from empathy_eval.releases.verify_rows import RESTORE
from empathy_eval.releases.verify_tally import Tally

COUNTED = ("pairs", "controls", "crossed")
Said = Iterator[tuple[str, str]]


def count_faults(folder: Path, manifest: dict[str, Any], tally: Tally) -> Iterator[Problem]:
    """Everything that a manifest says and that does not follow from the rest of it, or from the rows."""
    parts = (_follows(manifest), _left_out(manifest, tally), _summary(manifest, tally), _plan(folder, manifest, tally))
    for where, what in (one for part in parts for one in part):
        yield Problem(f"{folder / MANIFEST}: {where}", what, RESTORE)


def _follows(manifest: dict[str, Any]) -> Said:
    """What is said twice, or is the hash of what is said."""
    configuration = manifest["configuration"]
    if manifest["name"] != (name := f"empathy-eval-{configuration['name']}"):
        yield "name", f'is "{manifest["name"][:80]}", the configuration gives "{name}"'
    if manifest["identity"] != identity_of(configuration):
        yield "identity", "is not that of the configuration"
    if manifest["withdrawn"] != configuration.get("withdrawn", []):
        yield "withdrawn", "is not what the configuration says"
    if manifest["partial"] != bool(manifest["summary"]["missing"]):
        yield "partial", f"is {manifest['partial']}, and {manifest['summary']['missing']} items are missing"
    if manifest.get("without", []) != sorted(set(manifest.get("without", []))):
        yield "without", "is not in order"
    if is_ours(manifest):
        wanted = {name: digest(schema(name)) for name in dict.fromkeys(kind.answer for kind in kinds_of_build("crossed" in configuration))}
        if manifest["schemas"] != wanted:
            yield "schemas", "are not those of this version"
    if (configuration["checks"]["toxicity"] == "none") != (manifest["toxicity_weights"] == "none"):
        yield "toxicity_weights", "are there where nothing is scored, or are not where everything is"
    if manifest.get("checks", {}).keys() != configuration["checks"].get("own", {}).keys():
        yield "checks", "are not those of the configuration"


def _left_out(manifest: dict[str, Any], tally: Tally) -> Said:
    """Dialogues that were accepted and are not there, by why, and scenarios with fewer than their quota."""
    quotas, lacking = manifest["scenarios"], {}
    for number, scenario in quotas.items():
        if (room := scenario["quota"] - tally.dialogues[number]) < 0:
            yield f"scenarios: {number}", f"has {tally.dialogues[number]} dialogues, and a quota of {scenario['quota']}"
        elif room:
            lacking[number] = room
    if strange := sorted(tally.dialogues.keys() - quotas.keys()):
        yield "scenarios", f"{strange[0]} is not there, and has dialogues"
    if manifest.get("below_quota", {}) != lacking:
        yield "below_quota", f"says {_some(manifest.get('below_quota', {}))}, the data gives {_some(lacking)}"
    removed = [one["dialogue_id"] for one in (manifest["reviews"] or {}).get("removed", ())]
    withdrawn = [one["dialogue_id"] for one in manifest["withdrawn"]]
    for goes, stays in manifest["duplicates"].items():
        if (what := _unlike(goes, stays)) or stays in manifest["duplicates"] or goes in (*removed, *withdrawn):
            yield f"duplicates: {goes[:80]}", what or "is left out for another reason too, or for one that is left out itself"
        elif stays in (*removed, *withdrawn):
            yield f"duplicates: {goes}", f"is left out for {stays}, which is not there either"
    if sorted(manifest["duplicates"]) != list(manifest["duplicates"]):
        yield "duplicates", "are not in order"


def _unlike(goes: str, stays: str) -> str | None:
    """What keeps one dialogue from being left out for another."""
    if place_of(goes) is None or place_of(stays) is None:
        return f'"{goes[:80]}" or "{stays[:80]}" is no dialogue'
    first, second = ((PREFERENCE[split_of(one)], one) for one in (stays, goes))
    return None if first < second else f"is left out for {stays}, and of the two it is the one that stays"


def _summary(manifest: dict[str, Any], tally: Tally) -> Said:
    """What became of the items of the build."""
    said = manifest["summary"]
    planned, accepted, rejected, missing = (said[name] for name in ("planned", "accepted", "rejected", "missing"))
    if planned != accepted + rejected + missing:
        yield "summary", f"{planned} are planned, and {accepted} accepted, {rejected} rejected, {missing} missing"
    removed = len((manifest["reviews"] or {}).get("removed", ()))
    there = tally.dialogues.total() + manifest["spares_left_out"] + len(manifest["duplicates"]) + removed
    withdrawn = len({one["dialogue_id"] for one in manifest["withdrawn"]})
    # What is withdrawn need not have been accepted, or planned.
    if not there <= accepted <= there + withdrawn:
        yield "summary: accepted", f"is {accepted}; {there} are released or left out, and {withdrawn} withdrawn"
    whole = accepted == tally.dialogues.total()
    for config in COUNTED:
        count, rows = said.get(config, 0), tally.rows[config]
        if config != "crossed" and config not in said:
            yield f"summary: {config}", "is not there"
        elif count < rows or (whole and count != rows):
            yield f"summary: {config}", f"is {count}, the release has {rows}"
    yield from _reasons(said, tally, manifest)
    for model, count in tally.requests.items():
        if (used := said["usage"].get(model, {}).get("requests", 0)) < count:
            yield f"summary: usage: {model[:80]}", f"has {used} requests, the provenance {count}"
    for model, usage in said["usage"].items():
        if usage.get("cached_tokens", 0) > usage.get("input_tokens", 0):
            yield f"summary: usage: {model[:80]}", "has more tokens from a cache than it read"


def _reasons(said: dict[str, Any], tally: Tally, manifest: dict[str, Any]) -> Said:
    """Counts by reason."""
    rejected, failed, refused = (said[name] for name in ("rejected_by_reason", "failed_for_good", "samples_refused"))
    if any(count > said["rejected"] or not count for count in rejected.values()) or sum(rejected.values()) < said["rejected"]:
        yield "summary: rejected_by_reason", f"is {_some(rejected)}, and {said['rejected']} are rejected"
    crossed = ("crossed: ", "crossed_check: ")  # a curated item fails where nobody was asked
    for name, count in failed.items():
        if not count or (refused.get(name, 0) < count and not name.startswith(crossed)):
            yield f"summary: failed_for_good: {name[:80]}", f"is {count}, and {refused.get(name, 0)} samples were refused for it"
    rules = manifest["configuration"]["near_apathetic"] == "rules-then-model"
    for name, count in tally.refused.items():
        kind, _, reason = name.partition(": ")
        # What a rule made and a model made anew is a candidate, and no sample.
        if reason != "not_chosen" and refused.get(name, 0) < count and not (rules and kind == NEAR_APATHETIC.name):
            yield f"summary: samples_refused: {name[:80]}", f"is {refused.get(name, 0)}, and {count} candidates were refused for it"
    lost = tally.turns - tally.rows["pairs"]
    finals = sum(count for name, count in failed.items() if name.partition(": ")[0] in (NEAR_APATHETIC.name, FAR_EMPATHETIC.name))
    if lost > finals:
        yield "summary: failed_for_good", f"tells of {finals} failures, and {lost} helper turns have no pair"


def _plan(folder: Path, manifest: dict[str, Any], tally: Tally) -> Said:
    """What the configuration plans: which scenarios, how many of each, which indices there are."""
    config = configured(manifest)
    if config.dialogues > MOST_DIALOGUES or config.surplus > 1:
        return
    catalogue, wanted = None, None
    with contextlib.suppress(InputError):  # it was told with the definitions
        catalogue = built_under(folder, manifest).catalogue
    if config.plan == "drawn" and catalogue is not None:
        drawn = {f"{number:03d}": found for number, found in places(config, catalogue).items()}
        wanted = {number: sum(place < config.dialogues for place in found) for number, found in drawn.items()}
        planned = {number: len(found) for number, found in drawn.items()}
    elif config.plan == "seeds":
        seeds = {f"{one.number:03d}" for one in catalogue.scenarios if one.seed} if catalogue and _has_seeds(catalogue) else None
        wanted = dict.fromkeys(manifest["scenarios"] if seeds is None else seeds, 1)
        planned = wanted
    if wanted is None:
        return
    if (said := {number: one["quota"] for number, one in manifest["scenarios"].items()}) != wanted:
        yield "scenarios", f"have quotas {_some(dict(said.items() - wanted.items()))} that the configuration does not give"
        return
    if manifest["summary"]["planned"] != sum(planned.values()):
        yield "summary: planned", f"is {manifest['summary']['planned']}, the configuration plans {sum(planned.values())}"
    others = [*manifest["duplicates"], *manifest["duplicates"].values()]
    others += [one["dialogue_id"] for one in (manifest["reviews"] or {}).get("removed", ())]
    ids = [f"{number}-{index}" for number, index in tally.highest.items()] + others
    for name in ids:
        if not _is_planned(place_of(name), config, planned):
            yield "configuration", f'plans no "{name[:80]}"'


def _has_seeds(catalogue: Catalogue) -> bool:
    return any(one.seed for one in catalogue.scenarios)


def _is_planned(place: Place | None, config: Configuration, planned: dict[str, int]) -> bool:
    """Whether the plan has a dialogue there."""
    if place is None or f"{place[0]:03d}" not in planned:
        return False
    return place[1] == -1 if config.plan == "seeds" else 0 <= place[1] < planned[f"{place[0]:03d}"]


def configured(manifest: dict[str, Any]) -> Configuration:
    """The configuration of a manifest without what a release alone reads, and without its word list.

    Raises:
        InputError: if no build has it.
    """
    raw = {name: value for name, value in manifest["configuration"].items() if name not in ("candidates", "word_list", "withdrawn")}
    return checked({**raw, "report": {"metrics": ["length"], "bootstrap": 10}}, f"{MANIFEST}: configuration")


def _some(counts: dict[str, Any]) -> str:
    shown = ", ".join(f"{name[:40]}: {value}" for name, value in sorted(counts.items())[:5])
    return (shown or "none") + (f" and {len(counts) - 5} more" if len(counts) > 5 else "")
