"""Differences between evaluations: paired and unpaired, of two, of many, and across datasets."""
