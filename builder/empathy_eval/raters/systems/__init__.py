"""Systems that reply to contexts of a release: their replies, what judges and people say of them, and how they compare."""
