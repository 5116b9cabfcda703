"""N-grams that two sequences have in common, counted for many pairs of sequences in one sort."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
WIDTH = 62


def matches(texts: Sequence[Codes], references: Sequence[Codes], order: int) -> Codes:
    """How many n-grams each text shares with its reference (the smaller of the two counts), shape (pairs, order).

    The symbols of a pair are numbers from 1. Every place becomes one 64-bit key: the pair, then the next ``order`` symbols. Sorted
    once, equal n-grams of all orders stand side by side, as a shorter n-gram is a prefix of the key.
    """
    if not texts:
        return np.zeros((0, order), dtype=np.int64)
    symbols = max((int(sequence.max()) for sequence in (*texts, *references) if len(sequence)), default=1)
    bits = symbols.bit_length()
    if (len(texts) - 1).bit_length() + order * bits > WIDTH:
        if len(texts) == 1:
            return np.array([[_matches_of_one(texts[0], references[0], n) for n in range(1, order + 1)]])
        half = len(texts) // 2
        return np.vstack([matches(texts[:half], references[:half], order), matches(texts[half:], references[half:], order)])
    keys = _keys(texts, references, order, bits)
    shared = np.zeros((len(texts), order), dtype=np.int64)
    for n in range(1, order + 1 if len(keys) else 1):
        grams = keys >> (1 + bits * (order - n))
        starts = np.concatenate([[0], np.flatnonzero(grams[1:] != grams[:-1]) + 1])
        in_reference = np.add.reduceat(keys & 1, starts)
        smaller = np.minimum(in_reference, np.diff(starts, append=len(keys)) - in_reference)
        # A key whose last symbol is 0 lies too near the end of its sequence for an n-gram.
        smaller[grams[starts] & ((1 << bits) - 1) == 0] = 0
        shared[:, n - 1] = np.bincount(grams[starts] >> (bits * n), weights=smaller, minlength=len(texts))
    return shared


def _keys(texts: Sequence[Codes], references: Sequence[Codes], order: int, bits: int) -> Codes:
    """Sorted: the pair, the next ``order`` symbols (0 behind the end), and whether it is the reference."""
    sequences = [*texts, *references]
    lengths = np.array([len(sequence) for sequence in sequences])
    flat = np.concatenate(sequences)
    owner = np.repeat(np.arange(len(sequences)), lengths)
    left = np.cumsum(lengths)[owner] - np.arange(len(flat))
    keys: Codes = owner % len(texts)
    behind = np.concatenate([flat, np.zeros(order, dtype=np.int64)])
    for n in range(order):
        keys = keys << bits | np.where(left > n, behind[n : n + len(flat)], 0)
    keys = keys << 1 | (owner >= len(texts))
    keys.sort()
    return keys


def _matches_of_one(text: Codes, reference: Codes, n: int) -> int:
    """For a pair with too many different symbols for a key of 64 bits."""
    if min(len(text), len(reference)) < n:
        return 0
    sides = [np.unique(np.lib.stride_tricks.sliding_window_view(side, n), axis=0, return_counts=True) for side in (text, reference)]
    ours, theirs = ({gram.tobytes(): int(count) for gram, count in zip(*side, strict=True)} for side in sides)
    return sum(min(count, theirs.get(gram, 0)) for gram, count in ours.items())
