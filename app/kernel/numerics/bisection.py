"""Inverting a test into an interval: where a condition ceases to hold."""

from collections.abc import Callable


def last_inside(inside: Callable[[float], bool], start: float, end: float, *, steps: int = 60) -> float:
    """The point farthest from start, where a condition holds, towards end at which it still does."""
    if inside(end):
        return end
    for _ in range(steps):
        middle = (start + end) / 2.0
        start, end = (middle, end) if inside(middle) else (start, middle)
    return start
