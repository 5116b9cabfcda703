"""Review by people: a seeded, blind sample is exported; returned files are checked, unblinded and merged into a record."""
