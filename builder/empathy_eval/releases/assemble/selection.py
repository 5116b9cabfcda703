"""Selection of the dialogues of a release: quotas, withdrawals, removals by review, and near-duplicates."""

from __future__ import annotations

import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b, shake_256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import refuse
from empathy_eval.base.schemas import check
from empathy_eval.base.text import ENGLISH, shingles
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import SPLITS, pair_id, split_of
from empathy_eval.design.errata import (
    PlanIndex,
    errata_dialogues,
    errata_faults,
    revision_of,
    unknown_errata,
    withdrawn_dialogues,
    withdrawn_pairs,
)
from empathy_eval.generation.outcomes import OUTCOMES, accepted_outcomes

Hashes = NDArray[np.uint64]

# Dialogues are duplicates from this Jaccard similarity of their sets of word 5-shingles on.
SIMILAR = 0.8
# (1 - 0.8^5)^35 = 9.2e-7: the chance to miss a pair at the limit; at 0.2, far above unrelated dialogues, 1.1 % are compared in vain.
ROWS, BANDS = 5, 35
# Of a group the dialogue stays whose loss is the worst: test before validation before train.
PREFERENCE = {split: rank for rank, split in enumerate(reversed(SPLITS))}
# Odd numbers, so that multiplying by one modulo 2^64 permutes the hashes; from a hash, so that they are the same everywhere.
MULTIPLIERS: Hashes = np.frombuffer(shake_256(b"empathy-eval minhash").digest(8 * ROWS * BANDS), "<u8").astype(np.uint64) | np.uint64(1)


def shingle_hashes(turns: Iterable[str], language: str = ENGLISH) -> Hashes:
    """Returns the set of word 5-shingles of a dialogue, given its turns, as sorted 64-bit hashes (BLAKE2b).

    Among the 15 million shingles of 30,000 dialogues two share a hash with a chance of 6e-6 (n^2 / 2^65).
    """
    text = " ".join(turns)
    # Words hold no space, so joined words stay distinct.
    hashed = b"".join(blake2b(" ".join(run).encode(), digest_size=8).digest() for run in shingles(text, language=language))
    return np.unique(np.frombuffer(hashed, "<u8").astype(np.uint64))


def hash_dialogues(dialogues: Iterable[tuple[str, Iterable[str]]], language: str = ENGLISH) -> dict[str, Hashes]:
    """Returns the shingle hashes of dialogues by id, given each id with its turns, as views of one block of memory.

    The memory of tens of thousands of small arrays would stay with the process after their use; a block is freed completely.
    """
    ids, block, ends = list[str](), array("Q"), list[int]()
    for dialogue_id, turns in dialogues:
        ids.append(dialogue_id)
        block.frombytes(shingle_hashes(turns, language).tobytes())
        ends.append(len(block))
    return dict(zip(ids, np.split(np.asarray(block, dtype=np.uint64), ends)[:-1], strict=True))


def find_near_duplicates(dialogues: Mapping[str, Hashes]) -> dict[str, str]:
    """Returns the id of each near-duplicate with the id of the dialogue that stays, given shingle hashes by id.

    Two dialogues are duplicates if the Jaccard similarity of their shingles is at least 0.8. A group is a connected component,
    so that its ends may be less alike. Of a group one stays, by split, then by smaller id. The order of the dialogues changes nothing.

    Candidates are found by MinHash with banding (Broder 1997; Leskovec, Rajaraman and Ullman, *Mining of Massive
    Datasets*, 3.4): with b bands of r rows a pair of similarity s is missed with the probability (1 - s^r)^b, for s = 0.8,
    r = 5 and b = 35 that is 9.2e-7. The exact similarity decides.
    """
    ids = sorted(dialogues, key=lambda dialogue_id: (PREFERENCE[split_of(dialogue_id)], dialogue_id))
    groups = DuplicateGroups([dialogues[dialogue_id] for dialogue_id in ids])
    keys = np.array([band_keys(hashes) for hashes in groups.hashes], dtype=np.uint64).reshape(-1, BANDS)
    for band in range(BANDS):
        buckets: dict[int, list[int]] = defaultdict(list)
        for number, key in enumerate(keys[:, band].tolist()):
            buckets[key].append(number)
        for bucket in buckets.values():
            groups.join_similar(bucket)
    best = {dialogue_id: ids[groups.best(number)] for number, dialogue_id in enumerate(ids)}
    return {dialogue_id: best[dialogue_id] for dialogue_id in sorted(ids) if best[dialogue_id] != dialogue_id}


def band_keys(hashes: Hashes) -> Hashes:
    """Returns one number for each band; dialogues that share one are compared. Rows are the least hashes under permutations."""
    least = (hashes[:, None] * MULTIPLIERS).min(axis=0)
    # A sum of products modulo 2^64; bands that differ and share a number by chance cost a comparison and nothing else.
    summed: Hashes = (least * MULTIPLIERS[::-1]).reshape(BANDS, ROWS).sum(axis=1)
    return summed


