"""The turns before each pair of a release, read a part at a time: contexts are many times what replies are, and tell the same turns
again and again, so a text lies in memory once a part.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from empathy_eval.base.errors import input_error
from empathy_eval.base.tabular import WHOLE, table_batches
from empathy_eval.design.dataset import SPLITS, configs_of, files_of
from empathy_eval.metrics.protocol import Context


class ContextChunk(NamedTuple):
    """The contexts of some pairs: different texts and roles (of Arrow), by turn which of them it has, and by pair where its turns begin."""

    texts: Any
    roles: Sequence[str]
    text_of: NDArray[np.int32]
    role_of: NDArray[np.int32]
    begins: NDArray[np.int64]

    def last_role(self, row: int) -> str | None:
        """Whose the last turn before a pair is; None where there is no turn."""
        turn = int(self.begins[row + 1]) - 1
        return self.roles[self.role_of[turn]] if turn >= self.begins[row] else None

    def context(self, row: int) -> Context:
        """The turns before a pair."""
        turns = range(self.begins[row], self.begins[row + 1])
        return [{"role": self.roles[self.role_of[turn]], "text": self.texts[int(self.text_of[turn])].as_py()} for turn in turns]


class Contexts(Sequence[Context]):
    """The contexts of all pairs of a config, in their order; each is made when it is asked for."""

    def __init__(self, parts: Sequence[ContextChunk]) -> None:
        self._parts = parts
        self._begins = np.cumsum([0, *(len(part.begins) - 1 for part in parts)]).tolist()

    @property
    def last_roles(self) -> list[str | None]:
        """Whose the last turn of each is; None where there is no turn."""
        return [part.last_role(row) for part in self._parts for row in range(len(part.begins) - 1)]

    def __len__(self) -> int:
        found: int = self._begins[-1]
        return found

    @overload
    def __getitem__(self, row: int) -> Context: ...

    @overload
    def __getitem__(self, row: slice) -> Sequence[Context]: ...

    def __getitem__(self, row: int | slice) -> Context | Sequence[Context]:
        if isinstance(row, slice):
            return [self[one] for one in range(*row.indices(len(self)))]
        place = range(len(self))[row]
        number = bisect_right(self._begins, place) - 1
        return self._parts[number].context(place - self._begins[number])


def read_contexts(release_dir: Path, config: str, splits: Sequence[str] = SPLITS, name: str = "context") -> Contexts:
    """The contexts of a config, in the column of that name.

    Raises:
        InputError: if a file is not there or is no parquet, or a turn of a context is empty.
    """
    return Contexts(list(_parts(release_dir, config, splits, name)))


def said_before(release_dir: Path, config: str, known: Callable[[str], set[int]], splits: Sequence[str] = SPLITS) -> Iterator[set[int]]:
    """Of each pair of a config what is ``known`` of the seeker's turns before it, all of them together.

    Raises:
        InputError: as :func:`read_contexts`.
    """
    for part in _parts(release_dir, config, splits):
        of_text = [known(text) for text in part.texts.to_pylist()]
        place, seeker = part.text_of.tolist(), [part.roles[one] == "seeker" for one in part.role_of.tolist()]
        for start, end in zip(part.begins[:-1].tolist(), part.begins[1:].tolist(), strict=True):
            yield set().union(*(of_text[place[turn]] for turn in range(start, end) if seeker[turn]))


def contexts_at(release_dir: Path, config: str, rows: Sequence[int], splits: Sequence[str] = SPLITS) -> list[Context]:
    """The contexts of a few pairs of a config, by their rows, which go up: nothing of the others is kept.

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
            if turns is None or contexts.null_count or turns.null_count or any(one.null_count for one in turns.flatten()):
                raise input_error(path, f'a turn of the column "{name}" of {config} is empty', WHOLE)
            texts, roles = (turns.field(part).dictionary_encode() for part in ("text", "role"))
            lengths = pc.list_value_length(contexts).to_numpy(zero_copy_only=False)
            begins = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
            text_of, role_of = (one.indices.to_numpy(zero_copy_only=False) for one in (texts, roles))
            yield ContextChunk(texts.dictionary, roles.dictionary.to_pylist(), text_of, role_of, begins)
