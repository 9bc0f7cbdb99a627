"""Weighted samples: rates at the numbers of samples that they are worth, and the closed forms of every report."""
