"""Models compared over several data sets or cross-validation folds: rank tests, corrected t tests, Bayesian
counterparts.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from app.kernel.compare.differences import StudentDifferences
from app.kernel.compare.rankings import mean_ranks
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.scipy_bridge import chi_squared_upper_tail, f_upper_tail, normal_cdf
from app.kernel.uncertainty.intervals import range_quantile

# Fewer data sets are refused; up to the second number the approximations are poor.
FEWEST = 5
FEW = 10


def average_ranks(scores: Array) -> Array:
    """Mean rank of each model, 1 is best, ties shared: (k)."""
    ranks: Array = mean_ranks(-scores).mean(axis=0)
    return ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class ImanDavenport:
    """The F statistic made of Friedman's chi-squared, which is less cautious.

    Attributes:
        f: (N-1) chi2 / (N(k-1) - chi2); `null` where all datasets order the models alike.
        df: Degrees of freedom of the numerator and of the denominator, k-1 and (k-1)(N-1).
    """

    f: float | None
    df: tuple[int, int]
    p_value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FriedmanTest:
    """Have all models the same average rank?"""

    chi_squared: float | None
    df: int
    p_value: float | None
    iman_davenport: ImanDavenport
    tie_corrected: bool


def friedman(scores: Array, *, tie_corrected: bool = True) -> FriedmanTest:
    """Friedman (1937), Iman & Davenport (1980), from scores (N, k) without NaN.

    ``tie_corrected``: the statistic is divided by 1 - sum(t^3 - t)/(N(k^3 - k)), as libraries do; Demsar (2006) does
    not.
    """
    count, models = scores.shape
    ranks = mean_ranks(-scores)
    statistic = 12.0 * count / (models * (models + 1.0)) * float(((ranks.mean(axis=0) - (models + 1) / 2.0) ** 2).sum())
    if tie_corrected:
        # Squared ranks lose (t^3 - t)/12 for every t that are tied.
        lost = models * (models + 1.0) * (2.0 * models + 1.0) / 6.0 - (ranks**2).sum(axis=1)
        left = 1.0 - 12.0 * float(lost.sum()) / (count * models * (models**2 - 1.0))
        statistic = statistic / left if left > 1e-12 else 0.0
    freedom = models - 1
    both, rest = (freedom, freedom * (count - 1)), count * freedom - statistic
    f = (count - 1) * statistic / rest if rest > 1e-9 else math.inf
    return FriedmanTest(
        chi_squared=statistic,
        df=freedom,
        p_value=float(chi_squared_upper_tail(statistic, freedom)),
        iman_davenport=ImanDavenport(f=f, df=both, p_value=float(f_upper_tail(f, *both))),
        tie_corrected=tie_corrected,
    )


def critical_difference(models: int, datasets: int, alpha: float = 0.05) -> float:
    """Nemenyi's: average ranks farther apart differ. q/sqrt(2) sqrt(k(k+1)/(6N)), q of the studentised range. Demsar
    (2006).

    For the classical diagram only: whether two models differ depends here on which others are in the pool (Benavoli,
    Corani & Mangili 2016).
    """
    spread = math.sqrt(models * (models + 1.0) / (6.0 * datasets))
    return range_quantile(models, 1.0 - alpha) / math.sqrt(2.0) * spread


def rank_z(ranks: Array, datasets: int, control: int) -> tuple[Array, Array]:
    """Z and two-sided p (k) of the difference of average ranks to a control model; NaN for itself.

    Demsar (2006), section 3.2.2.
    """
    models = ranks.size
    z = (ranks - ranks[control]) / np.sqrt(models * (models + 1.0) / (6.0 * datasets))
    z[control] = np.nan
    return z, 2.0 * normal_cdf(-np.abs(z))


def cliques(indistinct: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """Maximal groups of at least two models of which no two differ, from a symmetric (k, k) matrix of pairs that do
    not differ.

    Under Nemenyi they are runs of neighbouring ranks; under pairwise tests they need not be. Bron & Kerbosch (1973).
    """
    size = indistinct.shape[0]
    neighbours = [{j for j in range(size) if j != i and indistinct[i, j]} for i in range(size)]
    found: list[tuple[int, ...]] = []

    def extend(group: set[int], candidates: set[int], seen: set[int]) -> None:
        if not candidates and not seen:
            if len(group) > 1:
                found.append(tuple(sorted(group)))
            return
        pivot = max(candidates | seen, key=lambda model: len(neighbours[model] & candidates))
        for model in sorted(candidates - neighbours[pivot]):
            extend(group | {model}, candidates & neighbours[model], seen & neighbours[model])
            candidates = candidates - {model}
            seen = seen | {model}

    extend(set(), set(range(size)), set())
    return sorted(found)


# Equal differences keep a spread of this size, relative, from rounding.
_ROUNDING = 1e-12


def over_folds(differences: Array, test_share: float) -> StudentDifferences:
    """The mean difference over folds with a variance corrected for overlapping training sets.

    Its error is the root of (1/J + n_test/n_train) s^2, with J - 1 degrees of freedom, for J folds of any number of
    repetitions. Nadeau & Bengio (2003); read as a posterior it is that of Corani & Benavoli (2015), whose rho is the
    test share.

    Args:
        differences: (J) score of the first model less that of the second, two or more.
        test_share: n_test / (n_test + n_train): 1/k for k folds in each repetition, however many of these there are.
    """
    deviation = float(differences.std(ddof=1))
    if deviation <= _ROUNDING * float(np.abs(differences).max()):
        deviation = 0.0
    error = math.sqrt(1.0 / differences.size + test_share / (1.0 - test_share)) * deviation
    mean, freedom = float(differences.mean()), differences.size - 1.0
    return StudentDifferences(*(np.array([one]) for one in (mean, error, freedom)))


def five_by_two_f(differences: Array) -> tuple[float, float]:
    """F statistic with (10, 5) degrees of freedom and p of the combined 5x2cv test. Alpaydin (1999).

    Unlike Dietterich's t it does not depend on the order of the folds in a repetition. Where no two folds of a
    repetition differ, p is 1 when all differences are 0, else NaN.

    Args:
        differences: (5, 2), repetition by fold.
    """
    away = differences - differences.mean(axis=1, keepdims=True)
    spread, square = float((away**2).sum()), float((differences**2).sum())
    if np.abs(away).max() <= _ROUNDING * np.abs(differences).max():
        nothing = float("nan")
        return (0.0, 1.0) if square == 0.0 else (nothing, nothing)
    statistic = square / (2.0 * spread)
    return statistic, float(f_upper_tail(statistic, 10.0, 5.0))


class ZeroRule(StrEnum):
    """Treatment of differences of 0.

    SPLIT ranks them and gives half of their ranks to either side (an odd one is dropped), as Demsar (2006) does; DROP
    leaves them out first, as Wilcoxon did.
    """

    SPLIT = "split"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class SignedRankTest:
    """Wilcoxon's signed-rank test, exact and two-sided.

    Attributes:
        statistic: T, the smaller of the two rank sums.
        p_value: Exact over all signs of the ranks at hand, ties included.
        zeros: Datasets on which both models have the same value.
    """

    statistic: float
    p_value: float
    zeros: int


def wilcoxon(differences: Array, rule: ZeroRule = ZeroRule.SPLIT) -> SignedRankTest:
    """Signed-rank test of N differences (N). Wilcoxon (1945), with the exact distribution by convolution.

    Ranks are doubled to be whole numbers, so ties are exact. The halves of the zeros stay where they are when the
    signs of the others are drawn. Without any non-zero difference p is 1.
    """
    values = np.asarray(differences, dtype=np.float64)
    zeros = int((values == 0).sum())
    kept = values[values != 0]
    if not kept.size:
        return SignedRankTest(0.0, 1.0, zeros)
    shared = 0 if rule is ZeroRule.DROP else zeros - zeros % 2
    ranks = mean_ranks(np.abs(np.concatenate([np.zeros(shared), kept])))
    half = float(ranks[:shared].sum()) / 2.0
    signed = ranks[shared:]
    positive, negative = float(signed[kept > 0].sum()) + half, float(signed[kept < 0].sum()) + half
    statistic = min(positive, negative)
    distribution = sign_distribution(np.round(2.0 * signed).astype(np.int64))
    p = 2.0 * float(distribution[: round(2.0 * (statistic - half)) + 1].sum())
    return SignedRankTest(statistic, min(p, 1.0), zeros)


def sign_distribution(ranks: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]") -> Array:
    """Probabilities of every sum of a random half of whole ranks: entry s is P(sum = s)."""
    distribution = np.zeros(int(ranks.sum()) + 1)
    distribution[0] = 1.0
    for rank in ranks:
        moved = np.zeros_like(distribution)
        moved[rank:] = distribution[: distribution.size - rank] if rank else distribution
        distribution = (distribution + moved) / 2.0
    return distribution


def bayesian_signed_rank(
    differences: Array, *, rope: float, draws: int, random: np.random.Generator
) -> tuple[Array, Array]:
    """Bayesian signed-rank test of N differences, first less second: two answers to which model is better on a new data
    set. Benavoli et al. (2014, 2017).

    Weights w ~ Dirichlet(1/2, 1, ..., 1) over a pseudo-difference of 0 and the N differences; a region's
    probability is the sum of w_i w_j over the pairs whose mean (z_i + z_j)/2 lies in it: below -rope, within, above.

    Args:
        differences: (N), in one unit: differences of different metrics have no common region of equivalence.
        rope: half width of the region of practical equivalence; with 0, means of exactly 0 are equivalent.
        draws: how many.
        random: source of the random numbers.

    Returns:
        Of second better, equivalent and first better (3) the expected probability: how likely the outcome itself is;
        and the share of the draws in which it has the most: how sure it is that this is the likeliest outcome.
    """
    values = np.concatenate([[0.0], np.asarray(differences, dtype=np.float64)])
    means = (values[:, None] + values[None, :]) / 2.0
    # Means computed from rounded scores must not fall out of the region by rounding.
    slack = 1e-12 * max(float(np.abs(values).max()), 1e-300)
    above, below = (means > rope + slack).astype(np.float64), (means < -rope - slack).astype(np.float64)
    weights = random.dirichlet([0.5] + [1.0] * (values.size - 1), size=draws)
    first = ((weights @ above) * weights).sum(axis=1)
    second = ((weights @ below) * weights).sum(axis=1)
    masses = np.column_stack([second, 1.0 - first - second, first])
    top = masses >= masses.max(axis=1, keepdims=True) - 1e-12
    wins = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
    return masses.mean(axis=0), wins
