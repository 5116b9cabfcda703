"""What the server of forked test processes loads once: a build's imports and the weights it would load first."""

from builder import pipeline
from builder.models import openai_endpoint
from builder.patterns import load_patterns

for name in ("crisis", "pointers", "safety"):
    load_patterns(name)

__all__ = ["openai_endpoint", "pipeline"]
