"""Samples with labels that went by: what was decided for each, and what is known of their probabilities."""
