"""Families of metrics: one module each, with the functions and their cards."""
