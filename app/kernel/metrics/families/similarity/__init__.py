"""Similarity coefficients of the 2 x 2 table of one class against the rest: tables of formulas."""
