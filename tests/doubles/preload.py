"""What the server of forked test processes loads once: a build's imports and the weights it would load first."""

from empathy_eval.completions.models import openai_endpoint
from empathy_eval.completions.models.toxicity_scorer import load_scorer
from empathy_eval.design.configuration import ToxicityConfig
from empathy_eval.generation import build as build_module
from empathy_eval.generation.patterns import load_patterns

load_scorer(ToxicityConfig("alt-profanity-check", 0.5))(["a text"])
for name in ("crisis", "pointers", "safety"):
    load_patterns(name)

__all__ = ["openai_endpoint", "build_module"]
