"""Weights of folded samples: their sums are exact, so that no split and no order of them shows."""
