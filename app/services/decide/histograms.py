"""Where the scores of a class lie, beside those of all other classes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import DecidedBy
from app.kernel.numerics.arrays import Array
from app.services.stored import scores_of

# Between two classes the one of the higher probability is decided for.
_HALF: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histogram:
    """The scores of one class for samples of that class, and for all other samples.

    Attributes:
        edges: Of the bins, one more than there are bins.
        inside: Shares of the samples of the class, which add up to 1.
        outside: The same of all other samples.
        n_inside: How many samples the class has; a sum of weights where samples have them.
        cut: From here on the class is decided for; None where no single cut decides.
    """

    edges: Array
    inside: Array
    outside: Array
    n_inside: float
    n_outside: float
    cut: float | None
    are_probabilities: bool


def histogram_of(source: MatrixInput, place: int, bins: int) -> Histogram:
    """The histogram of the scores of a class, by its place.

    Raises:
        ValueError: there are no probabilities or scores.
    """
    scores = scores_of(source)
    values: Array = scores.probabilities[:, place]
    weights: Array = np.ones(len(values)) if scores.weights is None else scores.weights
    known = scores.are_probabilities
    ends = (0.0, 1.0) if known else (float(values.min()), float(values.max()))
    edges = np.histogram_bin_edges(values, bins, ends)
    belongs = scores.y == place
    totals = [float(weights[one].sum()) for one in (belongs, ~belongs)]
    inside, outside = (
        np.histogram(values[one], edges, weights=weights[one])[0] / (total or 1.0)
        for one, total in zip((belongs, ~belongs), totals, strict=True)
    )
    return Histogram(
        edges=edges,
        inside=inside,
        outside=outside,
        n_inside=totals[0],
        n_outside=totals[1],
        cut=_cut(source, place, are_probabilities=known),
        are_probabilities=known,
    )


def _cut(source: MatrixInput, place: int, *, are_probabilities: bool) -> float | None:
    """The threshold as it lies on the scores of this class; argmax of two probabilities is a threshold of a half."""
    facts: Mapping[str, Any] = source.facts
    threshold = facts.get("threshold")
    if len(source.labels) != 2:
        return None
    if threshold is None and are_probabilities and facts.get("rule") == DecidedBy.ARGMAX:
        return _HALF
    if not isinstance(threshold, int | float):
        return None
    if place == (1 if source.positive is None else source.positive):
        return float(threshold)
    return 1.0 - threshold if are_probabilities else -float(threshold)
