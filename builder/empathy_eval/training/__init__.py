"""Training: learned metrics made from the pairs of a release, and how often they are right."""
