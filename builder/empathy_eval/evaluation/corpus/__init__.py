"""The texts of a release as columns: pairs, controls, contexts, and what they are broken down by."""
