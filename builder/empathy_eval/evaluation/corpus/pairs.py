"""The texts of a release as columns: pairs, pairs with controls, whole dialogues, and first candidates of pairs."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import digest_bytes
from empathy_eval.base.schemas import check
from empathy_eval.base.tabular import WHOLE, TableRow, schema_of, table_batches
from empathy_eval.base.text import ENGLISH, words
from empathy_eval.design.contrasts import PAIR_VARIANTS, REASONS, REFERENCE
from empathy_eval.design.dataset import (
    CANDIDATES,
    CONTRASTS,
    FAR_WAY,
    GROUPINGS,
    OPTIONAL,
    SPLITS,
    WAYS,
    column,
    configs_of,
    files_of,
    parts_of,
)
from empathy_eval.design.dataset import pair_id as id_of
from empathy_eval.design.personas import VOICES
from empathy_eval.design.word_list import NOT_CHOSEN
from empathy_eval.metrics.protocol import Context, Pairs
from empathy_eval.statistics.estimate import Clusters


class ContextChunk(NamedTuple):
    """Contexts of some pairs: distinct texts and roles (of Arrow), their index by turn, and the first turn of each pair."""

    texts: Any
    roles: Sequence[str]
    text_of: NDArray[np.int32]
    role_of: NDArray[np.int32]
    begins: NDArray[np.int64]

    def last_role(self, row: int) -> str | None:
        """Returns the role of the last turn before a pair; None without a turn."""
        turn = int(self.begins[row + 1]) - 1
        return self.roles[self.role_of[turn]] if turn >= self.begins[row] else None

    def context(self, row: int) -> Context:
        """The turns before a pair."""
        turns = range(self.begins[row], self.begins[row + 1])
        return [{"role": self.roles[self.role_of[turn]], "text": self.texts[int(self.text_of[turn])].as_py()} for turn in turns]


class Contexts(Sequence[Context]):
    """The contexts of all pairs of a config, in their order; each is made on access."""

    def __init__(self, parts: Sequence[ContextChunk]) -> None:
        self._parts = parts
        self._begins = np.cumsum([0, *(len(part.begins) - 1 for part in parts)]).tolist()

    @property
    def last_roles(self) -> list[str | None]:
        """The role of the last turn of each context; None without a turn."""
        return [part.last_role(row) for part in self._parts for row in range(len(part.begins) - 1)]

    def __len__(self) -> int:
        count: int = self._begins[-1]
        return count

    @overload
    def __getitem__(self, row: int) -> Context: ...

    @overload
    def __getitem__(self, row: slice) -> Sequence[Context]: ...

    def __getitem__(self, row: int | slice) -> Context | Sequence[Context]:
        if isinstance(row, slice):
            return [self[index] for index in range(*row.indices(len(self)))]
        position = range(len(self))[row]
        number = bisect_right(self._begins, position) - 1
        return self._parts[number].context(position - self._begins[number])


def read_contexts(release_dir: Path, config: str, splits: Sequence[str] = SPLITS, name: str = "context") -> Contexts:
    """Reads the contexts of a config from the column of that name.

    Raises:
        InputError: if a file is not there or is no parquet, or a turn of a context is empty.
    """
    return Contexts(list(_parts(release_dir, config, splits, name)))


def known_before(release_dir: Path, config: str, known: Callable[[str], set[int]], splits: Sequence[str] = SPLITS) -> Iterator[set[int]]:
    """Yields for each pair the union of ``known`` over the seeker's turns before it.

    Raises:
        InputError: as :func:`read_contexts`.
    """
    for part in _parts(release_dir, config, splits):
        of_text = [known(text) for text in part.texts.to_pylist()]
        place, seeker = part.text_of.tolist(), [part.roles[role] == "seeker" for role in part.role_of.tolist()]
        for start, end in zip(part.begins[:-1].tolist(), part.begins[1:].tolist(), strict=True):
            yield set().union(*(of_text[place[turn]] for turn in range(start, end) if seeker[turn]))


def contexts_at(release_dir: Path, config: str, rows: Sequence[int], splits: Sequence[str] = SPLITS) -> list[Context]:
    """Reads the contexts of a few pairs by their rows, in rising order; the other contexts are not kept.

    Raises:
        InputError: as :func:`read_contexts`.
    """
    parts = _parts(release_dir, config, splits, rows=rows)
    return [part.context(row) for part in parts for row in range(len(part.begins) - 1)]


def _parts(
    release_dir: Path, config: str, splits: Sequence[str], name: str = "context", rows: Sequence[int] | None = None
) -> Iterator[ContextChunk]:
    start = 0
    for path in files_of(release_dir, config, splits):
        for batch in table_batches(path, [name]):
            contexts = batch.column(0)
            if rows is not None:
                contexts = contexts.take(pa.array([row - start for row in rows if 0 <= row - start < batch.num_rows], pa.int64()))
            start += batch.num_rows
            turns = contexts.flatten() if contexts.type.equals(configs_of([config])[config].field(name).type) else None
            if turns is None or contexts.null_count or turns.null_count or any(column.null_count for column in turns.flatten()):
                raise input_error(path, f'a turn of the column "{name}" of {config} is empty', WHOLE)
            texts, roles = (turns.field(part).dictionary_encode() for part in ("text", "role"))
            lengths = _numbers(pc.list_value_length(contexts))
            begins = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
            text_of, role_of = (_numbers(column.indices) for column in (texts, roles))
            yield ContextChunk(texts.dictionary, roles.dictionary.to_pylist(), text_of, role_of, begins)


def _numbers(array: Any) -> NDArray[np.int32]:
    """A 32-bit Arrow array without nulls as numpy; its own conversion loads pandas, which takes 60 MB."""
    return np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array)]


# The share of its words that the longer of two texts of equal length has more, at most.
LENGTH_WITHIN = 0.1
# What stands in the place of a manner or device where a text has none.
BY_RULES, UNPLANNED = "made by rules", "none planned"
APART = {BY_RULES, UNPLANNED}
PAIR = re.compile(r"[0-9]{3}-(seed|[0-9]{5,12})(-r[1-9][0-9]{0,3})?-t[0-9]{2,4}")


@dataclass(frozen=True)
class Corpus:
    """Pairs as columns of equal length: texts, groups of breakdowns, contexts; and the language."""

    pair_ids: list[str]
    dialogues: list[str]
    scenario_ids: list[int]
    references: list[str]
    variants: dict[str, list[str]]
    groups: dict[str, list[str]] = field(default_factory=dict)
    contexts: Sequence[Context] = ()
    language: str = ENGLISH

    def __len__(self) -> int:
        return len(self.pair_ids)

    @cached_property
    def clusters(self) -> Clusters:
        """The dialogues of the pairs."""
        return Clusters.of(self.dialogues, self.scenario_ids)

    def of_equal_length(self, first: str, second: str) -> NDArray[np.bool_]:
        """Returns by pair whether the longer of two variants has at most ``LENGTH_WITHIN`` of its words more."""
        lengths = [[len(words(text, self.language)) for text in self.variants[name]] for name in (first, second)]
        return np.array([max(pair) - min(pair) <= LENGTH_WITHIN * max(pair) for pair in zip(*lengths, strict=True)], dtype=bool)

    def take(self, rows: Sequence[int], contexts: Sequence[Context]) -> Corpus:
        """Returns the pairs of these rows, with these contexts."""

        def some(values: Any) -> Any:
            return {name: some(value) for name, value in values.items()} if isinstance(values, dict) else [values[row] for row in rows]

        names = ("pair_ids", "dialogues", "scenario_ids", "references", "variants", "groups")
        return replace(self, contexts=contexts, **{name: some(getattr(self, name)) for name in names})

    def pairs(self, variants: Sequence[str]) -> Pairs:
        """Returns some variants of all pairs, for a metric."""
        return Pairs(self.pair_ids, self.references, {name: self.variants[name] for name in variants}, self.contexts)


def draw_rows(pair_ids: Sequence[str], what: str, seed: int, most: int) -> list[int]:
    """Draws the rows of at most ``most`` pairs by the SHA-256 of their ids, in their order; a smaller sample is part of a larger one."""
    return sorted(draw_in_order(pair_ids, what, seed, most))


def draw_in_order(pair_ids: Sequence[str], what: str, seed: int, most: int) -> list[int]:
    """Draws the same rows, in the order of the draw."""
    return sorted(range(len(pair_ids)), key=lambda row: digest_bytes(f"{seed}:{what}:{pair_ids[row]}".encode()))[:most]


def read_corpus(
    release_dir: Path, config: str, variants: Sequence[str], *, contexts: bool = False, splits: Sequence[str] = SPLITS,
    language: str = ENGLISH,
) -> Corpus:  # fmt: skip
    """Reads the pairs of a config; ``language`` is the code of the texts' language.

    Raises:
        InputError: if a file is not there or is no parquet.
    """
    texts = ("reference", *variants)
    table = {name: column(release_dir, config, name, splits) for name in ("pair_id", "dialogue_id", "scenario_id", *texts, *GROUPINGS)}
    return Corpus(
        table["pair_id"],
        table["dialogue_id"],
        table["scenario_id"],
        table["reference"],
        {name: table[name] for name in variants},
        {**{name: table[name] for name in GROUPINGS}, **_manners(release_dir, config, splits)},
        read_contexts(release_dir, config, splits) if contexts else (),
        language,
    )


def read_dialogues(release_dir: Path, variants: Sequence[str], splits: Sequence[str] = SPLITS, language: str = ENGLISH) -> Corpus:
    """Reads whole dialogues as pairs: all helper turns of a variant joined, of dialogues that have all of these variants.

    Raises:
        InputError: if a file is no parquet, or does not hold what the data contract says.
    """
    corpus = Corpus([], [], [], [], {name: [] for name in variants}, language=language)
    rows = (row for path in files_of(release_dir, CONTRASTS, splits) if path.is_file() for row in _contrasts(path))
    for dialogue_id, group in itertools.groupby(rows, key=lambda row: str(row["dialogue_id"])):
        variant_rows = list(group)
        texts = {row["variant"]: "\n".join(turn["text"] for turn in row["turns"] if turn["role"] == "helper") for row in variant_rows}
        if texts.keys() >= {REFERENCE, *variants}:
            corpus.pair_ids.append(dialogue_id)
            corpus.scenario_ids.append(variant_rows[0]["scenario_id"])
            corpus.references.append(texts[REFERENCE])
            for name in variants:
                corpus.variants[name].append(texts[name])
    return replace(corpus, dialogues=corpus.pair_ids)


def _contrasts(path: Path) -> Iterator[TableRow]:
    """Yields the rows of a file of whole dialogues."""
    for batch in table_batches(path, OPTIONAL[CONTRASTS].names):
        if batch.schema.types != OPTIONAL[CONTRASTS].types or any(column.null_count for column in batch.columns):
            raise input_error(path, "does not match the data contract", WHOLE)
        yield from batch.to_pylist()


def _manners(release_dir: Path, config: str, splits: Sequence[str]) -> dict[str, list[str]]:
    """Reads the columns of manners, devices and voices, with a label for texts without one; older releases have no such columns."""
    schemas = [schema_of(path).names for path in files_of(release_dir, config, splits)]
    columns = {name: column(release_dir, config, name, splits) for name in (*WAYS, FAR_WAY, *VOICES) if all(name in own for own in schemas)}
    manner = WAYS[0]
    if manner in columns:
        methods = column(release_dir, config, "apathetic_method", splits)
        # Rules have no manner, whatever the column says.
        columns[manner] = [BY_RULES if method == "rules" else value for value, method in zip(columns[manner], methods, strict=True)]
    return {name: [UNPLANNED if value is None else value for value in values] for name, values in columns.items()}


def check_rows(release_dir: Path) -> None:
    """Raises an :class:`InputError` for the first row of a release that breaks the schema of its config."""
    for config in ("dialogues", "pairs", "controls"):
        for path in files_of(release_dir, config):
            for batch in table_batches(path):
                for row in batch.to_pylist():
                    check(row, f"{config}_row", path)


@dataclass(frozen=True)
class Candidates:
    """First candidates of all pairs: texts that differ from the release, and the released rows of the other pairs."""

    corpus: Corpus
    same: NDArray[np.int64]

    def without_texts(self) -> Candidates:
        """Returns the candidates without their texts, which frees memory once they are scored."""
        return replace(self, corpus=replace(self.corpus, references=[], variants={}, contexts=()))


def read_candidates(release_dir: Path, released: Corpus, splits: Sequence[str] = SPLITS) -> Candidates | None:
    """Reads for each helper turn the first text of each variant that only a contrast check could refuse; None if none was refused.

    A turn counts if it has both variants. Those that are as released are rows of ``same``.
    """
    first = _first_candidates(release_dir)
    place = {pair: row for row, pair in enumerate(released.pair_ids)}
    contexts: list[Context] = []
    changed = Corpus([], [], [], [], {name: [] for name in PAIR_VARIANTS}, contexts=contexts, language=released.language)
    for pair_id, dialogue, turn in _turns(release_dir, first, splits):
        row = place.get(pair_id)
        texts = {name: first[pair_id].get(name, released.variants[name][row] if row is not None else None) for name in PAIR_VARIANTS}
        if None not in texts.values():
            changed.pair_ids.append(pair_id)
            changed.dialogues.append(dialogue["dialogue_id"])
            changed.scenario_ids.append(dialogue["scenario_id"])
            # One string in memory where the release has it too.
            changed.references.append(dialogue["turns"][turn]["text"] if row is None else released.references[row])
            if released.contexts:
                contexts.append([{"role": message["role"], "text": message["text"]} for message in dialogue["turns"][:turn]])
            for name, text in texts.items():
                changed.variants[name].append(str(text))
    if not len(changed):
        return None
    replaced = set(changed.pair_ids)
    return Candidates(changed, np.array([row for pair, row in place.items() if pair not in replaced], dtype=np.int64))


def _first_candidates(release_dir: Path) -> dict[str, dict[str, str]]:
    firsts: dict[str, dict[str, str]] = {}
    refused = False
    for (pair_id, variant), rows in itertools.groupby(candidate_rows(release_dir), lambda row: (row["pair_id"], row["variant"])):
        if variant in PAIR_VARIANTS and (first := _first_of(list(rows))):
            refused = refused or bool(first["reasons"])
            firsts.setdefault(pair_id, {}).setdefault(variant, first["text"])
    return firsts if refused else {}


def _first_of(rows: list[TableRow]) -> TableRow | None:
    """Returns of a variant's texts, in order, the first that only a contrast check could refuse; None if there is none.

    Where one of several candidates was released, those before and after it are left out: what was refused there was not in its place.
    """
    first, before = None, 0
    for row in rows:
        if row["attempt"] > before + 1:  # the released one has the number between
            break
        before = row["attempt"]
        if row["reasons"] == [NOT_CHOSEN]:
            first = None
        elif REASONS.issuperset(row["reasons"]):
            first = first or row
        if not row["reasons"]:
            break
    return first


def candidate_rows(release_dir: Path) -> Iterator[TableRow]:
    """Yields the texts of variants that were checked and not released, in order; none where a release has no such file.

    Raises:
        InputError: if the file is none of a release's.
    """
    path = release_dir / "candidates.parquet"
    for batch in table_batches(path, CANDIDATES.names) if path.is_file() else ():
        if not batch.schema.equals(CANDIDATES) or any(column.null_count for column in batch.columns):
            raise input_error(path, "does not match the data contract", WHOLE)
        for row in batch.to_pylist():
            if not PAIR.fullmatch(row["pair_id"]):
                raise input_error(path, f'"{row["pair_id"]}" is not a pair', WHOLE)
            yield row


def _turns(release_dir: Path, pair_ids: Collection[str], splits: Sequence[str]) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Yields (pair id, dialogue, index of the turn) of helper turns, in the order of the dialogues."""
    turns_of: dict[str, list[int]] = {}
    for pair_id in sorted(pair_ids):
        dialogue_id, turn = parts_of(pair_id)
        turns_of.setdefault(dialogue_id, []).append(turn)
    for path in files_of(release_dir, "dialogues", splits) if turns_of else ():
        for batch in table_batches(path):
            for row in batch.to_pylist():
                for index in turns_of.get(row["dialogue_id"], ()):
                    if index >= len(row["turns"] or ()):
                        raise input_error(release_dir, f"{row['dialogue_id']} has no turn {index}, which candidates.parquet names", WHOLE)
                    yield id_of(row["dialogue_id"], index), row, index


def sort_labels(labels: Collection[str], known: Sequence[str] = ()) -> list[str]:
    """Returns the distinct labels: ``known`` ones in their order, others by name, and last those of texts without a manner."""
    rank = {name: number for number, name in enumerate(known)}
    return sorted(set(labels), key=lambda label: (label in APART, rank.get(label, len(rank)), label))
