"""Limits of sums and maxima of absolute values, such as calibration errors over bins.

Noise makes gaps larger, so the value found lies above the truth; by how much depends on the truth, and resamples have
the noise twice. Here the gaps found are scaled up and down: a limit is where the value found becomes too large or too
small to come from gaps of that size and the noise of the resamples. This inverts a bootstrap test along one family of
distributions (DiCiccio & Romano 1990; Carpenter 1999).
"""

from collections.abc import Callable

import numpy as np

from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import Summary, quantile_error

# Halvings of the range in which a scale is looked for, and how often the range is doubled to hold it.
_HALVINGS, _DOUBLINGS = 24, 10


def inverted(drawn: Array, gaps: Array, level: float, *, combined: Callable[[Array], Array]) -> Summary:
    """Limits of the combined absolute gaps.

    Args:
        drawn: Gaps (D, P) in resamples.
        gaps: (P) as found.
        level: Of the interval.
        combined: From gaps (..., P) to the value (...): it grows with the size of every gap.

    Returns:
        Of one value. Where gaps are mostly noise the truth lies below the value found, which is the upper limit then.
    """
    noise, value, tail = drawn - gaps, float(combined(gaps)), (1.0 - level) / 2.0

    def at_least(scale: float) -> bool:
        return float(np.mean(combined(scale * gaps + noise) >= value)) >= tail

    def too_large(scale: float) -> bool:
        return float(np.mean(combined(scale * gaps + noise) <= value)) < tail

    low, high = _crossing(at_least) * value, max(_crossing(too_large) * value, value)
    deviation = float(combined(drawn).std(ddof=1))
    error = deviation * quantile_error(len(drawn), level)
    return Summary(*(np.array([each]) for each in (value, low, high, deviation, error, 0.0, False)))


def _crossing(turned: Callable[[float], bool]) -> float:
    """The scale from which on a condition holds, 0 where it always does."""
    if turned(0.0):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_DOUBLINGS):
        if turned(high):
            break
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if turned(middle) else (middle, high)
    return 0.5 * (low + high)
