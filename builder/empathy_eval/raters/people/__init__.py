"""Scores beside what people rated: correlations by many weightings at once, and the table of all metrics."""
