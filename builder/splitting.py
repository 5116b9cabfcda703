"""Splits: a function of the dialogue's id and of nothing else."""

from __future__ import annotations

import hashlib

SPLITS = ("train", "validation", "test")
# Percent of dialogues in train and validation; the rest is test.
TRAIN, VALIDATION = 72, 8


def split_of(dialogue_id: str) -> str:
    """The split of a dialogue: 72 % train, 8 % validation, 20 % test, by the hash of its id.

    The first 8 bytes of the SHA-256, as a fraction of 2^64, fall into one of three fixed intervals.
    """
    value = int.from_bytes(hashlib.sha256(dialogue_id.encode()).digest()[:8], "big") * 100 >> 64
    return "train" if value < TRAIN else "validation" if value < TRAIN + VALIDATION else "test"
