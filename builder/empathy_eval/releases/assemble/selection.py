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
# Of a group the one stays whose loss would hurt most: test before validation before train.
PREFERENCE = {split: rank for rank, split in enumerate(reversed(SPLITS))}
# Odd numbers, so that multiplying by one modulo 2^64 permutes the hashes; from a hash, so that they are the same everywhere.
MULTIPLIERS: Hashes = np.frombuffer(shake_256(b"empathy-eval minhash").digest(8 * ROWS * BANDS), "<u8").astype(np.uint64) | np.uint64(1)


def shingle_hashes(turns: Iterable[str], language: str = ENGLISH) -> Hashes:
    """The set of word 5-shingles of a dialogue's whole text, given its turns, as sorted 64-bit hashes (BLAKE2b): 8 bytes a shingle.

    Among the 15 million shingles of 30,000 dialogues two share a hash with a chance of 6e-6 (n^2 / 2^65).
    """
    text = " ".join(turns)
    # Words hold no space, so what is joined by one can be told apart.
    hashed = b"".join(blake2b(" ".join(run).encode(), digest_size=8).digest() for run in shingles(text, language=language))
    return np.unique(np.frombuffer(hashed, "<u8").astype(np.uint64))


def hash_dialogues(dialogues: Iterable[tuple[str, Iterable[str]]], language: str = ENGLISH) -> dict[str, Hashes]:
    """The shingle hashes of dialogues by id, given each id with its turns, as views of one block of memory.

    Tens of thousands of small arrays would leave their memory with the process once they are gone; a block goes back whole.
    """
    ids, block, ends = list[str](), array("Q"), list[int]()
    for dialogue_id, turns in dialogues:
        ids.append(dialogue_id)
        block.frombytes(shingle_hashes(turns, language).tobytes())
        ends.append(len(block))
    return dict(zip(ids, np.split(np.asarray(block, dtype=np.uint64), ends)[:-1], strict=True))


def find_near_duplicates(dialogues: Mapping[str, Hashes]) -> dict[str, str]:
    """For shingle hashes by dialogue id: the id of each dialogue that goes, with that of the one that stays.

    Two dialogues are duplicates if the Jaccard similarity of their shingles is at least 0.8; a group is a connected component,
    so that its ends may be less alike. Of a group one stays, by split, then by smaller id. The order they come in changes nothing.

    Who is compared is found by MinHash with banding (Broder 1997; Leskovec, Rajaraman and Ullman, *Mining of Massive
    Datasets*, 3.4): with b bands of r rows a pair of similarity s is missed with the probability (1 - s^r)^b, for s = 0.8,
    r = 5 and b = 35 that is 9.2e-7. Of those compared the exact similarity decides.
    """
    ids = sorted(dialogues, key=lambda one: (PREFERENCE[split_of(one)], one))
    groups = DuplicateGroups([dialogues[one] for one in ids])
    keys = np.array([band_keys(hashes) for hashes in groups.hashes], dtype=np.uint64).reshape(-1, BANDS)
    for band in range(BANDS):
        buckets: dict[int, list[int]] = defaultdict(list)
        for one, key in enumerate(keys[:, band].tolist()):
            buckets[key].append(one)
        for bucket in buckets.values():
            groups.join_similar(bucket)
    best = {one: ids[groups.best(number)] for number, one in enumerate(ids)}
    return {one: best[one] for one in sorted(ids) if best[one] != one}


def band_keys(hashes: Hashes) -> Hashes:
    """One number a band: dialogues that share one are compared. Rows are the least hashes under permutations of all hashes."""
    least = (hashes[:, None] * MULTIPLIERS).min(axis=0)
    # A sum of products modulo 2^64; bands that differ and share a number by chance cost a comparison and nothing else.
    summed: Hashes = (least * MULTIPLIERS[::-1]).reshape(BANDS, ROWS).sum(axis=1)
    return summed


def similarity(a: Hashes, b: Hashes) -> float:
    """Jaccard similarity of two sorted sets of hashes, in [0, 1]."""
    # What both hold stands twice in a row; a stable sort merges two sorted runs, a third of the time of np.intersect1d.
    both = np.sort(np.concatenate((a, b)), kind="stable")
    shared = np.count_nonzero(both[1:] == both[:-1])
    return float(shared / (len(both) - shared))


