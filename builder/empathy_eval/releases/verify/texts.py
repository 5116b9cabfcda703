"""Every check of the configuration, run again on every text of a release; plans drawn again; seeds beside the packaged ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import EmpathyEvalError, InputError, Problem
from empathy_eval.base.tabular import TableRow
from empathy_eval.base.text import edit_ratio, overlap
from empathy_eval.completions.requests import LONGEST, Flaw, sign_flaws
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import SPLITS
from empathy_eval.design.language import Language
from empathy_eval.design.personas import VOICES
from empathy_eval.design.planning import Plan, plan_of
from empathy_eval.design.quotas import places
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.design.taxonomy import Taxonomy, load_taxonomy
from empathy_eval.generation.checks import built_in
from empathy_eval.generation.checks.built_in import variant_flaws
from empathy_eval.generation.outcomes import Turn
from empathy_eval.generation.patterns import de_empathised
from empathy_eval.metrics.registry import Told
from empathy_eval.releases.verify.choice import candidate_faults
from empathy_eval.releases.verify.crossed import crossed_text_flaws, misplaced
from empathy_eval.releases.verify.design import built_under
from empathy_eval.releases.verify.manifest import configuration_of
from empathy_eval.releases.verify.provenance import KIND_OF
from empathy_eval.releases.verify.rows import RESTORE, Cursor, read_rows

# How far a measure may be from the one that a text gives.
EXACT = 1e-9


@dataclass(frozen=True)
class Checked:
    """What texts are checked under."""

    config: Configuration
    language: Language
    # The strategies by their names, as releases call them, and what a plan is drawn from; None where that is not known.
    strategies: Mapping[str, str]
    taxonomy: Taxonomy
    catalogue: Catalogue | None
    drawn: dict[int, list[int]] = field(default_factory=dict)

    def plan(self, dialogue_id: str) -> Plan | None:
        """The plan of a dialogue, drawn again; None where there is nothing to draw it from, as for seeds that are not here."""
        if self.catalogue is None or (self.config.plan == "seeds" and not any(one.seed for one in self.catalogue.scenarios)):
            return None
        return plan_of(self.config, self.catalogue, dialogue_id, self.drawn)


def text_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Texts that a check of the configuration refuses, and columns that plans and texts do not give.

    Checks of one's own are code and are not run: that is told. Where a release goes by rules that cannot be had, nothing is checked.
    """
    if own := ", ".join(manifest.get("checks", {})):
        what = f"its own checks are code and were not run: {own}"
        yield Told(str(folder), what, "ask the publisher for these checks, and build the release again", "checks")
    try:
        under = _under(folder, manifest)
    except InputError as error:
        yield from error.problems
        return
    if under is None:
        return
    configs = [name for name in ("pairs", "controls", "crossed") if name in manifest["counts"]]
    for split in SPLITS:
        cursors = {config: Cursor(read_rows(folder, config, split)) for config in configs}
        for place, row in read_rows(folder, "dialogues", split):
            there = {config: cursor.take(row["dialogue_id"]) for config, cursor in cursors.items()}
            try:
                whats = list(_of_dialogue(row, there, under))
            except EmpathyEvalError as error:
                whats = [one.what for one in error.problems]
            yield from (Problem(place, f'"{row["dialogue_id"]}": {what}', RESTORE) for what in whats)
    yield from candidate_faults(folder, manifest, under.config, under.language)


def _under(folder: Path, manifest: dict[str, Any]) -> Checked | None:
    """What the texts of a release are checked under; None where its rules are not to be had.

    Raises:
        InputError: if what it carries is not valid.
    """
    under, config = built_under(folder, manifest), configuration_of(folder, manifest)
    if under.language is None:
        return None
    names = {one.name: one.abbreviation for one in load_taxonomy().strategies}
    taxonomy = under.catalogue.taxonomy if under.catalogue else load_taxonomy()
    drawn = places(config, under.catalogue) if under.catalogue and config.plan == "drawn" else {}
    return Checked(config, under.language, names, taxonomy, under.catalogue, drawn)


def turns_of(row: TableRow, strategies: Mapping[str, str]) -> list[Turn]:
    """The turns of a dialogue; a strategy is its abbreviation, and one that is not known stays as it is."""
    return [Turn(one["role"], one["text"], one["strategy"] and strategies.get(one["strategy"], one["strategy"])) for one in row["turns"]]


