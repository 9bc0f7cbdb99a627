"""Changes of a series of values, claimed as they come in with one error rate over the whole series.

An e-process on the place of the change: evidence against *nothing has changed* is a mean over all places at which the
level could have changed, each with a likelihood ratio in which the level itself drops out. Its expectation is 1 at any
time as long as nothing changes, so it reaches 1 / alpha with a probability of alpha at most, however long it is watched
(Ville 1939; Howard et al. 2021; Shin, Ramdas & Rinaldo 2022).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, silently

# Sizes of a change, in standard errors of the first value.
_SIZES: Final = np.array([0.5, 1.0, 2.0, 4.0])
# Places of a change: all up to the first, then in steps of so large a part.
_ALL_TO, _STEP = 60, 0.05
# More values than any series has.
_MOST = 1 << 40
_GEOMETRIC = 0.02
# Values that are looked at together, with all their places within the cache of a core; and such whose bands are made
# together.
_ROWS, _BANDS = 128, 64
_HALVINGS, _MOST_STEPS = 60, 100
# Ends are exact to so many standard errors.
_FINE = 1e-11


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the level.

    Attributes:
        start: First value of the stretch that it ends.
        after: Last value before it.
        claimed: Value at which it was claimed.
        before: Mean of the stretch up to the change.
        since: Mean from there to the value at which it was claimed.
        low: Lower limit of ``since`` less ``before``.
        high: Upper limit.
        p: Adjusted for all stretches and all looks.
    """

    start: int
    after: int
    claimed: int
    before: float
    since: float
    low: float
    high: float
    p: float


def _steps() -> NDArray[np.intp]:
    found = [*range(1, _ALL_TO + 1)]
    while found[-1] < _MOST:
        found.append(found[-1] + max(1, round(found[-1] * _STEP)))
    return np.array(found, np.intp)


_PLACES: Final = _steps()


def _places(n: int) -> NDArray[np.intp]:
    """Return at which of n values the level may have changed afterwards, from 1."""
    return _PLACES[: np.searchsorted(_PLACES, n, side="right")]


def _odds(places: NDArray[np.intp]) -> Array:
    """Return the weights of the places: half geometric, half like 1 / j^2; those in between count for the next."""
    upto = 1.0 - 0.5 * (1.0 - _GEOMETRIC) ** places - 0.5 / (places + 1.0)
    return np.diff(upto, prepend=0.0)


