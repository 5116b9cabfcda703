"""Splits by id."""

from collections import Counter

from empathy_eval.design.dataset import split_of
from scipy.stats import binom


def test_known_ids_keep_their_split_for_ever() -> None:
    known = {"001-seed": "train", "017-seed": "train", "017-00042": "train"}
    assert {name: split_of(name) for name in known} == known


def test_shares_are_within_the_binomial_bound() -> None:
    names = [f"{scenario:03d}-{index:05d}" for scenario in range(1, 61) for index in range(500)]
    counts = Counter(map(split_of, names))
    for split, share in {"train": 0.72, "validation": 0.08, "test": 0.20}.items():
        low, high = binom.interval(0.999, len(names), share)
        assert low <= counts[split] <= high
