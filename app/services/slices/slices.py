"""Runs judged slice by slice: values with limits, differences from a reference, ranges, and what they say."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, isnan, nan
from typing import Final
from uuid import UUID

import numpy as np

from app.domain.errors import InvalidInput, OutOfReach
from app.domain.inputs.kinds import inputs_of
from app.domain.inputs.matrices import MatrixInput
from app.domain.members import number
from app.kernel.compare.rankings import Adjustment, adjust
from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import is_smooth, needs_counts
from app.kernel.metrics.proportion import ConfusionCells, Rate
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.slices.extremes import level_of_pairs, range_of, ratio_of
from app.kernel.slices.search import WeakSlice, find_weak
from app.services.estimands import Better, Estimand, parse_estimands, usual_metrics
from app.services.estimates.estimate import Estimate, LimitSettings, NoLimits
from app.services.estimates.estimates import estimate, values_alone, work_of
from app.services.slices.answers import (
    AtReferencePrevalence,
    SliceCounts,
    SliceDifference,
    SliceLeftOut,
    SliceOfRun,
    SliceRange,
    Slices,
    SlicesSearched,
    SliceValue,
    Verdict,
    Where,
)
from app.services.slices.differences import Gap, Held, Side, Whole
from app.services.slices.findings import findings_of
from app.services.slices.parts import Column, Part, columns_of, crossed, named_mask, restricted

# Slices times values of metrics in one answer.
MOST_VALUES: Final = 20_000
REST: Final = "rest"
OVERALL: Final = "overall"
_OF_TWO: Final = ("recall", "precision", "h_mean")
_OF_MANY: Final = ("recall@*", "h_mean")
_ALONE = "no other samples are left that it could be held against"
_IS_REFERENCE = "it is what the others are held against"
_FEW_OF_OTHERS = "with so few samples its p is not exact enough to be one of many"


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """A metric of which weak slices are sought, and the most conditions of one."""

    metric: str
    depth: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicesQuestion:
    """A request to judge a run slice by slice.

    Attributes:
        by: Attributes whose values divide the samples; of a search those that are looked through, all when empty.
        depth: How many of them are crossed for a slice.
        bins: Of numbers: edges, or how many bins of equally many samples.
        metrics: Those that are looked at first where there are none.
        reference: `rest`, `overall`, or a slice.
        search: In place of all slices those that are worse than chance.
    """

    by: tuple[str, ...] = ()
    depth: int = 1
    bins: Mapping[str, Sequence[float] | int] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    reference: str | Where = REST
    minimum_samples: int = 30
    level: float = 0.95
    rope: float = 0.01
    search: SearchQuestion | None = None


def judge_slices(source: MatrixInput, asked: SlicesQuestion, identifier: UUID | None = None) -> Slices:
    """Judge an input slice by slice.

    Raises:
        InvalidInput: an attribute is not there, has too many values, or the reference is no slice.
        InvalidExpression: a metric is none.
        OutOfReach: more slices and metrics than one answer has.
    """
    return _Judged(source, asked, identifier).answer()


def _usual(source: MatrixInput) -> tuple[str, ...]:
    if source.task is not None:
        return usual_metrics(source.task, inputs_of(source))
    return _OF_TWO if len(source.labels) == 2 else _OF_MANY


@dataclass(frozen=True, slots=True)
class _Value:
    """One value that is asked for: its name, the metric, and its place among the values of that."""

    name: str
    estimand: Estimand
    place: int

    @property
    def rate(self) -> Rate | None:
        """The rate that it is, of a matrix of classes."""
        estimand = self.estimand
        return estimand.rates[self.place] if estimand.rates is not None and estimand.task is None else None


class _Judged:
    """One request about one input."""

    def __init__(self, source: MatrixInput, asked: SlicesQuestion, identifier: UUID | None) -> None:
        self.source, self.asked, self.identifier = source, asked, identifier
        self.whole = Whole(source, asked.level)
        texts = asked.metrics or _usual(source)
        if asked.search is not None:
            texts = (asked.search.metric, *texts) if asked.metrics else (asked.search.metric,)
        self.estimands = parse_estimands(
            texts,
            source.labels,
            source.positive,
            inputs=inputs_of(source),
            task=source.task,
            decisions=source.decisions,
        )
        self.values = [
            _Value(name, estimand, place) for estimand in self.estimands for place, name in enumerate(estimand.names)
        ]

    def answer(self) -> Slices:
        """All that is asked."""
        asked = self.asked
        columns = columns_of(self.source, asked.by, asked.bins)
        reference = (
            named_mask(self.source, asked.reference, asked.bins) if isinstance(asked.reference, Mapping) else None
        )
        if asked.search is not None:
            return self._searched(columns, asked.search, reference)
        if not columns:
            raise InvalidInput.at("/by", "missing_field", "expected at least one attribute, or a search")
        if len(columns) < asked.depth:
            detail = f"expected at least {asked.depth} attributes to cross, got {len(columns)}"
            raise InvalidInput.at("/depth", "out_of_range", detail)
        parts, left_out = crossed(columns, asked.depth, asked.minimum_samples)
        alone = [SliceLeftOut(one.where, one.size, _ALONE) for one in parts if one.mask.all()]
        held = self._held([one for one in parts if not one.mask.all()], reference)
        return self._answer(self._slices(held), [*self._ranges(held)], [*left_out, *alone])

    def _answer(
        self,
        slices: Sequence[SliceOfRun],
        ranges: Sequence[SliceRange],
        left_out: Sequence[SliceLeftOut],
        searched: SlicesSearched | None = None,
    ) -> Slices:
        asked = self.asked
        return Slices(
            evaluation_id=self.identifier,
            n_samples=self.whole.weights.size,
            reference=asked.reference,
            level=asked.level,
            slices=slices,
            ranges=ranges,
            left_out=left_out,
            searched=searched,
            findings=[
                *findings_of(
                    slices, left_out, searched, reference=asked.reference, rope=asked.rope, missed=self._missed()
                )
            ],
        )

    def _missed(self) -> dict[str, str]:
        """By the name of a recall the class that it is of."""
        rates = [(value.name, value.rate) for value in self.values if value.rate is not None]
        return {
            name: self.source.labels[rate.of]
            for name, rate in rates
            if rate.of is not None and rate.among is ConfusionCells.ACTUAL and rate.hits is ConfusionCells.TP
        }

    # --- sides -------------------------------------------------------------------------------------------------------

    def _held(self, parts: Sequence[Part], reference: Mask | None) -> list[Held]:
        """Slices with what they are held against.

        Raises:
            OutOfReach: they are too many for so many metrics.
        """
        if len(parts) * len(self.values) > MOST_VALUES:
            raise OutOfReach(
                f"{len(parts)} slices with {len(self.values)} values each are more than {MOST_VALUES}; ask for fewer "
                "metrics or attributes, or for larger slices (minimum_samples)"
            )
        overall = Side(np.ones(self.whole.weights.size, dtype=np.bool_), self.source)
        named = None if reference is None else self._side(reference)
        return [self._one_held(part, overall, named) for part in parts]

    def _one_held(self, part: Part, overall: Side, named: Side | None) -> Held:
        own = self._side(part.mask)
        if named is None:
            rest = self._side(~part.mask)
            against = rest if self.asked.reference == REST else overall
            return Held(part.where, own, against, rest, disjoint=against is rest, contained=against is overall)
        shared, outside = own.mask & named.mask, named.mask & ~own.mask
        contained = bool((shared == own.mask).all() and outside.any())
        rest = self._side(outside) if contained else named
        return Held(part.where, own, named, rest, disjoint=not shared.any(), contained=contained)

    def _side(self, mask: Mask) -> Side:
        return Side(mask, restricted(self.source, mask))

    # --- values ------------------------------------------------------------------------------------------------------

    def _slices(self, held: Sequence[Held]) -> list[SliceOfRun]:
        if not held:
            return []
        limits = self._limits([one.own for one in held], self.asked.level)
        own, other = (self._computed([getattr(one, side) for one in held]) for side in ("own", "other"))
        gaps, shifted = self._gaps(held), self._at_reference_shares(held)
        adjusted = _adjusted(gaps)
        return [
            SliceOfRun(
                where=one.where,
                n_samples=one.own.size,
                prevalence=_prevalence(one.own),
                metrics={
                    value.name: SliceValue(
                        value=number(own[row, place]),
                        low=number(limits[row][place].low),
                        high=number(limits[row][place].high),
                        level=self.asked.level,
                        reference=number(other[row, place]),
                        counts=_counts(value, one),
                        difference=self._difference(value, gaps[row][place], float(adjusted[row, place])),
                        at_reference_prevalence=_at_reference(shifted[row][place]),
                        reason=None if (why := limits[row][place].reason) is None else why.value,
                    )
                    for place, value in enumerate(self.values)
                },
            )
            for row, one in enumerate(held)
        ]

    def _limits(self, sides: Sequence[Side], level: float) -> list[list[Estimate]]:
        """Values (V) of each side with their limits; those of simulation only where that takes no long time."""
        settings, found = LimitSettings(level=level), []
        work = [sum(work_of(one, side.run, settings) for side in sides) for one in self.estimands]
        affordable = np.cumsum(work) <= 1.0
        for side in sides:
            quick = [one for one, fits in zip(self.estimands, affordable, strict=True) if fits]
            made = iter(estimate(quick, side.run, settings))
            found.append(
                [
                    each
                    for one, fits in zip(self.estimands, affordable, strict=True)
                    for each in (next(made) if fits else values_alone(one, side.run, settings, NoLimits.TOO_MANY_RUNS))
                ]
            )
        return found

    def _computed(self, sides: Sequence[Side]) -> Array:
        """Values (S, V): those of the matrix in one pass over all sides."""
        # With one more axis rows are summed one by one, alike in every batch.
        table = Table(np.stack([side.run.counts for side in sides])[:, None]) if self.source.task is None else None
        columns = []
        for one in self.estimands:
            if one.scored or table is None:
                columns.append(np.stack([side.run.values(one) for side in sides]))
            else:
                columns.append(one.values(one.functional(table))[:, 0])
        return np.concatenate(columns, axis=1)

    # --- differences -------------------------------------------------------------------------------------------------

    def _gaps(self, held: Sequence[Held]) -> list[list[Gap]]:
        """Differences (S, V)."""
        found: dict[str, list[Gap]] = {}
        smooth = []
        for estimand in self.estimands:
            mine = [value for value in self.values if value.estimand is estimand]
            if mine[0].rate is not None:
                for value in mine:
                    if value.rate is not None:
                        found[value.name] = self.whole.rate_gaps(value.rate, held)
            elif not estimand.scored and is_smooth(estimand.expression):
                smooth.append(estimand)
            else:
                by_slice = [self.whole.sample_gaps(estimand, one) for one in held]
                found |= {value.name: [gaps[value.place] for gaps in by_slice] for value in mine}
        if smooth:
            by_slice_too = [self.whole.cell_gaps(smooth, one) for one in held]
            for index, estimand in enumerate(smooth):
                for place, name in enumerate(estimand.names):
                    found[name] = [gaps[index][place] for gaps in by_slice_too]
        itself = Gap(value=nan, reason=_IS_REFERENCE)
        return [
            [itself if one.is_reference else found[value.name][row] for value in self.values]
            for row, one in enumerate(held)
        ]

    def _at_reference_shares(self, held: Sequence[Held]) -> list[list[tuple[float, Gap] | None]]:
        """What prevalence moves, at the class shares of the other side (S, V)."""
        moved = [
            one
            for one in self.estimands
            if one.task is None and not one.insensitive and not needs_counts(one.expression) and not _counted(one)
        ]
        smooth = [one for one in moved if not one.scored and is_smooth(one.expression)]
        scored = [one for one in moved if one.scored]
        rows: list[list[tuple[float, Gap] | None]] = []
        for side in held:
            if side.is_reference:
                rows.append([None for _ in self.values])
                continue
            found: dict[str, tuple[float, Gap]] = {}
            for one, own in zip(smooth, self.whole.at_shares(smooth, side) if smooth else [], strict=True):
                found |= dict(zip(one.names, own, strict=True))
            for one in scored:
                found |= dict(zip(one.names, self.whole.value_at_shares(one, side), strict=True))
            rows.append([found.get(value.name) for value in self.values])
        return rows

    def _difference(self, value: _Value, gap: Gap, adjusted: float) -> SliceDifference:
        return SliceDifference(
            value=number(gap.value),
            low=number(gap.low),
            high=number(gap.high),
            p_value=number(gap.p),
            p_adjusted=number(adjusted),
            verdict=self._verdict(value, gap, adjusted),
            method=gap.method,
            reason=gap.reason or (_FEW_OF_OTHERS if isfinite(gap.p) and isnan(adjusted) else None),
        )

    def _verdict(self, value: _Value, gap: Gap, adjusted: float) -> Verdict:
        if gap.low >= -self.asked.rope and gap.high <= self.asked.rope:
            return Verdict.SAME
        better = value.estimand.preference
        if better is None or better.better is Better.NEAREST or not adjusted <= 1.0 - self.asked.level:
            return Verdict.UNDECIDED
        return Verdict.BETTER if (gap.value > 0) is (better.better is Better.HIGHER) else Verdict.WORSE

    # --- ranges ------------------------------------------------------------------------------------------------------

    def _ranges(self, held: Sequence[Held]) -> Iterator[SliceRange]:
        """The largest and the smallest value of each metric over the slices of the same attributes."""
        for by in dict.fromkeys(tuple(one.where) for one in held):
            own = [one for one in held if tuple(one.where) == by]
            values = self._computed([one.own for one in own])
            for place, value in enumerate(self.values):
                some = [row for row in range(len(own)) if isfinite(values[row, place])]
                if len(some) > 1:
                    yield self._range(", ".join(by), value, place, [own[row] for row in some], values[some, place])

    def _range(self, by: str, value: _Value, place: int, held: Sequence[Held], values: Array) -> SliceRange:
        sides, settled = [one.own for one in held], level_of_pairs(self.asked.level, len(held))
        made = [[row[place] for row in self._limits(sides, level)] for level in (self.asked.level, settled)]
        alone, pairs = ((np.array([one.low for one in each]), np.array([one.high for one in each])) for each in made)
        gap, low, high = map(float, range_of(values, alone, pairs))
        ratio = ratio_low = ratio_high = nan
        lowest = value.estimand.bounds[0]
        if lowest is not None and lowest >= 0.0:
            ratio, ratio_low, ratio_high = map(float, ratio_of(values, alone, pairs))
        missing = next((one.reason for one in made[0] if one.reason is not None), None)
        return SliceRange(
            metric=value.name,
            by=by,
            largest=held[int(values.argmax())].where,
            smallest=held[int(values.argmin())].where,
            difference=number(gap),
            low=number(low),
            high=number(high),
            ratio=number(ratio),
            ratio_low=number(ratio_low),
            ratio_high=number(ratio_high),
            reason=None if missing is None else missing.value,
        )

    # --- search ------------------------------------------------------------------------------------------------------

    def _searched(self, columns: Sequence[Column], search: SearchQuestion, reference: Mask | None) -> Slices:
        """The slices that are worse than chance."""
        value, among, lost = self._events()
        if not self.whole.plain:
            raise InvalidInput.at(
                "/search", "not_for_this_input", "expected independent samples of one weight: a search counts them"
            )
        found = find_weak(
            [column.codes[among] for column in columns],
            lost[among],
            depth=min(search.depth, len(columns)),
            fewest=self.asked.minimum_samples,
            level=1.0 - self.asked.level,
        )
        parts = [
            Part(
                {columns[column].name: columns[column].values[code] for column, code in one.conditions},
                np.logical_and.reduce([columns[column].codes == code for column, code in one.conditions]),
            )
            for one in found.found
        ]
        held = self._held(parts, reference)
        slices = [
            _with_search(one, value.name, weak) for one, weak in zip(self._slices(held), found.found, strict=True)
        ]
        return self._answer(slices, [], [], SlicesSearched(sum(found.looked_at), search.depth))

    def _events(self) -> tuple[_Value, Mask, Mask]:
        """The rate of a search, the samples that it is of, and those of them that are lost to it.

        Raises:
            InvalidInput: the metric is no rate that says what is better.
        """
        value, samples = self.values[0], self.source.samples
        rate, better = value.rate, value.estimand.preference
        if rate is None or rate.counted or better is None or len(value.estimand.names) > 1 or samples is None:
            raise InvalidInput.at(
                "/search/metric",
                "not_a_rate",
                f"expected a rate of the samples, such as recall@D or accuracy, got {value.estimand.text}: a search "
                "counts how many are lost",
            )
        truth, predicted = samples.truth.astype(np.intp), samples.predicted.astype(np.intp)
        among, hits = (cells.hold(truth, predicted, rate.of) for cells in (rate.among, rate.hits))
        good = (rate.line.slope > 0) is (better.better is Better.HIGHER)
        return value, among, ~hits if good else hits


def _counted(estimand: Estimand) -> bool:
    return estimand.rates is not None and estimand.rates[0].counted


def _adjusted(gaps: Sequence[Sequence[Gap]]) -> Array:
    """Adjusted p (S, V) over all slices and metrics, never below the p of one alone."""
    p, of_many = (np.array([[getattr(gap, name) for gap in row] for row in gaps]) for name in ("p", "p_of_many"))
    found = adjust(of_many.ravel(), Adjustment.BENJAMINI_HOCHBERG).reshape(of_many.shape)
    highest: Array = np.maximum(p, found)
    return highest


def _counts(value: _Value, held: Held) -> SliceCounts | None:
    if value.rate is None or value.rate.counted:
        return None
    (hits, among), (reference_hits, reference_among) = (
        (float(part) for part in value.rate.counts(side.run.table)) for side in (held.own, held.other)
    )
    better, beyond = value.estimand.preference, nan
    if better is not None and reference_among:
        good = (value.rate.line.slope > 0) is (better.better is Better.HIGHER)
        beyond = among * reference_hits / reference_among - hits
        beyond = beyond if good else -beyond
    return SliceCounts(
        hits=hits,
        among=among,
        reference_hits=reference_hits,
        reference_among=reference_among,
        beyond=number(beyond),
    )


def _at_reference(found: tuple[float, Gap] | None) -> AtReferencePrevalence | None:
    if found is None:
        return None
    value, gap = found
    difference = SliceDifference(
        value=number(gap.value), low=number(gap.low), high=number(gap.high), method=gap.method, reason=gap.reason
    )
    return AtReferencePrevalence(value=number(value), difference=difference)


def _prevalence(side: Side) -> dict[str, float]:
    """Shares of the classes, of two of the positive one."""
    source = side.source
    if source.task is not None:
        return {}
    actual = side.run.table.actual
    shares = dict(zip(source.labels, (actual / actual.sum()).tolist(), strict=True)) if actual.sum() else {}
    return (
        shares
        if source.positive is None
        else {label: share for label, share in shares.items() if label == source.labels[source.positive]}
    )


def _with_search(found: SliceOfRun, name: str, weak: WeakSlice) -> SliceOfRun:
    """A find with the p of its search."""
    value = found.metrics[name]
    difference = replace(
        value.difference, p_value=weak.p, p_adjusted=weak.p_adjusted, verdict=Verdict.WORSE, reason=None
    )
    return replace(found, metrics={**found.metrics, name: replace(value, difference=difference)})
