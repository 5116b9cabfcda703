"""Estimates with intervals: resampling, agreement coefficients, correlations, tests, ranking, corrections."""
