"""Runs compared, on one dataset or across several."""
