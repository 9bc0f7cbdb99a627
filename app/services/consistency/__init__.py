"""Reported scores held against all matrices that could have given them."""
