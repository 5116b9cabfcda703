"""The texts of a release as columns (pairs, controls, contexts), descriptive figures, and other data sets."""
