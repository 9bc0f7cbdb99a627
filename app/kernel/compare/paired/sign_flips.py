"""The distribution of a sum whose terms take either sign by a fair coin: what swaps of two runs leave possible."""

import math

import numpy as np

from app.kernel.numerics.arrays import Array
from app.kernel.numerics.special import fair_binomial_mass, normal_cdf

# With up to so many outcomes all of them are looked at.
_MOST_OUTCOMES = 1 << 14
# Relative to the largest sum, outcomes that are closer are equal, reached by other additions.
_TIE = 1e-9
# Beyond so many deviations the inversion has no digits left. The normal tail stands in, which is at most 3.2 times too
# small for any such sum (Bentkus & Dzindzalieta 2015).
_FAR = 5.5
# Steps in the frequency, of a sum with variance 1: images of the distribution then stand 16 deviations away.
_STEP = 2.0 * math.pi / 16.0
# Terms with a smaller share of the variance are many, and together as good as normal: their first two cumulants do.
_SMALL = 1e-4
_MOST_TERMS = 512
# Frequencies times terms, and frequencies looked at in one go.
_MOST_FACTORS = 1 << 18
_AT_ONCE = 128
# A characteristic function that stays below this for half a batch has died down.
_NOTHING = 1e-12
# How the sum over the frequencies is ended: by exp(-(w / end)^6), which leaves the first five cumulants as they are.
_END = 6
# Parts of the last frequency where that is: what is cut off is below 1e-9.
_FADING = 0.6


def upper_mid_p(statistic: float, sizes: Array, counts: Array) -> float:
    """P(S > s) + P(S = s) / 2 of S = sum over j of a_j (2 X_j - m_j), X_j binomial with m_j fair trials.

    The one-sided mid-p of a sign-flip test; for equal sizes it is that of McNemar's test. All outcomes are enumerated
    where they are few, else the characteristic function prod cos(a_j w)^m_j is inverted, which gives the mean of the
    distribution function from both sides (Gil-Pelaez 1951; on a grid of frequencies Davies 1973).

    Args:
        statistic: s.
        sizes: a (J), positive.
        counts: m (J), whole numbers.

    Returns:
        The probability; 1/2 without any term.
    """
    deviation = math.sqrt(float(counts @ sizes**2))
    if deviation == 0.0:
        return 0.5
    place = abs(statistic) / deviation
    if float(np.log2(counts + 1.0).sum()) <= math.log2(_MOST_OUTCOMES):
        tail = _enumerated(abs(statistic), sizes, counts)
    elif place > _FAR:
        tail = float(normal_cdf(-place))
    else:
        tail = _inverted(place, sizes / deviation, counts)
    return tail if statistic > 0 else 1.0 - tail


def _enumerated(statistic: float, sizes: Array, counts: Array) -> float:
    sums, chances = np.zeros(1), np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        up = np.arange(count + 1.0)
        sums = (sums[:, None] + size * (2.0 * up - count)).ravel()
        chances = (chances[:, None] * fair_binomial_mass(up, count)).ravel()
    away = sums - statistic
    tie = np.abs(away) <= _TIE * float(counts @ sizes)
    return float(chances[(away > 0) & ~tie].sum() + 0.5 * chances[tie].sum())


def _inverted(place: float, sizes: Array, counts: Array) -> float:
    """The same for a sum with variance 1, ties and gaps below about a hundredth of its deviation blurred."""
    order = np.argsort(-sizes, kind="stable")
    sizes, counts = sizes[order], counts[order]
    kept = min(int(np.count_nonzero(sizes**2 >= _SMALL)), _MOST_TERMS)
    rest_square = float(counts[kept:] @ sizes[kept:] ** 2)
    rest_fourth = float(counts[kept:] @ sizes[kept:] ** 4)
    sizes, counts = sizes[:kept], counts[:kept]
    odd = counts % 2.0
    steps = _MOST_FACTORS // max(kept, 64)
    end = _FADING * steps * _STEP
    tail = 0.5
    for start in range(0, steps, _AT_ONCE):
        halves = np.arange(start, start + _AT_ONCE) + 0.5
        frequency = _STEP * halves
        square = frequency * frequency
        cosines = np.cos(frequency[:, None] * sizes)
        # log cos(x) = -x^2/2 - x^4/12 - ...
        exponent = np.log(np.maximum(np.abs(cosines), 1e-300)) @ counts - rest_fourth * square * square / 12.0
        exponent -= rest_square * square / 2.0 + (frequency / end) ** _END
        negative = ((cosines < 0) @ odd) % 2.0
        found = np.exp(exponent) * (1.0 - 2.0 * negative)
        tail -= float((np.sin(frequency * place) / halves) @ found) / math.pi
        if np.abs(found[_AT_ONCE // 2 :]).max() < _NOTHING:
            break
    # A tail below the rest of the sum is the normal one as well.
    return tail if tail > 1e-8 else float(normal_cdf(-place))
