"""Attacks: changes that make a reply worse, and may raise its score all the same."""
