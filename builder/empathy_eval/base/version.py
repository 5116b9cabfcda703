"""The version of this package, which every build records."""

__version__ = "1.0.0"
