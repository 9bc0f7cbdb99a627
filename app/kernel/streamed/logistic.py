"""Logistic recalibration of streamed samples: every step of Newton's method is one question to the engine."""

from typing import NamedTuple

import numpy as np

from app.kernel.numerics.arrays import Array
from app.kernel.samples.recalibration import Likelihood, expit, line, log_odds, newton, slope_of_ends
from app.kernel.streamed.along import Along
from app.kernel.streamed.rows import Rows


class Fit(NamedTuple):
    """The line a + b log odds.

    Attributes:
        a: NaN where there is none.
        b: Infinite where a threshold separates members and others.
        moved: The rows with their influence ``x`` on b where it was fitted, on a otherwise, whose squares sum to the
            variance by White (HC1); None without a line.
        ended: Did the steps come to an end? There is no line where they did not.
    """

    a: float = np.nan
    b: float = np.nan
    moved: Rows | None = None
    ended: bool = True


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
        return Fit()
    if sloped and (none := slope_of_ends(*odds.tolist())) is not None:
        return Fit(b=none)
    begun, middle, spread = _begun(curve, clip, sloped=sloped)
    inside, powers = f"greatest(least(s, {1.0 - clip!r}), {clip!r})", ("1.0", "z")[: begun.size]
    rows = rows.having(z=f"(ln({inside}) - ln(1.0 - {inside}) - {middle!r}) / {spread!r}", h="m::INT::DOUBLE")

    def stated(found: Array) -> Rows:
        """Rows with the log odds ``u`` and the probability ``c`` of a line."""
        a, b = [*found.tolist(), spread][:2]
        return rows.having(u=f"{a!r} + {b!r} * z").having(c="0.5 * (1.0 + tanh(0.5 * u))")

    def at(found: Array) -> Likelihood:
        asked = {"l": "v * (h * u - greatest(u, 0.0) - ln(1.0 + exp(-abs(u))))"}
        asked |= {f"d{power}": f"v * (h - c) * {power}" for power in powers}
        asked |= {f"k{one}{other}": f"v * c * (1.0 - c) * {one} * {other}" for one in powers for other in powers}
        answer = stated(found).sums(**asked)
        height, *sums = (float(answer[name][0]) for name in asked)
        size = len(powers)
        return Likelihood(height, np.array(sums[:size]), np.array(sums[size:]).reshape(size, size))

    found = newton(at, begun)
    if found is None:
        return Fit(ended=False)
    a, b = [*found.tolist(), spread][:2]
    used, b = curve.members.used + curve.others.used, b / spread
    factor = (used / max(used - len(powers), 1)) ** 0.5 / (spread if sloped else 1.0)
    slopes = (np.linalg.inv(at(found).curvature)[-1] * factor).tolist()
    terms = " + ".join(f"{slope!r} * {power}" for slope, power in zip(slopes, powers, strict=True))
    return Fit(a - b * middle, b, stated(found).having(x=f"v * (h - c) * ({terms})"))


def _begun(curve: Along, clip: float, *, sloped: bool) -> tuple[Array, float, float]:
    """A line by the cells of the order, of odds less a middle, by a spread; and these."""
    cells = curve.reduction.cells
    odds = np.tile(log_odds(cells.scores, max(clip, np.finfo(float).tiny)), 2)
    held, hit = cells.weights.ravel(), np.repeat([False, True], cells.scores.size)
    a, b = line(odds, hit, held, sloped=sloped)
    if not np.isfinite([a, b]).all():
        a, b = (float(np.log(curve.members.weight / curve.others.weight)), 0.0) if sloped else (0.0, 1.0)
    # Where the curve is steep.
    curvature = held * expit(a + b * odds) * expit(-a - b * odds)
    shares = curvature / curvature.sum() if curvature.any() else held / held.sum()
    middle = float(shares @ odds)
    spread = float(np.sqrt(shares @ (odds - middle) ** 2)) or 1.0
    return np.array([a + b * middle, b * spread][: 1 + sloped]), middle, spread
