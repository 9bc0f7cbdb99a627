"""Which metrics to use, and who says so."""
