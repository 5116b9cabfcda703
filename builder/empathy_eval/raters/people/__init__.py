"""Correlation of scores with people's ratings, under several weightings, and ensembles of metrics."""
