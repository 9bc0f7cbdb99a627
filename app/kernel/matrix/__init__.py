"""Confusion matrices (..., K, K): their counts, what metrics share, and what a change of prevalence does to them."""
