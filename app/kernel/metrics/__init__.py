"""The metrics: one card and one pure function each, expressions of them, and the engine that evaluates all."""
