"""Metrics, one file a family: each with what it measures, its direction, and the signature of its settings."""
