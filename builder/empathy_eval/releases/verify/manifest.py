"""What a manifest says that follows from something else in it, or in the tables, held against that; and what it says of people."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import FIX_RESTORE, Finding, InputError, faults_of, input_error
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest, signature_line
from empathy_eval.base.schemas import read_yaml, schema
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
from empathy_eval.raters.review.human_evaluation import PLACES, RATED
from empathy_eval.raters.review.record import CRITERIA
from empathy_eval.releases.assemble.build_definitions import BuildDefinitions
from empathy_eval.releases.assemble.manifest import unordered_predecessors
from empathy_eval.releases.assemble.selection import PREFERENCE
from empathy_eval.statistics.estimate import CONFIDENCE

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
    catalogue, there = (
        BuildDefinitions(manifest, folder, strict=True).catalogue,
        _roles(folder, errata_dialogues(manifest["configuration"])),
    )
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
    derived = [*_configured(manifest, config), *_planned(folder, manifest, config, released), *_added_up(manifest)]
    whats = [(where, f"says {str(told)[:80]}, but {by} gives {str(given)[:80]}") for where, told, given, by in derived if told != given]
    whats += [*_impossible(manifest, released), *unordered_predecessors(manifest), *_left_out(manifest, set(released))]
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


# Where something is said, what is said, what it should be, and what gives that.
Derived = Iterator[tuple[str, Any, Any, str]]
SETTINGS, DATA = "the configuration", "the data"


def _configured(manifest: dict[str, Any], config: Configuration) -> Derived:
    """What follows from the configuration."""
    configuration, without = manifest["configuration"], manifest.get("without", ())
    settings, metrics = configuration["report"], [one["metric"] for one in manifest.get("metrics", ())]
    wanted: dict[str, Any] = {
        "name": f"empathy-eval-{configuration['name']}",
        "identity": config.identity,
        "withdrawn": configuration.get("withdrawn", []),
        "partial": manifest["summary"]["missing"] > 0,
    }
    if manifest["builder"] == __version__:
        answers = dict.fromkeys(one.answer for one in kinds_of_build(config.crossed > 0))
        wanted["schemas"] = {name: digest(schema(name)) for name in answers}
    yield from ((name, manifest[name], value, SETTINGS) for name, value in wanted.items())
    yield "metrics", metrics, [one for one in dict.fromkeys(settings.get("metrics") or metrics) if one not in without], SETTINGS
    yield "without", [one for one in without if one not in {*names_of(settings), *settings, *settings.get("shortcuts", {})}], [], SETTINGS
    yield "toxicity_weights", manifest["toxicity_weights"] == "none", configuration["checks"]["toxicity"] == "none", SETTINGS


def _planned(folder: Path, manifest: dict[str, Any], config: Configuration, released: list[str]) -> Derived:
    """How many dialogues there are to be, of each scenario and in all, and of how many there are fewer."""
    there = {number: one["quota"] for number, one in manifest["scenarios"].items()}
    catalogue = BuildDefinitions(manifest, folder, strict=True).catalogue
    wanted, total = dict.fromkeys(there, 1), len(there)
    if config.plan == "drawn":
        if config.dialogues > MOST_DIALOGUES or config.surplus > 1:
            yield (
                "configuration",
                f"{config.dialogues:,} dialogues",
                f"at most {MOST_DIALOGUES:,} with a surplus of at most 1",
                "what can be checked",
            )
            return
        wanted, total = {f"{number:03d}": quota for number, quota in quotas(config, catalogue).items()}, planned_count(config, catalogue)
    lacking = Counter(there)
    lacking.subtract(Counter(one[:3] for one in released))
    yield "scenarios", there, wanted, SETTINGS
    yield "summary: planned", manifest["summary"]["planned"], total, SETTINGS
    yield "below_quota", manifest.get("below_quota", {}), {number: count for number, count in lacking.items() if count > 0}, DATA


def _added_up(manifest: dict[str, Any]) -> Derived:
    """What of the summary is a sum of other numbers."""
    summary, counts = manifest["summary"], _counts(manifest)
    yield "summary: planned", summary["planned"], summary["accepted"] + summary["rejected"] + summary["missing"], "the sum"
    # What was removed or is a duplicate was accepted.
    removed, gone = (manifest.get("reviews") or {}).get("removed", []), manifest.get("withdrawn_counts", {"dialogues": 0, "pairs": 0})
    left = counts["dialogues"] + gone["dialogues"]
    yield "summary: accepted", summary["accepted"], left + len(manifest["duplicates"]) + manifest["spares_left_out"] + len(removed), DATA
    if summary["accepted"] == left:
        yield "summary: pairs", summary["pairs"], counts["pairs"] + gone["pairs"], DATA
        # A pair can be withdrawn from a dialogue that stays, with its controls.
        if not manifest["withdrawn"]:
            yield from ((f"summary: {name}", summary.get(name, 0), counts[name], DATA) for name in ("controls", "crossed"))


def _counts(manifest: dict[str, Any]) -> Counter[str]:
    return Counter({config: sum(one.values()) for config, one in manifest["counts"].items()})


def _impossible(manifest: dict[str, Any], released: list[str]) -> Iterator[tuple[str, str]]:
    """Numbers that are larger than what they are a part of."""
    summary, counts, quota = manifest["summary"], _counts(manifest), manifest["scenarios"]
    refused, reasons = summary["samples_refused"], summary["rejected_by_reason"]
    if not manifest.get("metrics"):
        yield "metrics", "says nothing"
    bounds = [(f"scenarios: {number}", count, quota.get(number, {"quota": 0})["quota"]) for number, count in _first_forms(released).items()]
    bounds += [(f"data: {name}", counts[name], summary.get(name, 0)) for name in ("pairs", "controls", "crossed")]
    bounds += [("summary: controls", summary["controls"], summary["pairs"])]
    bounds += [("summary: rejected", int(summary["rejected"] > 0), len(reasons))]
    bounds += [(f"summary: rejected_by_reason: {name}", count, summary["rejected"]) for name, count in reasons.items()]
    # A crossed item that nobody was asked for is no sample.
    failed = {name: count for name, count in summary["failed_for_good"].items() if not name.startswith(f"{CROSSED.name}: ")}
    bounds += [(f"summary: failed_for_good: {name}", count, refused.get(name, 0)) for name, count in failed.items()]
    yield from ((where, f"has {count}, but at most {most} are possible") for where, count, most in bounds if count > most)
    strange = (name for name in refused if name.partition(": ")[0] not in KINDS)
    yield from ((f"summary: samples_refused: {name[:80]}", "does not name a kind of request") for name in strange)


def _first_forms(released: list[str]) -> Counter[str]:
    """How many dialogues there are of each scenario that correct no other."""
    return Counter(one[:3] for one in released if not revision_of(one))


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


# Half of what rounding takes from a mean, and a little.
ROUNDED = 0.51 * 10**-PLACES
Said = Iterator[tuple[str, str]]


def review_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Numbers of a review that no record gives."""
    if not (said := manifest["reviews"]):
        return
    for where, what in (*_people(said), *_ratings(said), *_kappas(said), *_crossed(said), *_signed(manifest)):
        yield Finding(f"{folder / MANIFEST}: reviews: {where}", what)


