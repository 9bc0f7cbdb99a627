"""Scores from folds or over several data sets: tests, ranks and their Bayesian counterparts."""
