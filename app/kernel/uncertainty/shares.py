"""How sure class shares are that were estimated from samples without labels.

Where shares come near 0 neither normal limits nor resampling hold, so limits are those of the likelihood ratio along
the least favourable line through the estimate (Stein 1956; Murphy & van der Vaart 2000).
"""

from collections.abc import Callable

import numpy as np

from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.intervals import two_sided_z

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
    likelihood = _Likelihood(ratios, shares, counts)
    low, high = np.zeros(shares.size), np.ones(shares.size)
    for code, share in enumerate(shares.tolist()):
        line = likelihood.line(code)

        def excess(moved: float, line: Callable[[float], Array] = line) -> float:
            return likelihood.signed_root(line(moved)) - two_sided_z(level)

        low[code], high[code] = _crossing(excess, share, 0.0), _crossing(excess, share, 1.0)
    return low, high


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
    """Of shares in a mixture, beside its highest value."""

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


def _crossing(excess: Callable[[float], float], inside: float, end: float) -> float:
    """Where a rising curve that is negative inside becomes positive on the way to the end, or the end."""
    outside, above = end, excess(end)
    if above <= 0.0:
        return end
    below = excess(inside)
    if below >= 0.0:
        # Of a level so small that rounding alone is beyond it.
        return inside
    for step in range(_STEPS):
        if abs(outside - inside) <= _TOLERANCE:
            break
        # The curve is nearly straight; every third step halves, so that a bend costs no more than a bisection.
        part = -below / (above - below) if step % 3 and np.isfinite(above) else 0.5
        middle = inside + part * (outside - inside)
        found = excess(middle)
        if found <= 0.0:
            inside, below = middle, found
        else:
            outside, above = middle, found
    return 0.5 * (inside + outside)
