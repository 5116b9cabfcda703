"""Who rates, people and judges, and how far they agree."""
