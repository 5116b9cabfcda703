"""Descriptive figures of texts (lengths, manners, strategies over a dialogue, examples), and the groups of breakdowns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rapidfuzz.distance import Levenshtein

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import signature_line
from empathy_eval.base.tabular import WHOLE, table_batches
from empathy_eval.base.text import ENGLISH, edit_ratio, joined, overlap, spaced
from empathy_eval.design.canary import canary_entry
from empathy_eval.design.contrasts import CELLS, CONTROLS, FAR, NEAR, PAIRS, SIDES, STANCE, STANCE_FAR, STANCE_NEAR, TWO_BY_TWO, Contrast
from empathy_eval.design.dataset import FAR_WAY, GROUPINGS, WAYS, cells, column, files_of, pair_id
from empathy_eval.design.personas import VOICES
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.evaluation.corpus.pairs import APART, Corpus, sort_labels
from empathy_eval.evaluation.inversion.inversion import Statistics
from empathy_eval.evaluation.inversion.results import MetricRow
from empathy_eval.metrics.lexical import Length

# Lengths are counted in bins of so many words, a dialogue is cut into so many equal parts.
BIN, PARTS = 5, 10
LEFT_OUT = ("planned", "accepted", "rejected", "missing", "rejected_by_reason", "failed_for_good", "samples_refused")
QUARTILES = (1, 2, 3)
# Several marks at one place are one question; Latin, Arabic and full-width ones.
QUESTION = re.compile("[?\N{ARABIC QUESTION MARK}\N{FULLWIDTH QUESTION MARK}]+")


def lengths(pairs: Corpus, controls: Corpus) -> dict[str, Any]:
    """Returns the lengths of texts in words; ``counts`` are of bins of ``bin`` words, from 0."""
    texts = {"reference": pairs.references, **pairs.variants}
    texts |= {name: controls.variants[name] for name in CONTROLS if len(controls)}
    length = Length(pairs.language)
    return {"bin": BIN, "signature": length.signature, "variants": [_lengths(name, some, length) for name, some in texts.items()]}


def _lengths(name: str, texts: Sequence[str], length: Length) -> dict[str, Any]:
    counted = np.array([int(length.score(text)) for text in texts])
    counts = np.bincount(counted // BIN)
    low, high = (int(end) for end in np.quantile(counted, (0.05, 0.95), method="inverted_cdf"))
    median = float(np.median(counted))
    figures = {"mean": round(float(counted.mean()), 4), "low": low, "median": median, "high": high, "peak": int(counts.argmax()) * BIN}
    return {"variant": name, "texts": len(texts), **figures, "counts": counts.tolist()}


def count_manners(pairs: Corpus, controls: Corpus) -> dict[str, Any]:
    """Returns the number of texts by manner (near and far) and by device; empty where none is planned."""
    near, device = (Counter(pairs.groups.get(name, ())) for name in WAYS)
    far = Counter(controls.groups.get(FAR_WAY, ()))
    if APART.issuperset({*near, *far, *device}):
        return {}
    taxonomy = load_taxonomy()
    manners, devices = ([way.name for way in some] for some in (taxonomy.manners, taxonomy.devices))
    return {
        "manners": [{"name": name, "near": near[name], "far": far[name]} for name in sort_labels({*near, *far}, manners)],
        "devices": [{"name": name, "texts": device[name]} for name in sort_labels(device, devices)],
    }


def strategy_use(release_dir: Path) -> dict[str, Any]:
    """Returns how often each phase and strategy is planned in each tenth of a dialogue's helper turns."""
    phases, strategies = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    for path in files_of(release_dir, "dialogues"):
        for batch in table_batches(path, ["turns"]):
            for turns in batch.column("turns").to_pylist():
                tagged = [(turn["phase"], turn["strategy"]) for turn in turns if turn["role"] == "helper"]
                for number, (phase, strategy) in enumerate(tagged):
                    part = part_of(number, len(tagged))
                    phases[phase, part] += 1
                    strategies[strategy, part] += 1
    taxonomy = load_taxonomy()
    phase_of = {strategy.name: strategy.phase for strategy in taxonomy.strategies}
    return {
        "parts": PARTS,
        "phases": _counts(phases, taxonomy.phases),
        "strategies": [{**count, "phase": phase_of[count["name"]]} for count in _counts(strategies, list(phase_of))],
    }


