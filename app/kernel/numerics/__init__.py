"""Computes on arrays: what numpy lacks, and nothing about metrics."""
