"""Samples in the order of a score: cumulative counts at every cut, and what is read off them."""
