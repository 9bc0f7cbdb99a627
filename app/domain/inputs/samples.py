"""Samples of an evaluation: the truth, the prediction and the scores behind it, with ids, weights and groups."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.inputs.attributes import Attributes, joined_attributes


class DecidedBy(StrEnum):
    """Rule by which a class is chosen from probabilities or scores."""

    ARGMAX = "argmax"
    THRESHOLD = "threshold"


@dataclass(frozen=True, slots=True, eq=False)
class WeightSums:
    """Facts of the weights behind entries that stand for several samples each, beside their sums.

    Attributes:
        squares: (n) sums of the squared weights.
        used: (n) samples with a weight above 0.
        lightest: (n) the smallest weight above 0; NaN where there is none.
        heaviest: (n) the largest.
    """

    squares: NDArray[np.float64]
    used: NDArray[np.int64]
    lightest: NDArray[np.float64]
    heaviest: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Samples that say the same as one entry each.

    Attributes:
        times: (n) how many samples an entry stands for.
        weights: What these weigh, where they have weights.
    """

    times: NDArray[np.int64]
    weights: WeightSums | None = None

    def __len__(self) -> int:
        return len(self.times)

    @property
    def used(self) -> NDArray[np.int64]:
        """(n) samples that count: those with a weight above 0."""
        return self.times if self.weights is None else self.weights.used

    def taken(self, rows: NDArray[np.intp]) -> "Tally":
        """Return the entries at some places."""
        weights = self.weights
        if weights is not None:
            parts = (weights.squares, weights.used, weights.lightest, weights.heaviest)
            weights = WeightSums(*(part[rows] for part in parts))  # type: ignore[arg-type]  # each of its kind
        return Tally(self.times[rows], weights)


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Samples of one evaluation, in the order in which they came.

    Attributes:
        truth: (n) codes into the labels; of other kinds what is true of each entry.
        predicted: (n) the same.
        outputs: Probabilities or scores [n, K], or for two classes scores (n) that are higher for the positive class;
            None for predictions. Which of the first two they are is said by the kind of the input.
        ids: (n) all different, int64 or text; None when there are none.
        weights: (n), 0 or more; None is 1 each.
        fold_sizes: How many samples each fold has, one after another; None when there are no folds.
        groups: (n) what each sample is one of, such as a patient, int64 or text; None when samples are independent.
        tally: Where entries stand for many samples each; weights are sums then. Such samples are never saved.
        attributes: Whom or where each sample is about; None when that is not known.
    """

    truth: NDArray[Any]
    predicted: NDArray[np.int64]
    outputs: NDArray[np.float64] | None = None
    ids: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None
    fold_sizes: tuple[int, ...] | None = None
    groups: NDArray[Any] | None = None
    tally: Tally | None = None
    attributes: Attributes | None = None

    @property
    def known_outputs(self) -> NDArray[np.float64]:
        """The probabilities or scores, or what other kinds keep there. Raises ValueError where there are none."""
        if self.outputs is None:
            raise ValueError("expected samples with probabilities or scores")
        return self.outputs

    @property
    def size(self) -> int:
        """Number of entries."""
        return len(self.truth)

    @property
    def times(self) -> NDArray[np.int64] | None:
        """(n) how many samples each entry stands for; None where each is one."""
        return None if self.tally is None else self.tally.times

    @property
    def masses(self) -> NDArray[Any] | None:
        """(n) what each entry counts in sums: its weight, or its samples; None is 1 each."""
        return self.times if self.weights is None else self.weights

    @property
    def weight_sums(self) -> WeightSums | None:
        """Facts of the weights behind each entry, of which most stand for one sample; None without weights."""
        weights = self.weights
        if weights is None or (self.tally is not None and self.tally.weights is not None):
            return None if self.tally is None else self.tally.weights
        used = weights > 0
        ends = np.where(used, weights, np.nan)
        return WeightSums(weights * weights, used.astype(np.int64), ends, ends)

    @property
    def common_weight(self) -> float | None:
        """Weight of each, where all weigh the same and more than nothing; None without weights."""
        sums = self.weight_sums
        if sums is None or not self.size or (sums.used < (1 if self.times is None else self.times)).any():
            return None
        weight = float(sums.lightest[0])
        return weight if (sums.lightest == weight).all() and (sums.heaviest == weight).all() else None

    @property
    def labels(self) -> "Samples | None":
        """The columns that pair runs, and those of the design; None where nothing but classes is known."""
        if self.ids is None and self.weights is None and self.groups is None:
            return None
        return Samples(self.truth, self.predicted, None, self.ids, self.weights, groups=self.groups)

    def taken(self, places: NDArray[np.intp]) -> "Samples":
        """Return some of them; of folds none is left."""

        def of(column: NDArray[Any] | None) -> Any:
            return None if column is None else column[places]

        return Samples(
            truth=self.truth[places],
            predicted=self.predicted[places],
            outputs=of(self.outputs),
            ids=of(self.ids),
            weights=of(self.weights),
            groups=of(self.groups),
            tally=None if self.tally is None else self.tally.taken(places),
            attributes=None if self.attributes is None else self.attributes.taken(places),
        )


def in_order(samples: Samples, places: NDArray[np.intp]) -> Samples:
    """Return the samples with each class at its place (K)."""
    outputs = samples.outputs
    if outputs is not None and outputs.ndim == 2:
        # Column p of the result is the class that stands there.
        outputs = outputs[:, np.argsort(places)]
    return replace(samples, truth=places[samples.truth], predicted=places[samples.predicted], outputs=outputs)


def joined(folds: Sequence[Samples]) -> Samples:
    """Samples of folds as one. Ids that come again in other folds name no single sample any more: where samples are in
    no groups they are those of one id. Groups of one name are one group, whatever folds they are in.
    """
    weights = None
    if any(fold.weights is not None for fold in folds):
        weights = np.concatenate([np.ones(fold.size) if fold.weights is None else fold.weights for fold in folds])
    outputs = [fold.outputs for fold in folds if fold.outputs is not None]
    ids, groups = one_column([fold.ids for fold in folds]), one_column([fold.groups for fold in folds])
    if ids is not None and len(np.unique(ids)) < len(ids):
        ids, groups = None, ids if groups is None else groups
    return Samples(
        truth=np.concatenate([fold.truth for fold in folds]),
        predicted=np.concatenate([fold.predicted for fold in folds]),
        outputs=np.concatenate(outputs) if len(outputs) == len(folds) else None,
        ids=ids,
        weights=weights,
        fold_sizes=tuple(fold.size for fold in folds),
        groups=groups,
        attributes=joined_attributes([fold.attributes for fold in folds]),
    )


def times_seen(ids: Sequence[NDArray[Any] | None]) -> int | None:
    """Return the number of folds that every sample is in, by their ids; None if it differs, or they have none."""
    together = one_column(ids)
    counts = np.unique(together, return_counts=True)[1] if together is not None else np.zeros(0)
    return int(counts[0]) if counts.size and (counts == counts[0]).all() else None


def one_column(columns: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Return columns of ids one after another, as texts unless all are integers; None where one is not there."""
    present = [column for column in columns if column is not None]
    if len(present) < len(columns):
        return None
    whole = all(column.dtype.kind == "i" for column in present)
    return np.concatenate(present if whole else [column.astype(np.str_) for column in present])
