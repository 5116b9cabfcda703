"""The requests and the refused texts of a release: what no table can give, held against manifest and configuration."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import Finding
from empathy_eval.base.tabular import TableRow
from empathy_eval.completions.models.seed_bank import bank_of
from empathy_eval.design.configuration import candidates_of
from empathy_eval.design.dataset import MANIFEST, pair_id
from empathy_eval.design.kinds import CROSSED, KINDS, NEAR_APATHETIC, SELF_CHAT
from empathy_eval.design.word_list import NOT_CHOSEN
from empathy_eval.generation.outcomes import VARIANTS, Outcome
from empathy_eval.releases.assemble.read_back import KIND_OF, RULES, SEEDS

# Reasons of answers whose text reached no check of a variant.
UNREAD = re.compile(
    r"(finish_\w+|not_json|schema|too_long|too_deep|duplicate_key|surrogate|control_sign|bidirectional_sign|hidden_sign|run_of_signs)"
)
# Between the parts of an answer: no text has it.
SEPARATOR = "\0"


def texts_of(outcome: Outcome) -> dict[Any, str]:
    """What was answered for a dialogue, by pair and variant; what is of crossed items by their requests."""
    found: dict[Any, str] = {}
    if dialogue := outcome.dialogue:
        turns = (f"{one.role}: {one.text}: {one.strategy or ''}" for one in dialogue.turns)
        found[None, "dialogue"] = SEPARATOR.join([dialogue.description, *turns])
    for pair in outcome.pairs:
        name = pair_id(outcome.dialogue_id, pair.turn)
        found |= {(name, variant): made.text for variant in VARIANTS if (made := getattr(pair, variant))}
    for item in outcome.crossed:
        writer, *judges = item.request_keys or (None,)
        found[writer] = SEPARATOR.join([item.twin, item.reply_2, item.reason])
        # Each context with its own reply first, then with it last.
        found |= dict(zip(judges, "ABAB", strict=False))
    return found


class RequestRecords:
    """The requests of a release in a few bytes each, how many each model had, and for what its texts were refused.

    Dialogues of one scenario that begin alike may share a request, and then its answer.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        self._provenance, self._candidates = folder / "provenance.parquet", folder / "candidates.parquet"
        self._where, self._summary = f"{folder / MANIFEST}: summary", manifest["summary"]
        self._configuration, self._bank = manifest["configuration"], bank_of(manifest["seeds"])
        self._keys, self._answers = array("Q"), array("Q")
        self._asked, self._refused = Counter[str](), Counter[str]()
        unread = (name.partition(": ") for name in self._summary["samples_refused"])
        self._whole = not any(name.startswith(CROSSED.name) for name in self._summary["failed_for_good"])
        self._unread = {kind for kind, _, reason in unread if UNREAD.fullmatch(reason)}

    def of(self, outcome: Outcome, provenance: Sequence[TableRow]) -> Iterator[Finding]:
        """What is wrong with the requests and the refused texts of a dialogue, whose rows fit together."""
        texts, models = texts_of(outcome), dict[str, str]()
        for row in provenance:
            about = f"{row['what']} of {row['pair_id'] or outcome.dialogue_id}"
            yield from (Finding(str(self._provenance), f"{about} {what}") for what in self._odd(row))
            if key := row["request_key"]:
                models[key] = row["model"]
                self._keys.append(int(key[-16:], 16))
                self._answers.append(_short(f"{row['model']}{SEPARATOR}{texts.get((row['pair_id'], row['what']), texts.get(key))}"))
        self._asked.update(models.values())
        self._refused.update(f"{one.kind}: {reason}" for one in outcome.candidates for reason in one.reasons)
        for name, what in self._counted(outcome, {(row["pair_id"], row["what"]) for row in provenance if row["request_key"]}):
            yield Finding(f"{self._candidates}: {name}", what)
        numbers = [int(one.crossed_id.rpartition("-x")[2]) for one in outcome.crossed]
        if self._whole and numbers != [*range(1, len(numbers) + 1)]:
            what = f'"{outcome.dialogue_id}": its crossed items are numbered {numbers}, not from 1 without a gap'
            yield Finding(str(self._provenance.with_name("data") / CROSSED.name), what)

    def _odd(self, row: TableRow) -> Iterator[str]:
        """What no build of this configuration says of how something was made."""
        by_rules, kind = row["method"] == RULES, KIND_OF.get(row["what"], SELF_CHAT)
        near = self._configuration["near_apathetic"] if kind is NEAR_APATHETIC else "model"
        asked = "seed" if self._configuration["models"][kind.role]["kind"] == SEEDS else "model"
        methods = {RULES} if near == RULES else {asked} | ({RULES} if near != "model" else set())
        if row["what"] != CROSSED.name and row["method"] not in methods:
            yield f'is made by "{row["method"]}", but the configuration gives {" or ".join(sorted(methods))}'
        if by_rules != (row["model"] == RULES) or by_rules != (row["request_key"] is None):
            yield f'is made by "{row["method"]}", but has the model "{row["model"][:80]}" and the request {row["request_key"]}'
        elif not by_rules and row["model"] not in self._summary["usage"]:
            yield f'is by "{row["model"][:80]}", for which the manifest counts no request'
        if row["method"] == "seed" and row["model"] != self._bank:
            yield f'is by "{row["model"][:80]}", but the seeds are those of {self._bank}'

    def _counted(self, outcome: Outcome, chosen: set[tuple[str | None, str]]) -> Iterator[tuple[str, str]]:
        """(which, what) of a dialogue's candidates that are fewer or more than were asked for."""
        configuration, count = self._configuration, candidates_of(self._configuration)
        most = count * configuration["samples"] * (1 + configuration["repairs"])
        there = Counter((pair_id(outcome.dialogue_id, one.turn), KINDS[one.kind]) for one in outcome.candidates)
        for (name, kind), number in there.items():
            by_rules = kind is NEAR_APATHETIC and configuration["near_apathetic"] != "model"
            if (made := number + ((name, kind.variant) in chosen)) > most + by_rules:
                yield f"{name}, {kind.variant}", f"has {made} texts, but at most {most + by_rules} could be made"
        for name, variant in sorted((name, variant) for name, variant in chosen if name and variant in KIND_OF) if count > 1 else ():
            if KIND_OF[variant].name not in self._unread and there[name, KIND_OF[variant]] < count - 1:
                yield f"{name}, {variant}", f"has {there[name, KIND_OF[variant]]} texts beside it, but {count} candidates were asked for"

    def in_all(self) -> Iterator[Finding]:
        """Requests that stand behind texts, or models, that differ; of models and reasons that are told less often than they are there."""
        if torn := self._torn():
            yield Finding(str(self._provenance), f"names {torn} requests for different texts: one answer has one text")
        for model, count in sorted(self._asked.items()):
            if (told := self._summary["usage"].get(model, {}).get("requests", 0)) < count:
                yield Finding(f"{self._where}: usage: {model}", f"says {told} requests, but the provenance has {count}")
        # What rules made and a model then was asked for is no sample.
        uncounted = NEAR_APATHETIC.name if self._configuration["near_apathetic"] == "rules-then-model" else None
        for name, count in sorted(self._refused.items()):
            kind, _, reason = name.partition(": ")
            if count > (told := self._summary["samples_refused"].get(name, 0)) and reason != NOT_CHOSEN and kind != uncounted:
                yield Finding(f"{self._where}: samples_refused: {name[:80]}", f"says {told}, but {count} candidates are refused for it")

    def _torn(self) -> int:
        keys, answers = (np.array(one, dtype=np.uint64) for one in (self._keys, self._answers))
        order = np.argsort(keys, kind="stable")
        keys, answers = keys[order], answers[order]
        both: NDArray[np.uint64] = keys[1:][(keys[1:] == keys[:-1]) & (answers[1:] != answers[:-1])]
        return len(np.unique(both))


def _short(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "big")
