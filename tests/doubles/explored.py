"""Releases to explore: rows made up by number, in small groups, as a release of the builder lays them out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.design.dataset import CANDIDATES, SPLITS, configs_of, file_of
from empathy_eval.reports import explorer as explore

TURNS = 5  # helper turns of a dialogue, each with a pair
METRICS = {"BLEU-4": True, "distance": False, "VADER": True, "length": None}
PHASES = {"exploration": ("Clarification", "Reflective Statements"), "action": ("Suggest Options",)}
SCENARIOS = ("Breakups or Divorce", "Financial Worries", "Loneliness")
JUDGED = {"teacher": "a judge", "rubric": "warmth", "rubric_hash": "s1-0"}
VARIANTS = ("reference", "apathetic", "empathetic", "near_empathetic", "far_apathetic")
Rows = dict[tuple[str, str], list[dict[str, Any]]]


def split_by_number(number: int) -> str:
    return SPLITS[min(number % 5, 2)]


def a_pair(dialogue: int, turn: int, texts: Mapping[str, str]) -> dict[str, Any]:
    """A pair; ``texts`` may say what its texts are, its scenario among them."""
    number = dialogue * TURNS + turn
    phase = list(PHASES)[number % 2]
    reference = f"I can see that week {number} was long for you, and you kept going all the same."
    said = {
        "reference": reference,
        "apathetic": reference.replace("long", "nothing special"),
        "empathetic": f"You carried day {number} alone.\n\nWho would you have liked to be there?",
        "scenario": SCENARIOS[dialogue % 3],
        "description": f"The seeker has had week {number}.",
        **texts,
    }
    before = [{"role": role, "text": texts.get("context", f"{role} {place}")} for place in range(turn) for role in ("seeker", "helper")]
    return {
        **said, "pair_id": f"{dialogue:03d}-{dialogue:05d}-t{2 * turn + 1:02d}", "dialogue_id": f"{dialogue:03d}-{dialogue:05d}",
        "scenario_id": dialogue % 3 + 1, "turn": 2 * turn + 1, "phase": phase, "strategy": PHASES[phase][number % len(PHASES[phase])],
        "context": [*before, {"role": "seeker", "text": texts.get("context", f"It is week {number}.")}],
        "empathetic_strategy": "Affirmation", "apathetic_method": "model", "apathetic_edit_ratio": 0.125, "empathetic_overlap": 0.25,
        "toxicity": {"reference": 0.01, "apathetic": 0.02, "empathetic": 0.03}, "flags": ["crisis"] if number % 7 == 0 else [],
        "source": "model", "model": "m1", "near_model": "m1", "far_model": "m2",
        "apathetic_manner": [None, "hurrying", "cheering"][number % 3], "empathetic_device": ["small step", "quiet question"][number % 2],
    }  # fmt: skip


def a_control(pair: dict[str, Any]) -> dict[str, Any]:
    near = {"near_empathetic": pair["reference"].replace("long", "hard"), "far_apathetic": "Others have worse weeks, so do hurry up."}
    measured = {f"{name}_{what}": 0.5 for name in near for what in ("edit_ratio", "overlap", "toxicity")}
    return {**pair, **near, **measured, "far_apathetic_manner": "minimising"}


def margin_of(pair: int) -> float | None:
    return None if pair % 11 == 0 else (pair % 20 - 5) / 10


def score(pair: int, variant: int, metric: int) -> float | None:
    """A score that is known by its place; the reference has none where it is needed."""
    return None if not variant and metric < 2 else ((pair * 7 + variant * 13 + metric * 5) % 31) / 10


def rows_of(dialogues: int, texts: Mapping[str, str], *, judged: bool = True) -> Rows:
    """The rows of all configs: every other dialogue has controls, and of each dialogue a judge saw the first pair."""
    rows: Rows = {}

    def add(config: str, split: str, *some: dict[str, Any]) -> None:
        rows.setdefault((config, split), []).extend(some)

    for dialogue in range(dialogues):
        split = split_by_number(dialogue)
        pairs = [a_pair(dialogue, turn, texts) for turn in range(TURNS)]
        add("pairs", split, *pairs)
        if dialogue % 2 == 0:
            add("controls", split, *map(a_control, pairs))
        turns = [
            turn
            for pair in pairs
            for turn in (
                {**pair["context"][-1], "strategy": None, "phase": None},
                {"role": "helper", "text": pair["reference"], "strategy": pair["strategy"], "phase": pair["phase"]},
            )
        ]
        add("dialogues", split, {**pairs[0], "turns": turns})
        if judged:
            for config, row in judged_rows(pairs[0]):
                add(config, split, row)
    return rows


def judged_rows(pair: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a judge said of a pair, and of its dialogue as a whole."""
    first = {name: pair[name] for name in ("pair_id", "dialogue_id", "turn")} | {"sample": 0, **JUDGED}
    for name in VARIANTS[:3]:
        yield "annotations", {**first, "variant": name, "criterion": "warmth", "value": 2.0, "reason": f"It is {name}."}
    alone = {"pair_id": None, "turn": None, "variant": None}
    yield "annotations", {**first, **alone, "criterion": "warmth", "value": 3.0, "reason": "All of it."}
    won = {"variant_1": "apathetic", "variant_2": "empathetic", "winner_12": "apathetic", "winner_21": "empathetic", "consistent": False}
    yield "comparisons", {**first, **won, "reason_12": "It is first.", "reason_21": "It is first."}
    yield "strategies", {**first, "ideal": [0.7, 0.2, 0.1, *[0.0] * 12], "variant": "reference", "named": "Affirmation"}


