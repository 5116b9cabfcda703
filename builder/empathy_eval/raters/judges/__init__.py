"""Judges: models that rate replies by a rubric, compare them, or name their strategy, queried through a ledger of their own."""
