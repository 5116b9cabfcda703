"""Raters' sheets with coded items, and the key to the codes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import derived_random, digest
from empathy_eval.base.tabular import TableRow, table_batches
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.canary import canary_entry
from empathy_eval.design.configuration import language_of
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.raters.review.assignment import assign, assign_blocks, code_of
from empathy_eval.raters.review.record import content_hash
from empathy_eval.raters.review.replies import SystemReplies
from empathy_eval.raters.review.sample import CANDIDATES, CONTEXTS, REPLIES, Cell, ReviewDesign, ReviewSample, Unit, batches


def plant_attention_checks(dialogues: Mapping[str, list[dict[str, Any]]], count: int, seed: int) -> None:
    """Plant attention checks: wrong strategies under ``planted`` of helper turns, the same for all raters of a dialogue.

    The wrong strategy is of another phase than the turn's own, so that nobody can take it for right. No dialogue gets a second one before
    each has one.

    Raises:
        InputError: if the dialogues have fewer helper turns.
    """
    if not count:
        return
    places: list[tuple[int, float, str, int]] = []
    for name, turns in dialogues.items():
        rng = derived_random(seed, "planted", name)
        tagged = [index for index, turn in enumerate(turns) if turn["strategy"]]
        places += [(rank, rng.random(), name, turn) for rank, turn in enumerate(rng.sample(tagged, len(tagged)))]
    if count > len(places):
        what = f'"{count}" is too many: the dialogues that are drawn have {len(places)} turns with a tag'
        raise input_error("--planted", what, f"give {len(places)} or less, or ask for more --dialogues")
    strategies = load_taxonomy().strategies
    phase = {strategy.name: strategy.phase for strategy in strategies}
    for _, _, name, index in sorted(places)[:count]:
        turn = dialogues[name][index]
        other_phases = [strategy.name for strategy in strategies if strategy.phase != phase[turn["strategy"]]]
        turn["planted"] = derived_random(seed, "planted as", name, index).choice(other_phases)


Sheet = dict[str, Any]
Item = dict[str, Any]


def text_hash(text: str) -> str:
    """12 hex digits of a text, regardless of white space: programs that save a spreadsheet change line ends."""
    return digest(" ".join(text.split()))[3:15]


def item_code(seal: str, seed: int, rater: str, name: str) -> str:
    """Code of an item for a rater. It depends on the release's seal, so that it cannot be guessed from an id."""
    return code_of([seal, seed, rater, name], 12)


def shown_kind(kind: str) -> str:
    """Kind of an item as shown: nothing distinguishes a system's reply from a variant of the release."""
    return "variant" if kind == "reply" else kind


def make_review(
    release_dir: Path, manifest: Mapping[str, Any], sample: ReviewSample, design: ReviewDesign, replies: SystemReplies | None = None
) -> tuple[dict[str, Any], Iterator[Sheet]]:
    """Assign the units of a sample, read their texts and make the key; sheets are generated lazily.

    Raises:
        InputError: if there are too few raters, or too few turns for attention checks.
    """
    seal = manifest["seal"]
    assigned, blocks = assign_blocks(sample.units, design, seal) if design.between else (assign(sample.units, design), {})
    texts = _texts(release_dir, sample.units)
    for unit in sample.units:
        if unit.kind == "reply" and replies:
            texts[unit.name]["replies"] = replies.texts[unit.name]
    dialogues = {unit.name: texts[unit.name]["turns"] for unit in sample.units if unit.kind == "dialogue"}
    plant_attention_checks(dialogues, design.planted, design.seed)
    shown: dict[str, list[Item]] = {}
    key: dict[str, Item] = {}
    for rater, units in assigned.items():
        shown[rater] = []
        for unit, cell in _in_order(units, texts, design.seed, rater):
            # The hash of the file of replies keeps codes unguessable for those who know the release and the systems.
            apart = (design.replies,) if unit.kind == "reply" else ()
            code = item_code(seal, design.seed, rater, ":".join((unit.name, *apart, cell.name)))
            item, stands_for = _item(code, unit, cell, texts[unit.name])
            shown[rater].append(item)
            key[code] = {"rater": rater, **stands_for} | ({"block": blocks[rater]} if blocks else {})
    # The review's id is the hash of the release's seal and the settings.
    release = {name: manifest[name] for name in ("name", "version")}
    head = {"format": 1, "review": digest([seal, design.settings]), "release": release}
    strategies = [{"name": strategy.name, "phase": strategy.phase, "gloss": strategy.definition} for strategy in load_taxonomy().strategies]
    language = language_of(manifest["configuration"])
    spoken = {**head, **({} if language == ENGLISH else {"language": language}), **canary_entry(manifest)}
    sheets = ({**spoken, "rater": rater, "items": items, "strategies": strategies} for rater, items in shown.items())
    return {**head, "release": {**release, "seal": seal}, "settings": design.settings, "items": key}, sheets


