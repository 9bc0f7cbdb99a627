"""Data of independent units: queries with their ranked items, samples with their regions or answers."""
