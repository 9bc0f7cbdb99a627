"""Figures of kept samples: curves, histograms of scores, what probabilities are worth."""
