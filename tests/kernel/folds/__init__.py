"""Samples folded in parts."""
