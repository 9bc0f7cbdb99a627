"""Evaluations made, read and deleted: one, a batch, and of data that is named."""
