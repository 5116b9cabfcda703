"""What the embedded toxicity scorer refuses: ``python -m benchmarks.toxicity`` prints the table of docs/checks.md.

Clean texts are the helper turns of the seeds and their variants. They were written under the present limit, so none is above it. Excerpts
are all shorter runs of their sentences with at least eight words: nobody has revised these. Toxic texts are those of ``TOXIC``, written
before any was scored.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from empathy_eval.base.text import words
from empathy_eval.completions.models.toxicity_scorer import load_scorer
from empathy_eval.design.configuration import ToxicityConfig
from empathy_eval.design.recipe import load_recipe
from empathy_eval.generation.checks.built_in import SENTENCE_END

TOXIC = Path(__file__).parent.parent / "tests" / "generation" / "toxic_replies.txt"
LIMITS = (0.4, 0.45, 0.5, 0.52, 0.55, 0.58, 0.6, 0.7, 0.8)
UNITS = ("whole text", "highest sentence")
SHORTEST = 8
EMBEDDED = ToxicityConfig("alt-profanity-check", 0.5)


def clean_texts() -> list[str]:
    """The helper turns of the seeds and their variants."""
    seeds = [one.seed for one in load_recipe("seeds").catalogue.scenarios if one.seed]
    turns = [turn for seed in seeds for turn in seed.turns if turn.role == "helper"]
    return list(dict.fromkeys(text for turn in turns for text in turn.texts))


def excerpts(texts: Sequence[str]) -> list[str]:
    """All runs of sentences of these texts that are shorter than the text and have enough words."""
    return [one for one in dict.fromkeys(part for text in texts for part in _parts(text)) if len(words(one)) >= SHORTEST]


def toxic_texts() -> list[str]:
    """The toxic replies."""
    return TOXIC.read_text(encoding="utf-8").splitlines()


def scores(texts: Sequence[str]) -> dict[str, list[float]]:
    """The score of each text by unit: of the whole text, and the highest of its sentences."""
    score, sentences = load_scorer(EMBEDDED), [SENTENCE_END.split(text) for text in texts]
    distinct = list(dict.fromkeys(one for some in (texts, *sentences) for one in some))
    known = dict(zip(distinct, score(distinct), strict=True))
    return dict(zip(UNITS, ([known[text] for text in texts], [max(known[one] for one in some) for some in sentences]), strict=True))


def table() -> list[str]:
    """The rows of the table, by unit and limit: how many texts are refused."""
    clean = clean_texts()
    groups = [scores(texts) for texts in (toxic_texts(), clean, excerpts(clean))]
    counts = [len(group[UNITS[0]]) for group in groups]
    heads = [f"{name} refused, of {count:,}" for name, count in zip(("toxic texts", "clean texts", "excerpts"), counts, strict=True)]
    rows = [["unit", "limit", *heads], ["---"] * 5]
    for unit in UNITS:
        for limit in LIMITS:
            refused = [sum(score > limit for score in group[unit]) for group in groups]
            shares = [f"{many:,} ({100 * many / count:.2f} %)" for many, count in zip(refused[1:], counts[1:], strict=True)]
            rows.append([unit, f"{limit:g}", str(refused[0]), *shares])
    return [f"| {' | '.join(row)} |" for row in rows]


def _parts(text: str) -> Iterator[str]:
    sentences = SENTENCE_END.split(text)
    for length in range(1, len(sentences)):
        for start in range(len(sentences) - length + 1):
            yield " ".join(sentences[start : start + length])


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print("\n".join(table()))
