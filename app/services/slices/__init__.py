"""Runs judged slice by slice."""
