"""The shortcut audit: how far classifiers get that understand nothing."""
