"""Differences of a slice and what it is held against: the rest, all samples, or another slice.

Rates are compared by the limits of each (MOVER), what is a sum over the samples by the influence of these. Where a
metric moves with prevalence it is compared at the class shares of the other side as well.
"""

from dataclasses import dataclass

import numpy as np

from app.kernel.compare.differences import DrawnDifferences, StudentDifferences
from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, rising_root, silently
from app.kernel.numerics.scipy_bridge import normal_cdf
from app.kernel.uncertainty.closed_forms import moves_in_cells
from app.kernel.uncertainty.draws import Functional, Shares, generator
from app.kernel.uncertainty.intervals import two_sided_z, wilson_at
from app.kernel.uncertainty.simulation import RowPosterior

# A normal deviate beyond which p is no number any more.
_FARTHEST = 38.0
_NO_EVENTS = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class RateDifferences:
    """Differences of V rates from Wilson's limits of each: MOVER. Newcombe (1998b), Zou & Donner (2008).

    The lower limit is d - sqrt((a - l_a)^2 + (u_b - b)^2 - 2 rho (a - l_a)(u_b - b)); p is that of the level at which a
    limit touches 0.

    Attributes:
        hits: (2, V) of the slice and of the other side, or what they are worth as independent samples.
        among: (2, V) samples of them.
        correlation: (V) of both rates, of samples or groups that both sides have.
        factor: (V) by which differences and limits are multiplied: against all samples, of which the slice holds the
            part q of the denominators, the difference is 1 - q times that against the rest, and p is the same.
    """

    hits: Array
    among: Array
    correlation: Array | float = 0.0
    factor: Array | float = 1.0

    @property
    def _rates(self) -> Array:
        with silently():
            return self.hits / self.among

    @property
    def gaps(self) -> Array:
        """Differences (V); NaN where one side has no samples."""
        first, second = self._rates
        gaps: Array = (first - second) * self.factor
        return gaps

    def _moves(self, z: Array | float) -> tuple[Array, Array]:
        """Distances (V) from the differences to their lower and their upper limits at normal deviates z (V)."""
        rates, (low, high) = self._rates, wilson_at(self.hits, self.among, z)
        below, above = rates - low, high - rates
        return self._together(below[0], above[1]), self._together(above[0], below[1])

    def _together(self, one: Array, other: Array) -> Array:
        with silently():
            return np.sqrt(np.maximum(one * one + other * other - 2.0 * self.correlation * one * other, 0.0))

    def limits(self, level: float) -> tuple[Array, Array]:
        """Lower and upper limits (V)."""
        below, above = self._moves(two_sided_z(level))
        return self.gaps - below * self.factor, self.gaps + above * self.factor

    @property
    def p(self) -> Array:
        """Two-sided p (V) of no difference; 1 of equal rates, NaN where one does not exist."""
        first, second = self._rates
        gaps = first - second

        def beyond(z: Array) -> tuple[Array, Array]:
            below, above = self._moves(z)
            return np.where(gaps >= 0, below, above) - np.abs(gaps), below

        z = rising_root(beyond, low=np.zeros(gaps.shape), high=np.full(gaps.shape, _FARTHEST))
        return np.where(np.isnan(gaps), np.nan, np.where(gaps == 0, 1.0, 2.0 * normal_cdf(-z)))


def of_influences(gaps: Array, first: Array, second: Array, freedom: Array) -> StudentDifferences:
    """Differences of V values from what each of n units, such as samples or groups of them, adds to both.

    Degrees of freedom are those of Welch (1947), which of disjoint samples makes means those of his test.

    Args:
        gaps: (V).
        first: (V, n) influences on the value of the slice, 0 outside of it.
        second: (V, n) on the value that it is held against.
        freedom: (2, V) degrees of freedom of the variances of both.
    """
    moves = first - second
    own = np.stack([np.vecdot(first, first), np.vecdot(second, second)])
    with silently():
        together = own.sum(axis=0) ** 2 / (own**2 / freedom).sum(axis=0)
    return StudentDifferences(gaps, np.sqrt(np.vecdot(moves, moves)), np.where(np.isnan(together), np.inf, together))


