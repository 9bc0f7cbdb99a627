"""Samples of which each may have several labels: which they have, which pairs they make, how labels are ordered."""
