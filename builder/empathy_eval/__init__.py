"""Empathy-Eval: builds, checks, releases and explains a contrastive benchmark of emotional-support conversations."""

__version__ = "0.1.0"
