"""Inputs of every kind as JSON, and their way to the domain."""
