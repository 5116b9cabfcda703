"""Metrics, one file for each family: what they measure, their direction, and the signature of their settings."""
