"""Verbs, one file each: the public call, its options and help, and its printed output.

spaCy, matplotlib and torch take seconds to import. A verb imports them when it runs, so that --help and errors are instant.
"""
