"""The confusion matrices on which the kernel is compared with its witnesses: made from fixed seeds, so every run sees
the same.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

SIZES = (2, 3, 5, 12, 35)


def dense(rng: np.random.Generator, classes: int, high: int = 60) -> Counts:
    """No cell is empty."""
    return rng.integers(1, high, (classes, classes))


def sparse(rng: np.random.Generator, classes: int) -> Counts:
    """About half the cells are empty, but no row, column or diagonal cell is."""
    counts = rng.integers(1, 40, (classes, classes)) * rng.integers(0, 2, (classes, classes))
    return counts + np.diag(rng.integers(1, 40, classes))


def accurate(rng: np.random.Generator, classes: int) -> Counts:
    """A good classifier: most samples on the diagonal."""
    return rng.integers(0, 6, (classes, classes)) + np.diag(rng.integers(150, 900, classes))


def empty_row(rng: np.random.Generator, classes: int) -> Counts:
    """A class without actual samples that is predicted all the same."""
    counts = dense(rng, classes)
    counts[rng.integers(classes)] = 0
    return counts


def empty_column(rng: np.random.Generator, classes: int) -> Counts:
    """A class that is never predicted."""
    counts = dense(rng, classes)
    counts[:, rng.integers(classes)] = 0
    return counts


def absent_class(rng: np.random.Generator, classes: int) -> Counts:
    """A declared class that neither occurs nor is predicted."""
    counts = dense(rng, classes)
    gone = rng.integers(classes)
    counts[gone] = 0
    counts[:, gone] = 0
    return counts


def dominant_class(rng: np.random.Generator, classes: int) -> Counts:
    """One class holds more than 99 % of the samples."""
    counts = rng.integers(0, 9, (classes, classes)) + np.eye(classes, dtype=np.int64)
    counts[0, 0] += 2_000 * classes * classes
    return counts


def large_counts(rng: np.random.Generator, classes: int) -> Counts:
    """Up to ten million in a cell: sums of products leave the integers that float64 holds exactly."""
    return rng.integers(1, 10_000_000, (classes, classes)) + np.diag(rng.integers(0, 90_000_000, classes))


def below_chance(rng: np.random.Generator, classes: int) -> Counts:
    """Most samples land on the next class."""
    counts = rng.integers(1, 9, (classes, classes))
    return counts + np.roll(np.diag(rng.integers(30, 90, classes)), 1, axis=1)


def perfect(rng: np.random.Generator, classes: int) -> Counts:
    return np.diag(rng.integers(1, 90, classes))


def constant(rng: np.random.Generator, classes: int) -> Counts:
    """Everything is predicted as the first class."""
    counts = np.zeros((classes, classes), dtype=np.int64)
    counts[:, 0] = rng.integers(1, 50, classes)
    return counts


def one_class(rng: np.random.Generator, classes: int) -> Counts:
    """Everything belongs to the first class."""
    return constant(rng, classes).T.copy()


def one_cell(rng: np.random.Generator, classes: int) -> Counts:
    """Everything belongs to the first class and is predicted as it."""
    counts = np.zeros((classes, classes), dtype=np.int64)
    counts[0, 0] = rng.integers(1, 50)
    return counts


KINDS = (
    dense,
    sparse,
    accurate,
    empty_row,
    empty_column,
    absent_class,
    dominant_class,
    large_counts,
    below_chance,
    perfect,
    constant,
    one_class,
    one_cell,
)


@cache
def matrices() -> dict[str, Counts]:
    """By name, such as ``sparse-5``: every kind at every size, the small sizes twice."""
    return dict(_named())


def _named() -> Iterator[tuple[str, Counts]]:
    rng = np.random.default_rng(20251217)
    for classes in SIZES:
        for kind in KINDS:
            for repeat in range(2 if classes <= 5 else 1):
                counts = kind(rng, classes)
                counts.flags.writeable = False
                yield f"{kind.__name__}-{classes}-{repeat}", counts


def with_regular_margins() -> dict[str, Counts]:
    """Those of at most twelve classes in which every class occurs, is predicted and is neither everything."""
    kinds = ("dense", "sparse", "accurate", "dominant_class", "large_counts", "below_chance")
    return {name: one for name, one in matrices().items() if name.split("-")[0] in kinds and len(one) <= 12}
