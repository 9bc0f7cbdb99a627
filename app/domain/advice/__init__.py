"""Advice on the choice of metrics, with its sources."""