def write_explored(
    folder: Path, dialogues: int = 60, texts: Mapping[str, str] | None = None, *, judged: bool = True, scored: bool = True
) -> dict[str, Any]:
    """Writes a release of ``dialogues`` times 5 pairs, in groups of 40 rows; returns its manifest."""
    rows = rows_of(dialogues, texts or {}, judged=judged)
    configs = [*configs_of([]), *({config for config, _ in rows} - {"pairs", "controls", "dialogues"})]
    counts = {config: {split: len(rows.get((config, split), ())) for split in SPLITS} for config in sorted(configs)}
    for config, schema in configs_of(counts).items():
        for split in SPLITS:
            path = file_of(folder, config, split)
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist(rows.get((config, split), []), schema), path, compression="zstd", row_group_size=40)
    pairs = [pair for split in SPLITS for pair in rows.get(("pairs", split), [])]
    controlled = {one["pair_id"] for split in SPLITS for one in rows.get(("controls", split), [])}
    refused = [
        {"pair_id": one["pair_id"], "variant": "apathetic", "attempt": 1, "text": f"Refused {one['reference']}", "reasons": [why]}
        for one, why in zip(pairs[::4], ["edit_ratio_high", "overlap_high", "edit_ratio_high"] * len(pairs), strict=False)
    ]
    pq.write_table(pa.Table.from_pylist(refused, CANDIDATES), folder / "candidates.parquet", compression="zstd", row_group_size=25)
    (folder / "report").mkdir()
    if scored:
        numbers = [(name, pa.float64()) for name in ("word_margin", *METRICS)]
        schema = pa.schema([("pair_id", pa.string()), ("variant", pa.string()), *numbers])
        table = pa.Table.from_pylist(list(item_rows(pairs, controlled)), schema)
        pq.write_table(table, folder / "report" / "items.parquet", compression="zstd", row_group_size=100)
    facts = manifest(counts, dialogues)
    (folder / "manifest.json").write_text(json.dumps(facts))
    return facts


def item_rows(pairs: list[dict[str, Any]], controlled: set[str]) -> Iterator[dict[str, Any]]:
    for pair in pairs:
        for at, variant in enumerate(VARIANTS[: 5 if pair["pair_id"] in controlled else 3]):
            scores = {name: score(number_of(pair["pair_id"]), at, place) for place, name in enumerate(METRICS)}
            yield {"pair_id": pair["pair_id"], "variant": variant, "word_margin": margin_of(number_of(pair["pair_id"])), **scores}


def number_of(pair_id: str) -> int:
    return int(pair_id[:3]) * TURNS + (int(pair_id[-2:]) - 1) // 2


def manifest(counts: dict[str, dict[str, int]], dialogues: int) -> dict[str, Any]:
    return {
        "name": "explored", "version": "1.0.0", "date": None, "counts": counts, "configuration": {"seed": 1}, "reviews": None,
        "scenarios": {f"{place + 1:03d}": {"name": name, "quota": 20} for place, name in enumerate(SCENARIOS)},
        "summary": {"planned": dialogues + 9, "accepted": dialogues + 2, "rejected": 7, "missing": 0,
                    "rejected_by_reason": {"too_short": 4, "unsafe": 3}, "samples_refused": {"dialogue: not JSON": 2}},
        "withdrawn": [{"dialogue_id": "003-00099", "reason": "It named somebody.", "date": "2026-01-02"}],
        "duplicates": {"001-00098": "001-00001"}, "spares_left_out": 1,
    }  # fmt: skip


def write_explorer(folder: Path, facts: dict[str, Any], out: Path | None = None) -> Path:
    """Writes the page of such a release, by default where a release carries it."""
    rows = [{"metric": name, "signature": f"{name}|version:1", "higher_is_better": better} for name, better in METRICS.items()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explore, "read_tables", lambda _: {"inversion": rows})
        page = explore.explore_page(folder, facts)
    path = out or folder / explore.PAGE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path
