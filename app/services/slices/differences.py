"""Differences of slices and what they are held against: which method each has is decided here.

Rates by the limits of both sides. What has derivatives by the cells of the matrix, or is a sum over the samples, by
the influence of these. Other metrics have a difference without limits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite, isnan, nan
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.domain.division import Where
from app.domain.inputs.matrices import MatrixInput
from app.domain.members import number
from app.domain.slices import Places, attributes_of, samples_at
from app.kernel.causes import Split
from app.kernel.compare.differences import Differences
from app.kernel.loss_causes import LossSplit
from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import Bounds
from app.kernel.metrics.proportion import Rate
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.numerics.hypergeometric import hypergeometric_mid_p
from app.kernel.samples.influence import LinearMethod
from app.kernel.samples.losses import sums_by_code
from app.kernel.slices.gaps import (
    RateDifferences,
    at_reference_shares,
    drawn_at_reference_shares,
    half_counted,
    of_influences,
)
from app.kernel.uncertainty.closed_forms import cell_influences
from app.kernel.uncertainty.draws import chosen_seed, within
from app.kernel.uncertainty.groups import Grouping
from app.kernel.uncertainty.influence import Linearisation, by_groups
from app.services.estimands import Estimand
from app.services.estimates.estimate import ClassShares
from app.services.estimates.estimates import values_at_shares
from app.services.estimates.run_data import RunData
from app.services.runs.causes import Causes, causes_of_counts, kind_of_causes, loss_causes_of_sides
from app.services.runs.differences import gap_bounds
from app.services.slices.answers import IN_ONE_GROUP, AtReferencePrevalence, SliceDifference

# With fewer samples tails of differences that are no rates are not those of Student's t (false discovery rates of .07
# to .08 in place of .05 were seen with 30).
FEWEST_OF_OTHERS: Final = 100
# With fewer members of a class, what derivatives say at other shares is too narrow (errors of .075 in place of .05).
_FEWEST_MEMBERS = 50
_DRAWS = 2000
_MOST_DRAWN = 20_000_000
_USUAL_LEVEL = 0.95
ALONE: Final = "no other samples are left that it could be held against"
_FORMLESS = "the metric has no derivatives and is no sum over the samples, so differences of it have no limits"
_LACKING = "class_not_in_slice: the slice has no samples of a class that its reference has"
_UNDEFINED = "a side has no value of the metric"
_NO_VARIANCE = "the difference does not vary over the samples, so nothing tells how sure it is"


@dataclass(frozen=True, eq=False)
class Side:
    """Some samples of a run.

    Attributes:
        places: Which of all entries they are, rising.
        source: They alone, as an input of their own.
    """

    places: Places
    source: MatrixInput

    @cached_property
    def size(self) -> int:
        """Number of samples."""
        return samples_at(self.source, np.arange(self.places.size))

    @cached_property
    def run(self) -> RunData:
        """The samples as a run."""
        return RunData(self.source)


@dataclass(frozen=True, eq=False)
class Held:
    """A slice held against other samples.

    Attributes:
        where: The slice.
        own: Its samples.
        other: What it is held against.
        rest: What of that is outside of the slice, where all of the slice is a part of it; else the other side. Rates
            are held against it.
        apart: Has it no samples in common with these?
    """

    where: Where
    own: Side
    other: Side
    rest: Side
    apart: bool

    @property
    def is_reference(self) -> bool:
        """Is it itself what the others are held against?"""
        return np.array_equal(self.own.places, self.other.places)

    @property
    def contained(self) -> bool:
        """Is all of it a part of the other side?"""
        return self.rest is not self.other


class RateFacts(NamedTuple):
    """Facts of which the difference of a rate is made; see `RateDifferences`.

    Attributes:
        gap: The difference itself.
        exact: Are these numbers of samples, none of them on both sides?
    """

    gap: float
    hits: tuple[float, float]
    among: tuple[float, float]
    factor: float
    correlation: float
    exact: bool


@dataclass(frozen=True, eq=False)
class Whole:
    """All samples of the run that slices are parts of."""

    source: MatrixInput
    level: float

    @property
    def times(self) -> NDArray[np.int64] | None:
        """Samples (n) that each entry stands for; None where each is one."""
        return None if self.source.samples is None else self.source.samples.times

    @cached_property
    def grouping(self) -> Grouping | None:
        """Groups of the samples."""
        return None if self.source.groups is None else Grouping.of(self.source.groups)

    @cached_property
    def size(self) -> int:
        """Number of what has attributes: entries of samples, or queries of a ranking."""
        return next(iter(attributes_of(self.source, "/by").values())).codes.size

    @cached_property
    def weights(self) -> Array:
        """Weight (n) of each entry."""
        masses = None if self.source.samples is None else self.source.samples.masses
        return np.ones(self.size) if masses is None else masses.astype(np.float64, copy=False)

    @cached_property
    def squares(self) -> Array:
        """Sum of the squared weights (n) of the samples of each entry."""
        sums = None if self.source.samples is None else self.source.samples.weight_sums
        return self.weights if sums is None else sums.squares

    @property
    def plain(self) -> bool:
        """Are the samples independent, and of one weight?"""
        return not self.source.is_weighted and self.grouping is None

    # --- rates -------------------------------------------------------------------------------------------------------

    def rate_facts(self, rate: Rate, held: Held) -> RateFacts:
        """Facts of a rate of one slice, of which its difference is made."""
        with silently():
            counts = [side.run.design.counts(rate, _USUAL_LEVEL) for side in (held.own, held.rest)]
            (hits, own), (other_hits, whole) = (rate.counts(side.run.table) for side in (held.own, held.other))
            gap = rate.line.slope * float(hits / own - other_hits / whole)
            # That of the slice in the denominator of all samples.
            part = float(own / whole) if held.contained else 0.0
        return RateFacts(
            gap=gap,
            hits=(float(counts[0][0]), float(counts[1][0])),
            among=(float(counts[0][1]), float(counts[1][1])),
            factor=1.0 - part,
            correlation=self._correlation(rate, held),
            exact=self.plain and held.apart,
        )

    def rate_gaps(self, rate: Rate, bounds: Bounds, facts: Sequence[RateFacts]) -> list[SliceDifference]:
        """Differences of one rate, which has these bounds, of each slice."""
        hits, among = (np.array([getattr(one, name) for one in facts]).T for name in ("hits", "among"))
        correlation, factor = (np.array([getattr(one, name) for one in facts]) for name in ("correlation", "factor"))
        found = RateDifferences(hits, among, correlation, factor)
        p, fits = found.p, np.array([one.exact for one in facts])
        # Of weights and groups the numbers of samples are no whole ones.
        exact = hypergeometric_mid_p(*np.where(fits, np.stack([hits[0], among[0], hits[1], among[1]]), 0.0))
        of_many = np.where(fits, exact, p)
        ends = np.sort(rate.line.slope * np.stack(found.limits(self.level)), axis=0)
        name = "newcombe" if self.plain else "grouped_newcombe" if self.grouping is not None else "weighted_newcombe"
        columns = (np.array([one.gap for one in facts]), *ends, p, of_many)
        return _differences(columns, [bounds] * len(facts), method=name, reasons=[_missing_of(one) for one in facts])

    def _correlation(self, rate: Rate, held: Held) -> float:
        """Correlation of the rates of both sides, by samples or groups that both have."""
        if self.grouping is None and held.apart:
            return 0.0
        first, second = (self._of_rate(rate, side) for side in (held.own, held.rest))
        size = float(np.sqrt((first @ first) * (second @ second)))
        return float(first @ second) / size if size > 0.0 else 0.0

    def _of_rate(self, rate: Rate, side: Side) -> Array:
        """Influence of the groups, or of the entries as roots of sums of squares, on a rate, up to a factor."""
        samples = side.source.known_samples
        among, hits = (cells.hold(samples.truth, samples.predicted, rate.of) for cells in (rate.among, rate.hits))
        weights, roots = self.weights[side.places] * among, np.sqrt(self.squares[side.places]) * among
        share = float(weights @ hits) / (float(weights.sum()) or 1.0)
        return self._added((roots if self.grouping is None else weights) * (hits - share), side)

    def _added(self, influences: Array, side: Side) -> Array:
        """Return what entries of the whole, or groups of them, add to values (..., n), by the influences of a side."""
        placed, grouping = np.zeros((*influences.shape[:-1], self.size)), self.grouping
        placed[..., side.places] = influences
        if grouping is None:
            return placed
        held = np.unique(grouping.codes[side.places]).size
        few = (held / max(held - 1.0, 1.0)) ** 0.5
        summed: Array = few * sums_by_code(grouping.codes, placed, grouping.n_groups)
        return summed

    # --- what has derivatives by the cells ---------------------------------------------------------------------------

    def cell_gaps(self, estimands: Sequence[Estimand], held: Held) -> dict[str, SliceDifference]:
        """Differences of the values of metrics of the matrix of one slice."""
        functional = _together(estimands)
        counts = np.stack([side.run.counts for side in (held.own, held.other)])
        halves = half_counted(counts)
        influences = cell_influences(halves, functional).swapaxes(0, 1)
        gaps = np.subtract(*functional(Table(counts)))
        found = self._of_cells(gaps, influences, halves, held)
        return self._read_off(estimands, gaps, found, held, "influence")

    def at_shares(self, estimands: Sequence[Estimand], held: Held) -> dict[str, AtReferencePrevalence]:
        """Values of one slice at the class shares of the other side, and their differences from that."""
        functional = _together(estimands)
        own, other = held.own.run.counts, held.other.run.counts
        found = at_reference_shares(own, other, functional)
        if found is None:
            return _lacking(estimands)
        values, influences = found
        moved = values[0] - values[1]
        if self._drawn(held):
            differences: Differences = drawn_at_reference_shares(
                own,
                held.rest.run.counts,
                functional,
                contained=held.contained,
                draws=_DRAWS,
                seed=chosen_seed(None, own, other),
                squares=(held.own.run.squares, held.rest.run.squares),
            )
            gaps = self._read_off(estimands, moved, differences, held, "posterior")
        else:
            of_moved = self._of_cells(moved, influences, np.stack([own, other]), held)
            gaps = self._read_off(estimands, moved, of_moved, held, "influence")
        return {
            name: AtReferencePrevalence(value=number(value), difference=replace(gap, p_value=None, p_of_many=None))
            for value, (name, gap) in zip(values[0].tolist(), gaps.items(), strict=True)
        }

    def causes(self, values: Sequence[tuple[Estimand, int]], held: Held) -> list[Causes]:
        """Causes of the differences of values of one slice: those of its matrix are split together."""
        losses = [kind_of_causes(estimand) == "loss" for estimand, _ in values]
        of_matrix = [value for value, is_loss in zip(values, losses, strict=True) if not is_loss]
        split = iter(self._causes_of_matrix(of_matrix, held) if of_matrix else ())
        return [
            self._causes_of_loss(value[0], held) if is_loss else next(split)
            for value, is_loss in zip(values, losses, strict=True)
        ]

    def _causes_of_loss(self, estimand: Estimand, held: Held) -> Causes:
        sides = (held.own, held.other)
        return loss_causes_of_sides(
            (held.own.run, held.other.run),
            [] if self.grouping is None else [self.grouping.codes[side.places] for side in sides],
            self.source.labels,
            estimand,
            lambda found: self._limits_of_losses(found, held),
            side_by_side=True,
        )

    def _causes_of_matrix(self, values: Sequence[tuple[Estimand, int]], held: Held) -> list[Causes]:
        counts = np.stack([side.run.counts for side in (held.own, held.other)])

        def limits(found: Sequence[Split]) -> list[tuple[Array, Array]]:
            unknown = [np.full((one.values.size, *counts.shape), nan) for one in found]
            influences = np.concatenate(
                [none if one.influences is None else one.influences for one, none in zip(found, unknown, strict=True)]
            ).swapaxes(0, 1)
            parts = np.concatenate([one.values for one in found])
            # Both sides add to a part, so that it is the first less the second turned round.
            together = self._of_cells(parts, influences * np.array([1.0, -1.0])[:, None, None, None], counts, held)
            edges = np.cumsum([one.values.size for one in found])[:-1]
            low, high = (np.split(end, edges) for end in together.limits(self.level))
            return [*zip(low, high, strict=True)]

        return causes_of_counts(counts, self.source.labels, values, limits, side_by_side=True)

    def _limits_of_losses(self, found: LossSplit, held: Held) -> tuple[Array, Array]:
        first, second = found.influences
        added = self._added(first, held.own), self._added(-second, held.other)
        return of_influences(np.array(found.values), *added, self._freedom(held)).limits(self.level)

    def _drawn(self, held: Held) -> bool:
        """Are there few members of a class, and samples whose draws are known?"""
        if self.grouping is not None or not held.apart:
            return False
        if _DRAWS * held.own.run.counts.size > _MOST_DRAWN:
            return False
        wanted = held.other.run.counts.sum(axis=1) > 0
        some = [side.source.known_samples for side in (held.own, held.rest)]
        sizes = [np.bincount(one.truth, one.times, wanted.size) for one in some]
        return bool(np.min(sizes, axis=0)[wanted].min() < _FEWEST_MEMBERS)

    def _of_cells(self, gaps: Array, influences: Array, counts: Array, held: Held) -> Differences:
        """Differences from the influence (2, V, K, K) of a sample of both sides in each cell, and their matrices (2, K,
        K), which may hold half counts beside the samples.
        """
        sides = (held.own, held.other)
        halves = np.sqrt(np.maximum(counts - np.stack([side.run.counts for side in sides]), 0.0))
        # Roots of sums of squared weights, and which side has them.
        parts = [(halves[0], (1.0, 0.0)), (halves[1], (0.0, 1.0))]
        if self.grouping is None:
            own, other = (np.bincount(side.places, minlength=self.size) > 0 for side in sides)
            some = ((own & ~other, (1.0, 0.0)), (own & other, (1.0, 1.0)), (other & ~own, (0.0, 1.0)))
            parts = [*((np.sqrt(self._squares(mask)), of) for mask, of in some if mask.any()), *parts]
        roots = np.stack([np.multiply.outer(of, root) for root, of in parts], axis=1)
        columns = (influences[:, :, None] * roots[:, None]).reshape(*influences.shape[:2], -1)
        if self.grouping is not None:
            samples = [side.source.known_samples for side in sides]
            by_group = [
                self._added(influence[:, one.truth, one.predicted] * self.weights[side.places], side)
                for influence, one, side in zip(influences, samples, sides, strict=True)
            ]
            columns = np.concatenate([by_group, columns], axis=-1)
        first, second = columns
        return of_influences(gaps, first, second, self._freedom(held))

    def _squares(self, mask: Mask) -> Array:
        """Sums of squared weights (K, K) of some samples."""
        samples, size = self.source.known_samples, len(self.source.labels)
        cells = (samples.truth.astype(np.intp) * size + samples.predicted)[mask]
        squares: Array = np.bincount(cells, self.squares[mask], size * size).reshape(size, size).astype(np.float64)
        return squares

    def _freedom(self, held: Held) -> Array:
        """Degrees of freedom (2, 1) of the variances of both sides: the effective number of samples, or groups, less
        1.
        """
        found = []
        for side in (held.own, held.other):
            weights, squares = self.weights[side.places], self.squares[side.places]
            if self.grouping is not None:
                weights = sums_by_code(self.grouping.codes[side.places], weights, self.grouping.n_groups)
                squares = weights**2
            total = float(squares.sum())
            found.append([max(float(weights.sum()) ** 2 / total - 1.0, 1.0) if total else 1.0])
        return np.array(found)

    # --- sums over the samples ---------------------------------------------------------------------------------------

    def sample_gaps(self, estimand: Estimand, held: Held) -> dict[str, SliceDifference]:
        """Differences of the values of a metric of samples of one slice."""
        sides = (held.own, held.other)
        values = [side.run.values(estimand) for side in sides]
        gaps = values[0] - values[1]
        parts = [one for side in sides if (one := side.run.linear(estimand)) is not None]
        if len(parts) < len(sides):
            return dict(zip(estimand.names, map(_alone, gaps.tolist()), strict=True))
        guards = np.array([[one.guard for one in part] for part in parts])
        if self.grouping is not None:
            groups = [replace(self.grouping, codes=self.grouping.codes[side.places], times=None) for side in sides]
            parts = [[by_groups(one, own) for one in part] for part, own in zip(parts, groups, strict=True)]
        influences = [np.stack([one.influence for one in part]) for part in parts]
        if self.grouping is None:
            influences = [self._added(one, side) for one, side in zip(influences, sides, strict=True)]
        first, second = influences
        empty = np.zeros(gaps.size)
        first, second = np.column_stack([first, guards[0], empty]), np.column_stack([second, empty, guards[1]])
        freedom = np.array([[one.freedom for one in part] for part in parts])
        return self._read_off([estimand], gaps, of_influences(gaps, first, second, freedom), held, _name(parts[0]))

    def mean_of_samples(self, estimand: Estimand, side: Side) -> Array | None:
        """Losses (n) of the samples less their mean, where a metric is a mean over them; None of what is none."""
        parts = side.run.linear(estimand)
        if parts is None or len(parts) > 1 or parts[0].method is not LinearMethod.HALL_T:
            return None
        with silently():
            found: Array = parts[0].influence * self.weights.sum() / self.weights
        return found

    def value_at_shares(self, estimand: Estimand, held: Held) -> dict[str, AtReferencePrevalence]:
        """Values of a metric of probabilities at the class shares of the other side, where they have no limits."""
        actual, own = held.other.run.table.actual, held.own.run.table.actual
        if ((own == 0) & (actual > 0)).any():
            return _lacking([estimand])
        shares = ClassShares((actual / actual.sum())[None])
        at = values_at_shares(estimand, held.own.run, shares)[0]
        gaps = [SliceDifference(value=number(gap), reason=_FORMLESS) for gap in at - held.other.run.values(estimand)]
        found = [
            AtReferencePrevalence(value=number(value), difference=gap) for value, gap in zip(at, gaps, strict=True)
        ]
        return dict(zip(estimand.names, found, strict=True))

    def _read_off(
        self, estimands: Sequence[Estimand], values: Array, found: Differences, held: Held, name: str
    ) -> dict[str, SliceDifference]:
        """Differences (V) with their limits and p, by the names of the values of estimands."""
        low, high = found.limits(self.level)
        of_many = found.p if held.own.size >= FEWEST_OF_OTHERS else np.full(values.size, nan)
        reasons = [
            _UNDEFINED if not isfinite(value) else _NO_VARIANCE if isnan(end) else None
            for value, end in zip(values.tolist(), low.tolist(), strict=True)
        ]
        method = name if self.grouping is None else f"grouped_{name}"
        bounds = [gap_bounds(one.bounds) for one in estimands for _ in one.names]
        gaps = _differences((values, low, high, found.p, of_many), bounds, method=method, reasons=reasons)
        return dict(zip([name for one in estimands for name in one.names], gaps, strict=True))


def _differences(
    columns: tuple[Array, ...], bounds: Sequence[Bounds], *, method: str, reasons: Sequence[str | None]
) -> list[SliceDifference]:
    """From differences, their limits, p, and p of one of many (V), within the bounds of each difference."""
    found = []
    rows = zip(*(column.tolist() for column in columns), bounds, reasons, strict=True)
    for value, low, high, p, of_many, ends, reason in rows:
        low, high = within(low, high, ends)
        found.append(
            SliceDifference(
                value=number(value),
                low=number(low),
                high=number(high),
                p_value=number(p),
                p_of_many=number(of_many),
                method=method,
                reason=reason,
            )
        )
    return found


def _missing_of(facts: RateFacts) -> str | None:
    """Why the difference of a rate has no value, or no limits."""
    if isnan(facts.gap):
        return _UNDEFINED
    if any(map(isnan, facts.among)):
        return IN_ONE_GROUP
    return None if all(facts.among) else ALONE


def _alone(value: float) -> SliceDifference:
    """A difference of what has no closed form."""
    return SliceDifference(value=number(value), reason=_FORMLESS if np.isfinite(value) else _UNDEFINED)


def _lacking(estimands: Sequence[Estimand]) -> dict[str, AtReferencePrevalence]:
    none = AtReferencePrevalence(value=None, difference=SliceDifference(value=None, reason=_LACKING))
    return {name: none for one in estimands for name in one.names}


def _name(parts: Sequence[Linearisation]) -> str:
    methods = {one.method for one in parts}
    return "welch_t" if methods == {LinearMethod.HALL_T} else "influence"


def _together(estimands: Sequence[Estimand]) -> Callable[[Table], Array]:
    """One function with the values (..., V) of several estimands."""
    return lambda table: np.concatenate([one.values(one.functional(table)) for one in estimands], axis=-1)
