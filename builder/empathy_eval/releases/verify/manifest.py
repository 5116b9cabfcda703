"""What a manifest says that follows from something else in it, or in the tables: held against that."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import FIX_RESTORE, Finding, InputError, faults_of, input_error
from empathy_eval.base.hashing import digest
from empathy_eval.base.schemas import schema
from empathy_eval.base.tabular import table_batches
from empathy_eval.base.version import __version__
from empathy_eval.design.configuration import Configuration, candidates_of, parse_configuration
from empathy_eval.design.dataset import MANIFEST, cells, file_of, split_of
from empathy_eval.design.errata import PlanIndex, errata_dialogues, errata_faults, original_id, revision_of, unknown_errata
from empathy_eval.design.kinds import CROSSED, KINDS, kinds_of_build
from empathy_eval.design.planning import plan_of
from empathy_eval.design.quotas import planned_count, quotas, sequence_positions
from empathy_eval.design.word_list import WORD_LIST, read_word_list
from empathy_eval.metrics.registry import names_of
from empathy_eval.releases.assemble.duplicates import PREFERENCE
from empathy_eval.releases.assemble.predecessors import disorder
from empathy_eval.releases.verify.design import built_under

# A plan of strangers beyond this is not reckoned again.
MOST_DIALOGUES = 5_000_000


def errata_misfits(folder: Path, manifest: dict[str, Any], config: Configuration) -> Iterator[Finding]:
    """Errata that are not complete, that name what is not planned, or that are not counted."""
    where, configuration = str(folder / MANIFEST), manifest["configuration"]
    yield from faults_of(errata_faults(where, configuration))
    if ("withdrawn_counts" in manifest) != bool(manifest["withdrawn"]):
        yield Finding(f"{where}: withdrawn_counts", f"does not match {len(manifest['withdrawn'])} withdrawals")
    # A plan that is larger is told elsewhere.
    if errata_dialogues(configuration) and config.dialogues <= MOST_DIALOGUES and config.surplus <= 1:
        planned = _planned_replacements(folder, manifest, config)
        yield from (Finding(one.where, one.what) for one in unknown_errata(where, configuration, planned))


def _planned_replacements(folder: Path, manifest: dict[str, Any], config: Configuration) -> PlanIndex:
    """The plan of a release: dialogues that it holds by their turns, others as they are drawn again."""
    catalogue, there = built_under(folder, manifest).catalogue, _roles(folder, errata_dialogues(manifest["configuration"]))
    drawn = sequence_positions(config, catalogue) if config.plan == "drawn" else None

    def roles(name: str) -> Sequence[str] | None:
        if name in there:
            return there[name]
        try:
            plan = plan_of(config, catalogue, name, drawn)
        except InputError:  # no course of turns was found: the plan is none that was built
            return None
        if plan:
            return [turn.role for turn in plan.turns]
        # Nobody else has the seeds of a stranger.
        seed = config.plan == "seeds" and original_id(name)[:3] in manifest["scenarios"] and original_id(name)[3:] == "-seed"
        return [] if seed else None

    return PlanIndex(lambda: cells(folder, "dialogues", "dialogue_id"), roles)


def _roles(folder: Path, named: set[str]) -> dict[str, list[str]]:
    """The roles of the turns of some dialogues, of those of them that a release holds."""
    found = {}
    for split in sorted({split_of(name) for name in named}):
        for batch in table_batches(file_of(folder, "dialogues", split), ["dialogue_id", "turns"]):
            for row in batch.to_pylist():
                if row["dialogue_id"] in named:
                    found[row["dialogue_id"]] = [turn["role"] for turn in row["turns"] or () if turn]
    return found


def manifest_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """What does not add up, or does not follow from the configuration, by its place in the manifest."""
    try:
        config = configuration_of(folder, manifest)
        released = list(cells(folder, "dialogues", "dialogue_id"))
    except InputError as error:
        yield from faults_of(error.problems)
        return
    yield from errata_misfits(folder, manifest, config)
    whats = [
        *_named(manifest, config),
        *_planned(folder, manifest, config, released),
        *_summed(manifest),
        *_pinned(manifest),
        *disorder(manifest),
        *_left_out(manifest, set(released)),
    ]
    yield from (Finding(f"{folder / MANIFEST}: {where}", what) for where, what in whats)


def configuration_of(folder: Path, manifest: dict[str, Any]) -> Configuration:
    """The configuration of a release, as this program reads it.

    Raises:
        InputError: if it is none.
    """
    configuration = dict(manifest["configuration"])
    words = read_word_list(folder / WORD_LIST) if candidates_of(configuration) > 1 else None
    if words and words.digest != configuration.get("word_list"):
        raise input_error(folder / WORD_LIST, "is not the word list that the candidates were chosen by", FIX_RESTORE)
    return parse_configuration(configuration, f"{folder / MANIFEST}: configuration", words)


def _named(manifest: dict[str, Any], config: Configuration) -> Iterator[tuple[str, str]]:
    """What only repeats the configuration."""
    wanted: dict[str, Any] = {
        "name": f"empathy-eval-{manifest['configuration']['name']}",
        "identity": config.identity,
        "withdrawn": manifest["configuration"].get("withdrawn", []),
        "partial": manifest["summary"]["missing"] > 0,
    }
    if manifest["builder"] == __version__:
        kinds = kinds_of_build(config.crossed > 0)
        wanted["schemas"] = {name: digest(schema(name)) for name in dict.fromkeys(one.answer for one in kinds)}
    unscored = manifest["configuration"]["checks"]["toxicity"] == "none"
    if unscored != (manifest["toxicity_weights"] == "none"):
        yield "toxicity_weights", "must be given if toxicity is scored, and only then"
    for name, value in wanted.items():
        if manifest[name] != value:
            yield name, f"says {str(manifest[name])[:80]}, but the configuration gives {str(value)[:80]}"
    if strange := [one for one in manifest.get("without", ()) if one not in _measures(manifest["configuration"]["report"])]:
        yield "without", f'leaves out "{strange[0]}", which the configuration does not ask for'


def _pinned(manifest: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The metrics that the report is said to have, where they are not those that the configuration names."""
    told, settings = [one["metric"] for one in manifest.get("metrics", ())], manifest["configuration"]["report"]
    wanted = [one for one in dict.fromkeys(settings.get("metrics") or told) if one not in manifest.get("without", ())]
    if told != wanted or not told:
        yield "metrics", f"says {', '.join(told)[:80] or 'nothing'}, but the configuration gives {', '.join(wanted)[:80] or 'some'}"


