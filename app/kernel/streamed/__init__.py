"""Data beyond memory: questions to an engine that holds the rows, and metrics of its answers."""
