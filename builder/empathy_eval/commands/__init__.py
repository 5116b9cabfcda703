"""The verbs of the command line, one file a verb: its arguments, its help, and what it prints.

spaCy, matplotlib and torch take seconds to import: a verb imports what it needs when it runs, so that --help and errors are instant.
"""