def _measures(settings: dict[str, Any]) -> set[str]:
    """What a report may be made without."""
    return {*names_of(settings), *settings, *settings.get("shortcuts", {})}


def _planned(folder: Path, manifest: dict[str, Any], config: Configuration, released: list[str]) -> Iterator[tuple[str, str]]:
    """How many dialogues there are to be, of each scenario and in all, and of how many there are fewer."""
    there = {number: one["quota"] for number, one in manifest["scenarios"].items()}
    catalogue = built_under(folder, manifest).catalogue
    wanted, total = dict.fromkeys(there, 1), len(there)
    if config.plan == "drawn":
        if config.dialogues > MOST_DIALOGUES or config.surplus > 1:
            bounds = f"at most {MOST_DIALOGUES:,} and 1 can be checked"
            yield "configuration", f"plans {config.dialogues:,} dialogues and a surplus of {config.surplus:g}; {bounds}"
            return
        wanted, total = {f"{number:03d}": quota for number, quota in quotas(config, catalogue).items()}, planned_count(config, catalogue)
    if there != wanted:
        number = next(name for name in sorted(there.keys() | wanted.keys()) if there.get(name) != wanted.get(name))
        yield "scenarios", f"says {there.get(number)} dialogues of {number}, but the configuration gives {wanted.get(number)}"
    if manifest["summary"]["planned"] != total:
        yield "summary: planned", f"says {manifest['summary']['planned']}, but the configuration gives {total}"
    found, most = (Counter(one[:3] for one in released if some(one)) for some in (bool, lambda one: not revision_of(one)))
    lacking = {number: quota - found[number] for number, quota in there.items() if quota > found[number]}
    if manifest.get("below_quota", {}) != lacking:
        yield "below_quota", f"says {str(manifest.get('below_quota', {}))[:80]}, but the data gives {str(lacking)[:80]}"
    if more := [number for number in most if most[number] > there.get(number, 0)]:
        yield "scenarios", f"says {there.get(more[0], 0)} dialogues of {more[0]}, but the data holds {most[more[0]]}"


