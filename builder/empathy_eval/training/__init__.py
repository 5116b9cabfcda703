"""Training: learned metrics from the pairs of a release, and their accuracy."""
