"""The manifest of a release: values that follow from its configuration, from its tables or from other values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import FIX_RESTORE, Finding, InputError, faults_of, input_error, input_errors_as_faults
from empathy_eval.base.hashing import digest
from empathy_eval.base.schemas import schema
from empathy_eval.base.version import __version__
from empathy_eval.design.configuration import Configuration, candidates_of, parse_configuration
from empathy_eval.design.dataset import MANIFEST, cells, split_of
from empathy_eval.design.errata import PlanIndex, errata_dialogues, errata_faults, original_id, revision_of, unknown_errata
from empathy_eval.design.kinds import CROSSED, KINDS, kinds_of_build
from empathy_eval.design.planning import plan_of
from empathy_eval.design.quotas import planned_count, quotas, sequence_positions
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.design.word_list import WORD_LIST, read_word_list
from empathy_eval.metrics.registry import names_of
from empathy_eval.raters.review.human_evaluation import impossible_figures
from empathy_eval.releases.assemble.build_definitions import BuildDefinitions
from empathy_eval.releases.assemble.manifest import unordered_predecessors
from empathy_eval.releases.assemble.selection import PREFERENCE
from empathy_eval.releases.verify.files import released_rows

# A larger plan of strangers is not drawn again.
MOST_DIALOGUES = 5_000_000
SETTINGS, DATA = "the configuration", "the data"
# A key, its value, the value that it must have, and what gives that.
Derived = Iterator[tuple[str, Any, Any, str]]
# A key, whether it is wrong, and what is wrong then.
Rules = Iterator[tuple[str, object, str]]


@input_errors_as_faults
def manifest_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Values that do not follow from the configuration, the tables or other values, by their keys."""
    config = configuration_of(folder, manifest)
    catalogue = BuildDefinitions(manifest, folder, strict=True).catalogue
    released = list(cells(folder, "dialogues", "dialogue_id"))
    yield from _errata_faults(folder, manifest, config, catalogue)
    derived = [*_from_configuration(manifest, config), *_from_plan(manifest, config, catalogue, released), *_sums(manifest)]
    whats = [(key, f"says {str(value)[:80]}, but {by} gives {str(other)[:80]}") for key, value, other, by in derived if value != other]
    whats += [*_too_large(manifest, released), *unordered_predecessors(manifest)]
    whats += [(key, what) for key, wrong, what in _exclusion_rules(manifest, set(released)) if wrong]
    yield from (Finding(f"{folder / MANIFEST}: {key}", what) for key, what in whats)


def configuration_of(folder: Path, manifest: dict[str, Any]) -> Configuration:
    """The configuration of a release, as this program reads it.

    Raises:
        InputError: if it is not valid.
    """
    configuration = dict(manifest["configuration"])
    words = read_word_list(folder / WORD_LIST) if candidates_of(configuration) > 1 else None
    if words and words.digest != configuration.get("word_list"):
        raise input_error(folder / WORD_LIST, "is not the word list that the candidates were chosen by", FIX_RESTORE)
    return parse_configuration(configuration, f"{folder / MANIFEST}: configuration", words)


def _errata_faults(folder: Path, manifest: dict[str, Any], config: Configuration, catalogue: Catalogue) -> Iterator[Finding]:
    """Errata that are incomplete, not counted, or of dialogues and pairs that are not planned."""
    where, configuration = str(folder / MANIFEST), manifest["configuration"]
    yield from faults_of(errata_faults(where, configuration))
    if ("withdrawn_counts" in manifest) != bool(manifest["withdrawn"]):
        yield Finding(f"{where}: withdrawn_counts", f"does not match {len(manifest['withdrawn'])} withdrawals")
    named = errata_dialogues(configuration)
    if not named or _is_too_large(config):
        return
    rows = released_rows(folder, "dialogues", ["dialogue_id", "turns"], sorted({split_of(name) for name in named}))
    released = {row["dialogue_id"]: [turn["role"] for turn in row["turns"] or () if turn] for row in rows if row["dialogue_id"] in named}
    positions = sequence_positions(config, catalogue) if config.plan == "drawn" else None

    def roles(name: str) -> Sequence[str] | None:
        """The roles of the turns of a dialogue: as released, else as planned."""
        if name in released:
            return released[name]
        try:
            plan = plan_of(config, catalogue, name, positions)
        except InputError:  # no course of turns was found, so no such plan was built
            return None
        if plan:
            return [turn.role for turn in plan.turns]
        # The turns of a stranger's seeds are unknown.
        return [] if config.plan == "seeds" and _is_planned(name, manifest) else None

    unknown = unknown_errata(where, configuration, PlanIndex(lambda: cells(folder, "dialogues", "dialogue_id"), roles))
    yield from (Finding(problem.where, problem.what) for problem in unknown)


