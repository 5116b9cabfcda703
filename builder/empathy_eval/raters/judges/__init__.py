"""Judges: models that rate replies by a rubric, compare them, or say which strategy they use, asked through a ledger of their own."""
