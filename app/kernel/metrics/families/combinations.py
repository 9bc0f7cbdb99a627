"""Functions of metrics: means, extremes and spreads of the values inside the brackets of an expression."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from app.kernel.metrics.card import Number, Orientation
from app.kernel.numerics.arrays import (
    Array,
    dispersion,
    geometric_mean,
    harmonic_mean,
    mean,
)

# Below this distance of the two powers the mean is its own limit; the difference quotient would lose half its digits.
_NEARLY_EQUAL = 1e-5
_SMALL = 0.1


def stolarsky_mean(parts: Array, p: float, q: float) -> Array:
    """Stolarsky mean (q (x^p - y^p) / (p (x^q - y^q)))^(1/(p - q)) of the two non-negative numbers on the last axis.

    With x = m e^t and y = m e^-t, m their geometric mean, the logarithm of the mean is ln m + (L(pt) - L(qt))/(p - q)
    with L(z) = ln(sinh z / z), so the only division by 0 left is that by p - q. Stolarsky (1975); limits for powers of
    0, equal powers and equal numbers as in Czinder & Pales (2006). A number of 0 is read as the limit from above.
    """
    first, second = np.log(parts[..., 0]), np.log(parts[..., 1])
    t = np.abs(first - second) / 2.0
    if abs(p - q) < _NEARLY_EQUAL:
        spread = t * _log_sinhc_slope((p + q) / 2.0 * t)
    else:
        spread = (_log_sinhc(p * t) - _log_sinhc(q * t)) / (p - q)
    inside = np.exp((first + second) / 2.0 + spread)
    at_ends = np.where(np.isinf(parts).any(axis=-1), 1.0 / _beside_zero(1.0 / parts, -p, -q), _beside_zero(parts, p, q))
    return np.where(np.isinf(t), at_ends, np.where(first == second, parts[..., 0], inside))


def _beside_zero(parts: Array, p: float, q: float) -> Array:
    """The limit when one number tends to 0: a multiple of the other for two powers above 0, else 0."""
    highest = parts.max(axis=-1)
    if min(p, q) <= 0.0:
        return np.zeros_like(highest)
    exponent = -2.0 / (p + q) if abs(p - q) < _NEARLY_EQUAL else (np.log(q) - np.log(p)) / (p - q)
    found: Array = highest * np.exp(exponent)
    return found


def _log_sinhc(z: Array) -> Array:
    """ln(sinh z / z), an even function; by its series where the quotient is near 1."""
    size = np.abs(z)
    square = size * size
    series = square / 6.0 * (1.0 - square / 30.0 * (1.0 - square * (4.0 / 63.0) * (1.0 - square * 0.075)))
    large = size + np.log(-np.expm1(-2.0 * size) / (2.0 * size))
    return np.where(size < _SMALL, series, large)


def _log_sinhc_slope(z: Array) -> Array:
    """Derivative coth z - 1/z of ln(sinh z / z)."""
    square = z * z
    series = z / 3.0 * (1.0 - square / 15.0 * (1.0 - square * (2.0 / 21.0) * (1.0 - square * 0.1)))
    return np.where(np.abs(z) < _SMALL, series, 1.0 / np.tanh(z) - 1.0 / z)


class Ends(Enum):
    """Comparison of the largest and the smallest of several values."""

    DISTANCE = "distance"
    RATIO = "ratio"


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinationCard:
    """Facts of one function of metrics.

    Attributes:
        compute: Maps parts (..., P) to values (...), with the parameters by name, ``weights`` among them.
        parameters: Numeric parameters that follow the parts.
        weighted: It takes weights, one for each part: the function that it is for equal weights.
        arity: Number of parts; None for any number.
        orientation: Orientation; None for that of the parts.
        range: Range of the values; None for between the ends of the parts.
        of_positives: What it is of them, if parts below 0 leave it undefined.
        slopes: Derivatives (P) by the parts (P), where they exist, with the same parameters.
        picks: ``min`` or ``max`` if it selects one of the parts. The limits of a part selected by its value hold for
            all parts together.
        ends: What it says of the largest and the smallest part, if it compares these.
        linear: It is a sum of the parts, each times a share that does not depend on them.
        undefined: Why it has no value where its parts have one.
    """

    key: str
    name: str
    formula: str
    sentence: str
    compute: Callable[..., Array]
    parameters: tuple[Number, ...] = ()
    weighted: str | None = None
    arity: int | None = None
    orientation: Orientation | None = None
    range: tuple[float | None, float | None] | None = None
    of_positives: str | None = None
    slopes: Callable[..., Array] | None = None
    picks: Callable[[Iterable[float]], float] | None = None
    ends: Ends | None = None
    linear: bool = False
    undefined: str = "its values have none together"
    references: tuple[str, ...] = ()

    @property
    def over_slices(self) -> bool:
        """Does it take `by`? Limits of what was picked from slices, and of their mean, are known."""
        return self.picks is not None or self.ends is not None or (self.linear and self.weighted is None)

    @property
    def of_slices(self) -> bool:
        """Does it take values of other samples each? Its limits follow from theirs."""
        return self.picks is not None or self.linear


def _shares(weights: Sequence[float]) -> Array:
    # By the largest first: the sum of large numbers may be none.
    parts = np.array(weights) / max(weights)
    found: Array = parts / parts.sum()
    return found


GPS = CombinationCard(
    key="gps",
    name="General Performance Score",
    formula=r"\frac{m}{\sum_i 1/x_i}",
    sentence="Harmonic mean of the parts: low as soon as one of them is.",
    compute=harmonic_mean,
    of_positives="harmonic mean",
    slopes=lambda parts: harmonic_mean(parts) ** 2 / (parts.size * parts**2),
    references=("martin2022",),
)
GPS_SD = CombinationCard(
    key="gps_sd",
    name="dispersion around the General Performance Score",
    formula=r"\frac{GPS^2}{m-1}\sqrt{\sum_i\left(\frac{1}{x_i}-\frac{1}{GPS}\right)^2}",
    sentence="How far the parts are spread around their harmonic mean (eq. 9): not a sampling error.",
    compute=dispersion,
    orientation=Orientation.LOWER,
    range=(0.0, None),
    of_positives="harmonic mean",
    undefined="a part is 0, so the harmonic mean is 0 and has no dispersion, or there are fewer than two parts",
    references=("martin2022",),
)
MEAN = CombinationCard(
    key="mean",
    name="arithmetic mean",
    formula=r"\frac{1}{m}\sum_i x_i",
    sentence="Arithmetic mean of the parts.",
    compute=mean,
    slopes=lambda parts: np.full(parts.size, 1.0 / parts.size),
    linear=True,
)
GMEAN = CombinationCard(
    key="gmean",
    name="geometric mean",
    formula=r"\left(\prod_i x_i\right)^{1/m}",
    sentence="Geometric mean of the parts; 0 when one of them is.",
    compute=geometric_mean,
    of_positives="geometric mean",
    slopes=lambda parts: geometric_mean(parts) / (parts.size * parts),
)
WGPS = CombinationCard(
    key="wgps",
    name="weighted harmonic mean",
    formula=r"\frac{W}{\sum_i w_i/x_i},\quad W=\sum_i w_i",
    sentence="Harmonic mean in which every part weighs what it is given.",
    compute=lambda parts, weights: 1.0 / (np.reciprocal(parts) @ _shares(weights)),
    weighted=GPS.key,
    of_positives="harmonic mean",
    slopes=lambda parts, weights: _shares(weights) / (parts * (np.reciprocal(parts) @ _shares(weights))) ** 2,
    references=("aguilar2025",),
)
WMEAN = CombinationCard(
    key="wmean",
    name="weighted arithmetic mean",
    formula=r"\frac{1}{W}\sum_i w_ix_i,\quad W=\sum_i w_i",
    sentence="Arithmetic mean in which every part weighs what it is given.",
    compute=lambda parts, weights: parts @ _shares(weights),
    weighted=MEAN.key,
    slopes=lambda _, weights: _shares(weights),
    linear=True,
    references=("aguilar2025",),
)
WGMEAN = CombinationCard(
    key="wgmean",
    name="weighted geometric mean",
    formula=r"\prod_i x_i^{w_i/W},\quad W=\sum_i w_i",
    sentence="Geometric mean in which every part weighs what it is given; 0 when one of them is 0.",
    compute=lambda parts, weights: np.exp(np.log(parts) @ _shares(weights)),
    weighted=GMEAN.key,
    of_positives="geometric mean",
    slopes=lambda parts, weights: np.exp(np.log(parts) @ _shares(weights)) * _shares(weights) / parts,
    references=("aguilar2025",),
)
STOLARSKY = CombinationCard(
    key="stolarsky",
    name="Stolarsky mean",
    formula=r"\left(\frac{q\,(x^p-y^p)}{p\,(x^q-y^q)}\right)^{1/(p-q)}",
    sentence="Mean of two parts x and y: arithmetic for p = 2 and q = 1, geometric for p = -q, harmonic for p = -2 and "
    "q = -1, logarithmic for p = 1 and q = 0, identric for p = q = 1. Where the formula divides 0 by 0 it is its limit.",
    compute=stolarsky_mean,
    parameters=(
        Number("p", 1.0, "first power", minimum=-1000.0, maximum=1000.0),
        Number("q", 0.0, "second power; the two can change places", minimum=-1000.0, maximum=1000.0),
    ),
    arity=2,
    of_positives="Stolarsky mean",
    references=("stolarsky1975", "czinder2006", "aguilar2025"),
)
MIN = CombinationCard(
    key="min",
    name="smallest",
    formula=r"\min_i x_i",
    sentence="Smallest of the parts.",
    compute=lambda parts: np.minimum.reduce(parts, axis=-1),
    picks=min,
)
MAX = CombinationCard(
    key="max",
    name="largest",
    formula=r"\max_i x_i",
    sentence="Largest of the parts.",
    compute=lambda parts: np.maximum.reduce(parts, axis=-1),
    picks=max,
)
RANGE = CombinationCard(
    key="range",
    name="range",
    formula=r"\max_i x_i-\min_i x_i",
    sentence="How far the largest and the smallest part are apart.",
    compute=lambda parts: np.maximum.reduce(parts, axis=-1) - np.minimum.reduce(parts, axis=-1),
    orientation=Orientation.LOWER,
    range=(0.0, None),
    ends=Ends.DISTANCE,
)
RATIO = CombinationCard(
    key="ratio",
    name="ratio",
    formula=r"\frac{\min_i x_i}{\max_i x_i}",
    sentence="The smallest part over the largest: 1 where all are equal, undefined where all are 0.",
    compute=lambda parts: np.minimum.reduce(parts, axis=-1) / np.maximum.reduce(parts, axis=-1),
    orientation=Orientation.HIGHER,
    range=(0.0, 1.0),
    of_positives="ratio",
    ends=Ends.RATIO,
    undefined="all values are 0",
)

COMBINATIONS = {
    card.key: card for card in (GPS, GPS_SD, MEAN, GMEAN, WGPS, WMEAN, WGMEAN, STOLARSKY, MIN, MAX, RANGE, RATIO)
}
