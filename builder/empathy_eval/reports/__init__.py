"""Pages and documents: the report, the agreement and study pages, the explorer, the card."""
