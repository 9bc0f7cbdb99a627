"""Runs on the same streamed samples compared on metrics of probabilities, from sums of values and their products."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from app.kernel.compare.linear import LinearRuns, linearised, runs_of
from app.kernel.compare.paired.joint import JointCounts, combine, merged
from app.kernel.metrics.expression import Every, Expression, Measure, is_smooth, measures, of_each_class
from app.kernel.numerics.arrays import Array
from app.kernel.samples.influence import AreaOf
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores
from app.kernel.streamed.influences import Leaf, RowSums, RunInfluences
from app.kernel.streamed.rows import Rows, Table
from app.kernel.streamed.scores import MOST_CLASSES, StreamedScores

# Columns of the rows: the class of a sample, and its weight above 0.
TRUTH, WEIGHT = "y", "w"
# Values of all runs together whose products are summed with each other.
_MOST = 64


def output(run: int, code: int) -> str:
    """Name of the column with what a run says of a class."""
    return f"{_outputs(run)}{code}"


def _outputs(run: int) -> str:
    return f"output_{run}_"


def _leaves_of(value: Expression, n_classes: int, n_runs: int) -> list[Leaf] | None:
    """Return the metrics that one value is made of; None where one says nothing of single samples, they are too many,
    or the value has no derivatives.
    """
    if not is_smooth(value):
        return None
    found = [
        Leaf.made(leaf.metric, code, leaf.parameters)
        for leaf in measures(value)
        for code in (range(n_classes) if isinstance(leaf.of, Every) else (leaf.of,))
    ]
    leaves = [leaf for leaf in found if leaf is not None and (n_classes <= MOST_CLASSES or not _in_one_order(leaf))]
    few = len({leaf.key for leaf in leaves}) * n_runs <= _MOST
    return leaves if few and len(leaves) == len(found) else None


def _in_one_order(leaf: Leaf) -> bool:
    return leaf.form.area is not None and leaf.form.area.of in (AreaOf.ENTRIES, AreaOf.PAIRS, AreaOf.PAIR_SHARES)


def streamed_runs(
    rows: Rows, expressions: Sequence[Expression], n_classes: int, are_probabilities: Sequence[bool], *, weighted: bool
) -> "StreamedRuns":
    """Metrics of R runs on the same samples, by one pass along each order and one over all rows.

    Args:
        rows: `TRUTH`, `WEIGHT` and each `output`, of the samples that all runs have, with weights above 0.
        expressions: Metrics of probabilities.
        n_classes: K.
        are_probabilities: For each run, whether its outputs are; they are scores else.
        weighted: Have the samples weights?
    """
    runs = [
        StreamedScores(rows, n_classes, probabilities=sure, weighted=weighted, outputs=_outputs(run))
        for run, sure in enumerate(are_probabilities)
    ]
    values = [value for expression in expressions for value in of_each_class(expression, n_classes)]
    known = [leaves for value in values if (leaves := _leaves_of(value, n_classes, len(runs))) is not None]
    keys = [*{leaf.key: leaf for leaves in known for leaf in leaves}]
    shares = {leaves[0].key for leaves in known if len(leaves) == 1 and leaves[0].form.is_share and not weighted}
    counted: dict[Hashable, JointCounts] = {}

    def count(part: Table, _: Sequence[Scores], found: Array) -> None:
        y = part[TRUTH].astype(np.int64)
        for key in shares:
            own = found[:, keys.index(key)]
            if np.isfinite(own).all():
                # Samples that count are predictions that are right.
                joint = combine(y, np.where(own > 0, y, (y + 1) % n_classes), n_classes)
                counted[key] = merged([*([counted[key]] if key in counted else []), joint], len(runs), n_classes)

    sums = RowSums.of(runs, [leaf for leaves in known for leaf in leaves], known, count)
    return StreamedRuns(runs, n_classes, sums, counted)


class StreamedValue(NamedTuple):
    """One value of all runs; of a share of samples without weights also which of these count for which runs, as
    predictions that are right where they do.
    """

    runs: LinearRuns
    counted: JointCounts | None


@dataclass(frozen=True, slots=True, eq=False)
class StreamedRuns:
    """Sums over the samples that R runs of K classes have in common.

    Attributes:
        scores: Of each run.
    """

    scores: Sequence[StreamedScores]
    n_classes: int
    _sums: RowSums
    _counted: Mapping[Hashable, JointCounts]

    def of(self, expression: Expression) -> tuple[StreamedValue, ...] | None:
        """The values of an expression; None where it was not summed, or has no closed form."""
        found = [self._of(value) for value in of_each_class(expression, self.n_classes)]
        known = tuple(one for one in found if one is not None)
        return known if len(known) == len(found) else None

    def values(self, expression: Expression) -> Array | None:
        """Values (R, V); None as above."""
        found = self.of(expression)
        return None if found is None else np.stack([one.runs.values for one in found], axis=-1)

    def ruled_out(self, run: int) -> Codes:
        """Classes of which a run has samples whose value is infinite."""
        width = len(self._sums.leaves)
        return np.flatnonzero(self._sums.moments.infinite()[run * width : (run + 1) * width].any(axis=0))

    def _of(self, value: Expression) -> StreamedValue | None:
        leaves = _leaves_of(value, self.n_classes, len(self.scores))
        read = None if leaves is None else self._sums.read(leaves)
        if leaves is None or read is None:
            return None
        found = [linearised(value, RunInfluences(read, run)) for run in range(len(self.scores))]
        parts = [one[0] for one in found if one is not None]
        if len(parts) < len(found):
            return None
        covariance = read.covariance(parts)
        # As if one sample had all the influence.
        alone = [
            replace(part, influence=np.sqrt(np.maximum(covariance[[run], run], 0.0))) for run, part in enumerate(parts)
        ]
        counted = self._counted.get(leaves[0].key) if isinstance(value, Measure) else None
        return StreamedValue(runs_of(alone, covariance), counted)