def _summed(manifest: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What of the summary does not add up, or is less than the data."""
    summary, counts = manifest["summary"], {config: sum(one.values()) for config, one in manifest["counts"].items()}
    if summary["planned"] != summary["accepted"] + summary["rejected"] + summary["missing"]:
        parts = f"{summary['accepted']} accepted, {summary['rejected']} rejected and {summary['missing']} missing"
        yield "summary", f"says {summary['planned']} planned, but {parts}"
    removed = (manifest.get("reviews") or {}).get("removed", [])
    # What was removed or is a duplicate was accepted.
    least = counts["dialogues"] + len(manifest["duplicates"]) + manifest["spares_left_out"] + len(removed)
    gone = manifest.get("withdrawn_counts", {"dialogues": 0, "pairs": 0})
    if summary["accepted"] != (given := least + gone["dialogues"]):
        yield "summary: accepted", f"says {summary['accepted']}, but the data and the left-out dialogues give {given}"
    # A pair can be withdrawn from a dialogue that stays.
    whole = summary["accepted"] == counts["dialogues"] and all("pair_id" not in one for one in manifest["withdrawn"])
    for name in ("pairs", "controls", "crossed"):
        told, there = summary.get(name, 0), counts.get(name, 0)
        if told < there or (whole and told != there):
            yield f"summary: {name}", f"says {told}, but the data holds {there}"
    if summary["accepted"] == counts["dialogues"] + gone["dialogues"] and summary["pairs"] != counts["pairs"] + gone["pairs"]:
        yield "summary: pairs", f"says {summary['pairs']}, but the data holds {counts['pairs']} and {gone['pairs']} were withdrawn"
    if summary["controls"] > summary["pairs"]:
        yield "summary: controls", f"says {summary['controls']}, but there are only {summary['pairs']} pairs"
    for name in summary["samples_refused"]:
        if name.partition(": ")[0] not in KINDS:
            yield f"summary: samples_refused: {name[:80]}", "does not name a kind of request"
    for name, count in summary["rejected_by_reason"].items():
        if count > summary["rejected"]:
            yield f"summary: rejected_by_reason: {name}", f"says {count}, but only {summary['rejected']} dialogues were rejected"
    if summary["rejected"] and not summary["rejected_by_reason"]:
        yield "summary: rejected_by_reason", f"names no reason, but {summary['rejected']} dialogues were rejected"
    for name, count in summary["failed_for_good"].items():
        # A crossed item that nobody was asked for is no sample.
        if count > summary["samples_refused"].get(name, 0) and not name.startswith(f"{CROSSED.name}: "):
            yield (
                f"summary: failed_for_good: {name}",
                f"says {count}, but only {summary['samples_refused'].get(name, 0)} samples were refused",
            )


def _left_out(manifest: dict[str, Any], released: set[str]) -> Iterator[tuple[str, str]]:
    """Dialogues that are said to be left out, and that no such plan has, or whose like is not there."""
    form = re.compile(r"[0-9]{3}-seed" if manifest["configuration"]["plan"] == "seeds" else r"[0-9]{3}-[0-9]{5,}")
    removed = {one["dialogue_id"] for one in (manifest.get("reviews") or {}).get("removed", [])}
    for goes, stays in manifest["duplicates"].items():
        if not form.fullmatch(original_id(goes)) or goes[:3] not in manifest["scenarios"]:
            yield f"duplicates: {goes}", "is not a dialogue of this plan"
        elif not form.fullmatch(original_id(stays)) or (PREFERENCE[split_of(stays)], stays) >= (PREFERENCE[split_of(goes)], goes):
            yield f"duplicates: {goes}", f"is left out for {stays[:80]}, but of these two this one must be kept"
        elif stays not in released and stays not in manifest["duplicates"] and not manifest["spares_left_out"]:
            yield f"duplicates: {goes}", f"is listed as a near-duplicate of {stays}, which is not in the release"
    for one in sorted(removed):
        if not form.fullmatch(original_id(one)) or one[:3] not in manifest["scenarios"]:
            yield f"reviews: removed: {one}", "is not a dialogue of this plan"
