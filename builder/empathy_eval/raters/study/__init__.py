"""Studies between subjects: each rater sees the items of one group alone, and groups are compared with a baseline."""
