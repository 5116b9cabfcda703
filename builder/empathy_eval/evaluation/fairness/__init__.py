"""Fairness: scorers by group of scenarios, and under an exchange of names."""