def _is_too_large(config: Configuration) -> bool:
    return config.dialogues > MOST_DIALOGUES or config.surplus > 1


def _is_planned(name: str, manifest: Mapping[str, Any]) -> bool:
    """Whether an id, or that of the original dialogue, has the form of the plan and a scenario of the release."""
    form = r"-seed" if manifest["configuration"]["plan"] == "seeds" else r"-[0-9]{5,}"
    return original_id(name)[:3] in manifest["scenarios"] and re.fullmatch(form, original_id(name)[3:]) is not None


def _from_configuration(manifest: dict[str, Any], config: Configuration) -> Derived:
    """Values that follow from the configuration."""
    configuration, without = manifest["configuration"], manifest.get("without", ())
    settings, metrics = configuration["report"], [metric["metric"] for metric in manifest.get("metrics", ())]
    known = {*names_of(settings), *settings, *settings.get("shortcuts", {})}
    yield "name", manifest["name"], f"empathy-eval-{configuration['name']}", SETTINGS
    yield "identity", manifest["identity"], config.identity, SETTINGS
    yield "withdrawn", manifest["withdrawn"], configuration.get("withdrawn", []), SETTINGS
    yield "partial", manifest["partial"], manifest["summary"]["missing"] > 0, SETTINGS
    if manifest["builder"] == __version__:
        answers = dict.fromkeys(kind.answer for kind in kinds_of_build(config.crossed > 0))
        yield "schemas", manifest["schemas"], {name: digest(schema(name)) for name in answers}, SETTINGS
    yield "metrics", metrics, [name for name in dict.fromkeys(settings.get("metrics") or metrics) if name not in without], SETTINGS
    yield "without", [name for name in without if name not in known], [], SETTINGS
    yield "toxicity_weights", manifest["toxicity_weights"] == "none", configuration["checks"]["toxicity"] == "none", SETTINGS


def _from_plan(manifest: dict[str, Any], config: Configuration, catalogue: Catalogue, released: list[str]) -> Derived:
    """The quota of each scenario, the number of planned dialogues, and how many are lacking."""
    stated = {number: scenario["quota"] for number, scenario in manifest["scenarios"].items()}
    planned, total = dict.fromkeys(stated, 1), len(stated)
    if config.plan == "drawn":
        if _is_too_large(config):
            most = f"at most {MOST_DIALOGUES:,} with a surplus of at most 1"
            yield "configuration", f"{config.dialogues:,} dialogues", most, "what can be checked"
            return
        planned, total = {f"{number:03d}": quota for number, quota in quotas(config, catalogue).items()}, planned_count(config, catalogue)
    lacking = Counter(stated)
    lacking.subtract(Counter(name[:3] for name in released))
    yield "scenarios", stated, planned, SETTINGS
    yield "summary: planned", manifest["summary"]["planned"], total, SETTINGS
    yield "below_quota", manifest.get("below_quota", {}), {number: count for number, count in lacking.items() if count > 0}, DATA


