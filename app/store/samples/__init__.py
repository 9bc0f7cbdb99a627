"""Columns of samples, each stored once."""
