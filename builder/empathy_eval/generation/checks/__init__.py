"""Checks of dialogues and variants: each returns flaws with countable reasons, or an empty list."""
