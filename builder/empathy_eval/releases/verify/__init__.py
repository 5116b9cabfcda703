"""Verifying: a release derived again from itself; every fault with its place."""
