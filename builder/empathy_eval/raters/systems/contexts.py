"""Contexts that systems reply to: a seeded sample of the helper turns of a release, even over scenarios and phases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.json_text import json_text
from empathy_eval.design.configuration import language_of
from empathy_eval.design.contrasts import PAIR_VARIANTS
from empathy_eval.design.dataset import SPLITS, parts_of, read_manifest, split_of
from empathy_eval.design.errata import original_id
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.evaluation.corpus.pairs import Corpus, read_corpus
from empathy_eval.raters.judges.cases import Conversation, spread_out

ALL = "all"
PERSONAS = "personas.yaml"


@dataclass(frozen=True)
class Context:
    """A helper turn of a release: the turns before it, their dialogue, and the reply of the release."""

    pair_id: str
    dialogue_id: str
    turn: int
    scenario_id: int
    scenario: str
    phase: str
    register: str | None
    split: str
    turns: Conversation
    reference: str

    @property
    def last(self) -> str:
        """The seeker's last message."""
        return self.turns[-1][1]

    @property
    def turns_json(self) -> list[dict[str, str]]:
        """The turns as JSON values."""
        return [{"role": role, "text": text} for role, text in self.turns]

    def to_json(self) -> dict[str, Any]:
        """As a line of the file of contexts."""
        value = asdict(self)
        del value["turns"]
        return {**value, "context": self.turns_json}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Context:
        """From the result of :meth:`to_json`; the value must be valid under ``reply_context.schema.json``."""
        turns = tuple((turn["role"], turn["text"]) for turn in value["context"])
        return cls(**{name: part for name, part in value.items() if name != "context"}, turns=turns)


@dataclass(frozen=True)
class ContextSample:
    """The split of the contexts, or all; how many, None for all; and the seed of their order."""

    split: str = "test"
    contexts: int | None = 200
    seed: int = 0


@dataclass(frozen=True)
class SampledContexts:
    """The contexts of a sample in its order, with their rows of the corpus; in ``left_out`` turns the helper has just spoken."""

    contexts: tuple[Context, ...]
    rows: tuple[int, ...]
    left_out: int
    corpus: Corpus


def draw_contexts(release_dir: Path, sample: ContextSample) -> SampledContexts:
    """The contexts of a release: the first N are a sample of N, and a larger one only appends.

    Raises:
        InputError: if the folder is no release, or holds no context in the split.
    """
    manifest = read_manifest(release_dir)
    splits = SPLITS if sample.split == ALL else (sample.split,)
    corpus = read_corpus(release_dir, "pairs", PAIR_VARIANTS, contexts=True, splits=splits, language=language_of(manifest["configuration"]))
    row_of = {corpus.pair_ids[row]: row for row in rows_of_seekers(corpus)}
    strata = {name: (corpus.scenario_ids[row], corpus.groups["phase"][row]) for name, row in row_of.items()}
    rows = tuple(row_of[name] for name in spread_out(strata, sample.seed)[: sample.contexts])
    if not rows:
        fix = "name another --split, or all"
        raise input_error(release_dir, f'holds no context in "{sample.split}" that a seeker ends', fix)
    catalogue = load_catalogue()
    known = manifest["scenario_files"].get(PERSONAS) == catalogue.files.get(PERSONAS)
    contexts = tuple(_context(corpus, row, catalogue if known else None) for row in rows)
    return SampledContexts(contexts, rows, len(corpus) - len(row_of), corpus)


def rows_of_seekers(corpus: Corpus) -> list[int]:
    """The rows of the pairs whose context ends with a turn of the seeker."""
    roles: list[str | None] = corpus.contexts.last_roles  # type: ignore[attr-defined]  # contexts of read_corpus have it
    return [row for row, role in enumerate(roles) if role == "seeker"]


def _context(corpus: Corpus, row: int, catalogue: Catalogue | None) -> Context:
    pair_id, dialogue = corpus.pair_ids[row], corpus.dialogues[row]
    return Context(
        pair_id, dialogue, parts_of(pair_id)[1], corpus.scenario_ids[row], corpus.groups["scenario"][row], corpus.groups["phase"][row],
        _register(dialogue, catalogue) if catalogue else None, split_of(dialogue),
        tuple((turn["role"], turn["text"]) for turn in corpus.contexts[row]), corpus.references[row],
    )  # fmt: skip


def _register(dialogue_id: str, catalogue: Catalogue) -> str | None:
    """The register of the seeker of a dialogue, as planned or curated; None if it is not known."""
    number, _, index = original_id(dialogue_id).partition("-")
    if catalogue.personas is None:
        return None
    if index == "seed":
        return next((scenario.seed.register for scenario in catalogue.scenarios if scenario.number == int(number) and scenario.seed), None)
    return catalogue.personas.rotated(int(number), int(index)).name


def contexts_text(contexts: Iterable[Context], canary: dict[str, str]) -> str:
    """The text of the file of contexts: a line with the canary of the release, if it has one, and a line for each context."""
    rows = [*([canary] if canary else []), *(context.to_json() for context in contexts)]
    return "".join(json_text(row, indent=None) + "\n" for row in rows)
