"""Review by people: what a rater gets, what they send back, and what follows from it; one file a concern."""
