"""Prevail: evaluation as a service."""
