"""How a value of the kernel is compared with a witness."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import AnyMetric, Metric, Scope
from app.kernel.numerics.arrays import silently

RELATIVE = 1e-12
# Differences of numbers near 1 that cancel (kappas, informedness, sums less 1, distances from 1) cannot be better than
# a few units in the last place of 1. Everything else is a sum, product, quotient or root of non-negative numbers and
# needs no floor.
CANCELLING = 4e-15


def value_of(metric: Metric[Table], counts: NDArray[Any], **parameters: Any) -> NDArray[np.float64]:
    """(K,) for class metrics, () for overall ones."""
    with silently():
        return np.asarray(metric.compute(Table(counts), **parameters))


def assert_close(
    metric: AnyMetric, got: Any, want: Any, *, relative: float = RELATIVE, absolute: float = 0.0, where: str = ""
) -> None:
    """Same missing values, same infinities, the rest equal to ``relative`` with ``absolute`` as the floor near 0."""
    got, want = np.atleast_1d(np.asarray(got, dtype=float)), np.atleast_1d(np.asarray(want, dtype=float))
    assert got.shape == want.shape, f"{metric.key} {where}: {got.shape} and {want.shape}"
    for name, kind in (("undefined", np.isnan), ("infinite", np.isinf)):
        assert (kind(got) == kind(want)).all(), f"{metric.key} {where}: {name} differs: {got} and {want}"
    with np.errstate(invalid="ignore"):
        off = np.abs(got - want) > relative * np.abs(want) + absolute
    finite = np.isfinite(want)
    assert (got[np.isinf(want)] == want[np.isinf(want)]).all(), f"{metric.key} {where}: sign of infinity"
    assert not (off & finite).any(), f"{metric.key} {where}: {got[off & finite]} and {want[off & finite]}"


def is_of_class(metric: AnyMetric) -> bool:
    return metric.card.scope is Scope.CLASS
