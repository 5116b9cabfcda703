"""Attacks: what makes a reply worse and may raise its score all the same."""
