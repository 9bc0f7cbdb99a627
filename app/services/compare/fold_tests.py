"""Runs that were cross-validated on the same folds: tests that know that the folds share training data."""

from collections.abc import Sequence

import numpy as np

from app.domain.evaluation import EvaluationRecord
from app.kernel.compare.folds import bayesian_correlated_t, corrected_t
from app.kernel.numerics.arrays import Array
from app.services.estimands import Better, Preference
from app.services.json_values import Json, plain
from app.services.runs.contest import Contest


def fold_values(records: Sequence[EvaluationRecord], contest: Contest) -> list[Array] | None:
    """Values (R, F, V) of every estimand on every fold; None unless all runs have the same folds.

    Folds are the same when they are as many and have the same class counts, in the same order of classes.
    """
    folds = [record.fold_counts for record in records if record.fold_counts is not None]
    if len(folds) < len(records) or any(record.labels != records[0].labels for record in records):
        return None
    sums = [fold.sum(axis=2) for fold in folds]
    if any(one.shape != sums[0].shape or (one != sums[0]).any() for one in sums) or len(sums[0]) < 2:
        return None
    return contest.on_folds(np.stack(folds).astype(np.float64))


def fold_test(first: Array, second: Array, better: Preference | None, *, level: float, rope: float) -> Json | None:
    """Corrected t and its Bayesian counterpart from values (F) of two runs; None where a fold has no value.

    The test share is that of F folds, 1/F.
    """
    gaps = first - second
    if not np.isfinite(gaps).all():
        return None
    share = 1.0 / gaps.size
    found = corrected_t(gaps, share, level)
    scores = -gaps if better is not None and better.better is Better.LOWER else gaps
    second_better, equivalent, first_better = bayesian_correlated_t(scores, share, rope)
    return {
        "mean_difference": plain(found.mean),
        "low": plain(found.low),
        "high": plain(found.high),
        "statistic": plain(found.statistic),
        "df": found.freedom,
        "p_value": plain(found.p),
        "probability_a_better": plain(first_better),
        "probability_equivalent": plain(equivalent),
        "probability_b_better": plain(second_better),
        "method": "corrected_resampled_t, bayesian_correlated_t",
    }
