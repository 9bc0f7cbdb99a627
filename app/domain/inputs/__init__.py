"""Kinds of input, each declared and read in a module of its own, and the one form that all of them have."""
