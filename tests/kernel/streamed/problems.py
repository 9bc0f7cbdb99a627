"""Problems that are streamed, with a name each."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array
from app.kernel.streamed.scores import StreamedScores
from app.services.ports import OpenEngine


class Problem(NamedTuple):
    """Codes (n), what is given, and the rows (n, K) that it stands for."""

    y: NDArray[np.int64]
    given: NDArray[Any]
    rows: Array

    @property
    def classes(self) -> int:
        return int(self.rows.shape[1])


def drawn(n: int, classes: int, seed: int, *, decimals: int | None = None) -> Problem:
    """Probabilities that know something; rounded they are tied."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, classes, n)
    rows = generator.dirichlet(np.ones(classes), n) + 0.4 * np.eye(classes)[y] * generator.random((n, 1))
    rows /= rows.sum(axis=1, keepdims=True)
    if decimals is not None:
        rows = np.round(rows, decimals)
        rows[:, 0] = np.clip(1.0 - rows[:, 1:].sum(axis=1), 0.0, 1.0)
    return Problem(y, rows, rows)


def of_one_column(problem: Problem, kind: type[np.floating[Any]] = np.float64) -> Problem:
    """The probability of class 1 alone."""
    one = problem.rows[:, 1].astype(kind)
    wide = one.astype(np.float64)
    return Problem(problem.y, one, np.column_stack([1.0 - wide, wide]))


def narrow(problem: Problem) -> Problem:
    """The same in float32."""
    given = problem.rows.astype(np.float32)
    return Problem(problem.y, given, given.astype(np.float64))


def extreme() -> Problem:
    """Probabilities of 0 and 1, right and wrong, and such that 1 - p is 1."""
    one = np.array([0.0, 0.0, 1.0, 1.0, 0.5, 0.5, 1e-20, 2e-20, 1e-300, 5e-324, -0.0, 1.0 - 2.0**-53])
    y = np.array([0, 1, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1])
    return Problem(y, one, np.column_stack([1.0 - one, one]))


def at_limits() -> Problem:
    """Probabilities on the limits of bins, just above them, and a rounding away."""
    limits = np.arange(16) / 15
    one = np.concatenate([limits, limits + 3e-12, limits + 1e-16, limits - 1e-16]).clip(0.0, 1.0)
    y = np.arange(one.size) % 3 // 2
    return Problem(y, one, np.column_stack([1.0 - one, one]))


def of_one_class(problem: Problem) -> Problem:
    """The same where class 1 alone occurs."""
    return problem._replace(y=np.ones_like(problem.y))


TWO = drawn(400, 2, 1)
PROBLEMS = {
    "two columns": TWO,
    "one column": of_one_column(TWO),
    "one column tied": of_one_column(drawn(400, 2, 2, decimals=2)),
    "one column of float32": of_one_column(TWO, np.float32),
    "two columns of float32": narrow(TWO),
    "one class": of_one_class(of_one_column(TWO)),
    "extreme": extreme(),
    "at the limits of bins": at_limits(),
    "all equal": Problem(TWO.y, np.full((400, 2), 0.5), np.full((400, 2), 0.5)),
    "three classes": drawn(300, 3, 4),
    "three classes tied": drawn(300, 3, 5, decimals=1),
    "three classes of float32": narrow(drawn(300, 3, 6)),
    "a class that does not occur": drawn(300, 3, 7)._replace(y=np.random.default_rng(8).integers(0, 2, 300)),
    "six classes": drawn(200, 6, 9),
    "one sample": drawn(1, 2, 10),
}


def streamed(
    engine: OpenEngine, problem: Problem, weights: Array | None = None, groups: NDArray[Any] | None = None
) -> StreamedScores:
    """A problem in an engine, in parts."""
    columns = {"y": problem.y.astype(np.int32)} | {f"p{code}": own for code, own in enumerate(problem.rows.T)}
    if weights is not None:
        columns["w"] = weights
    if groups is not None:
        columns["g"] = groups
    table = pa.table(columns)
    rows = engine.take(table.schema, table.to_batches(max_chunksize=97))
    n_groups = 0 if groups is None else len(np.unique(groups))
    weighted = weights is not None
    rows = rows.where("w > 0") if weighted else rows
    mirrored = problem.classes == 2 and np.array_equal(problem.rows[:, 0], 1.0 - problem.rows[:, 1])
    return StreamedScores(
        rows, problem.classes, probabilities=True, weighted=weighted, n_groups=n_groups, mirrored=mirrored
    )
