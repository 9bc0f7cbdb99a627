"""Samples that come in groups: what is independent are the groups."""
