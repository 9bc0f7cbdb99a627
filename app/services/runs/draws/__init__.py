"""Resampling of runs: matrices, pairs, groups and samples drawn again."""
