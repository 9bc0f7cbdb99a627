"""Lists in the order of a metric, read one page at a time."""
