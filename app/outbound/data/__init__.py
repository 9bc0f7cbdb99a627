"""Data that requests name: below which addresses it may lie, and how files there are listed and opened."""
