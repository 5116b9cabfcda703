"""Near-duplicates: a corpus step that comes after all items and asks nothing."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from hashlib import blake2b, shake_256

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.text import ENGLISH, shingles
from empathy_eval.design.dataset import SPLITS, split_of

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


def hashes_of(dialogues: Iterable[tuple[str, Iterable[str]]], language: str = ENGLISH) -> dict[str, Hashes]:
    """The shingle hashes of dialogues by id, given each id with its turns, as views of one block of memory.

    Tens of thousands of small arrays would leave their memory with the process once they are gone; a block goes back whole.
    """
    ids, block, ends = list[str](), array("Q"), list[int]()
    for dialogue_id, turns in dialogues:
        ids.append(dialogue_id)
        block.frombytes(shingle_hashes(turns, language).tobytes())
        ends.append(len(block))
    return dict(zip(ids, np.split(np.asarray(block, dtype=np.uint64), ends)[:-1], strict=True))


def near_duplicates(dialogues: Mapping[str, Hashes]) -> dict[str, str]:
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
