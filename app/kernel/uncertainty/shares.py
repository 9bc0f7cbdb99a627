"""Limits of class shares that were estimated from samples without labels.

Where shares come near 0 neither normal limits nor resampling hold, so limits are those of the likelihood ratio along
the least favourable line through the estimate (Stein 1956; Murphy & van der Vaart 2000).
"""

from collections.abc import Callable

import numpy as np

from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.scipy_bridge import root_between
from app.kernel.uncertainty.intervals import two_sided_z, wilson

# A share below this is taken for 0, where the likelihood is highest or beyond.
_ABSENT = 1e-6
# Of a share.
_TOLERANCE = 1e-10
_STEPS = 100


def likelihood_limits(
    ratios: Array, shares: Array, level: float, *, counts: Array | None = None
) -> tuple[Array, Array]:
    """Limits (K), (K) of every share, the largest and smallest that the likelihood ratio does not reject.

    Args:
        ratios: (N, K) of each item, how likely it is in each class, up to a factor of the item.
        shares: (K) where the likelihood of the mixture is highest.
        level: Of each interval.
        counts: (N) how often each item occurs; once if not given.
    """
    if counts is not None:
        # What does not occur may be impossible, and says nothing.
        ratios, counts = ratios[counts > 0], counts[counts > 0]
    likelihood, reach = _Likelihood(ratios, shares, counts), two_sided_z(level)
    ends = [[likelihood.limit(code, end, reach) for code in range(shares.size)] for end in (0.0, 1.0)]
    return np.array(ends[0]), np.array(ends[1])


def moves_by_old(
    probabilities: Array, shares: Array, old: Array, code: int, labelled: tuple[float, float], level: float
) -> tuple[float, float]:
    """Moves of the share of one class, at most and at least 0, as its old share goes to its Wilson limits.

    MOVER adds them by squares (Zou & Donner 2008). Derivatives do not do where shares come near 0. Other old shares
    keep their proportions.

    Args:
        probabilities: (N, K) of the items, calibrated to the old shares.
        shares: (K) where the likelihood is highest.
        old: (K) as they were counted.
        code: The class.
        labelled: Labelled samples of the class, and of all classes that were counted.
        level: Of the interval.
    """
    hits, total = labelled
    moves = []
    for moved in map(float, wilson(np.asarray(hits), np.asarray(total), level)):
        factors = np.full(old.size, (total - total * moved) / (total - hits))
        factors[code] = total * moved / hits
        ratios = probabilities * (old @ factors) / (old * factors)
        moves.append(float((_highest(ratios, np.maximum(shares, _ABSENT)) - shares)[code]))
    return min(*moves, 0.0), max(*moves, 0.0)


def _highest(ratios: Array, start: Array) -> Array:
    """Shares (K) where the likelihood of a mixture is highest: Newton's steps within the shares, or one of EM."""
    shares: Array = start / start.sum()
    highest = -np.inf
    for _ in range(_STEPS):
        mass = ratios @ shares
        scaled = ratios / mass[:, None]
        slope, height = scaled.mean(axis=0), float(np.log(mass).mean())
        if height <= highest + _TOLERANCE * abs(highest):
            break
        highest = height
        inside = np.flatnonzero(shares > _ABSENT)
        system = np.ones((inside.size + 1, inside.size + 1))
        system[:-1, :-1], system[-1, -1] = (scaled[:, inside].T @ scaled[:, inside]) / len(ratios), 0.0
        step = np.zeros(shares.size)
        step[inside] = np.linalg.lstsq(system, np.append(slope[inside] - 1.0, 0.0))[0][:-1]
        newton = np.maximum(shares + step, 0.0)
        newton /= newton.sum()
        with silently():
            better = float(np.log(ratios @ newton).mean()) > height
        shares = newton if better else np.multiply(shares, slope)
    return shares


def spread_by_old(ratios: Array, shares: Array, old: Array, covariance: Array) -> Array:
    """Standard deviations (K) that uncertain old shares leave in shares estimated from probabilities.

    The implicit function theorem at the highest likelihood; a share of 0 stays 0.

    Args:
        ratios: (N, K) probabilities over the old shares.
        shares: (K) where the likelihood is highest.
        old: (K) that the probabilities are calibrated to.
        covariance: (K, K) of the old shares.
    """
    likelihood, present = _Likelihood(ratios, shares, None), np.flatnonzero(shares > _ABSENT)
    response = np.diag(shares / old)
    inverse = np.linalg.pinv(likelihood.information[np.ix_(present, present)])
    response[np.ix_(present, present)] -= len(ratios) * inverse / old[present]
    response[shares <= _ABSENT] = 0.0
    deviations: Array = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", response, covariance, response), 0.0))
    return deviations


class _Likelihood:
    """Log likelihood of the shares of a mixture, relative to its maximum."""

    def __init__(self, ratios: Array, shares: Array, counts: Array | None) -> None:
        self._ratios, self._shares = ratios, shares
        self._counts = np.ones(len(ratios)) if counts is None else counts
        mass = ratios @ shares
        self._highest = np.log(mass)
        scaled = ratios / mass[:, None]
        self.information: Array = (scaled * self._counts[:, None]).T @ scaled

    def signed_root(self, shares: Array) -> float:
        """Root of twice the fall of the log likelihood; about normal where the shares are right."""
        with silently():
            fall = float(self._counts @ (self._highest - np.log(self._ratios @ shares)))
        return float(np.sqrt(2.0 * max(fall, 0.0)))

    def limit(self, code: int, end: float, reach: float) -> float:
        """Share of a class towards an end, 0 or 1, where the signed root is so large; the end if it is nowhere."""
        line, found = self.line(code), float(self._shares[code])

        def excess(share: float) -> float:
            return self.signed_root(line(share)) - reach

        if excess(end) <= 0.0:
            return end
        # Of a level so small that rounding alone is beyond it, it is the share itself.
        return found if excess(found) >= 0.0 else root_between(excess, found, end)

    def line(self, code: int) -> Callable[[float], Array]:
        """Shares by the share of one class: the others follow so that the likelihood falls least, and stay shares."""
        others = np.flatnonzero(self._shares > _ABSENT)
        others = others[others != code]
        if not others.size:
            # Nobody is known to give way: all others alike.
            others = np.delete(np.arange(self._shares.size), code)
        system = np.ones((others.size + 1, others.size + 1))
        system[:-1, :-1], system[-1, -1] = self.information[np.ix_(others, others)], 0.0
        wanted = np.append(-self.information[others, code], -1.0)
        step = np.zeros(self._shares.size)
        step[others] = np.linalg.lstsq(system, wanted)[0][:-1]

        def shares_at(share: float) -> Array:
            moved: Array = np.maximum(self._shares + (share - self._shares[code]) * step, 0.0)
            moved[code] = 0.0
            if not moved.sum() > 0:
                moved[others] = 1.0
            moved *= (1.0 - share) / moved.sum()
            moved[code] = share
            return moved

        return shares_at