def _sums(manifest: dict[str, Any]) -> Derived:
    """Values of the summary that are sums of other numbers."""
    summary, counts = manifest["summary"], _row_counts(manifest)
    yield "summary: planned", summary["planned"], summary["accepted"] + summary["rejected"] + summary["missing"], "the sum"
    # Removed dialogues and duplicates were accepted.
    removed, withdrawn = _removed_dialogues(manifest), manifest.get("withdrawn_counts", {"dialogues": 0, "pairs": 0})
    dialogues = counts["dialogues"] + withdrawn["dialogues"]
    accepted = dialogues + len(manifest["duplicates"]) + manifest["spares_left_out"] + len(removed)
    yield "summary: accepted", summary["accepted"], accepted, DATA
    if summary["accepted"] == dialogues:
        yield "summary: pairs", summary["pairs"], counts["pairs"] + withdrawn["pairs"], DATA
        # A pair can be withdrawn with its controls from a dialogue that stays.
        if not manifest["withdrawn"]:
            yield from ((f"summary: {name}", summary.get(name, 0), counts[name], DATA) for name in ("controls", "crossed"))


def _row_counts(manifest: dict[str, Any]) -> Counter[str]:
    return Counter({config: sum(by_split.values()) for config, by_split in manifest["counts"].items()})


def _removed_dialogues(manifest: dict[str, Any]) -> list[str]:
    return [removal["dialogue_id"] for removal in (manifest["reviews"] or {}).get("removed", [])]


def _too_large(manifest: dict[str, Any], released: list[str]) -> Iterator[tuple[str, str]]:
    """Numbers that are larger than the number that they are a part of, and reasons without a kind of request."""
    summary, counts, scenarios = manifest["summary"], _row_counts(manifest), manifest["scenarios"]
    refused, reasons = summary["samples_refused"], summary["rejected_by_reason"]
    if not manifest.get("metrics"):
        yield "metrics", "says nothing"
    originals = Counter(name[:3] for name in released if not revision_of(name))
    bounds = [(f"scenarios: {number}", count, scenarios.get(number, {"quota": 0})["quota"]) for number, count in originals.items()]
    bounds += [(f"data: {name}", counts[name], summary.get(name, 0)) for name in ("pairs", "controls", "crossed")]
    bounds += [("summary: controls", summary["controls"], summary["pairs"])]
    bounds += [("summary: rejected", int(summary["rejected"] > 0), len(reasons))]
    bounds += [(f"summary: rejected_by_reason: {name}", count, summary["rejected"]) for name, count in reasons.items()]
    # A crossed item without a request is no sample.
    failed = {name: count for name, count in summary["failed_for_good"].items() if not name.startswith(f"{CROSSED.name}: ")}
    bounds += [(f"summary: failed_for_good: {name}", count, refused.get(name, 0)) for name, count in failed.items()]
    yield from ((key, f"has {count}, but at most {most} are possible") for key, count, most in bounds if count > most)
    unknown = (name for name in refused if name.partition(": ")[0] not in KINDS)
    yield from ((f"summary: samples_refused: {name[:80]}", "does not name a kind of request") for name in unknown)


def _exclusion_rules(manifest: dict[str, Any], released: set[str]) -> Rules:
    """Excluded dialogues are planned; of two near-duplicates the right one is excluded, and the other one is released."""
    for excluded, retained in manifest["duplicates"].items():
        order = [(PREFERENCE[split_of(name)], name) for name in (retained, excluded)]
        lost = retained not in released and retained not in manifest["duplicates"] and not manifest["spares_left_out"]
        key, wrong_order = f"duplicates: {excluded}", not _is_planned(retained, manifest) or order != sorted(set(order))
        yield key, not _is_planned(excluded, manifest), "is not a dialogue of this plan"
        yield key, wrong_order, f"is left out for {retained[:80]}, but of these two this one must be kept"
        yield key, lost and not wrong_order, f"is listed as a near-duplicate of {retained}, which is not in the release"
    for name in sorted(_removed_dialogues(manifest)):
        yield f"reviews: removed: {name}", not _is_planned(name, manifest), "is not a dialogue of this plan"


def review_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Figures of a review that no record of reviews gives."""
    settings = manifest["configuration"]["report"]["bootstrap"], manifest["configuration"]["seed"], manifest["software"].get("numpy")
    whats = impossible_figures(manifest["reviews"], *settings) if manifest["reviews"] else ()
    yield from (Finding(f"{folder / MANIFEST}: reviews: {key}", what) for key, what in whats)