def length_by_part(pairs: Corpus, controls: Corpus, release_dir: Path) -> dict[str, Any]:
    """Returns by variant the mean number of words and of questions in each tenth of a dialogue's helper turns.

    ``texts`` are those that the means are over, None where there are none. Of the strategies that far texts were planned with there are
    ``counts``; near texts keep those of the reference. All are of the turns that are pairs.
    """
    parts = part_by_pair(release_dir)
    if stray := [pair for pair in pairs.pair_ids if pair not in parts]:
        raise input_error(release_dir, f'"{stray[0]}" is not a helper turn of a dialogue', WHOLE)
    variants = [("reference", pairs, pairs.references), *((name, pairs, texts) for name, texts in pairs.variants.items())]
    variants += [(name, controls, controls.variants[name]) for name in CONTROLS if len(controls)]
    length = Length(pairs.language)
    far = Counter(zip(cells(release_dir, "pairs", "empathetic_strategy"), map(parts.__getitem__, pairs.pair_ids), strict=True))
    near = Counter(zip(pairs.groups["strategy"], map(parts.__getitem__, pairs.pair_ids), strict=True))
    taxonomy = load_taxonomy().strategies
    planned = [
        {
            "name": strategy.name,
            "phase": strategy.phase,
            **{key: _by_part(some, strategy.name) for key, some in (("near", near), ("far", far))},
        }
        for strategy in taxonomy
    ]
    return {
        "signature": f"{length.signature}|{signature_line(questions='runs-of-question-marks', parts=PARTS)}",
        "variants": [_depth(name, texts, [parts[pair] for pair in corpus.pair_ids], length) for name, corpus, texts in variants],
        "planned": [row for row in planned if any(row["near"]) or any(row["far"])],
    }


def _by_part(counted: Mapping[tuple[str, int], int], name: str) -> list[int]:
    return [counted.get((name, part), 0) for part in range(PARTS)]


def _depth(name: str, texts: Sequence[str], parts: Sequence[int], length: Length) -> dict[str, Any]:
    counts = np.array([[length.score(text), len(QUESTION.findall(text))] for text in texts], dtype=np.float64)
    counted = np.bincount(parts, minlength=PARTS)
    means = [np.bincount(parts, column, PARTS) / np.maximum(counted, 1) for column in counts.T]
    words, questions = ([round(float(mean), 4) if of else None for mean, of in zip(some, counted, strict=True)] for some in means)
    return {"variant": name, "texts": counted.tolist(), "words": words, "questions": questions}


def part_by_pair(release_dir: Path) -> dict[str, int]:
    """Returns by pair id the tenth of its dialogue that the helper turn is in, from 0."""
    part_of_pair = dict[str, int]()
    for path in files_of(release_dir, "dialogues"):
        for batch in table_batches(path, ["dialogue_id", "turns"]):
            for row in batch.to_pylist():
                helpers = [place for place, turn in enumerate(row["turns"]) if turn["role"] == "helper"]
                part_of_pair |= {pair_id(row["dialogue_id"], place): part_of(number, len(helpers)) for number, place in enumerate(helpers)}
    return part_of_pair


def part_of(number: int, of: int) -> int:
    """Returns the part of a dialogue, from 0, of helper turn ``number`` out of ``of``."""
    return (2 * number + 1) * PARTS // (2 * of)


def _counts(counted: Mapping[tuple[str, int], int], names: Sequence[str]) -> list[dict[str, Any]]:
    rows = [{"name": name, "counts": [counted.get((name, part), 0) for part in range(PARTS)]} for name in names]
    return [row for row in rows if any(row["counts"])]


def examples(release_dir: Path, language: str = ENGLISH) -> list[dict[str, Any]]:
    """Returns up to three pairs: at the quartiles of the apathetic edit ratio of pairs without a flag, with all four cells if possible.

    A dialogue that has a flag gives no example.
    """
    return _examples(release_dir, "controls", language) or _examples(release_dir, "pairs", language)


