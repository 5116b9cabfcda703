"""Why a text is so: what a folder and a ledger hold of it."""
