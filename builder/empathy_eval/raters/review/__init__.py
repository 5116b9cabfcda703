"""Review by people: a seeded, blind sample is sent out; what comes back is checked, merged and recorded."""
