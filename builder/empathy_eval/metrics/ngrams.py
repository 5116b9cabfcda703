"""N-grams that two sequences have in common, counted for many pairs of sequences in one sort."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
# Bits of a key beside the one that tells text and reference apart.
WIDTH = 62


def matches(symbols: Codes, lengths: Codes, order: int) -> Codes:
    """How many n-grams each text shares with its reference (the smaller of the two counts), shape (pairs, order).

    ``symbols`` holds numbers from 0: all texts, then all references, end to end; ``lengths`` says how long each is. Every place
    becomes one 64-bit key: the pair, then the next ``order`` symbols. Sorted once, equal n-grams of all orders stand side by side, as
    a shorter n-gram is a prefix of the key.
    """
    pairs = len(lengths) // 2
    if not len(symbols):
        return np.zeros((pairs, order), dtype=np.int64)
    symbols = _renumbered(symbols)
    bits = int(symbols.max()).bit_length()
    if (pairs - 1).bit_length() + order * bits > WIDTH:
        return _in_halves(symbols, lengths, order) if pairs > 1 else _one_pair(symbols, int(lengths[0]), order)
    keys = _keys(symbols, lengths, order, bits)
    shared = np.zeros((pairs, order), dtype=np.int64)
    for n in range(1, order + 1):
        grams = keys >> (1 + bits * (order - n))
        starts = np.concatenate([[0], np.flatnonzero(grams[1:] != grams[:-1]) + 1])
        in_reference = np.add.reduceat(keys & 1, starts)
        smaller = np.minimum(in_reference, np.diff(starts, append=len(keys)) - in_reference)
        # A key whose last symbol is 0 lies too near the end of its sequence for an n-gram.
        smaller[grams[starts] & ((1 << bits) - 1) == 0] = 0
        shared[:, n - 1] = np.bincount(grams[starts] >> (bits * n), weights=smaller, minlength=pairs)
    return shared


def _renumbered(symbols: Codes) -> Codes:
    """Numbers from 1 without gaps."""
    used = np.zeros(int(symbols.max()) + 1, dtype=np.int64)
    used[symbols] = 1
    renumbered: Codes = np.cumsum(used)[symbols]
    return renumbered


def _keys(symbols: Codes, lengths: Codes, order: int, bits: int) -> Codes:
    """Sorted: the pair, the next ``order`` symbols (0 behind the end), and whether it is the reference."""
    pairs = len(lengths) // 2
    owner = np.repeat(np.arange(len(lengths)), lengths)
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(symbols))
    keys: Codes = owner % pairs
    behind = np.concatenate([symbols, np.zeros(order, dtype=np.int64)])
    for n in range(order):
        keys = keys << bits | np.where(left > n, behind[n : n + len(symbols)], 0)
    keys = keys << 1 | (owner >= pairs)
    keys.sort()
    return keys


def _in_halves(symbols: Codes, lengths: Codes, order: int) -> Codes:
    """For so many pairs, or symbols, that a key would be too long."""
    pairs = len(lengths) // 2
    first = np.arange(len(lengths)) % pairs < pairs // 2
    return np.vstack([matches(symbols[np.repeat(half, lengths)], lengths[half], order) for half in (first, ~first)])


def _one_pair(symbols: Codes, length: int, order: int) -> Codes:
    """For a single pair of so many symbols that a key would be too long."""
    sides = symbols[:length].tolist(), symbols[length:].tolist()
    shared = []
    for n in range(1, order + 1):
        ours, theirs = (Counter(zip(*(side[start:] for start in range(n)), strict=False)) for side in sides)
        shared.append((ours & theirs).total())
    return np.array([shared])
