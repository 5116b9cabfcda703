"""Rows of a release: derived from an accepted item for each config, the provenance and the candidates."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from empathy_eval.base.hashing import digest_bytes
from empathy_eval.base.tabular import TableRow, TableWriter
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import CONTRASTS, PREFERRED, SPLITS, TEXT_HASH, configs_of, file_of, pair_id
from empathy_eval.design.kinds import KINDS
from empathy_eval.design.personas import VOICES
from empathy_eval.design.taxonomy import Taxonomy
from empathy_eval.generation.outcomes import VARIANTS, CrossedOutcome, Dialogue, Outcome, Pair, Turn, Variant, contrasted

ASSISTANT = {"seeker": "user", "helper": "assistant"}


class ConfigWriter(contextlib.ExitStack):
    """Parquet files of the configs of a release, one for each split; other configs than those given begin with their first row.

    ``counts`` are the rows by config and split, empty splits too.
    """

    def __init__(self, folder: Path, metadata: dict[str, str], configs: Iterable[str]) -> None:
        super().__init__()
        self.counts = dict[str, dict[str, int]]()
        self._folder, self._metadata, self._writers = folder, metadata, dict[tuple[str, str], TableWriter]()
        for config in configs:
            self._begin(config)

    def _begin(self, config: str) -> None:
        self.counts[config] = dict.fromkeys(SPLITS, 0)
        for split in SPLITS:
            writer = TableWriter(file_of(self._folder, config, split), configs_of([config])[config], self._metadata)
            self._writers[config, split] = self.enter_context(writer)

    def add(self, config: str, split: str, row: TableRow) -> None:
        """Writes a row."""
        if config not in self.counts:
            self._begin(config)
        self._writers[config, split].add(row)
        self.counts[config][split] += 1


def derive_rows(outcome: Outcome, scenario: str, taxonomy: Taxonomy) -> Iterator[tuple[str, TableRow]]:
    """Yields (table, row) of an accepted item: the dialogue; for each pair ``pairs``, ``controls`` and preferences; the whole dialogue in
    each variant; its crossed items; then its provenance and candidates."""
    dialogue = outcome.dialogue
    if dialogue is None:
        return
    yield "dialogues", _dialogue_row(dialogue, scenario, taxonomy)
    for pair in outcome.pairs:
        row = _pair_row(dialogue, pair, scenario, taxonomy)
        yield "pairs", row
        controls = {name: getattr(pair, name) for name in CONTROLS}
        if all(controls.values()):
            more = {column: value for name, control in controls.items() for column, value in _control(name, control).items()}
            row = row | more | {"far_apathetic_manner": pair.far_apathetic and pair.far_apathetic.way}
            yield "controls", row
        yield from preference_rows(row)
    yield from ((CONTRASTS, row) for row in _contrast_rows(dialogue, outcome.pairs, scenario))
    crossed = [_crossed_row(dialogue, item) for item in outcome.crossed]
    yield from (("crossed", row) for row in crossed)
    yield from (("provenance", row) for row in _provenance_rows(dialogue, outcome.pairs, crossed))
    yield from (("candidates", row) for row in _candidate_rows(outcome))


def _dialogue_row(dialogue: Dialogue, scenario: str, taxonomy: Taxonomy) -> TableRow:
    turns = [{"role": turn.role, "text": turn.text, **_tag(turn, taxonomy)} for turn in dialogue.turns]
    return {**_about(dialogue, scenario), "turns": turns, "flags": list(dialogue.flags)}


def _about(dialogue: Dialogue, scenario: str) -> TableRow:
    """Returns the columns that a dialogue has in common with its pairs."""
    names = ("dialogue_id", "scenario_id", "description", "source", "model", *VOICES)
    return {"scenario": scenario, **{name: getattr(dialogue, name) for name in names}}


def _tag(turn: Turn, taxonomy: Taxonomy) -> TableRow:
    if turn.strategy is None:
        return {"strategy": None, "phase": None}
    return {"strategy": taxonomy[turn.strategy].name, "phase": taxonomy.phase_of(turn.strategy)}


def _pair_row(dialogue: Dialogue, pair: Pair, scenario: str, taxonomy: Taxonomy) -> TableRow:
    reference = dialogue.turns[pair.turn]
    variants: dict[str, Variant] = {name: getattr(pair, name) for name in PAIR_VARIANTS}
    return {
        **_about(dialogue, scenario),
        **_tag(reference, taxonomy),
        "pair_id": pair_id(dialogue.dialogue_id, pair.turn),
        "turn": pair.turn,
        "context": [{"role": turn.role, "text": turn.text} for turn in dialogue.turns[: pair.turn]],
        "reference": reference.text,
        **{name: variant.text for name, variant in variants.items()},
        "empathetic_strategy": taxonomy[pair.empathetic.strategy].name,
        "apathetic_method": pair.apathetic.method,
        "apathetic_manner": pair.apathetic.way,
        "empathetic_device": pair.empathetic.way,
        "apathetic_edit_ratio": pair.apathetic.edit_ratio,
        "empathetic_overlap": pair.empathetic.overlap,
        "toxicity": {"reference": pair.reference_toxicity, **{name: variant.toxicity for name, variant in variants.items()}},
        "flags": list(pair.flags),
        "near_model": pair.apathetic.model,
        "far_model": pair.empathetic.model,
    }


def _control(name: str, variant: Variant) -> TableRow:
    measures = {f"{name}_{measure}": getattr(variant, measure) for measure in ("edit_ratio", "overlap", "toxicity")}
    return {name: variant.text, **measures}


def _crossed_row(dialogue: Dialogue, item: CrossedOutcome) -> TableRow:
    before = [{"role": turn.role, "text": turn.text} for turn in dialogue.turns[: item.turn]]
    return {
        "crossed_id": item.crossed_id,
        "dialogue_id": dialogue.dialogue_id,
        "scenario_id": dialogue.scenario_id,
        "turn": item.turn,
        "context_1": before,
        "context_2": [*before[:-1], {"role": "seeker", "text": item.twin}],
        **{name: getattr(item, name) for name in ("reply_1", "reply_2", "reason", "source", "writer", "judge")},
        "request_keys": list(item.request_keys),
    }


def preference_prompt(context: list[dict[str, str]]) -> list[dict[str, str]]:
    """Returns a context in the form of preference trainers: successive turns of one role are joined by a blank line."""
    prompt: list[dict[str, str]] = []
    for turn in context:
        role = ASSISTANT[turn["role"]]
        if prompt and prompt[-1]["role"] == role:
            prompt[-1] = {"role": role, "content": f"{prompt[-1]['content']}\n\n{turn['text']}"}
        else:
            prompt.append({"role": role, "content": turn["text"]})
    return prompt


def preference_rows(row: TableRow) -> Iterator[tuple[str, TableRow]]:
    """Yields (config, row) of each preference of a row of ``pairs`` or ``controls``; none if the turn before is a helper's too."""
    if row["context"][-1]["role"] != "seeker":
        return
    prompt = preference_prompt(row["context"])
    for config, (chosen, rejected) in PREFERRED.items():
        if chosen in row and rejected in row:
            texts = {"chosen": row[chosen], "rejected": row[rejected]}
            replies = {name: [{"role": "assistant", "content": text}] for name, text in texts.items()}
            yield config, {"pair_id": row["pair_id"], "scenario": row["scenario"], "prompt": prompt, **replies}