def _of_dialogue(row: TableRow, there: dict[str, list[TableRow]], under: Checked) -> Iterator[str]:
    """What is wrong with a dialogue and all that is of it."""
    turns, config, language = turns_of(row, under.strategies), under.config, under.language
    if longest := max((one.text for one in turns if len(one.text) > LONGEST), default=None, key=len):
        yield f"a turn has {len(longest):,} characters"
        return
    plan = under.plan(row["dialogue_id"])
    found: list[Flaw] = [
        *built_in.description(row["description"], language),
        *built_in.keeps_phases(turns, under.taxonomy, config.rules),
        *built_in.says_enough(turns, config.checks, language.code),
        *built_in.answers_crisis(turns, language),
        *(flaw for one in turns if one.role == "helper" for flaw in built_in.harmless(one.text, language)),
        *(built_in.follows_plan(turns, plan) if plan else ()),
    ]
    yield from (f"{flaw.reason}: {flaw.detail}" for flaw in found)
    for text in (row["description"], *(one.text for one in turns)):
        yield from _unclean(text)
    for number, one in enumerate(row["turns"]):
        if one["strategy"] and one["phase"] != load_taxonomy().phase_of(under.strategies.get(one["strategy"], "RS")):
            yield f"turn {number} has the strategy {one['strategy']}, which is not of the phase {one['phase']}"
    if (flags := list(built_in.dialogue_flags(turns, language))) != row["flags"]:
        yield f"is flagged {row['flags']}, but its texts give {flags}"
    yield from _like_seed(row, there, under)
    controls = {one["pair_id"]: one for one in there["controls"]}
    crisis, rows = False, {one["turn"]: one for one in there["pairs"]}
    for place, turn in enumerate(turns):
        crisis = crisis or built_in.in_crisis(turn.text, language)
        if pair := rows.get(place):
            yield from _of_pair(pair, controls.get(pair["pair_id"]), ["crisis"] if crisis else [], plan, under)
    items = there.get("crossed", ())
    for item in items:
        flaws = crossed_text_flaws(item, turns, config.checks, language)
        yield from (f"{item['crossed_id']}: {flaw.reason}: {flaw.detail}" for flaw in flaws)
    if items and plan and row["source"] == "model":
        yield from misplaced(items, turns, plan, language)


def _unclean(text: str) -> Iterator[str]:
    if text != text.strip():
        yield f'"{text[:40]}" begins or ends with white space'
    yield from (f"{flaw.reason}: {flaw.detail}" for flaw in sign_flaws(text))


def _of_pair(row: TableRow, control: TableRow | None, flags: list[str], plan: Plan | None, under: Checked) -> Iterator[str]:
    """What is wrong with a pair and its controls."""
    config, language = under.config, under.language
    texts = {name: row[name] for name in PAIR_VARIANTS} | ({name: control[name] for name in CONTROLS} if control else {})
    for variant, text in texts.items():
        if len(text) > LONGEST:
            yield f"{variant} of {row['pair_id']} has {len(text):,} characters"
            continue
        flaws = [
            *(
                f"{one.reason}: {one.detail}"
                for one in variant_flaws(KIND_OF[variant], row["reference"], text, flags, config.checks, language)
            ),
            *_unclean(text),
        ]
        yield from (f"{variant} of {row['pair_id']}: {what}" for what in flaws)
    if row["flags"] != flags:
        yield f"{row['pair_id']} is flagged {row['flags']}, but its texts give {flags}"
    if row["apathetic_method"] == "rules" and max(len(row["reference"]), len(row["apathetic"])) <= LONGEST:
        wanted = de_empathised(row["reference"], config.checks.edit_ratio_below, language)
        yield from [f"apathetic of {row['pair_id']} is not what the rules make of its reference"] if row["apathetic"] != wanted else []
    yield from (f"{row['pair_id']}: {what}" for what in _planned(row, control, plan, under))
    yield from (f"{row['pair_id']}: {what}" for what in _measured(row, control, language.code))
    scores = [(f"toxicity of {name}", score) for name, score in row["toxicity"].items()]
    scores += [(f"{name}_toxicity", control[f"{name}_toxicity"]) for name in CONTROLS] if control else []
    for name, score in scores:
        if score is not None and config.checks.toxicity and not 0 <= score <= config.checks.toxicity.at_most:
            yield f"{row['pair_id']}: {name} is {score}, but at most {config.checks.toxicity.at_most} is allowed"