def _examples(release_dir: Path, config: str, language: str) -> list[dict[str, Any]]:
    named = zip(*(column(release_dir, "dialogues", name) for name in ("dialogue_id", "flags")), strict=True)
    flagged = {dialogue_id for dialogue_id, flags in named if flags}
    names = ("apathetic_edit_ratio", "pair_id", "dialogue_id", "flags")
    rows = zip(*(column(release_dir, config, name) for name in names), strict=True)
    calm = sorted((ratio, pair_id) for ratio, pair_id, dialogue_id, flags in rows if not flags and dialogue_id not in flagged)
    chosen = [calm[place][1] for place in sorted({len(calm) * quartile // 4 for quartile in QUARTILES})] if calm else []
    if not chosen:
        return []
    batches = (batch for path in files_of(release_dir, config) for batch in table_batches(path))
    picked = [row for batch in batches for row in batch.filter(pc.is_in(batch.column("pair_id"), pa.array(chosen))).to_pylist()]
    return [_example(row, language) for row in sorted(picked, key=lambda row: chosen.index(row["pair_id"]))]


def _example(row: dict[str, Any], language: str) -> dict[str, Any]:
    reference = row["reference"]
    variants = {name: row[name] for name in CELLS if name in row}
    return {
        **{name: row[name] for name in ("pair_id", "scenario", "phase", "strategy", "empathetic_strategy", "reference")},
        "before": row["context"][-1] if row["context"] else None,
        "variants": {
            name: {
                "text": text,
                "edit_ratio": round(edit_ratio(reference, text, language), 4),
                "overlap": round(overlap(reference, text, language), 4),
                "changes": changes(reference, text, language) if name in NEAR else [],
            }
            for name, text in variants.items()
        },
    }


def changes(before: str, after: str, language: str = ENGLISH) -> list[list[str]]:
    """Returns the shortest word-level edits from one text to another, as ``[same | removed | added, words]``."""
    first, second = (spaced(text, language).split() for text in (before, after))
    pieces: list[list[str]] = []
    for same, group in groupby(Levenshtein.opcodes(first, second), key=lambda step: step.tag == "equal"):
        steps = list(group)
        removed, added = first[steps[0].src_start : steps[-1].src_end], second[steps[0].dest_start : steps[-1].dest_end]
        parts = {"same": added} if same else {"removed": removed, "added": added}
        pieces += [[kind, joined(some, language)] for kind, some in parts.items() if some]
    return pieces


def release_summary(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the part of a manifest that the report shows: settings, and counts of rejected and missing items."""
    summary = facts["summary"]
    return {
        **{name: facts[name] for name in ("name", "version", "date", "identity", "configuration", "software", "withdrawn")},
        **{name: summary[name] for name in LEFT_OUT},
        "duplicates": len(facts["duplicates"]),
        "spares_left_out": facts["spares_left_out"],
        "models": sorted(summary["usage"]),
        "removed_by_review": [review["dialogue_id"] for review in (facts.get("reviews") or {}).get("removed", [])],
        "reviewed": bool(facts.get("reviews")),
        **({"without": facts["without"]} if "without" in facts else {}),
        **canary_entry(facts),
    }


# By contrast the name of its breakdown by the voice in which both of its texts are written, and the column of that.
BY_VOICE = {STANCE_NEAR: ("voice, near", VOICES[0]), STANCE_FAR: ("voice, far", VOICES[1])}


# What the name of a breakdown ends with where it is of the released pairs: there the checks force the sign of what reads the reference.
AS_RELEASED = ", as released"


# By contrast with an apathetic cold side the name of its breakdown by the manner of that text.
MANNERS = {STANCE: "manner", STANCE_NEAR: "manner, near", STANCE_FAR: "manner, far", PAIRS[0].name: f"manner{AS_RELEASED}"}


@dataclass(frozen=True)
class Grouping:
    """A breakdown of a contrast: its corpus, the group of each comparison (``labels``), and statistics by metric.

    ``mixed`` says that near and far texts stand on one side. Their scores have no spread and no curve in common, so there is neither
    an effect nor an area.
    """

    name: str
    corpus: Corpus
    contrast: Contrast
    statistics: Mapping[str, Statistics]
    labels: Sequence[str]
    known: Sequence[str] = ()
    mixed: bool = False

    @property
    def groups(self) -> list[str]:
        """The groups in their order."""
        return sort_labels(self.labels, self.known)

    def of(self, metric: str) -> Statistics:
        """Returns the statistics of a metric; where near and far are mixed, by side all near comparisons, then all far ones."""
        statistics = self.statistics[metric]
        if not self.mixed:
            return statistics
        sides = zip(SIDES.duels[0], zip(NEAR, FAR, strict=True), strict=True)
        return {side: np.vstack([statistics[name] for name in names]) for side, names in sides}

    def restrict(self, row: MetricRow) -> MetricRow:
        """Returns a row of a group with the figures that this breakdown has."""
        if not self.mixed:
            return row
        return replace(row, differences={name: replace(difference, effect=None, auc=None) for name, difference in row.differences.items()})


def groupings(pairs: Corpus, released: Mapping[str, Statistics], controls: Corpus, cells: Mapping[str, Statistics]) -> Iterator[Grouping]:
    """Yields every breakdown: at equal closeness, or as released for metrics without scores of controls; by manner if known."""
    (raw,) = PAIRS
    of = {contrast.name: contrast for contrast in TWO_BY_TWO}
    whole = {name: cell for name, cell in cells.items() if _any_scored(cell)}
    alone = {name: values for name, values in released.items() if name not in whole}
    for name in GROUPINGS:
        if whole:
            yield Grouping(name, controls, of[STANCE], whole, controls.groups[name])
        if alone:
            yield Grouping(name + AS_RELEASED, pairs, raw, alone, pairs.groups[name])
    known = [manner.name for manner in load_taxonomy().manners]
    near, far = (controls.groups.get(name, []) for name in (WAYS[0], FAR_WAY))
    twice = Corpus(controls.pair_ids * 2, controls.dialogues * 2, controls.scenario_ids * 2, [], {})
    some = (
        Grouping(MANNERS[STANCE], twice, SIDES, cells, [*near, *far], known, mixed=True),
        Grouping(MANNERS[STANCE_NEAR], controls, of[STANCE_NEAR], cells, near, known),
        Grouping(MANNERS[STANCE_FAR], controls, of[STANCE_FAR], cells, far, known),
        Grouping(MANNERS[raw.name], pairs, raw, released, pairs.groups.get(WAYS[0], []), known),
    )
    voices = (Grouping(name, controls, of[key], cells, controls.groups.get(column, [])) for key, (name, column) in BY_VOICE.items())
    yield from (by for by in (*some, *voices) if by.statistics and not APART.issuperset(by.labels))


def _any_scored(statistics: Statistics) -> bool:
    """Returns whether some pair has scores of all its texts."""
    return bool((~np.any([np.isnan(rows).any(axis=1) for rows in statistics.values()], axis=0)).any())
