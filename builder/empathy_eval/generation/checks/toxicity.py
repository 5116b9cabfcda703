"""Toxicity: the score of a text by the configured scorer, through the ledger, and the highest that is taken."""

from __future__ import annotations

import contextlib
import json
import re

from empathy_eval.completions.asker import Asker, settled
from empathy_eval.completions.requests import About, Flaw, Request
from empathy_eval.design.configuration import ToxicityConfig
from empathy_eval.design.kinds import SCORE

SENTENCE_END = re.compile(r"(?<=[.!?…])\s+")


async def toxicity(asker: Asker, text: str, about: About) -> float | None:
    """The score of a text, in [0, 1], None where nothing scores it; ``about`` is the turn whose text it is.

    Raises:
        NoAnswer: in an offline build, if the ledger has no score for this text and these weights.
        JobError: if what the ledger has for it is no score.
    """
    scorer = asker.models.get(SCORE.role)
    if scorer is None:
        return None
    body = scorer.body([{"role": "user", "content": text}], SCORE.answer)
    request = Request(body, scorer.endpoint, About(about.dialogue_id, SCORE.name, about.turn))
    completion = await asker.complete(scorer, request)
    with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
        score = json.loads(completion.text)["score"]
        if type(score) in (int, float) and 0 <= score <= 1:
            return float(score)
    raise asker.ledger.broken(request.key, "the answer is no score")


async def too_toxic(asker: Asker, text: str, about: About, limit: ToxicityConfig | None) -> tuple[float | None, list[Flaw]]:
    """The score of a text, and a flaw if that is above the limit. The flaw quotes the sentence with the highest score.

    Raises:
        NoAnswer, JobError: as :func:`toxicity`.
    """
    score = await toxicity(asker, text, about)
    if score is None or limit is None or score <= limit.at_most:
        return score, []
    sentences = SENTENCE_END.split(text)
    scores = await settled(*(toxicity(asker, sentence, about) for sentence in sentences)) if len(sentences) > 1 else [score]
    worst = max(zip(scores, sentences, strict=True), key=lambda scored: scored[0] or 0)[1]
    return score, [Flaw("toxic", f'a toxicity of {score:.2f} by {limit.scorer}, at most {limit.at_most} is taken; reword "{worst[:200]}"')]
