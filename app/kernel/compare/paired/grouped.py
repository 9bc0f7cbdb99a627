"""Two runs on samples that come in groups: tests of counts whose variance is that between the groups.

What a group adds to a sum is what its samples add together, each with its weight. Sums are held against the sum of the
squares of what each group adds (the sandwich of Liang & Zeger 1986 in the form of score tests; Obuchowski 1998 for two
classes): with groups of one sample that is the plain test, and with few groups it rejects rather too seldom. Bhapkar's
is Wald's test, so it is read off the F distribution (Korn & Graubard 1990).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.compare.paired.drift import ChiSquared, quadratic
from app.kernel.compare.paired.joint import Codes, JointCounts, distinct_rows
from app.kernel.compare.paired.predictive import PredictiveCounts, PredictiveValues, predictive_values
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.special import f_upper_tail
from app.kernel.samples.losses import sums_by_code

# Entries of a table of groups by columns that is made at once.
_AT_ONCE = 1 << 20
# Products that a matrix of variances may take: a second or two.
_MOST_WORK = 4_000_000_000


@dataclass(frozen=True, slots=True, eq=False)
class GroupedCounts:
    """Samples that R runs have in common, those that say the same as one entry. The same whatever the parts.

    Attributes:
        groups: (P) numbers of their groups, any.
        joint: (P) what they are and are predicted to be, and how often; where they have weights, which may be 0, what
            each weighs.
    """

    groups: NDArray[np.uint64]
    joint: JointCounts

    @classmethod
    def of(
        cls,
        groups: NDArray[np.uint64],
        truth: Codes,
        predictions: Codes,
        n_classes: int,
        times: Array | None = None,
        weights: Array | None = None,
    ) -> Self:
        """From samples (n), each of which may stand for several, and weigh something."""
        present, codes = np.unique(groups, return_inverse=True)
        each: Array | None = None
        if weights is not None:
            distinct, own = np.unique(weights, return_inverse=True)
            both, codes = np.unique(codes.astype(np.int64) * distinct.size + own, return_inverse=True)
            present, each = present[both // distinct.size], distinct[both % distinct.size]
        columns = [truth, *predictions]
        levels, codes = distinct_rows(codes.astype(np.int64), present.size, columns, n_classes)
        counts = np.bincount(codes, weights=times, minlength=len(levels)).astype(np.float64)
        places = levels[:, 0]
        weighing = None if each is None else each[places]
        return cls(present[places], JointCounts(n_classes, levels[:, 1], levels[:, 2:].T, counts, weighing))

    @classmethod
    def merged(cls, parts: Sequence["GroupedCounts"]) -> Self:
        """Those of several parts, at least one, all or none with weights."""
        joints = [part.joint for part in parts]
        weights = [joint.weights for joint in joints if joint.weights is not None]
        return cls.of(
            np.concatenate([part.groups for part in parts]),
            np.concatenate([joint.truth for joint in joints]),
            np.concatenate([joint.predictions for joint in joints], axis=1),
            joints[0].n_classes,
            np.concatenate([joint.counts for joint in joints]),
            np.concatenate(weights) if weights else None,
        )

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.groups.nbytes + self.joint.nbytes


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Sums (k) of columns over all groups, and the sums (k, k) of products of what each group adds."""

    gaps: Array
    spread: Array
    n_groups: int


