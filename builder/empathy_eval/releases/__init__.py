"""A build becomes a data set folder: selected, written, verified, compared, published."""
