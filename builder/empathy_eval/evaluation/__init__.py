"""Metrics on the data set: contrasts with their uncertainty, as tables, figures and a page."""
