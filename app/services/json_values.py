"""Numbers of the kernel as JSON has them."""

from typing import Any

import numpy as np

from app.kernel.numerics.arrays import Array


def number(value: float) -> float | None:
    """A number, None for what is not finite."""
    return float(value) if np.isfinite(value) else None


def numbers(values: Array) -> list[Any]:
    """Nested lists with None for what is not finite."""
    finite = np.isfinite(values)
    listed: Any = values if finite.all() else np.where(finite, values, np.array(None))
    return listed.tolist()  # type: ignore[no-any-return]  # numpy gives Any
