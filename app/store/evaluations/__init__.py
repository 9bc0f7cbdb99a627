"""Evaluations: rows, the store, and the writer that commits in groups."""
