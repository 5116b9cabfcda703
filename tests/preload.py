"""What the server of forked test processes loads once: a build's imports and the weights it would load first."""

from builder import pipeline
from builder.checks.toxicity import load_scorer
from builder.config import ToxicityConfig
from builder.models import openai_endpoint
from builder.patterns import load_patterns

load_scorer(ToxicityConfig("alt-profanity-check", 0.5))(["a text"])
for name in ("crisis", "pointers", "safety"):
    load_patterns(name)

__all__ = ["openai_endpoint", "pipeline"]
