"""Contexts that systems reply to: a seeded sample of the helper turns of a release, even over scenarios and phases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.json_text import json_text
from empathy_eval.base.parsing import json_value
from empathy_eval.base.schemas import check
from empathy_eval.design.configuration import language_of
from empathy_eval.design.contrasts import PAIR_VARIANTS
from empathy_eval.design.dataset import SPLITS, column, parts_of, read_manifest, split_of
from empathy_eval.design.errata import original_id
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.evaluation.corpus.pairs import Corpus, read_corpus
from empathy_eval.raters.judges.cases import Conversation, spread_out

ALL = "all"
PERSONAS = "personas.yaml"


@dataclass(frozen=True)
class Context:
    """A place of a release where a helper speaks: the turns before it, what they belong to, and the reply of the release."""

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

    def to_json(self) -> dict[str, Any]:
        """As a line of the file of contexts."""
        value = asdict(self)
        context = [{"role": role, "text": text} for role, text in value.pop("turns")]
        return {**value, "context": context}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Context:
        """From what :meth:`to_json` gave; the value must be valid under ``reply_context.schema.json``."""
        rest = {name: one for name, one in value.items() if name != "context"}
        return cls(**rest, turns=tuple((turn["role"], turn["text"]) for turn in value["context"]))


@dataclass(frozen=True)
class Sample:
    """Which contexts are replied to: a split, or all; how many, or None for all; and the seed of their order."""

    split: str = "test"
    contexts: int | None = 200
    seed: int = 0

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that contexts come from."""
        return SPLITS if self.split == ALL else (self.split,)


@dataclass(frozen=True)
class Drawn:
    """The contexts of a sample in its order; ``left_out`` turns are none, as the helper speaks before them too."""

    contexts: tuple[Context, ...]
    left_out: int
    corpus: Corpus
    rows: tuple[int, ...]

    @property
    def by_row(self) -> Iterator[tuple[int, Context]]:
        """Each context with its row of the corpus."""
        return zip(self.rows, self.contexts, strict=True)


def drawn(release_dir: Path, sample: Sample) -> Drawn:
    """The contexts of a release: the first N are a sample of N, and a larger one only appends.

    Raises:
        InputError: if the folder is no release, or holds no context in the split.
    """
    manifest = read_manifest(release_dir)
    corpus = read_corpus(
        release_dir, "pairs", PAIR_VARIANTS, contexts=True, splits=sample.splits, language=language_of(manifest["configuration"])
    )
    last = read_last_roles(corpus)
    row_of = {name: row for row, name in enumerate(corpus.pair_ids) if last[row] == "seeker"}
    strata = {name: (corpus.scenario_ids[row], corpus.groups["phase"][row]) for name, row in row_of.items()}
    rows = [row_of[name] for name in spread_out(strata, sample.seed)[: sample.contexts]]
    if not rows:
        fix = "name another --split, or all"
        raise input_error(release_dir, f'holds no context in "{sample.split}" that a seeker ends', fix)
    catalogue = load_catalogue()
    known = manifest["scenario_files"].get(PERSONAS) == catalogue.files.get(PERSONAS)
    contexts = [_context(corpus, row, catalogue if known else None) for row in rows]
    return Drawn(tuple(contexts), len(corpus) - len(row_of), corpus, tuple(rows))


def read_last_roles(corpus: Corpus) -> list[str | None]:
    """Who speaks last before each pair; None where nobody does."""
    roles: list[str | None] = corpus.contexts.last_roles  # type: ignore[attr-defined]  # what read_corpus gives has it
    return roles


def _context(corpus: Corpus, row: int, catalogue: Catalogue | None) -> Context:
    name, dialogue = corpus.pair_ids[row], corpus.dialogues[row]
    turns = tuple((turn["role"], turn["text"]) for turn in corpus.contexts[row])
    scenario, phase = (corpus.groups[group][row] for group in ("scenario", "phase"))
    register = register_of(dialogue, catalogue) if catalogue else None
    where = dialogue, parts_of(name)[1], corpus.scenario_ids[row]
    return Context(name, *where, scenario, phase, register, split_of(dialogue), turns, corpus.references[row])


def register_of(dialogue_id: str, catalogue: Catalogue) -> str | None:
    """How the seeker of a dialogue writes, as it was planned or curated; None where that is not known."""
    number, _, index = original_id(dialogue_id).partition("-")
    if catalogue.personas is None:
        return None
    if index == "seed":
        seed = next((one.seed for one in catalogue.scenarios if one.number == int(number)), None)
        return seed.register if seed else None
    return catalogue.personas.rotated(int(number), int(index)).name


def lines_of_contexts(contexts: Iterable[Context], canary: dict[str, str]) -> str:
    """The text of the file of contexts: the line with the canary, where the release has one, and a line a context."""
    rows = [*([canary] if canary else []), *(one.to_json() for one in contexts)]
    return "".join(json_text(row, indent=None) + "\n" for row in rows)


def contexts_in(text: str, where: Path) -> tuple[Context, ...]:
    """The contexts of such a text.

    Raises:
        InputError: for a line that is none.
    """
    found = list[Context]()
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        value = json_value(line)
        if value.keys() != {"canary"}:
            check(value, "reply_context", f"{where}: line {number}")
            found.append(Context.from_json(value))
    return tuple(found)


def all_turns(release_dir: Path) -> Iterator[tuple[str, str, str, str]]:
    """(split, dialogue, the seeker's message before, the helper's reply) of every helper turn of a release."""
    for split in SPLITS:
        corpus = read_corpus(release_dir, "pairs", (), contexts=True, splits=[split])
        for row, role in enumerate(read_last_roles(corpus)):
            if role == "seeker":
                yield split, corpus.dialogues[row], corpus.contexts[row][-1]["text"], corpus.references[row]


def controls_of(release_dir: Path, name: str) -> dict[str, str]:
    """A control of all pairs that have it, by pair."""
    return dict(zip(column(release_dir, "controls", "pair_id"), column(release_dir, "controls", name), strict=True))
