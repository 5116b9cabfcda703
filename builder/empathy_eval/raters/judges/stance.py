"""Whether a judge tells the kind text from the cold one that is equally close, and what shortcuts reach on the very same pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.contrasts import CELLS, FAR, NEAR
from empathy_eval.evaluation.corpus.pairs import read_corpus
from empathy_eval.evaluation.shortcuts.bag_of_words import Lexicon, Words
from empathy_eval.evaluation.shortcuts.linear_classifiers import Sides
from empathy_eval.evaluation.shortcuts.shortcuts import WORDS_ALONE, folds_of, words_alone
from empathy_eval.metrics.length import Length
from empathy_eval.metrics.protocol import Array
from empathy_eval.raters.agreement import Measure
from empathy_eval.raters.judges.folder import Scored, Text, both
from empathy_eval.raters.judges.reckoning import Reckoning
from empathy_eval.statistics.ranking import wins

JUDGE, LENGTH = "judge", "length"
# (pair, kind variant): which text of which duel.
Duel = tuple[str, str]


@dataclass(frozen=True)
class Shortcuts:
    """What shortcuts win of the duels of a release: the longer text, and words alone as the other folds of all its pairs teach them."""

    release_dir: Path
    seed: int
    language: str = ENGLISH

    @property
    def signatures(self) -> dict[str, str]:
        """What shortcuts add to the signature."""
        learned = signature_line(scored="out-of-fold", of="all-pairs", by="dialogue", dealt="sha256")
        return {
            LENGTH: f"|shortcut:{Length(self.language).signature}|more-is-kind",
            WORDS_ALONE: f"|shortcut:{Words(Lexicon(self.language)).signature}|{learned}",
        }

    @cached_property
    def won(self) -> dict[str, dict[Duel, float]]:
        """By shortcut and duel 1 where it is right, one half for a tie; words alone need two dialogues to learn from."""
        corpus, lexicon = read_corpus(self.release_dir, "controls", CELLS), Lexicon(self.language)
        readings = {name: lexicon.read(texts) for name, texts in corpus.variants.items()}
        folds = folds_of(corpus.dialogues, self.seed)
        found: dict[str, dict[Duel, float]] = {LENGTH: {}, WORDS_ALONE: {}}
        for kind, cold in (NEAR, FAR):
            sides = Sides(readings[kind], readings[cold], folds)
            lengths = wins(sides.kind.lengths.astype(np.float64), sides.cold.lengths.astype(np.float64))
            learned: Array | None = words_alone(lexicon).learn(sides).won if sides.number > 1 else None
            for name, column in ((LENGTH, lengths), (WORDS_ALONE, learned)):
                if column is not None:
                    found[name] |= zip(((pair, kind) for pair in corpus.pair_ids), column.tolist(), strict=True)
        return found


def at_equal_closeness(scored: Scored, shortcuts: Shortcuts, reckoning: Reckoning) -> dict[str, Measure]:
    """How often the judge, and each shortcut, is right where the two texts are equally close, ties half; empty without such texts."""
    won = duels_won(scored)
    if not won:
        return {}
    names = [pair for pair, _ in won]
    columns = {JUDGE: list(won.values())}
    columns |= {name: [some[duel] for duel in won] for name, some in shortcuts.won.items() if won.keys() <= some.keys()}
    found = reckoning.shares(columns, names, right="kind-over-cold,ties-half", duels="near,far")
    return {name: replace(one, signature=f"{one.signature}{shortcuts.signatures.get(name, '')}") for name, one in found.items()}


def duels_won(scored: Scored) -> dict[Duel, float]:
    """What the judge won of each duel of a kind text with the cold one that is equally close: 1, 0, or one half for a tie."""
    return dict(_won(scored))


def _won(scored: Scored) -> Iterable[tuple[Duel, float]]:
    """What the judge won of each duel."""
    merits: Mapping[Text, float] = scored.merits
    for pair in dict.fromkeys(name for name, _ in merits):
        for kind, cold in (NEAR, FAR):
            compared = merits.get((pair, both(kind, cold)))
            if compared is not None:
                yield (pair, kind), compared if kind < cold else 1 - compared
            elif (pair, kind) in merits and (pair, cold) in merits:
                yield (pair, kind), (np.sign(merits[pair, kind] - merits[pair, cold]).item() + 1) / 2
