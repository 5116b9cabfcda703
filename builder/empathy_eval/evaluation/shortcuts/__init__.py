"""The shortcut audit: how well classifiers that understand nothing separate the stances."""
