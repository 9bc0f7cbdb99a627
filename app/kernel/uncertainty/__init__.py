"""Intervals of metrics of one evaluation: closed forms, delta method, posterior and bootstrap."""
