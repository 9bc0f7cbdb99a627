"""Two models on N data sets by signed ranks: Wilcoxon's exact test and its Bayesian counterpart."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from app.kernel.compare.many.rankings import mean_ranks
from app.kernel.numerics.arrays import Array


class ZeroRule(StrEnum):
    """What happens to differences of 0.

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
        p: Exact over all signs of the ranks at hand, ties included.
        zeros: How many differences were 0.
    """

    statistic: float
    p: float
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


@dataclass(frozen=True, slots=True)
class BayesianSignedRank:
    """Two answers to which of two models is better on a new data set. Each is (second better, equivalent, first
    better).

    Attributes:
        win: Share of the draws in which the region holds the most probability: how sure it is that this is the
            likeliest outcome.
        mass: Expected probability of the region: how likely the outcome itself is.
    """

    win: tuple[float, float, float]
    mass: tuple[float, float, float]


def bayesian_signed_rank(
    differences: Array, *, rope: float, draws: int, random: np.random.Generator, prior_weight: float = 0.5
) -> BayesianSignedRank:
    """Bayesian signed-rank test of N differences, first less second. Benavoli et al. (2014, 2017).

    Weights w ~ Dirichlet(prior_weight, 1, ..., 1) over a pseudo-difference of 0 and the N differences; a region's
    probability is the sum of w_i w_j over the pairs whose mean (z_i + z_j)/2 lies in it: below -rope, within, above.

    Args:
        differences: (N), in one unit: differences of different metrics have no common region of equivalence.
        rope: half width of the region of practical equivalence; with 0, means of exactly 0 are equivalent.
        draws: how many.
        random: source of the random numbers.
        prior_weight: weight of the pseudo-difference.
    """
    values = np.concatenate([[0.0], np.asarray(differences, dtype=np.float64)])
    means = (values[:, None] + values[None, :]) / 2.0
    # Means computed from rounded scores must not fall out of the region by rounding.
    slack = 1e-12 * max(float(np.abs(values).max()), 1e-300)
    above, below = (means > rope + slack).astype(np.float64), (means < -rope - slack).astype(np.float64)
    weights = random.dirichlet([prior_weight] + [1.0] * (values.size - 1), size=draws)
    first = ((weights @ above) * weights).sum(axis=1)
    second = ((weights @ below) * weights).sum(axis=1)
    masses = np.column_stack([second, 1.0 - first - second, first])
    top = masses >= masses.max(axis=1, keepdims=True) - 1e-12
    wins = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
    left, middle, right = masses.mean(axis=0)
    return BayesianSignedRank(
        (float(wins[0]), float(wins[1]), float(wins[2])), (float(left), float(middle), float(right))
    )
