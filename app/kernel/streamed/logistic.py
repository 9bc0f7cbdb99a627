"""Logistic recalibration of streamed samples by Newton's method: every step is one question to the engine."""

from typing import NamedTuple

import numpy as np

from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.recalibration import expit, intercept, line, log_odds, slope_of_ends
from app.kernel.streamed.along import Along
from app.kernel.streamed.rows import Rows

# Steps become quadratically smaller: after one of this size, relative to the coefficients, what is left is rounding.
_CLOSE_ENOUGH = 1e-10
_MOST_STEPS = 30
# Relative to a likelihood, differences below this are rounding.
_ROUNDING = 1e-11


class Fit(NamedTuple):
    """The line a + b log odds.

    Attributes:
        a: NaN where there is none.
        b: Infinite where a threshold separates members and others.
        variance: Of b where it was fitted, of a otherwise, by White (HC1); NaN without a line.
        ended: Did the steps come to an end? There is no line where they did not.
        moved: The rows with their influence ``x`` on b or a, whose squares sum to the variance; None without a line.
    """

    a: float
    b: float
    variance: float
    ended: bool = True
    moved: Rows | None = None


class _Line(NamedTuple):
    """The line a + b z, z being log odds less a middle, by a spread."""

    middle: float
    spread: float
    found: Array

    @property
    def coefficients(self) -> tuple[float, float]:
        """The a and b of a + b log odds."""
        a, b = self.found.tolist()
        b /= self.spread
        return a - b * self.middle, b


def fitted(rows: Rows, curve: Along, ends: Array, clip: float, *, sloped: bool) -> Fit:
    """The most likely line, or the one with b = 1; none, and so it says, where the steps do not come to an end.

    Args:
        rows: With probabilities ``s``, members ``m`` and weights ``v``.
        curve: Their order.
        ends: Lowest and highest probability (2, 2) of others and of members.
        clip: How near to 0 and 1 probabilities are believed.
        sloped: Is b fitted?
    """
    odds = log_odds(ends, clip)
    if not curve.has_both or not np.isfinite(odds).all():
        return Fit(np.nan, np.nan, np.nan)
    if sloped and (none := slope_of_ends(*odds.tolist())) is not None:
        return Fit(np.nan, none, np.nan)
    made, size, lost = _begun(curve, clip, sloped=sloped), curve.members.used + curve.others.used, 1 + sloped
    inside = f"greatest(least(s, {1.0 - clip!r}), {clip!r})"
    rows = rows.having(z=f"(ln({inside}) - ln(1.0 - {inside}) - {made.middle!r}) / {made.spread!r}", h="m::INT::DOUBLE")
    reached, highest = made.found, -np.inf
    for _ in range(_MOST_STEPS):
        stated = _stated(rows, made.found)
        sums, likelihood = _sums(stated)
        if likelihood < highest - _ROUNDING * abs(highest):
            made = made._replace(found=0.5 * (reached + made.found))
            continue
        reached, highest = made.found, likelihood
        step, variance, (centre, scale) = _step(sums, sloped=sloped)
        if not np.isfinite(step).all():
            break
        made = made._replace(found=made.found + step)
        if np.abs(step).max() <= _CLOSE_ENOUGH * max(1.0, float(np.abs(made.found).max())):
            a, b = made.coefficients
            factor = (size / max(size - lost, 1)) ** 0.5 / (made.spread if sloped else 1.0)
            from_centre = f"(z - {centre!r})" if sloped else "1.0"
            moved = stated.having(x=f"{factor / scale!r} * v * (h - c) * {from_centre}")
            return Fit(a, b, variance * factor**2, moved=moved)
    return Fit(np.nan, np.nan, np.nan, ended=False)


def _stated(rows: Rows, found: Array) -> Rows:
    """Rows with the log odds ``u`` and the probability ``c`` of a line."""
    a, b = found.tolist()
    return rows.having(u=f"{a!r} + {b!r} * z").having(c="0.5 * (1.0 + tanh(0.5 * u))")


def _sums(made: Rows) -> tuple[Array, float]:
    """Slopes (2), curvature (3) and squared deviations (3) with powers of z, and the logarithm of the likelihood."""
    powers = ("1.0", "z", "z * z")
    asked = {f"d{place}": f"v * (h - c) * {power}" for place, power in enumerate(powers[:2])}
    asked |= {f"k{place}": f"v * c * (1.0 - c) * {power}" for place, power in enumerate(powers)}
    asked |= {f"q{place}": f"v * v * (h - c) * (h - c) * {power}" for place, power in enumerate(powers)}
    asked["l"] = "v * (h * u - greatest(u, 0.0) - ln(1.0 + exp(-abs(u))))"
    answer = made.sums(**asked)
    *sums, likelihood = (float(answer[name][0]) for name in asked)
    return np.array(sums), likelihood


def _step(sums: Array, *, sloped: bool) -> tuple[Array, float, tuple[float, float]]:
    """Change of a and b; White's variance of b, or of a where b is known; and the centre and the curvature that it is
    made with.
    """
    slope, (all_of, first, second), (squares, leaning, twice) = sums[:2], sums[2:5], sums[5:]
    with silently():
        up = slope[0] / all_of
        if not sloped:
            return np.array([up, 0.0]), float(squares / all_of**2), (0.0, float(all_of))
        centre = first / all_of
        spread = second - first * centre
        turn = (slope[1] - centre * slope[0]) / spread
        variance = (twice - 2.0 * centre * leaning + centre * centre * squares) / spread**2
        return np.array([up - centre * turn, turn]), float(variance), (float(centre), float(spread))


def _begun(curve: Along, clip: float, *, sloped: bool) -> _Line:
    """A line by the cells of the order."""
    cells = curve.reduction.cells
    odds = np.tile(log_odds(cells.scores, max(clip, np.finfo(float).tiny)), 2)
    held, hit = cells.weights.ravel(), np.repeat([False, True], cells.scores.size)
    found = line(odds, hit, held) if sloped else (intercept(odds, hit, held), 1.0)
    if not np.isfinite(found).all():
        found = (float(np.log(curve.members.weight / curve.others.weight)), 0.0) if sloped else (0.0, 1.0)
    at = found[0] + found[1] * odds
    # Where the curve is steep.
    curvature = held * expit(at) * expit(-at)
    shares = curvature / curvature.sum() if curvature.any() else held / held.sum()
    middle = float(shares @ odds)
    spread = float(np.sqrt(shares @ (odds - middle) ** 2)) or 1.0
    return _Line(middle, spread, np.array([found[0] + found[1] * middle, found[1] * spread]))
