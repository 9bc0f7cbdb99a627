"""Names things: frozen dataclasses, identifiers and outcomes."""
