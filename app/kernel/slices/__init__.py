"""Slices of a run: differences, extremes over slices, and a search for weak ones."""
