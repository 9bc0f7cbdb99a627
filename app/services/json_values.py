"""Numbers of the kernel as JSON has them."""

import numpy as np

from app.kernel.numerics.arrays import Array


def plain(value: float) -> float | None:
    """A number, None for what is not finite."""
    return float(value) if np.isfinite(value) else None


def listed(values: Array) -> list[float | None]:
    """Numbers (R)."""
    return [plain(value) for value in values.tolist()]
