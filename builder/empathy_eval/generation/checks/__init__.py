"""Checks: each says yes (an empty list) or no with reasons that are counted."""
