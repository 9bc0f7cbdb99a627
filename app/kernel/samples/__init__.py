"""Samples with probabilities or scores: their order, losses, calibration and curves."""
