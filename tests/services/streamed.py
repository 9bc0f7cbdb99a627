"""Answers about streamed rows, held beside those about the same rows in memory."""

from typing import Any

import pytest


def check_same(found: Any, expected: Any, where: str = "", *, rel: float = 1e-11) -> None:
    """Everything but how sums were rounded."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for name, one in expected.items():
            check_same(found[name], one, f"{where}/{name}", rel=rel)
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for place, one in enumerate(expected):
            check_same(found[place], one, f"{where}/{place}", rel=rel)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=rel, abs=1e-12), where
    else:
        assert found == expected, where
