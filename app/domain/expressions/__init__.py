"""The language of metric expressions."""
