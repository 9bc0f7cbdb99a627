"""Metrics of samples that can have several labels, or none."""