def _people(said: dict[str, Any]) -> Said:
    """Who judged, and what was removed."""
    raters, judgements, removed, alone = said["raters"], said["judgements"], said["removed"], said.get("alone", {})
    if raters > judgements or bool(raters) != bool(judgements):
        yield "raters", f"{raters} raters cannot give {judgements} judgements"
    ids = [one["dialogue_id"] for one in removed]
    if ids != sorted(set(ids)) or said["changed_since"] != sorted(said["changed_since"]):
        yield "removed", "is not in order"
    if both := sorted(set(ids) & set(said["changed_since"])):
        yield "changed_since", f"{both[0]} is also listed as removed"
    for one in removed:
        if one["remove"] < max(one["keep"], 1) or len(one["reasons"]) != one["remove"]:
            what = f"has {one['remove']} votes to remove, {one['keep']} to keep, and {len(one['reasons'])} reasons"
            yield f"removed: {one['dialogue_id']}", what
    samples = Counter[tuple[str, str]]()
    for row in said["ratings"]:
        samples[row["sample"], row["criterion"]] += row["ratings"]
    listed = sum(one["remove"] + one["keep"] for one in removed) + alone.get("judgements", 0) + max(samples.values(), default=0)
    listed += said["crossed"]["fitting"]["choices"] if said.get("crossed") else 0
    if listed > judgements:
        yield "judgements", f"says {judgements}, but {listed} are listed"
    if alone and alone["raters"] > min(raters, alone["judgements"]):
        yield "alone", "has more raters than the review, or than its own judgements"


