"""Two runs on the same samples: does what they predict of a class come true equally often?

The value is a share of what a run predicts, and the runs do not predict the class for the same samples, so McNemar's
test does not apply. Everything is elementwise: one entry per class.
"""

from dataclasses import dataclass

import numpy as np

from app.kernel.compare.paired.joint import JointCounts
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.special import chi_squared_upper_tail
from app.kernel.uncertainty.intervals import two_sided_z


@dataclass(frozen=True, slots=True, eq=False)
class PredictiveCounts:
    """Samples (...) that the first run only, the second only, or both put among the predicted ones, by whether that
    is right.
    """

    first_right: Array
    first_wrong: Array
    second_right: Array
    second_wrong: Array
    both_right: Array
    both_wrong: Array

    @classmethod
    def of(cls, joint: JointCounts, *, squares: bool = False) -> "PredictiveCounts":
        """Of the predictions of each class (K) by two runs; what samples weigh, or sums of their squared weights."""
        masses = joint.masses if not squares or joint.weights is None else joint.masses * joint.weights
        (first, second), (first_right, second_right) = joint.predictions, joint.correct()
        same = first == second
        wanted = (
            (first, ~same & first_right),
            (first, ~same & ~first_right),
            (second, ~same & second_right),
            (second, ~same & ~second_right),
            (first, same & first_right),
            (first, same & ~first_right),
        )
        size = joint.n_classes
        return cls(
            *(
                np.bincount(classes[some], weights=masses[some], minlength=size).astype(np.float64)
                for classes, some in wanted
            )
        )

    def of_absence(self, actual: Array) -> "PredictiveCounts":
        """The same of predictions that a sample is not of the class, which has so many samples (...) of all in the
        last axis.
        """
        rest = actual.sum(axis=-1, keepdims=True) - actual
        return PredictiveCounts(
            first_right=self.second_wrong,
            first_wrong=self.second_right,
            second_right=self.first_wrong,
            second_wrong=self.first_right,
            both_right=rest - self.first_wrong - self.second_wrong - self.both_wrong,
            both_wrong=actual - self.first_right - self.second_right - self.both_right,
        )


@dataclass(frozen=True, slots=True, eq=False)
class PredictiveValues:
    """Predictive values of two runs with the statistics that they are equal, each chi-squared with one degree of
    freedom; NaN where a run predicts nothing of the kind.

    Attributes:
        first: (...).
        second: (...).
        score: (...) generalised score statistic. Leisenring, Alonzo & Pepe (2000), as written by Kosinski (2013).
        weighted_score: (...) the weighted one, which is the score statistic of two shares where no sample is predicted
            by both runs; NaN where samples have weights. Kosinski (2013).
        log_ratio: (...) log of first over second, NaN where one of them is 0.
        log_ratio_variance: (...) of it. Moskowitz & Pepe (2006).
    """

    first: Array
    second: Array
    score: Array
    weighted_score: Array
    log_ratio: Array
    log_ratio_variance: Array

    @property
    def relative(self) -> Array:
        """Wald statistic (...) of the ratio on its logarithm. Moskowitz & Pepe (2006)."""
        return _quotient(self.log_ratio**2, self.log_ratio_variance)

    def ratio_limits(self, level: float) -> tuple[Array, Array]:
        """Limits (...) of first over second."""
        reach = two_sided_z(level) * np.sqrt(self.log_ratio_variance)
        return np.exp(self.log_ratio - reach), np.exp(self.log_ratio + reach)


def p_of(statistic: Array) -> Array:
    """P (...) of a statistic (...) with one degree of freedom, NaN of NaN."""
    return np.asarray(chi_squared_upper_tail(statistic, 1.0))


def predictive_values(counts: PredictiveCounts, squares: PredictiveCounts | None = None) -> PredictiveValues:
    """Compare them; of samples with weights by the ``squares`` of these.

    With n the numbers of predictions, v the values, w = n_2 / (n_1 + n_2), p the value of all predictions together, D
    whether one is right and z = (n_1 n_2 / (n_1 + n_2)) (v_1 - v_2), the generalised score statistic is z^2 over the
    sum over the samples of ((sum of w or w - 1 over its predictions) (D - p))^2; the weighted one is (v_1 - v_2)^2 over
    (1/n_1 + 1/n_2) times the mean over all predictions of (D - p)^2 where one run only predicts, else 0.
    """
    c, s = counts, counts if squares is None else squares
    with silently():
        right = c.first_right + c.both_right, c.second_right + c.both_right
        n = right[0] + c.first_wrong + c.both_wrong, right[1] + c.second_wrong + c.both_wrong
        total = n[0] + n[1]
        first, second = right[0] / n[0], right[1] / n[1]
        hit = (right[0] + right[1]) / total
        miss = 1.0 - hit
        alone = (
            s.first_right * miss**2 + s.first_wrong * hit**2,
            s.second_right * miss**2 + s.second_wrong * hit**2,
        )
        together = s.both_right * miss**2 + s.both_wrong * hit**2
        share = n[1] / total
        gap = first - second
        moved = (n[0] * n[1] / total * gap) ** 2
        spread = share**2 * alone[0] + (1.0 - share) ** 2 * alone[1] + (2.0 * share - 1.0) ** 2 * together
        mean = (alone[0] + alone[1]) / total * (1.0 / n[0] + 1.0 / n[1])
        positive = (first > 0) & (second > 0)
        log_ratio = np.where(positive, np.log(first / second), np.nan)
        return PredictiveValues(
            first=first,
            second=second,
            score=_quotient(moved, spread),
            weighted_score=_quotient(gap**2, mean) if squares is None else np.full(gap.shape, np.nan),
            log_ratio=log_ratio,
            log_ratio_variance=np.where(positive, _log_ratio_variance(s, n, (first, second)), np.nan),
        )


def _log_ratio_variance(c: PredictiveCounts, n: tuple[Array, Array], values: tuple[Array, Array]) -> Array:
    """Sum of squares of what each sample adds to the difference of the logarithms, to first order."""
    hits = tuple((1.0 - value) / (size * value) for value, size in zip(values, n, strict=True))
    misses = tuple(1.0 / size for size in n)
    return (
        c.first_right * hits[0] ** 2
        + c.first_wrong * misses[0] ** 2
        + c.second_right * hits[1] ** 2
        + c.second_wrong * misses[1] ** 2
        + c.both_right * (hits[0] - hits[1]) ** 2
        + c.both_wrong * (misses[0] - misses[1]) ** 2
    )


def _quotient(square: Array, variance: Array) -> Array:
    """A statistic; 0 where nothing differs and nothing varies."""
    with silently():
        return np.where((square == 0.0) & (variance == 0.0), 0.0, square / variance)
