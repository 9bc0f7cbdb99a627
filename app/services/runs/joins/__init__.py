"""Runs of more samples than memory holds, joined by sample id."""
