"""Runs on the same samples: what they share, and tests of their differences."""