def _texts(release_dir: Path, units: Iterable[Unit]) -> dict[str, TableRow]:
    """Rows of the chosen units by name; rejected candidates are in their pair's row under the cell's name."""
    names_of: dict[str, list[str]] = {"crossed": [], "dialogues": [], "pairs": [], "controls": []}
    rejected: dict[tuple[str, str, int], str] = {}
    for unit in units:
        names = {cell.name for cell in unit.cells}
        config = {"dialogue": "dialogues", "crossed": "crossed"}.get(unit.kind, "controls" if names & set(CONTROLS) else "pairs")
        names_of[config].append(unit.name)
        rejected |= {(unit.name, cell.variant, cell.attempt): cell.name for cell in unit.cells if cell.attempt is not None}
    turn = ["pair_id", "dialogue_id", "turn", "scenario", "description", "flags", "context", *PAIR_VARIANTS]
    columns = {
        "crossed": ["crossed_id", "dialogue_id", "turn", *CONTEXTS, *REPLIES],
        "dialogues": ["dialogue_id", "scenario", "description", "turns", "flags"], "pairs": turn, "controls": [*turn, *CONTROLS],
    }  # fmt: skip
    rows: dict[str, TableRow] = {}
    for config, chosen_names in names_of.items():
        chosen = pa.array(chosen_names, pa.string())
        for batch in batches(release_dir, config, columns[config]) if chosen_names else ():
            for row in batch.filter(pc.is_in(batch.column(columns[config][0]), chosen)).to_pylist():
                rows[row[columns[config][0]]] = row
        if config == "crossed":  # scenario and flags are in their dialogues
            crossed = [rows[name] for name in chosen_names]
            about = _texts(release_dir, {Unit(row["dialogue_id"], "dialogue") for row in crossed}) if crossed else {}
            for row in crossed:
                row |= {name: about[row["dialogue_id"]][name] for name in ("scenario", "flags")}
    if rejected:
        for batch in table_batches(release_dir / CANDIDATES, ["pair_id", "variant", "attempt", "text"]):
            for row in batch.to_pylist():
                if name := rejected.get((row["pair_id"], row["variant"], row["attempt"])):
                    rows[row["pair_id"]][name] = row["text"]
    return rows


def _in_order(units: list[tuple[Unit, Cell]], texts: dict[str, TableRow], seed: int, rater: str) -> list[tuple[Unit, Cell]]:
    """The order for a rater: replies before whole dialogues, flagged ones first, else seeded by rater."""
    shuffled = sorted(units, key=lambda pair: derived_random(seed, "order", rater, pair[0].name).random())
    return sorted(shuffled, key=lambda pair: (pair[0].kind == "dialogue", not texts[pair[0].name]["flags"]))


def both_replies(item: Mapping[str, Any]) -> str:
    """The two replies of a crossed item as one text, for a row of a spreadsheet."""
    return f"A: {item['reply_a']}\n\nB: {item['reply_b']}"


def _item(code: str, unit: Unit, cell: Cell, row: TableRow) -> tuple[Item, Item]:
    """An item of a sheet, which does not reveal its cell, and the meaning of its code."""
    item = {"item": code, "kind": shown_kind(unit.kind), "scenario": row["scenario"], "flags": row["flags"]}
    if unit.kind == "crossed":  # the dialogue's description fits only one of the contexts
        # The item's code decides the order of its two replies.
        order = REPLIES if int(code[-1], 16) % 2 else REPLIES[::-1]
        item |= {"context": row[cell.variant], "reply_a": row[order[0]], "reply_b": row[order[1]]}
        context = CONTEXTS.index(cell.variant)
        about = {"context": context + 1, "fits": "AB"[order.index(REPLIES[context])], "text": text_hash(both_replies(item))}
        return item, {"kind": "crossed", "crossed_id": unit.name, **about}
    item["situation"] = row["description"]
    if unit.kind == "dialogue":
        shown = [{"role": turn["role"], "text": turn["text"], "strategy": turn.get("planted", turn["strategy"])} for turn in row["turns"]]
        turns = {str(index): turn for index, turn in enumerate(row["turns"]) if turn["role"] == "helper"}
        visible = {number: {name: turn[name] for name in ("strategy", "text", "planted") if name in turn} for number, turn in turns.items()}
        hashed = {number: turn | {"text": text_hash(turn["text"])} for number, turn in visible.items()}
        about = {"dialogue_id": unit.name, "content": content_hash(row["turns"]), "turns": hashed}
        return {**item, "turns": shown}, {"kind": "dialogue", **about}
    text = str(row["replies"][cell.variant] if unit.kind == "reply" else row[cell.name])
    item |= {"context": row["context"], "text": text}
    if unit.kind == "reply":
        return item, {"kind": "reply", "pair_id": unit.name, "system": cell.variant, "text": text_hash(text)}
    rejection = {} if cell.attempt is None else {"attempt": cell.attempt, "reasons": list(cell.reasons)}
    about = {"pair_id": unit.name, "variant": cell.variant, "samples": list(cell.samples), "text": text_hash(text)}
    return item, {"kind": "variant", **about, **rejection}
