"""Tests: a folder a room of the package, journeys through the whole, and the doubles that they use."""
