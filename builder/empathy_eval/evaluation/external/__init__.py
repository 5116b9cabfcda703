"""Scores and texts from files: precomputed scores, annotations of judges, custom texts."""