@dataclass(frozen=True, eq=False)
class GroupedPair:
    """Two runs on the same samples, which come in groups.

    Attributes:
        joint: What each sample (P) is and is predicted to be, with its weight; samples of several groups are not put
            together.
        group: (P) codes 0..G-1.
        n_groups: G.
    """

    joint: JointCounts
    group: Codes
    n_groups: int

    @cached_property
    def _signs(self) -> Array:
        """Who is right where the other is not (P): 1 the first run, -1 the second, 0 neither or both."""
        first, second = self.joint.correct().astype(np.float64)
        signs: Array = first - second
        return signs

    def discordant(self) -> tuple[Array, Array]:
        """Weight of the samples (G) of each group that only the first, and that only the second run has right."""
        masses = self.joint.masses
        only_first, only_second = (
            sums_by_code(self.group, masses * (self._signs == sign), self.n_groups) for sign in (1, -1)
        )
        return only_first, only_second

    def of_class(self, k: int) -> tuple[Array, float]:
        """The same of the samples of a class, with their weight (3, G), and how many samples these are."""
        mine = self.joint.truth == k
        group, masses, signs = self.group[mine], self.joint.masses[mine], self._signs[mine]
        each = np.stack([masses * (signs == 1), masses * (signs == -1), masses])
        return sums_by_code(group, each, self.n_groups), float(self.joint.counts[mine].sum())

    def equal_recalls(self) -> ChiSquared:
        """As ``drift.equal_recalls``, with what the recalls of a group's classes have to do with each other."""
        some = self._signs != 0
        return self._score(self._sums(some, self.joint.truth[some], self._signs[some]))

    def stuart_maxwell(self) -> ChiSquared:
        """As ``drift.stuart_maxwell``."""
        return self._score(self._margins())

    def bhapkar(self) -> ChiSquared:
        """As ``drift.bhapkar``: Wald's statistic W with G/(G-1) for the variance, p of (G-r) W / ((G-1) r) on r and
        G - r degrees of freedom.
        """
        sums, total = self._margins(), self.joint.n
        plain = self._score(sums)
        if plain.freedom == 0 or np.isnan(plain.p):
            return plain
        mean, sizes = sums.gaps / total, sums_by_code(self.group, self.joint.masses, self.n_groups)
        columns = self._differing
        added = np.zeros(columns.size)
        for where, signs in ((self.joint.predictions[0], 1.0), (self.joint.predictions[1], -1.0)):
            added += signs * sums_by_code(where, self.joint.masses * sizes[self.group], self.joint.n_classes)[columns]
        mixed = np.outer(mean, added)
        centred = sums.spread - mixed - mixed.T + float(sizes @ sizes) * np.outer(mean, mean)
        few = self.n_groups / (self.n_groups - 1.0)
        found = quadratic(sums.gaps, few * centred)
        r, left = found.freedom, self.n_groups - found.freedom
        if r != plain.freedom or left <= 0:
            return ChiSquared(nan, plain.freedom, nan)
        scaled = found.statistic * left / ((self.n_groups - 1.0) * r)
        return ChiSquared(found.statistic, r, float(f_upper_tail(scaled, r, left)))

    def bowker(self) -> ChiSquared:
        """As ``drift.bowker``, with what the exchanges in a group have to do with each other."""
        first, second = self.joint.predictions
        some = first != second
        low, high = np.minimum(first, second)[some], np.maximum(first, second)[some]
        return self._score(
            self._sums(some, low * self.joint.n_classes + high, np.where(first < second, 1.0, -1.0)[some])
        )

    @cached_property
    def _differing(self) -> Codes:
        """Classes on which the runs differ."""
        first, second = self.joint.predictions
        return np.unique(self.joint.predictions[:, first != second])

    def _margins(self) -> _Sums:
        first, second = self.joint.predictions
        some = np.flatnonzero(first != second)
        columns = np.concatenate([first[some], second[some]])
        return self._sums(np.tile(some, 2), columns, np.repeat([1.0, -1.0], some.size))

    def _sums(self, some: Array, columns: Array, signs: Array) -> _Sums:
        """What some samples add, with a sign, to columns with any codes, of which those that occur are kept.

        The products are not summed where that would take long, which leaves them NaN.
        """
        groups, group = np.unique(self.group[some], return_inverse=True)
        names, column = np.unique(columns, return_inverse=True)
        values, size = signs * self.joint.masses[some], names.size
        if size == 0:
            return _Sums(np.zeros(0), np.zeros((0, 0)), 0)
        gaps = sums_by_code(column, values, size)
        if groups.size * size**2 > _MOST_WORK:
            return _Sums(gaps, np.full((size, size), nan), groups.size)
        spread = np.zeros((size, size))
        order = np.argsort(group, kind="stable")
        step = max(1, _AT_ONCE // size)
        for start in range(0, groups.size, step):
            mine = order[slice(*np.searchsorted(group[order], [start, start + step]))]
            rows = min(step, groups.size - start)
            table = sums_by_code((group[mine] - start) * size + column[mine], values[mine], rows * size)
            spread += (each := table.reshape(rows, size)).T @ each
        return _Sums(gaps, spread, groups.size)

    def _score(self, sums: _Sums) -> ChiSquared:
        """NaN where there are too few groups, or the sums are not known."""
        if np.isnan(sums.spread).any():
            return ChiSquared(nan, sums.gaps.size, nan)
        found = quadratic(sums.gaps, sums.spread)
        return found if found.freedom == 0 or found.freedom < sums.n_groups else ChiSquared(nan, found.freedom, nan)

    def predictive_values(self) -> Iterator[tuple[tuple[PredictiveCounts, PredictiveValues], ...]]:
        """Of some classes at a time, in order: that a sample is of a class, and that it is not; what is counted in all
        groups, and what is found.
        """
        everything = sums_by_code(self.group, self.joint.masses, self.n_groups)[:, None]
        step = max(1, _AT_ONCE // self.n_groups)
        for start in range(0, self.joint.n_classes, step):
            classes = range(start, min(start + step, self.joint.n_classes))
            present = PredictiveCounts.of_groups(self.joint, self.group, self.n_groups, classes)
            mine = (self.joint.truth >= classes.start) & (self.joint.truth < classes.stop)
            places = self.group[mine] * len(classes) + self.joint.truth[mine] - start
            actual = sums_by_code(places, self.joint.masses[mine], self.n_groups * len(classes))
            absent = present.of_absence(actual.reshape(self.n_groups, -1), everything)
            yield tuple((one.together(), predictive_values(one.together(), groups=one)) for one in (present, absent))
