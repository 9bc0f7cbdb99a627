"""Changes of a series of values, claimed as they come in with one error rate over the whole series.

An e-process on the place of the change: evidence against *nothing has changed* is a mean over all places at which the
level could have changed, each with a likelihood ratio in which the level itself drops out. Its expectation is 1 at any
time as long as nothing changes, so it reaches 1 / alpha with a probability of alpha at most, however long it is watched
(Ville 1939; Howard et al. 2021; Shin, Ramdas & Rinaldo 2022).
"""

from collections.abc import Callable
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
_GEOMETRIC = 0.02
_ROWS = 1024
_HALVINGS = 45
# Ends are exact to so many standard errors; a step looks so far beside a straight line, as a part of what is left.
_FINE, _NEAR = 1e-11, 0.01
_MOST_DOUBLED = 60


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


def _places(n: int) -> NDArray[np.intp]:
    """Return at which of n values the level may have changed afterwards, from 1."""
    found = [*range(1, min(n, _ALL_TO) + 1)]
    while found and found[-1] < n and found[-1] >= _ALL_TO:
        found.append(found[-1] + max(1, round(found[-1] * _STEP)))
    return np.array([one for one in found if one <= n], np.intp)


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
    """

    def __init__(self, values: Array, errors: Array, sizes: Array, *, alpha: float = 0.05) -> None:
        self._sizes, self.alpha = sizes, alpha
        # With a 0 before the first, so that the sums of any stretch are differences.
        self._n, self._sums, self._variances = (
            np.concatenate([[0.0], np.cumsum(one)]) for one in (sizes, sizes * values, (sizes * errors) ** 2)
        )

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """All changes that are claimed, in order."""
        found: list[Change] = []
        start = 0
        while (claimed := self._first_claim(start, len(found) + 1)) is not None:
            found.append(self._change(start, claimed, len(found) + 1))
            start = found[-1].after + 1
        return tuple(found)

    def band(self, place: int) -> tuple[float, float] | None:
        """Return where a value would lie had nothing changed since the last change; None of the first of a stretch.

        A value is outside exactly where a change is claimed at it.
        """
        start, stretch = 0, 1
        for change in self.changes:
            if place > change.claimed:
                start, stretch = change.after + 1, stretch + 1
        if place <= start:
            return None
        own, size = self._stretch(start, place), float(self._sizes[place])
        known = float(self._sums[place] - self._sums[start])

        threshold = np.log(self._threshold(stretch))

        def excess(values: Array) -> Array:
            above: Array = own.log_evidence(known + size * values) - threshold
            return above

        return _ends(excess, known / (own.n - size), (own.variance / size) ** 0.5)

    def _threshold(self, stretch: int) -> float:
        return stretch * (stretch + 1.0) / self.alpha

    def _stretch(self, start: int, last: int, places: NDArray[np.intp] | None = None) -> "_Stretch":
        places = _places(last - start) if places is None else places
        n, sums, variances = (one[last + 1] - one[start] for one in (self._n, self._sums, self._variances))
        return _Stretch(
            places=places,
            before_n=self._n[start + places] - self._n[start],
            before=self._sums[start + places] - self._sums[start],
            n=float(n),
            total=float(sums),
            variance=float(variances / n),
            first=float(self._sizes[start]),
            odds=_odds(places),
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
            squares *= n[known]
            squares *= 0.5
            likely = np.flatnonzero(squares.max(axis=1) * scales[rows] >= np.log(threshold))
            with silently():
                most = np.exp(squares[likely] * scales[rows][likely, None]) @ odds[: known.size]
            for row in likely[most >= threshold - 1.0].tolist():
                own = self._stretch(start, start + first + row)
                if own.evidence(np.array([own.total]))[0] >= threshold:
                    return start + first + int(row)
        return None

    def _change(self, start: int, claimed: int, stretch: int) -> Change:
        own = self._stretch(start, claimed)
        here = np.array([own.total])
        # Where it was is looked for among all places.
        every = self._stretch(start, claimed, np.arange(1, claimed - start + 1))
        place = int(np.argmax(every.logs(here, every.before)[0]))
        split, before_n = int(every.places[place]), float(every.before_n[place])
        before, rest = float(every.before[place]) / before_n, own.n - before_n
        since = (own.total - float(every.before[place])) / rest
        later = np.maximum(own.before_n - before_n, 0.0)

        threshold = np.log(self._threshold(stretch))

        def excess(shifts: Array) -> Array:
            moved = own.log_evidence(own.total - shifts * rest, own.before - shifts[:, None] * later)
            above: Array = moved - threshold
            return above

        scale = float(np.sqrt(own.variance * (1.0 / before_n + 1.0 / rest)))
        low, high = _ends(excess, since - before, scale)
        p = min(1.0, stretch * (stretch + 1.0) / float(own.evidence(here)[0]))
        return Change(start, start + split - 1, claimed, before, since, low, high, p)


@dataclass(frozen=True, slots=True, eq=False)
class _Stretch:
    """Values since the last change, as sums.

    Attributes:
        places: (C) values after which the level may have changed, from 1.
        before_n: (C) samples up to there.
        before: (C) samples times values up to there.
        n: All samples.
        total: All samples times values.
        variance: Of one sample, pooled.
        first: Samples of the first value.
        odds: (C) weights of the places.
    """

    places: NDArray[np.intp]
    before_n: Array
    before: Array
    n: float
    total: float
    variance: float
    first: float
    odds: Array

    def logs(self, totals: Array, before: Array) -> Array:
        """Logarithms (X, C) of the likelihood ratios times the weights of their places, at other sums (X)."""
        rest = self.n - self.before_n
        spread = 1.0 / self.before_n + 1.0 / rest
        gaps = (totals[:, None] - before) / rest - before / self.before_n
        squares = gaps * gaps / (spread * self.variance)
        ratios = (_SIZES**2)[:, None, None] / (self.first * spread)
        each = 0.5 * (squares * ratios / (1.0 + ratios) - np.log1p(ratios))
        logs: Array = np.logaddexp.reduce(each, axis=0) + np.log(self.odds / len(_SIZES))
        return logs

    def log_evidence(self, totals: Array, before: Array | None = None) -> Array:
        """Logarithm (X) of E against no change."""
        logs = self.logs(totals, self.before if before is None else before)
        found: Array = np.logaddexp(np.logaddexp.reduce(logs, axis=-1), np.log1p(-float(self.odds.sum())))
        return found

    def evidence(self, totals: Array) -> Array:
        """E (X) against no change; infinite beyond what a float64 holds."""
        with silently():
            found: Array = np.exp(self.log_evidence(totals))
        return found


def _ends(excess: Callable[[Array], Array], middle: float, scale: float) -> tuple[float, float]:
    """Return both ends of where a convex function is below 0.

    Each step looks at the middle of what is left and at both sides of where a straight line reaches 0, which comes
    near in a few steps.
    """
    if excess(np.array([middle]))[0] >= 0.0:
        middle = _lowest(excess, middle, scale)
    sides = np.array([-1.0, 1.0])
    inside, outside = np.zeros(2), np.full(2, 4.0 * scale)
    below, beyond = np.repeat(excess(np.array([middle])), 2), excess(middle + sides * outside)
    for _ in range(_MOST_DOUBLED):
        if (beyond >= 0.0).all():
            break
        outside = np.where(beyond >= 0.0, outside, 2.0 * outside)
        beyond = excess(middle + sides * outside)
    for _ in range(_HALVINGS):
        width = outside - inside
        if (width <= _FINE * scale).all():
            break
        with silently():
            line = np.nan_to_num(below / (below - beyond), nan=0.5)
        parts = np.array([np.full(2, 0.5), line - _NEAR, line + _NEAR]).clip(0.0, 1.0)
        known = np.array([inside, outside, *(inside + width * parts)])
        found = np.array([below, beyond, *excess((middle + sides * known[2:]).ravel()).reshape(3, 2)])
        least = np.where(found < 0.0, known, -np.inf).argmax(axis=0), (0, 1)
        most = np.where(found < 0.0, np.inf, known).argmin(axis=0), (0, 1)
        inside, outside, below, beyond = known[least], known[most], found[least], found[most]
    low, high = (middle + sides * inside).tolist()
    return low, high


def _lowest(function: Callable[[Array], Array], middle: float, scale: float) -> float:
    """Return where a convex function is lowest, by golden sections."""
    low, high, part = middle - 20.0 * scale, middle + 20.0 * scale, (5.0**0.5 - 1.0) / 2.0
    for _ in range(_HALVINGS):
        ends = np.array([high - part * (high - low), low + part * (high - low)])
        one, other = function(ends).tolist()
        if one < other:
            high = float(ends[1])
        else:
            low = float(ends[0])
    return (low + high) / 2.0
