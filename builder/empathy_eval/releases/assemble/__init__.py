"""A build becomes a data set folder: selected, written, described, signed."""
