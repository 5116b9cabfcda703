"""Dist-n: how many of the n-grams of a set of texts are different."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import derived_random, signature_line
from empathy_eval.base.text import ENGLISH, spaced
from empathy_eval.metrics.protocol import Array

Words = NDArray[np.int64]


class Dist:
    """Distinct n-grams over all n-grams (Li et al. 2016), lower-cased, split at white space, on so many words of each variant.

    Dist falls as a corpus grows, so all variants are measured on as many words: those of whole dialogues in a seeded order, joined
    and cut. The error is a jackknife that leaves one dialogue out and measures the same number of words of the others.
    """

    BUDGET = 20_000

    def __init__(self, order: int, budget: int = BUDGET, language: str = ENGLISH) -> None:
        """``language`` is the code of the texts' language: in another than English, characters of scripts without spaces are words."""
        self.order, self.language = order, language
        self.name = f"Dist-{order}"
        self.budget = budget
        tokens = "whitespace" if language == ENGLISH else "whitespace,unspaced-by-character"
        self.signature = signature_line(n=order, case="lower", tok=tokens, words_at_most=budget, interval="jackknife,normal", version=2)

    def measure(self, variants: Mapping[str, Sequence[str]], dialogues: Sequence[str], seed: int) -> tuple[dict[str, Array], int]:
        """By variant the values without each dialogue, first with all: shape (1 + dialogues,); and the number of words."""
        variants = {name: [spaced(text, self.language) for text in texts] for name, texts in variants.items()}
        order = sorted(dict.fromkeys(dialogues))
        derived_random(seed, "dist").shuffle(order)
        used, budget = self._fitting(_lengths(variants, dialogues, order))
        coded = _coded(variants, dialogues, order[:used])
        values = {}
        for name, parts in coded.items():
            grams = _grams(parts, self.order)
            left = [_distinct(parts, grams, budget, self.order)]
            for place in range(used if used > 1 else 0):
                words, of_them = ([*some[:place], *some[place + 1 :]] for some in (parts, grams))
                left.append(_distinct(words, of_them, budget, self.order))
            values[name] = np.array(left)
        return values, budget

    def _fitting(self, lengths: Words) -> tuple[int, int]:
        """How many dialogues are used, and how many words, so that without any one of them there are still as many."""
        enough = np.cumsum(lengths, axis=1) - np.maximum.accumulate(lengths, axis=1)
        room = enough.min(axis=0)
        used = int(np.argmax(room >= self.budget)) + 1 if (room >= self.budget).any() else lengths.shape[1]
        return used, int(min(self.budget, room[used - 1])) if used > 1 else int(lengths.sum(axis=1).min())


def _lengths(variants: Mapping[str, Sequence[str]], dialogues: Sequence[str], order: Sequence[str]) -> Words:
    """By variant and dialogue the number of words."""
    place = {dialogue: number for number, dialogue in enumerate(order)}
    at = [place[dialogue] for dialogue in dialogues]
    counted = [np.bincount(at, [len(text.split()) for text in texts], len(order)) for texts in variants.values()]
    return np.array(counted).astype(np.int64)


def _coded(variants: Mapping[str, Sequence[str]], dialogues: Sequence[str], used: Sequence[str]) -> dict[str, list[Words]]:
    """The words of some of the dialogues as numbers."""
    numbers: dict[str, int] = {}
    found = {}
    for name, texts in variants.items():
        words: dict[str, list[int]] = {dialogue: [] for dialogue in used}
        for dialogue, text in zip(dialogues, texts, strict=True):
            if dialogue in words:
                # A text ends with a mark of its own, so that no n-gram reaches over its end.
                words[dialogue] += [numbers.setdefault(word, len(numbers)) for word in text.lower().split()] + [-1]
        found[name] = [np.array(one, dtype=np.int64) for one in words.values()]
    return found


def _grams(parts: Sequence[Words], order: int) -> list[Words]:
    """Of the words of each dialogue the n-gram that begins with each, as a number; -1 where a text ends within it."""
    words = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    whole, grams = np.ones(len(words), dtype=bool), np.zeros(len(words), dtype=np.int64)
    base = int(words.max(initial=0)) + 2
    for shift in range(order):
        part = np.append(words[shift:], np.full(min(shift, len(words)), -1))
        whole &= part >= 0
        # Numbers of n-grams are made small again at each step, so that none overflows.
        grams = np.unique(grams * base + part, return_inverse=True)[1]
    return np.split(np.where(whole, grams, -1), np.cumsum([len(one) for one in parts])[:-1]) if parts else []


def _distinct(parts: Sequence[Words], grams: Sequence[Words], budget: int, order: int) -> float:
    """The share of different n-grams among the first words; 0 if no text is long enough."""
    words = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    # Marks between texts are no words.
    many = min(len(words), int(np.searchsorted(np.cumsum(words >= 0), budget)) + 1)
    found = np.concatenate(grams)[: max(many - order + 1, 0)] if parts else words
    whole = found[found >= 0]
    return np.count_nonzero(np.bincount(whole)) / len(whole) if len(whole) else 0.0