def _ratings(said: dict[str, Any]) -> Said:
    """The means by sample, variant and criterion."""
    there = {(row["sample"], row["variant"]) for row in said["ratings"]}
    rated = [(sample, variant) for sample, variants in RATED.items() for variant in variants if (sample, variant) in there]
    if [(row["sample"], row["variant"], row["criterion"]) for row in said["ratings"]] != [
        (*one, name) for one in rated for name in CRITERIA
    ]:
        yield "ratings", "must have one row for each criterion of each rated variant"
        return
    counts: dict[tuple[str, str], set[tuple[int, ...]]] = defaultdict(set)
    for row in said["ratings"]:
        where = f"ratings: {row['sample']}, {row['variant']}, {row['criterion']}"
        counts[row["sample"], row["variant"]].add(tuple(row[name] for name in ("items", "raters", "ratings")))
        paper = _paper()[row["variant"]][row["criterion"]] if row["sample"] == "pairs" else None
        whats = [f"says that the paper has {row['paper']}, but it has {paper}"] if row["paper"] != paper else []
        if not 1 <= row["items"] <= row["ratings"] or not 1 <= row["raters"] <= min(row["ratings"], said["raters"]):
            whats.append(f"{row['raters']} raters cannot give {row['ratings']} ratings of {row['items']} items")
        yield from ((where, what) for what in (*whats, *_no_mean(row, row["ratings"], row["items"])))
    for (sample, variant), found in counts.items():
        if len(found) > 1:
            yield f"ratings: {sample}, {variant}", "the criteria differ in their numbers of items, raters or ratings"


def _paper() -> dict[str, Any]:
    found: dict[str, Any] = read_yaml(data_folder("release") / "paper_ratings.yaml", "paper_ratings")
    return found


def _no_mean(row: dict[str, Any], count: int, units: int | None = None) -> Iterator[str]:
    """What keeps a mean from being one of so many whole numbers, with an interval over so many units, if it has one."""
    if abs(row["mean"] * count - round(row["mean"] * count)) > ROUNDED * count + 1e-9:
        yield f"its mean of {row['mean']} is not a mean of {count} whole numbers"
    if units is not None:
        if (row["low"] is None) != (units < 2):
            yield "has an interval over one unit, or none over several"
        yield from _no_interval(row)


def _no_interval(one: dict[str, Any]) -> Iterator[str]:
    low, high = one["low"], one["high"]
    if (low is None) != (high is None) or (low is not None and low > high):
        yield f"its interval of {low} to {high} is not valid"


def _kappas(said: dict[str, Any]) -> Said:
    """Agreement by criterion."""
    rated = any(row["sample"] == "pairs" for row in said["ratings"])
    if set(said["kappa"]) != (set(CRITERIA) if rated else set()):
        yield "kappa", "must be given for each rated criterion, and for no other"
    for criterion, one in said["kappa"].items():
        values = [one[name] for name in ("value", "low", "high") if one[name] is not None]
        if (paper := _paper()["kappa"].get(criterion)) != one["paper"]:
            yield f"kappa: {criterion}", f"says that the paper has {one['paper']}, but it has {paper}"
        if not all(-1 <= value <= 1 for value in values):
            yield f"kappa: {criterion}", f"{values} are not values of agreement"
        yield from ((f"kappa: {criterion}", what) for what in _no_interval(one))


def _crossed(said: dict[str, Any]) -> Said:
    """The reading of crossed items."""
    if not (one := said.get("crossed")):
        return
    fitting, both = one["fitting"], one["both_right"]
    if not one["dialogues"] <= one["items"] <= fitting["choices"] or one["raters"] > min(said["raters"], fitting["choices"]):
        yield "crossed", f"{one['raters']} raters cannot make {fitting['choices']} choices of {one['items']} items"
    yield from (("crossed: fitting", what) for what in _no_mean(fitting, fitting["choices"], one["dialogues"]))
    if both and both["items"] > one["items"]:
        yield "crossed: both_right", f"is of {both['items']} items, but only {one['items']} were read"
    yield from (("crossed: both_right", what) for what in (_no_mean(both, both["items"]) if both else ()))


def _signed(manifest: dict[str, Any]) -> Said:
    """How the means were made."""
    configuration, said = manifest["configuration"], manifest["reviews"]
    wanted = signature_line(
        mean="ratings", interval="percentile", level=CONFIDENCE, resamples=configuration["report"]["bootstrap"], seed=configuration["seed"],
        unit="pair", numpy=manifest["software"].get("numpy"),
    )  # fmt: skip
    if said["signature"] != wanted:
        yield "signature", f'is "{said["signature"][:200]}", but the configuration gives "{wanted}"'