def half_counted(counts: Array) -> Array:
    """Matrices (..., K, K) in which a class that is all right, or all wrong, has half a sample more of the other kind.

    Their variance says how uncertain a rate of 0 or 1 is.
    """
    size = counts.shape[-1]
    right, actual = np.diagonal(counts, axis1=-2, axis2=-1), counts.sum(axis=-1)
    places = np.arange(size)
    more = np.zeros(counts.shape)
    more[..., places, places] = np.where((right == 0) & (actual > 0), _NO_EVENTS, 0.0)
    errors = np.where((right == actual) & (actual > 0), _NO_EVENTS / max(size - 1, 1), 0.0)
    return counts + more + errors[..., None] * (1.0 - np.eye(size))


def at_reference_shares(counts: Array, reference: Array, functional: Functional) -> tuple[Array, Array] | None:
    """Values (2, V) of the rows of a slice at the class prevalence of its reference and of that as it is, and what a
    sample of each in each cell adds to them (2, V, K, K), in its unit of weight; None where the reference has a class
    that the slice lacks.

    With pi the shares, g the derivatives there, g_ their means by row and h = g_ of the slice less g_ of the reference:
    a sample of the slice of class k in cell j adds pi_k / n_k (g_kj - g_k), one of the reference the same of its own
    with a minus, and (h_k - sum of pi h) / n, since the shares are estimated too.

    Args:
        counts: Of the slice (K, K).
        reference: Of what it is held against (K, K).
        functional: V values.
    """
    total, actual, wanted = reference.sum(), counts.sum(axis=1), reference.sum(axis=1)
    if ((actual == 0) & (wanted > 0)).any():
        return None
    shares = wanted / total
    with silently():
        moved = np.where(wanted[:, None] > 0, counts * (wanted / actual)[:, None], 0.0)
        both = np.stack([moved, reference])
        moves = moves_in_cells(both, functional) * total
        by_row = np.where(wanted > 0, moves.sum(axis=-1) / wanted, 0.0)
        each = np.where(wanted > 0, shares / np.stack([actual, wanted]), 0.0)
        slopes = each[..., None] * np.where(both > 0, moves / both - by_row[..., None], 0.0)
        values = functional(Table(both)).reshape(2, -1)
    h = by_row[:, 0] - by_row[:, 1]
    of_shares = (h - (h @ shares)[:, None]) / total
    # The shares move the slice, with those of the reference.
    others = np.where(reference > 0, slopes[:, 1] - of_shares[..., None], 0.0)
    return values, np.stack([slopes[:, 0], others])


def drawn_at_reference_shares(
    counts: Array,
    rest: Array,
    functional: Functional,
    *,
    contained: bool,
    draws: int,
    seed: int,
    squares: tuple[Array | None, Array | None] = (None, None),
) -> DrawnDifferences:
    """Differences of V values at the class prevalence of the reference, from posterior draws of the rows of both sides.

    Args:
        counts: Of the slice (K, K).
        rest: Of the samples of the reference outside of it (K, K).
        functional: V values.
        contained: Is the slice a part of the reference?
        draws: How many.
        seed: Of the draws.
        squares: Sums of squared weights of both; None where samples have no weights.
    """
    random = generator(seed)
    own, others = (
        RowPosterior(one, shares=Shares.SAMPLED, squares=by).matrices(draws, random)
        for one, by in zip((counts, rest), squares, strict=True)
    )
    with silently():
        gaps = _at_shares_of(own, others, functional, contained=contained)
        values = _at_shares_of(counts, rest, functional, contained=contained)
    return DrawnDifferences(np.atleast_1d(values), gaps.reshape(draws, -1))


def _at_shares_of(counts: Array, rest: Array, functional: Functional, *, contained: bool) -> Array:
    """Differences (..., V) of matrices (..., K, K) at the class prevalence of the reference."""
    # Draws keep the number of samples, so that both can be added up.
    reference = counts + rest if contained else rest
    wanted, actual = reference.sum(axis=-1), counts.sum(axis=-1)
    scale = np.divide(wanted, actual, out=np.zeros_like(wanted), where=actual > 0)
    gaps: Array = functional(Table(counts * scale[..., None])) - functional(Table(reference))
    return gaps
