"""Freezing what *words alone* learned of a release, as a list by which other releases choose among samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import signature_line
from empathy_eval.design.configuration import language_of
from empathy_eval.design.contrasts import RAW
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.word_list import TOLD_BY, ContrastWeights, WordList
from empathy_eval.evaluation.shortcuts.bag_of_words import Lexicon
from empathy_eval.evaluation.shortcuts.linear_classifiers import FORMS, PairSides
from empathy_eval.evaluation.shortcuts.shortcuts import AUDITED, folds_of, units_of, words_alone
from empathy_eval.evaluation.shortcuts.texts import AuditInput

# The contrasts by which variants are told.
TOLD = {RAW, *TOLD_BY.values()}


def frozen(release_dir: Path, *, by: str = "dialogue") -> WordList:
    """The weights of *words alone* by contrast, learned from all pairs of a release, as the telltale words of its audit are.

    ``by`` says what folds are made of, by which the better of two forms is found. A contrast without pairs is not in the list.

    Raises:
        InputError: if the folder is no release, or all its pairs are of one dialogue (or scenario).
    """
    manifest = read_manifest(release_dir)
    held = AuditInput.of(release_dir, language_of(manifest["configuration"]))
    found = dict(_learned(held, manifest["configuration"]["seed"], by))
    if RAW not in found:
        raise input_error(release_dir, f"has no pairs of two different {by}s, so no word list can be learned", "name a larger release")
    release = {name: str(manifest[name]) for name in ("name", "version", "seal")}
    return WordList(release, held.pairs.language, found)


def _learned(held: AuditInput, seed: int, by: str) -> Iterator[tuple[str, ContrastWeights]]:
    for name, config, kind, cold in AUDITED:
        corpus, lexicon = getattr(held, config), Lexicon(held.pairs.language)
        folds = folds_of(units_of(corpus, by), seed)
        if name not in TOLD or folds.max(initial=0) < 1:
            continue
        learner = words_alone(lexicon)
        sides = PairSides(lexicon.read(corpus.variants[kind]), lexicon.read(corpus.variants[cold]), folds)
        learned, known = learner.learn(sides), lexicon.words
        weights = learned.weights
        words = {known[place]: int(weights[place]) for place in np.flatnonzero(weights).tolist()}
        form = FORMS[learned.form].signature
        how = signature_line(counts=learner.features.signature, form=form, of=",".join(learner.forms), learned="all-pairs", by=by)
        if words:
            yield name, ContrastWeights(kind, cold, len(corpus), how, dict(sorted(words.items())))
