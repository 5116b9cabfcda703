"""Crossed items: whether a scorer prefers the reply that fits the context."""
