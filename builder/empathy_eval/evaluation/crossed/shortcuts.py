"""How far shortcuts get on crossed items: words, length, echo and likeness, which understand nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.base.hashing import signature_line
from empathy_eval.base.stages import stage
from empathy_eval.base.text import words
from empathy_eval.design.dataset import column, files_of
from empathy_eval.evaluation.crossed.crossed import (
    CONFIG,
    MORE,
    CrossedItems,
    CrossedScorer,
    CrossedVerdicts,
    PrecomputedCrossedScores,
    asked_of,
    crossed_of,
    of_crossed,
    read_crossed_scores,
    read_items,
)
from empathy_eval.evaluation.external.score_file import PrecomputedScores
from empathy_eval.evaluation.inversion.evaluation import Evaluation
from empathy_eval.evaluation.inversion.results import PLACES
from empathy_eval.evaluation.inversion.rows import CrossedTable
from empathy_eval.evaluation.shortcuts.linear_classifiers import (
    BITS,
    FORMS,
    MULTIPLIER,
    Bag,
    Counts,
    FeatureClassifier,
    Features,
    Lexicon,
    PairSides,
    TokenizedTexts,
    WordFeatures,
    hashes_of,
)
from empathy_eval.evaluation.shortcuts.shortcuts import folds_of
from empathy_eval.evaluation.shortcuts.texts import Embedding, sampled
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.length import Echo, Length

OF_REPLY, OF_BOTH = "words of the reply", "words of the last turn with words of the reply"
ECHO_OF_CHANGE, LAST, WHOLE = "echo of what differs", "cosine, last turn", "cosine, whole context"
FORM = "log-odds"
# Cosines are cut to so many places, which most machines agree on.
COSINE_PLACES = 4
ONE_SCENARIO = "all items are of one scenario: there is no other to learn from"


def shortcuts_of(items: CrossedItems, seed: int, embedding: Embedding | None = None) -> list[CrossedScorer]:
    """What each shortcut decides, those that learn out of fold by scenario; cosines where there is an embedding, of a sample at most."""
    found = [*_learned(items, seed), *_counted(items)]
    return [*found, *_alike(items, seed, embedding)] if embedding else found


@dataclass(frozen=True)
class ReplyInContext(TokenizedTexts):
    """Replies, and beside each the last turn before it."""

    before: TokenizedTexts

    @classmethod
    def of(cls, replies: TokenizedTexts, before: TokenizedTexts) -> ReplyInContext:
        """From the readings of both."""
        return cls(replies.texts, replies.codes, replies.starts, before)

    def take(self, rows: Counts) -> ReplyInContext:
        """The replies of those rows, each with its turn."""
        return self.of(super().take(rows), self.before.take(rows))


class ContextWordPairs(Features):
    """Each word of a last turn with each word of the reply to it, once however often they come; hashed."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.signature = f"words-of-the-last-turn-by-words-of-the-reply,{lexicon.tokens},casefolded,hash=crc32-multiply-shift,{BITS}-bits"
        self._hashes = hashes_of(lexicon)

    def bag(self, texts: TokenizedTexts) -> Bag:
        """One count two words."""
        if not isinstance(texts, ReplyInContext):
            raise TypeError("replies without the turns before them")
        found, rows = list[Counts](), list[int]()
        for row in range(len(texts.texts)):
            turn, reply = (self._hashes[one] for one in (_own(texts.before, row), _own(texts, row)))
            value = (turn * MULTIPLIER)[:, None] ^ reply[None, :]
            value *= MULTIPLIER
            found.append(((value >> np.uint64(64 - BITS)).ravel()).astype(np.int64))
            rows.append(value.size)
        places = np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
        return Bag(np.repeat(np.arange(len(rows)), rows), places, np.ones(len(places), dtype=np.int64))


def _own(texts: TokenizedTexts, row: int) -> NDArray[np.int32]:
    """The different words of a text."""
    return np.unique(texts.codes[texts.starts[row] : texts.starts[row + 1]])


def _learned(items: CrossedItems, seed: int) -> list[CrossedScorer]:
    lexicon, count = Lexicon(items.language), len(items)
    replies = lexicon.read([*items.replies[0], *items.replies[1]])
    turns = lexicon.read([context[-1]["text"] for side in items.contexts for context in side])
    other = np.roll(np.arange(2 * count), count)
    fits, passes = ReplyInContext.of(replies, turns), ReplyInContext.of(replies.take(other), turns)
    away = ReplyInContext.of(replies, turns.take(other))
    folds = folds_of([str(one) for one in items.scenario_ids], seed)
    how = signature_line(scored="out-of-fold", folds=int(folds.max(initial=-1)) + 1, by="scenario", dealt="sha256")
    asked = list[CrossedScorer]()
    kinds: dict[str, Features] = {OF_REPLY: WordFeatures(lexicon), OF_BOTH: ContextWordPairs(lexicon)}
    for name, features in kinds.items():
        learner = FeatureClassifier(features, (FORM,))
        signature = f"{signature_line(counts=features.signature, form=FORMS[FORM].signature)}|{how}"
        if folds.max(initial=0) == 0:
            asked.append(CrossedScorer(name, signature, None, ONE_SCENARIO))
            continue
        won = [learner.learn(PairSides(fits, cold, np.tile(folds, 2))).won for cold in (passes, away)]
        (one, two), (three, four) = (np.split(each, 2) for each in won)
        asked.append(CrossedScorer(name, signature, CrossedVerdicts((one, two), (three, four))))
    return asked


