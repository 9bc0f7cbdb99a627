"""Runs side by side: what they have in common, their values, draws and differences."""
