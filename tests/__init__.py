"""Tests: one file a module, and journeys through the whole."""
