"""A run with what its samples said, for metrics that take more than the matrix."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.samples import Samples
from app.kernel.compare.replicates import importance
from app.kernel.numerics.arrays import Array
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.resampling import values_of
from app.kernel.uncertainty.units import Run, Units
from app.services.estimands import Estimand
from app.services.stored import scores_of, stored_input


@dataclass(frozen=True, slots=True, eq=False)
class ScoredRun:
    """One run with the probabilities or scores of its samples, or with whatever else it is resampled in.

    Attributes:
        run: The samples, classes or labels in the order of the first run.
        fold_sizes: Of cross-validated runs, how many samples each fold has.
        weights: (n), or None.
    """

    run: Units
    fold_sizes: tuple[int, ...] | None = None
    weights: Array | None = None

    @classmethod
    def of(cls, record: EvaluationRecord, samples: Samples, places: NDArray[np.intp]) -> Self:
        """The run of a record; ``places`` (K) says where each of its classes stands.

        Raises:
            ValueError: there are no probabilities and no scores.
        """
        moved = in_order(samples, places)
        source = stored_input(record, replace(moved, weights=None))
        scores = scores_of(replace(source, positive=positive_at(record, places)))
        return cls(Run(scores, moved.predicted), samples.fold_sizes, samples.weights)

    @property
    def scores(self) -> Scores:
        """The probabilities or scores, with the weights.

        Raises:
            TypeError: it is no run of classes.
        """
        if not isinstance(self.run, Run):
            raise TypeError("expected a run of classes")
        return self.run.scores if self.weights is None else self.run.scores.with_weights(self.weights)

    def among(self, rows: NDArray[np.intp]) -> "ScoredRun":
        """The run on some of the samples."""
        return ScoredRun(self.run.part(rows), weights=None if self.weights is None else self.weights[rows])

    def folds(self) -> list["ScoredRun"]:
        """The folds of a cross-validated run, each as a run."""
        ends = np.cumsum(self.fold_sizes or ())
        return [
            self.among(np.arange(int(end) - size, int(end)))
            for end, size in zip(ends, self.fold_sizes or (), strict=True)
        ]

    @property
    def _masses(self) -> Array | None:
        """What each unit weighs (n), or how many samples it stands for."""
        return self.weights if self.weights is not None else self.run.multiplicities

    def values(self, estimands: Sequence[Estimand], shares: Array | None = None) -> list[Array]:
        """Values (V) of each estimand; what prevalence moves at the shares (K), if given."""
        plain = values_of(self.run, [estimand.functional for estimand in estimands], self.weights)
        if shares is None:
            return plain
        moved = [index for index, estimand in enumerate(estimands) if not estimand.insensitive]
        weights = importance(self.run.strata, shares, self._masses)
        found = values_of(self.run, [estimands[index].functional for index in moved], weights)
        for index, values in zip(moved, found, strict=True):
            plain[index] = values
        return plain


def in_order(samples: Samples, places: NDArray[np.intp]) -> Samples:
    """The same samples where each class stands at its place (K)."""
    outputs = samples.outputs
    if outputs is not None and outputs.ndim == 2:
        # Column p of the result is the class that stands there.
        outputs = outputs[:, np.argsort(places)]
    return replace(samples, truth=places[samples.truth], predicted=places[samples.predicted], outputs=outputs)


def positive_at(record: EvaluationRecord, places: NDArray[np.intp]) -> int:
    """Where the class stands that scores are higher for: the second unless said."""
    return int(places[1 if record.positive is None else record.positive])
