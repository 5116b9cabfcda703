"""The version of this package, which stands in every build."""

__version__ = "1.0.0"