class DuplicateGroups:
    """Connected components (union-find); dialogues are numbers, the best first, and a component is known by its best."""

    def __init__(self, hashes: list[Hashes]) -> None:
        self.hashes = hashes
        self._parent = list(range(len(hashes)))

    def best(self, one: int) -> int:
        """The smallest number of the component of ``one``."""
        while self._parent[one] != one:
            # Halving the path on the way keeps it short.
            self._parent[one] = one = self._parent[self._parent[one]]
        return one

    def join_similar(self, bucket: list[int]) -> None:
        """Joins the components of all similar pairs of a bucket.

        A dialogue is compared with a component only until one of it is similar, so that many copies of one take linear time.
        """
        clusters: list[list[int]] = []
        for one in bucket:
            joined, apart = [one], []
            for cluster in clusters:
                if self._connected(one, cluster):
                    joined += cluster
                else:
                    apart.append(cluster)
            clusters = [*apart, joined]

    def _connected(self, one: int, cluster: list[int]) -> bool:
        """Whether a dialogue belongs to the component of a cluster, after joining it if it is similar to one of it."""
        first, second = sorted((self.best(one), self.best(cluster[0])))
        if first != second:
            if not any(similarity(self.hashes[one], self.hashes[other]) >= SIMILAR for other in cluster):
                return False
            self._parent[second] = first
        return True


@dataclass(frozen=True)
class Selection:
    """Which dialogues of a build are released: accepted, no duplicates, the first of each scenario up to its quota.

    A scenario is filled from its own spares alone; ``below_quota`` says of each that had too few how many dialogues it lacks.
    """

    dialogue_ids: frozenset[str]
    duplicates: dict[str, str]
    spares: int
    below_quota: dict[str, int]


def select_dialogues(build_dir: Path, header: dict[str, Any], removed: set[str]) -> Selection:
    """The selection from a build with this header, without the dialogues that reviews removed."""
    texts = (
        (outcome.dialogue_id, [turn.text for turn in outcome.dialogue.turns])
        for outcome in accepted_outcomes(build_dir)
        if outcome.dialogue and outcome.dialogue_id not in removed
    )
    hashes = hash_dialogues(texts, language_of(header["configuration"]))
    duplicates = find_near_duplicates(hashes)
    room = {int(number): scenario["quota"] for number, scenario in header["scenarios"].items()}
    chosen: list[str] = []
    left = [dialogue_id for dialogue_id in hashes if dialogue_id not in duplicates]
    for dialogue_id in left:
        scenario = int(dialogue_id[:3])
        # A corrected dialogue comes beside the others: none of them makes room for it.
        if room[scenario] > 0 or revision_of(dialogue_id):
            room[scenario] -= not revision_of(dialogue_id)
            chosen.append(dialogue_id)
    corrected = Counter(int(one[:3]) for one in chosen if revision_of(one))
    below_quota = {f"{number:03d}": lacking for number, left_over in room.items() if (lacking := left_over - corrected[number]) > 0}
    return Selection(frozenset(chosen), duplicates, len(left) - len(chosen), below_quota)


def withdrawn_counts(build_dir: Path, configuration: dict[str, Any]) -> dict[str, int]:
    """How many accepted ``dialogues`` of a build its withdrawals take out, and how many ``pairs``: those of these dialogues and others.
    Empty where nothing is withdrawn.

    Raises:
        InputError: for withdrawals without a kind, and for errata that name what the build did not plan; all at once.
    """
    about, said = errata_dialogues(configuration), configuration.get("withdrawn", ())
    whole, some = withdrawn_dialogues(said), withdrawn_pairs(said, configuration.get("corrected", ()))
    roles, counts = dict[str, list[str]](), Counter(dialogues=0, pairs=0)
    for value in _outcomes(build_dir) if about else ():
        name = value["dialogue_id"]
        roles[name] = [turn["role"] for turn in value["dialogue"]["turns"]] if name in about and value["dialogue"] else []
        if value["status"] == "accepted":
            counts["dialogues"] += name in whole
            counts["pairs"] += sum(name in whole or pair_id(name, pair["turn"]) in some for pair in value["pairs"])
    wrong = [
        *errata_faults(str(build_dir), configuration),
        *unknown_errata(str(build_dir), configuration, PlanIndex(lambda: roles, roles.get)),
    ]
    refuse(wrong)
    return dict(counts) if said else {}


def _outcomes(build_dir: Path) -> Iterator[dict[str, Any]]:
    """All outcomes of a build, each valid."""
    with (build_dir / OUTCOMES).open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            value: dict[str, Any] = json.loads(line)
            check(value, "outcome", f"{build_dir / OUTCOMES}: line {number}")
            yield value
