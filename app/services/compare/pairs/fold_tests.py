"""Runs that were cross-validated on the same folds: tests that know that the folds share training data."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from app.domain.findings import Finding
from app.domain.members import LEFT_OUT
from app.kernel.compare.over_datasets import bayesian_correlated_t, corrected_t, five_by_two_f
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import Alternative
from app.services.estimands import Better, Preference


@dataclass(frozen=True, slots=True, kw_only=True)
class FiveByTwo:
    """Alpaydin's (1999) combined F test, with 10 and 5 degrees of freedom; `null` where no pair of folds differs."""

    statistic: float | None
    p_value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldTest:
    """a less b over the folds.

    Attributes:
        df: Degrees of freedom of the statistic.
        probability_a_better: Probability that a is better by more than the region of equivalence.
        repeats: How often the cross-validation was repeated; null where that is not known, and 1 is assumed.
        five_by_two: Alpaydin's combined F test, of five repetitions of two folds; it has no sides.
    """

    mean_difference: float
    low: float | None
    high: float | None
    statistic: float | None
    df: int
    p_value: float | None
    probability_a_better: float
    probability_equivalent: float
    probability_b_better: float
    repeats: int | None
    five_by_two: FiveByTwo | None = field(default=None, metadata=LEFT_OUT)
    method: str = "corrected_resampled_t, bayesian_correlated_t"


def fold_test(
    first: Array,
    second: Array,
    better: Preference | None,
    *,
    repeats: int | None,
    mixed: bool,
    level: float,
    alternative: Alternative = Alternative.TWO_SIDED,
    rope: float,
) -> FoldTest | None:
    """Tests from values (F) of two runs; None where a fold has no value.

    The test share is that of the folds of one repetition, one over their number. Where the folds of repetitions are
    ``mixed`` nothing is said that has to know which belong together.
    """
    gaps = first - second
    if not np.isfinite(gaps).all():
        return None
    share = (repeats or 1) / gaps.size
    found = corrected_t(gaps, share, alternative.two_sided_level(level))
    low, high = alternative.opened(found.low, found.high, (None, None))
    scores = -gaps if better is not None and better.better is Better.LOWER else gaps
    second_better, equivalent, first_better = bayesian_correlated_t(scores, share, rope)
    combined = None
    if repeats == 5 and gaps.size == 10 and not mixed:
        statistic, p = five_by_two_f(gaps.reshape(5, 2))
        combined = FiveByTwo(statistic=statistic, p_value=p)
    return FoldTest(
        mean_difference=found.mean,
        low=low,
        high=high,
        statistic=found.statistic,
        df=found.freedom,
        p_value=alternative.one_sided(found.p, found.mean),
        probability_a_better=first_better,
        probability_equivalent=equivalent,
        probability_b_better=second_better,
        repeats=repeats,
        five_by_two=combined,
    )


def fold_findings(folds: Sequence[Array] | None, *, known: bool) -> list[Finding]:
    """What is not known of folds, whose values (R, F, V) runs are compared on."""
    if folds is None or known:
        return []
    number = folds[0].shape[1]
    return [
        Finding.warning(
            "fold_repeats_unknown",
            f"The {number} folds are taken as those of one cross-validation. If it was repeated, the tests over the "
            "folds are surer than they should be. Send `repeats` with the input, or `sample_ids`.",
            folds=number,
        )
    ]
