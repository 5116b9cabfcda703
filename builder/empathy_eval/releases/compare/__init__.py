"""Two releases compared."""
