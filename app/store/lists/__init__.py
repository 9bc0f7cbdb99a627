"""Lists of evaluations: the statements that read them, and what is kept of large ones in the order of a metric."""
