"""Arithmetic of single coefficients that takes more than the table of a matrix."""
