"""Decides: one file per use case, and the ports it needs."""