class History:
    """A series of values with their sampling errors, oldest first.

    The variance of one sample is pooled over the stretch so far: errors of single values, which the values themselves
    decide, make far too many claims.

    Args:
        values: (n), without NaN.
        errors: (n) standard errors, above 0.
        sizes: (n) samples.
        alpha: Error rate of all claims together.
        covariances: (n, n) of values that share samples. Where these leave a difference of means a larger variance than
            independent values have, it has that.
    """

    def __init__(
        self, values: Array, errors: Array, sizes: Array, *, alpha: float = 0.05, covariances: Array | None = None
    ) -> None:
        self._sizes, self.alpha = sizes, alpha
        # With a 0 before the first, so that the sums of any stretch are differences.
        self._n, self._sums, self._variances = (
            np.concatenate([[0.0], np.cumsum(one)]) for one in (sizes, sizes * values, (sizes * errors) ** 2)
        )
        self._shared = None
        if covariances is not None:
            self._shared = np.pad(np.outer(sizes, sizes) * covariances, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """All changes that are claimed, in order."""
        found: list[Change] = []
        start = 0
        while (claimed := self._first_claim(start, len(found) + 1)) is not None:
            found.append(self._change(start, claimed, len(found) + 1))
            start = found[-1].after + 1
        return tuple(found)

    def bands(self, places: NDArray[np.intp]) -> Array:
        """Return where values would lie (P, 2) had nothing changed since the last change; NaN of the first of a
        stretch. A value is outside exactly where a change is claimed at it.
        """
        found = np.full((places.size, 2), np.nan)
        claimed = np.array([change.claimed for change in self.changes], np.intp)
        before = np.searchsorted(claimed, places)
        for stretch in np.unique(before).tolist():
            start = self.changes[stretch - 1].after + 1 if stretch else 0
            of_stretch = np.flatnonzero((before == stretch) & (places > start))
            for first in range(0, of_stretch.size, _BANDS):
                rows = of_stretch[first : first + _BANDS]
                here = places[rows]
                own = self._evidence(start, here, _places(int(here.max()) - start))
                sizes, values = self._sizes[here], np.diff(self._sums)[here] / self._sizes[here]
                known = (self._sums[here] - self._sums[start]) / (self._n[here] - self._n[start])
                ends = own.ends(
                    sizes[:, None] / own.rest,
                    np.log(self._threshold(stretch + 1)),
                    known - values,
                    np.sqrt(own.variance / sizes),
                )
                found[rows] = values[:, None] + ends
        return found

    def _threshold(self, stretch: int) -> float:
        return stretch * (stretch + 1.0) / self.alpha

    def _evidence(
        self, start: int, lasts: NDArray[np.intp], places: NDArray[np.intp], odds: Array | None = None
    ) -> "_Evidence":
        """Return the evidence at some values (P) of one stretch, of a change after one of the places (C), which weigh
        what ``odds`` (C) say where they are not all.
        """
        n, sums, variances = (one[lasts + 1] - one[start] for one in (self._n, self._sums, self._variances))
        before_n, before = (one[start + places] - one[start] for one in (self._n, self._sums))
        known = places <= (lasts - start)[:, None]
        rest, variance = np.where(known, n[:, None] - before_n, 1.0), variances / n
        spread, odds = 1.0 / before_n + 1.0 / rest, np.where(known, _odds(places) if odds is None else odds, 0.0)
        if self._shared is not None:
            ends, middles = lasts[:, None] + 1, start + places
            both = self._shared[middles, ends]
            whole, first, own = (np.diagonal(self._shared)[place] for place in (ends, start, middles))
            own_n = own - 2.0 * self._shared[start, middles] + first
            after = whole - 2.0 * both + own
            across = both - self._shared[start, ends] - own + self._shared[start, middles]
            of_means = own_n / before_n**2 + after / rest**2 - 2.0 * across / (before_n * rest)
            spread = np.maximum(spread, of_means / variance[:, None])
        ratios = (_SIZES**2)[:, None] / (float(self._sizes[start]) * spread)[:, None]
        with silently():
            heights = np.log(odds / len(_SIZES))[:, None] - 0.5 * np.log1p(ratios)
        return _Evidence(
            gaps=(sums[:, None] - before) / rest - before / before_n,
            curves=0.5 * ratios / (1.0 + ratios) / (spread * variance[:, None])[:, None],
            heights=heights,
            unchanged=np.log1p(-odds.sum(axis=1)),
            before_n=before_n,
            rest=rest,
            variance=variance,
        )

    def _first_claim(self, start: int, stretch: int) -> int | None:
        """Return the first value at which the evidence is enough.

        No likelihood ratio is beyond exp(z^2 / 2), so the evidence is looked at only where a z is large.
        """
        n, sums, variances = (one[start + 1 :] - one[start] for one in (self._n, self._sums, self._variances))
        threshold, places = self._threshold(stretch), _places(n.size)
        means, scales, odds = sums / n, n * n / variances, _odds(places)
        for first in range(1, n.size, _ROWS):
            rows = slice(first, min(first + _ROWS, n.size))
            known = places[places < rows.stop] - 1
            # z^2 = (mean of all - mean before)^2 n_before n / (n_after variance)
            rest = n[rows, None] - n[known]
            late = slice(int(np.searchsorted(known, first)), None)
            rest[:, late] = np.where(rest[:, late] > 0.0, rest[:, late], np.inf)
            squares = means[rows, None] - means[known]
            squares *= squares
            squares /= rest
            squares *= 0.5 * n[known]
            likely = np.flatnonzero(squares.max(axis=1) * scales[rows] >= np.log(threshold))
            with silently():
                most = np.exp(squares[likely] * scales[rows][likely, None]) * odds[: known.size]
                enough = most.sum(axis=1) >= threshold - 1.0
                if not enough.any():
                    continue
                # Of the few places that may add much the ratios themselves are made, for all values together.
                lasts, most = start + first + likely[enough], most[enough]
                much = most.max(axis=0) > 0.05 * threshold
                own = self._evidence(start, lasts, known[much] + 1, odds[: known.size][much])
                enough = np.exp(own.logs()).sum(axis=1) + most[:, ~much].sum(axis=1) >= threshold - 1.0
            for last in lasts[enough].tolist():
                if self._evidence(start, np.array([last]), places).log()[0] >= np.log(threshold):
                    return int(last)
        return None

    def _change(self, start: int, claimed: int, stretch: int) -> Change:
        last = np.array([claimed])
        own = self._evidence(start, last, _places(claimed - start))
        # Where it was is looked for among all places.
        split = int(np.argmax(self._evidence(start, last, np.arange(1, claimed - start + 1)).logs()[0])) + 1
        sums = [
            (one[start + split] - one[start], one[claimed + 1] - one[start + split]) for one in (self._n, self._sums)
        ]
        (before_n, rest), totals = sums
        before, since = (float(total / n) for total, n in zip(totals, sums[0], strict=True))
        later = np.maximum(own.before_n - before_n, 0.0)
        slopes, middles = (later - rest) / own.rest + later / own.before_n, np.array([since - before])
        scales = np.sqrt(own.variance * (1.0 / before_n + 1.0 / rest))
        ((low, high),) = own.ends(slopes, np.log(self._threshold(stretch)), middles, scales).tolist()
        p = min(1.0, float(np.exp(np.log(stretch * (stretch + 1.0)) - own.log()[0])))
        return Change(start, start + split - 1, claimed, before, since, low, high, p)


@dataclass(frozen=True, slots=True, eq=False)
class _Evidence:
    """E against no change at P values. Of a number that moves the gaps at C places in straight lines, by slopes (P, C),
    the logarithm of every likelihood ratio is a quadratic, so that log E is convex.

    Attributes:
        gaps: (P, C) mean after a place less mean before.
        curves: (P, S, C) of the quadratics in the gaps, for each size of a change.
        heights: (P, S, C) their values without a gap, with the weight of the place.
        unchanged: (P) logarithm of the weight of no change so far.
        before_n: (C) samples up to a place.
        rest: (P, C) samples after it.
        variance: (P) of one sample, pooled.
    """

    gaps: Array
    curves: Array
    heights: Array
    unchanged: Array
    before_n: Array
    rest: Array
    variance: Array

    def logs(self) -> Array:
        """Logarithms (P, C) of the likelihood ratios times the weights of their places."""
        found: Array = np.logaddexp.reduce(self.curves * (self.gaps * self.gaps)[:, None] + self.heights, axis=1)
        return found

    def log(self) -> Array:
        """Logarithm (P) of E."""
        found: Array = np.logaddexp(self.unchanged, np.logaddexp.reduce(self.logs(), axis=1))
        return found

    def _at(self, slopes: Array, moves: Array, rows: slice | NDArray[np.intp]) -> tuple[Array, Array]:
        """Logarithms (R) of E at a number for each of some rows, and their derivatives."""
        slopes, curves = slopes[rows], self.curves[rows]
        gaps = self.gaps[rows] + slopes * moves[:, None]
        logs = curves * (gaps * gaps)[:, None] + self.heights[rows]
        most = np.maximum(logs.max(axis=(1, 2)), self.unchanged[rows])
        shares = np.exp(logs - most[:, None, None])
        total = shares.sum(axis=(1, 2)) + np.exp(self.unchanged[rows] - most)
        rising = ((shares * curves).sum(axis=1) * gaps * slopes).sum(axis=1)
        return most + np.log(total), 2.0 * rising / total

    def ends(self, slopes: Array, threshold: float, middles: Array, scales: Array) -> Array:
        """Return both ends (P, 2) of where log E is below a threshold, about middles (P), which are likely inside.

        Newton's steps from outside stay outside of what is convex, and come near in a few steps.
        """
        above = self._at(slopes, middles, slice(None))[0] >= threshold
        if above.any():
            middles = np.where(above, self._lowest(slopes, middles, scales), middles)
            above = self._at(slopes, middles, slice(None))[0] >= threshold
        sides = np.tile([-1.0, 1.0], len(middles))
        rows, scales = np.repeat(np.arange(len(middles)), 2), np.repeat(scales, 2)
        found, moves = np.repeat(middles, 2), 4.0 * scales
        open_rows = np.flatnonzero(~np.repeat(above, 2))
        inside = open_rows
        for _ in range(_MOST_STEPS):
            if not inside.size:
                break
            beyond = self._at(slopes, found[inside] + sides[inside] * moves[inside], rows[inside])[0] >= threshold
            inside = inside[~beyond]
            moves[inside] *= 2.0
        found[open_rows] += (sides * moves)[open_rows]
        for _ in range(_MOST_STEPS):
            if not open_rows.size:
                break
            logs, rising = self._at(slopes, found[open_rows], rows[open_rows])
            steps = np.maximum(logs - threshold, 0.0) / rising
            found[open_rows] -= steps
            open_rows = open_rows[np.abs(steps) > _FINE * scales[open_rows]]
        return found.reshape(-1, 2)

    def _lowest(self, slopes: Array, middles: Array, scales: Array) -> Array:
        """Return where log E is lowest (P), by halves."""
        low, high = middles - 20.0 * scales, middles + 20.0 * scales
        for _ in range(_HALVINGS):
            half = (low + high) / 2.0
            falling = self._at(slopes, half, slice(None))[1] < 0.0
            low, high = np.where(falling, half, low), np.where(falling, high, half)
        return (low + high) / 2.0
