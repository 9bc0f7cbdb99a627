"""Evaluations of more rows than memory holds: parts of an input go into an engine, and the report is made of it."""
