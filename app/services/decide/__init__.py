"""Curves and decision rules."""