def _counted(items: CrossedItems) -> list[CrossedScorer]:
    """Length, and two echoes: the share of a reply's words that the seeker has said, and that one last turn has and the other has not."""
    language, count = items.language, len(items)
    length, echo = Length(language), Echo(language)
    lengths, echoes, changes = (np.zeros((2, 2, count)) for _ in range(3))
    for row in range(count):
        both = [items.contexts[side][row] for side in (0, 1)]
        last = [{*words(context[-1]["text"], language)} for context in both]
        own = [words(replies[row], language) for replies in items.replies]
        lengths[:, :, row] = [len(reply) for reply in own]
        for side, context in enumerate(both):
            said = {word for turn in context if turn["role"] == "seeker" for word in words(turn["text"], language)}
            echoes[side, :, row] = [_share(reply, said) for reply in own]
            changes[side, :, row] = [_share(reply, last[side] - last[1 - side]) for reply in own]
    of_change = signature_line(share="words-of-the-reply-in-this-last-turn-and-not-in-the-other", tok=Lexicon(language).tokens)
    named = (("length", length.signature, lengths), ("echo", echo.signature, echoes), (ECHO_OF_CHANGE, of_change, changes))
    return [CrossedScorer(name, f"{signature}|{MORE}", CrossedVerdicts.of(*np.round(scores, PLACES))) for name, signature, scores in named]


def _share(own: Sequence[str], said: set[str]) -> float:
    return sum(word in said for word in own) / len(own) if own else 0.0


def _alike(items: CrossedItems, seed: int, embedding: Embedding) -> list[CrossedScorer]:
    """The cosine of a reply with the last turn, and with the mean of all turns."""
    rows = sampled(items.ids, seed).tolist()
    texts = dict.fromkeys(text for some in items.replies for text in (some[row] for row in rows))
    contexts = [[[turn["text"] for turn in items.contexts[side][row]] for row in rows] for side in (0, 1)]
    texts |= dict.fromkeys(text for side in contexts for turns in side for text in turns)
    vectors = dict(zip(texts, embedding.embedded(list(texts)), strict=True))
    last, whole = (np.full((2, 2, len(items)), np.nan) for _ in range(2))
    for side, each in enumerate(contexts):
        for row, turns in zip(rows, each, strict=True):
            for place, replies in enumerate(items.replies):
                last[side, place, row] = vectors[turns[-1]] @ vectors[replies[row]]
                mean = np.mean([vectors[text] for text in turns], axis=0)
                whole[side, place, row] = mean @ vectors[replies[row]] / np.linalg.norm(mean)
    return [
        CrossedScorer(
            name,
            f"{embedding.of_cosines}|cosine:{beside},{COSINE_PLACES}-places|{MORE}",
            CrossedVerdicts.of(*np.round(found, COSINE_PLACES)),
        )
        for name, beside, found in ((LAST, "last-turn", last), (WHOLE, "mean-of-turns", whole))
    ]


WHOLE_SETS = "not applicable: whole sets of texts are measured"


def read_given(
    release_dir: Path, scores: Sequence[Path], *, higher_is_better: bool = True
) -> tuple[Sequence[Path], list[PrecomputedCrossedScores]]:
    """The files of scores that are of pairs, and the scores of the others, which are of crossed items.

    Raises:
        InputError: if the release has no such items, or as :func:`empathy_eval.evaluation.crossed.crossed.read_crossed_scores`.
    """
    files = [path for path in scores if of_crossed(path)]
    if not files:
        return scores, []
    if not any(path.is_file() for path in files_of(release_dir, CONFIG)):
        raise input_error(release_dir, f"has no crossed items, but {files[0]} holds scores of them", "score a release that has them")
    known = column(release_dir, CONFIG, "crossed_id")
    given = [read_crossed_scores(path, known, higher_is_better=higher_is_better) for path in files]
    return [path for path in scores if path not in files], given


def crossed_tables(
    stand: Evaluation, known: Sequence[MetricFault], given: Sequence[PrecomputedCrossedScores] = (), *, shortcuts: bool = True,
    embedding: Embedding | None = None,
) -> tuple[CrossedTable | None, list[MetricFault]]:  # fmt: skip
    """What is made of crossed items, where the release has some in the splits that are measured; and new faults. ``known`` are those over
    pairs.

    Raises:
        InputError: if a file holds no score of these splits.
    """
    items = read_items(stand.folder, stand.splits, stand.found.language)
    there = set(items.ids) if items else set[str]()
    if stray := [one for one in given if one.ids.isdisjoint(there)]:
        what, fix = f"holds no score of a crossed item in {', '.join(stand.splits)}", "leave --split out, or name another"
        raise InputError([Problem(str(one.path), what, fix) for one in stray])
    if not items:
        return None, []
    stage("crossed items")
    # Scores that are given of pairs are of no crossed item.
    metrics = [one for one in stand.found.metrics if not isinstance(one, PrecomputedScores)]
    # No score of a metric is believed that failed as a whole over pairs.
    broken = {one.metric: one.what for one in known if not one.texts}
    asked, faults = asked_of([one for one in metrics if one.name not in broken], items, stand.scoring)
    asked += [CrossedScorer(one.name, one.signature, None, f"it failed: {broken[one.name]}") for one in metrics if one.name in broken]
    asked += [CrossedScorer(one.name, one.signature, None, WHOLE_SETS) for one in stand.found.diversities]
    asked += [one.asked(items, strict=stand.strict) for one in given]
    simple = shortcuts_of(items, stand.chance.seed, embedding) if shortcuts else []
    return crossed_of(items, asked, simple, stand.chance), faults
