"""Metrics of probabilities: influence of each sample, and the bootstrap of samples."""