def similarity(a: Hashes, b: Hashes) -> float:
    """Jaccard similarity of two sorted sets of hashes, in [0, 1]."""
    # Shared hashes are neighbours; a stable sort merges two sorted runs, a third of the time of np.intersect1d.
    both = np.sort(np.concatenate((a, b)), kind="stable")
    shared = np.count_nonzero(both[1:] == both[:-1])
    return float(shared / (len(both) - shared))


class DuplicateGroups:
    """Connected components (union-find) of dialogues, which are numbers, the best first; a component is named by its best."""

    def __init__(self, hashes: list[Hashes]) -> None:
        self.hashes = hashes
        self._parent = list(range(len(hashes)))

    def best(self, number: int) -> int:
        """Returns the smallest number of a component."""
        while self._parent[number] != number:
            # Path halving keeps paths short.
            self._parent[number] = number = self._parent[self._parent[number]]
        return number

    def join_similar(self, bucket: list[int]) -> None:
        """Joins the components of all similar pairs of a bucket.

        A dialogue is compared with a component only until a member is similar, so that many copies of one take linear time.
        """
        clusters: list[list[int]] = []
        for number in bucket:
            joined, apart = [number], []
            for cluster in clusters:
                if self._connect(number, cluster):
                    joined += cluster
                else:
                    apart.append(cluster)
            clusters = [*apart, joined]

    def _connect(self, number: int, cluster: list[int]) -> bool:
        """Joins a dialogue and a cluster if it is similar to a member; returns whether they are one component."""
        first, second = sorted((self.best(number), self.best(cluster[0])))
        if first != second:
            if not any(similarity(self.hashes[number], self.hashes[member]) >= SIMILAR for member in cluster):
                return False
            self._parent[second] = first
        return True


@dataclass(frozen=True)
class Selection:
    """The dialogues of a release: accepted, no duplicates, the first of each scenario up to its quota.

    ``duplicates`` maps removed to remaining ids. Only its own ``spares`` fill a scenario; ``below_quota`` is by scenario the number of
    dialogues that it lacks.
    """

    dialogue_ids: frozenset[str]
    duplicates: dict[str, str]
    spares: int
    below_quota: dict[str, int]


def select_dialogues(build_dir: Path, header: dict[str, Any], removed: set[str]) -> Selection:
    """Selects the dialogues of a build with this header, without those that reviews removed."""
    dialogues = (outcome.dialogue for outcome in accepted_outcomes(build_dir) if outcome.dialogue and outcome.dialogue_id not in removed)
    texts = ((dialogue.dialogue_id, [turn.text for turn in dialogue.turns]) for dialogue in dialogues)
    hashes = hash_dialogues(texts, language_of(header["configuration"]))
    duplicates = find_near_duplicates(hashes)
    room = {int(number): scenario["quota"] for number, scenario in header["scenarios"].items()}
    selected: list[str] = []
    unique = [dialogue_id for dialogue_id in hashes if dialogue_id not in duplicates]
    for dialogue_id in unique:
        scenario = int(dialogue_id[:3])
        # A corrected dialogue is added to the others: none of them makes room for it.
        if room[scenario] > 0 or revision_of(dialogue_id):
            room[scenario] -= not revision_of(dialogue_id)
            selected.append(dialogue_id)
    corrected = Counter(int(dialogue_id[:3]) for dialogue_id in selected if revision_of(dialogue_id))
    below_quota = {f"{number:03d}": lacking for number, vacant in room.items() if (lacking := vacant - corrected[number]) > 0}
    return Selection(frozenset(selected), duplicates, len(unique) - len(selected), below_quota)


def withdrawn_counts(build_dir: Path, configuration: dict[str, Any]) -> dict[str, int]:
    """Counts the accepted ``dialogues`` of a build that are withdrawn, and ``pairs`` that are withdrawn or of such dialogues.

    The result is empty without withdrawals.

    Raises:
        InputError: for withdrawals without a kind, and for errata that name what the build did not plan; all at once.
    """
    named, withdrawals = errata_dialogues(configuration), configuration.get("withdrawn", ())
    dialogues, pairs = withdrawn_dialogues(withdrawals), withdrawn_pairs(withdrawals, configuration.get("corrected", ()))
    roles, counts = dict[str, list[str]](), Counter(dialogues=0, pairs=0)
    for value in _outcomes(build_dir) if named else ():
        name = value["dialogue_id"]
        roles[name] = [turn["role"] for turn in value["dialogue"]["turns"]] if name in named and value["dialogue"] else []
        if value["status"] == "accepted":
            counts["dialogues"] += name in dialogues
            counts["pairs"] += sum(name in dialogues or pair_id(name, pair["turn"]) in pairs for pair in value["pairs"])
    unknown = unknown_errata(str(build_dir), configuration, PlanIndex(lambda: roles, roles.get))
    refuse([*errata_faults(str(build_dir), configuration), *unknown])
    return dict(counts) if withdrawals else {}


def _outcomes(build_dir: Path) -> Iterator[dict[str, Any]]:
    """Yields all outcomes of a build, each validated."""
    with (build_dir / OUTCOMES).open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            value: dict[str, Any] = json.loads(line)
            check(value, "outcome", f"{build_dir / OUTCOMES}: line {number}")
            yield value
