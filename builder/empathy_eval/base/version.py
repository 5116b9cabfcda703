"""The version of this package, which stands in every build."""

__version__ = "0.1.0"
