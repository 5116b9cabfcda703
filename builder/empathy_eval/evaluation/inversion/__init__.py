"""Metrics over pairs and the 2 x 2: scores, differences with their intervals, comparisons."""
