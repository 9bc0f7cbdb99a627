"""What is said of one pair of runs, beside the differences of their metrics."""
