"""What is judged: turns of a release or a build with their texts, and dialogues, sampled so that a larger sample only appends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from empathy_eval.base.hashing import digest_bytes
from empathy_eval.base.tabular import table_batches
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import WAYS, column, files_of, parts_of

REFERENCE = "reference"
TEXTS = (REFERENCE, *PAIR_VARIANTS, *CONTROLS)
MANNER = WAYS[0]


@dataclass(frozen=True)
class Case:
    """A helper turn with the conversation before it and its texts by variant; or, without a turn, a dialogue from its beginning to its end.

    ``conversation`` holds (role, text) of the turns that a judge may see.
    """

    dialogue_id: str
    turn: int | None
    pair_id: str | None
    conversation: tuple[tuple[str, str], ...]
    texts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stratum:
    """What a sample is even over: the scenario, and the manner of the apathetic text where it is known."""

    scenario_id: int
    manner: str | None = None


def spread_out(names: dict[str, Stratum]) -> list[str]:
    """All names in the order in which a sample takes them: the first N are a sample of N, and a larger one only appends.

    Within a stratum the order is by the SHA-256 of the name; the k-th of n stands at (2 k + 1) / (2 n) among all, so that every sample has
    about the same share of each stratum.
    """
    strata: dict[Stratum, list[tuple[str, str]]] = defaultdict(list)
    for name, stratum in names.items():
        strata[stratum].append((digest_bytes(name.encode()), name))
    placed = [(Fraction(2 * rank + 1, 2 * len(found)), *one) for found in strata.values() for rank, one in enumerate(sorted(found))]
    return [name for _, _, name in sorted(placed)]


def cases_of(release_dir: Path, turns: int | None, variants: Iterable[str] = TEXTS, but: frozenset[str] = frozenset()) -> list[Case]:
    """So many turns of a release (None: all) with the texts of some variants, in the order of the sample; those in ``but`` are left out.

    Raises:
        InputError: if a file is not there, or does not hold what the data contract says.
    """
    ids = column(release_dir, "pairs", "pair_id")
    manners = column(release_dir, "pairs", MANNER) if _has(release_dir, MANNER) else [None] * len(ids)
    strata = map(Stratum, column(release_dir, "pairs", "scenario_id"), manners)
    order = [name for name in spread_out(dict(zip(ids, strata, strict=True))) if name not in but][:turns]
    wanted, found = set(order), dict[str, dict[str, Any]]()
    for config, names in (("pairs", (REFERENCE, *PAIR_VARIANTS)), ("controls", CONTROLS)):
        asked = [name for name in names if name in set(variants)]
        context = ["context"] if config == "pairs" else []
        for row in _rows(release_dir, config, ["pair_id", *asked, *context], wanted):
            found.setdefault(row["pair_id"], {}).update(row)
    return [_case(name, found[name]) for name in order]


def dialogues_of(release_dir: Path, number: int | None) -> list[Case]:
    """So many dialogues of a release (None: all) as they are in it, in the order of the sample."""
    ids = column(release_dir, "dialogues", "dialogue_id")
    strata = dict(zip(ids, map(Stratum, column(release_dir, "dialogues", "scenario_id")), strict=True))
    order = spread_out(strata)[:number]
    wanted = set(order)
    turns = {row["dialogue_id"]: row["turns"] for row in _rows(release_dir, "dialogues", ["dialogue_id", "turns"], wanted)}
    return [Case(name, None, None, tuple((turn["role"], turn["text"]) for turn in turns[name])) for name in order]


def _case(name: str, row: dict[str, Any]) -> Case:
    dialogue_id, turn = parts_of(name)
    conversation = tuple((one["role"], one["text"]) for one in row["context"])
    return Case(dialogue_id, turn, name, conversation, {variant: row[variant] for variant in TEXTS if variant in row})


def _has(release_dir: Path, name: str) -> bool:
    return all(name in next(iter(table_batches(path, None))).schema.names for path in files_of(release_dir, "pairs", ("train",)))


def _rows(release_dir: Path, config: str, names: list[str], wanted: set[str]) -> Iterator[dict[str, Any]]:
    """The rows of a config whose first column is wanted."""
    for path in files_of(release_dir, config):
        for batch in table_batches(path, names):
            keep = [place for place, name in enumerate(batch.column(0).to_pylist()) if name in wanted]
            yield from batch.take(pa.array(keep, pa.int64())).to_pylist()
