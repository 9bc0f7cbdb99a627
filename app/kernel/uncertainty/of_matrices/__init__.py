"""Metrics of confusion matrices: closed forms, the delta method, posterior and bootstrap."""