def _contrast_rows(dialogue: Dialogue, pairs: Sequence[Pair], scenario: str) -> Iterator[TableRow]:
    """Yields the dialogue with all helper turns of one variant, for each variant that every helper turn has."""
    about = {"dialogue_id": dialogue.dialogue_id, "scenario_id": dialogue.scenario_id, "scenario": scenario}
    for variant, turns in contrasted(dialogue, pairs).items():
        yield {**about, "variant": variant, "turns": [{"role": role, "text": text} for role, text in turns]}


def _provenance_rows(dialogue: Dialogue, pairs: Sequence[Pair], crossed: Sequence[TableRow]) -> Iterator[TableRow]:
    """Yields the requests behind the dialogue, each variant (no key if rules made it) and crossed items of models (writer, then judges)."""
    base = {"dialogue_id": dialogue.dialogue_id}
    writer: TableRow = {"method": dialogue.source, "model": dialogue.model, "request_key": dialogue.request_key}
    yield {**base, "pair_id": None, "what": "dialogue", **writer, TEXT_HASH: None}
    for pair in pairs:
        for what in VARIANTS:
            variant: Variant | None = getattr(pair, what)
            if variant:
                writer = {"method": variant.method, "model": variant.model, "request_key": variant.request_key}
                identity = pair_id(dialogue.dialogue_id, pair.turn)
                yield {**base, "pair_id": identity, "what": what, **writer, TEXT_HASH: digest_bytes(variant.text.encode())}
    for row in crossed:
        place = {**base, "pair_id": pair_id(dialogue.dialogue_id, row["turn"]), "what": "crossed"}
        for index, key in enumerate(row["request_keys"]):
            writer = {"method": "judge", "model": row["judge"]} if index else {"method": "model", "model": row["writer"]}
            yield {**place, **writer, "request_key": key, TEXT_HASH: None}


def _candidate_rows(outcome: Outcome) -> Iterator[TableRow]:
    """Yields the texts that reached the checks and are not released, numbered within their variant from 1 in the order of the checks.

    If one of several candidates was released, it has the number that is left out.
    """
    attempts: Counter[tuple[int, str]] = Counter()
    for candidate in outcome.candidates:
        attempts[candidate.turn, candidate.kind] += 1
        yield {
            "pair_id": pair_id(outcome.dialogue_id, candidate.turn),
            "variant": KINDS[candidate.kind].variant,
            "attempt": candidate.attempt or attempts[candidate.turn, candidate.kind],
            "text": candidate.text,
            "reasons": list(candidate.reasons),
        }
