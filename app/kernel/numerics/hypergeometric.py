"""Tails of the hypergeometric distribution: of so many events among all, how many fall into a part of them."""

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.scipy_bridge import log_factorial

# Relative to the sum so far, terms below this add nothing.
_NOTHING = 1e-17


def _mass(events: Array, size: Array, all_events: Array, total: Array) -> Array:
    """P(X = events), 0 where that many cannot be."""
    others = total - all_events
    possible = (events >= 0) & (events <= np.minimum(size, all_events)) & (size - events <= others)
    x = np.where(possible, events, np.maximum(size - others, 0.0))
    logarithm = (
        log_factorial(all_events)
        - log_factorial(x)
        - log_factorial(all_events - x)
        + log_factorial(others)
        - log_factorial(size - x)
        - log_factorial(others - size + x)
        - log_factorial(total)
        + log_factorial(size)
        + log_factorial(total - size)
    )
    return np.where(possible, np.exp(logarithm), 0.0)


def _tail(events: Array, size: Array, all_events: Array, total: Array) -> Array:
    """P(X >= events), for events at or above the mode, from which on every term is smaller than the last."""
    found = _mass(events, size, all_events, total)
    places: NDArray[np.intp] = np.flatnonzero(found > 0)
    x, m, k, n = (part[places] for part in (events, size, all_events, total))
    term = found[places]
    while places.size:
        term = term * (k - x) * (m - x) / ((x + 1.0) * (n - k - m + x + 1.0))
        found[places] += term
        going = term > _NOTHING * found[places]
        places = places[going]
        x, m, k, n, term = (part[going] for part in (x + 1.0, m, k, n, term))
    return found


def hypergeometric_tails(events: Array, size: Array, all_events: Array, total: Array) -> tuple[Array, Array]:
    """P(X >= events) and P(X = events) elementwise, X the events in a part of so many, drawn without replacement.

    Whole numbers throughout; arguments are broadcast.

    Args:
        events: In the part.
        size: Of the part.
        all_events: In all.
        total: Number of all.
    """
    parts = np.broadcast_arrays(*(np.asarray(part, dtype=np.float64) for part in (events, size, all_events, total)))
    x, m, k, n = (part.ravel() for part in parts)
    mass = _mass(x, m, k, n)
    # Below the mean the other tail is summed: that of the samples that are no events.
    low = x * n < m * k
    tail = np.empty(x.size)
    tail[~low] = _tail(x[~low], m[~low], k[~low], n[~low])
    tail[low] = 1.0 - _tail(m[low] - x[low] + 1.0, m[low], n[low] - k[low], n[low])
    return np.minimum(tail, 1.0).reshape(parts[0].shape), mass.reshape(parts[0].shape)


def hypergeometric_mid_p(events: Array, size: Array, other_events: Array, other_size: Array) -> Array:
    """Two-sided mid-p (...) that two parts have one rate, given all events: twice the smaller tail, at most 1.

    NaN where one of the parts is empty.
    """
    total, both = size + other_size, events + other_events
    above, mass = hypergeometric_tails(events, size, both, total)
    # Events of the other part are exchanged with those of this one: the lower tail keeps its digits.
    below, _ = hypergeometric_tails(other_events, other_size, both, total)
    with silently():
        found = np.minimum(2.0 * (np.minimum(above, below) - mass / 2.0), 1.0)
    return np.where((size > 0) & (other_size > 0), found, np.nan)
