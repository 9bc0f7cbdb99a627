"""Reasons for which a metric of probabilities has no value, in the terms of ``Scores``."""

from collections.abc import Callable

import numpy as np

from app.kernel.metrics.card import Condition
from app.kernel.numerics.arrays import Mask
from app.kernel.samples.scores import Scores


def _where(code: str, reason: str, holds: Callable[[Scores], Mask]) -> Condition:
    return Condition(code, reason, holds)


def _overall(code: str, reason: str, holds: Callable[[Scores], Mask]) -> Condition:
    return Condition(code, reason, holds, overall=True)


NOT_PROBABILITIES = _overall(
    "not_probabilities",
    "the input holds scores that are no probabilities",
    lambda s: np.full(s.n.shape, not s.are_probabilities),
)
NO_SAMPLES = _overall("no_samples", "all samples weigh nothing", lambda s: s.n == 0)
NO_ACTUAL = _where("no_actual_samples", "class {label} has no actual samples", lambda s: s.class_weight == 0)
NO_REST = _where("no_other_samples", "every sample belongs to class {label}", lambda s: s.rest_weight == 0)
ONE_ACTUAL_CLASS = _overall(
    "one_actual_class", "all samples belong to one class", lambda s: (s.rest_weight == 0).any(axis=-1)
)
ONE_SAMPLE = _overall(
    "one_sample", "a curve over samples needs at least two of them", lambda s: np.full(s.n.shape, s.n_samples < 2)
)
WEIGHTED = _overall(
    "weighted",
    "the samples carry weights, for which the package's curve is not defined",
    lambda s: np.full(s.n.shape, s.weights is not None),
)
RULED_OUT = _where(
    "infinite",
    "a sample of class {label} was given probability 0, which without clipping costs infinitely much",
    lambda s: np.bincount(s.y[s.p_true == 0], minlength=s.n_classes) > 0,
)
