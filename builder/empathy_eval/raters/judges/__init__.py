"""Judges: models that rate replies by a rubric."""
