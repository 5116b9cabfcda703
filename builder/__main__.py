"""``python -m builder``: the command line."""

from builder.cli import entry

entry()
