"""``python -m builder``: the command line."""

from empathy_eval.cli import entry

entry()
