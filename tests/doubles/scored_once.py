"""Scores of toxicity of the very same text, computed once a process: a text has its score whatever it is scored with."""

from __future__ import annotations

import pytest
from empathy_eval.completions.models import toxicity_scorer
from empathy_eval.completions.models.toxicity_scorer import Scorer
from empathy_eval.design.configuration import ToxicityConfig

# The scorer that nobody's test replaces; the others are scored with as often as they are asked.
SHARED = "alt-profanity-check"
# Texts that are kept.
MOST = 50_000


def share(patch: pytest.MonkeyPatch) -> None:
    """Builds compute the scores alone that no build of this process has computed."""
    load, scores = toxicity_scorer.load_scorer, dict[str, float]()

    def load_scorer(config: ToxicityConfig) -> Scorer:
        score = load(config)
        if config.scorer != SHARED:
            return score

        def scored(texts: list[str]) -> list[float]:
            new = [text for text in dict.fromkeys(texts) if text not in scores]
            values = dict(zip(new, score(new), strict=True)) if new else {}
            if len(scores) < MOST:
                scores.update(values)
            return [values[text] if text in values else scores[text] for text in texts]

        return scored

    patch.setattr(toxicity_scorer, "load_scorer", load_scorer)