def _measured(row: TableRow, control: TableRow | None, code: str) -> Iterator[str]:
    """Measures of controls that the texts do not give; those of pairs are held against them with their rows."""
    for name in CONTROLS if control else ():
        given = {"edit_ratio": edit_ratio, "overlap": overlap}
        for what, measure in given.items():
            if control and abs(control[f"{name}_{what}"] - (value := measure(row["reference"], control[name], code))) > EXACT:
                yield f"{name}_{what} is {control[f'{name}_{what}']}, but its texts give {value}"


def _planned(row: TableRow, control: TableRow | None, plan: Plan | None, under: Checked) -> Iterator[str]:
    """Strategies, manners and devices, and controls, that are not as planned, or that no plan has."""
    own, other = (under.strategies.get(row[name], "") for name in ("strategy", "empathetic_strategy"))
    if own == other or not own or not other or load_taxonomy().phase_of(own) != load_taxonomy().phase_of(other):
        yield f'the strategy "{row["strategy"]}" became "{row["empathetic_strategy"]}", but another strategy of the same phase is required'
    told = {"apathetic": row.get("apathetic_manner"), "empathetic": row.get("empathetic_device")}
    told |= {"far_apathetic": control["far_apathetic_manner"]} if control and "far_apathetic_manner" in control else {}
    planned = plan.turns[row["turn"]] if plan and row["turn"] < len(plan.turns) else None
    for variant, way in told.items():
        known = {one.name for one in under.taxonomy.ways(variant)} | {None}
        made_by_rules = variant == "apathetic" and row["apathetic_method"] == "rules"
        if way not in known:
            yield f'{variant} is made as "{way}", which the taxonomy does not have'
        elif planned and f"{variant}" in told and way != (wanted := None if made_by_rules else planned.ways.get(variant)):
            yield f'{variant} is made as "{way}", but the plan says "{wanted}"'
    for name, wanted in zip(VOICES, plan.voices if plan else (), strict=False):
        if name in row and row[name] != wanted:
            yield f'{name} is "{row[name]}", but the plan says "{wanted}"'
    if planned and other != planned.empathetic_strategy:
        yield f'the strategy of the empathetic text is "{other}", but the plan says "{planned.empathetic_strategy}"'
    if planned and control and not planned.controls:
        yield "has controls, but none were planned"


def _like_seed(row: TableRow, there: dict[str, list[TableRow]], under: Checked) -> Iterator[str]:
    """Texts that are said to be of a packaged seed dialogue, and are not its."""
    number = row["scenario_id"]
    seed = next((one.seed for one in under.catalogue.scenarios if one.number == number), None) if under.catalogue else None
    if seed is None or row["source"] != "seed":
        return
    if row["description"] != seed.description or [one["text"] for one in row["turns"]] != [one.text for one in seed.turns]:
        yield "its texts are not those of the seed dialogue"
        return
    kinds = {role: one.kind for role, one in under.config.models.items()}
    for config, variants in (("pairs", PAIR_VARIANTS), ("controls", CONTROLS)):
        for one in there[config]:
            for variant in variants:
                rules = variant == "apathetic" and one["apathetic_method"] == "rules"
                if kinds[KIND_OF[variant].role] == "seed-bank" and not rules and one[variant] != getattr(seed.turns[one["turn"]], variant):
                    yield f"{variant} of {one['pair_id']} is not that of the seed dialogue"
    items = under.catalogue.crossed.get(number, ()) if under.catalogue else ()
    # That of a corrected dialogue has its id from the dialogue, and its number from the file.
    own = {(one.crossed_id.rpartition("-")[2], one.turn, one.twin, one.reply_1, one.reply_2, one.reason) for one in items}
    for one in there.get("crossed", ()):
        number, twin = one["crossed_id"].rpartition("-")[2], one["context_2"][-1]["text"]
        told = (number, one["turn"], twin, one["reply_1"], one["reply_2"], one["reason"])
        if one["source"] == "seed" and told not in own:
            yield f"{one['crossed_id']} is not the crossed item of the seed dialogue"
