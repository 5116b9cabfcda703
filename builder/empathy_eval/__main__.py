"""``python -m empathy_eval``: the command line."""

from empathy_eval.cli import entry

entry()
