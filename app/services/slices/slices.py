"""Runs judged slice by slice: values with limits, differences from a reference, ranges, and what they say."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from math import isnan, nan
from operator import attrgetter
from typing import Annotated, Final, NamedTuple
from uuid import UUID

import numpy as np

from app.domain.asked import ExpressionText, Level, Limits, NameText, NonNegative
from app.domain.decisions import PairVerdict
from app.domain.division import Column, Part, Where, columns_of, conditions_of, crossed, gathered, slice_text
from app.domain.errors import InvalidInput, OutOfReach
from app.domain.inputs.kinds import inputs_of
from app.domain.inputs.matrices import MatrixInput
from app.domain.members import number
from app.domain.named_metrics import SLICED, SLICED_OF_TWO
from app.domain.slices import Places, attributes_of, places_of, restricted
from app.kernel.causes import mixtures
from app.kernel.compare.rankings import Adjustment, adjust
from app.kernel.metrics.expression import (
    OverSlices,
    depends_on_size,
    grows,
    is_about_sample,
    is_smooth,
    of_each_class,
)
from app.kernel.metrics.proportion import ConfusionCells, Rate
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.slices.extremes import level_of_pairs
from app.kernel.slices.search import SampleLosses, WeakSlice, find_weak, sample_losses
from app.services.estimands import Better, Estimand, estimand_of, parse_estimands, usual_metrics
from app.services.estimates.estimate import Estimate, LimitSettings, NoLimits
from app.services.estimates.estimates import estimate, limits_of_many, picked_of, values_alone, work_of
from app.services.estimates.run_data import RunData
from app.services.runs.causes import Causes, kind_of_causes
from app.services.runs.differences import gap_bounds
from app.services.slices.answers import (
    IN_ONE_GROUP,
    AtReferencePrevalence,
    SliceCounts,
    SliceDifference,
    SliceLeftOut,
    SliceOfRun,
    SliceRange,
    Slices,
    SlicesSearched,
    SliceValue,
    findings_of,
)
from app.services.slices.differences import ALONE, Held, RateFacts, Side, Whole

# Slices times values of metrics in one answer.
MOST_VALUES: Final = 20_000
# Seconds in which causes are looked for, and what they take by cells of mixtures, and by samples and classes.
_SECONDS, _BY_CELL, _BY_PROBABILITY = 2.0, 5e-8, 1e-8
_TOO_MANY_CAUSES = "causes of so many slices, metrics, classes and samples take too long: ask for fewer"
REST: Final = "rest"
_ITSELF = SliceDifference(value=None, reason="it is what the others are held against")
_SIZED = SliceDifference(value=None, reason="it depends on the number of samples, which slices do not share")
_FEW_OF_OTHERS = "with so few samples its p is not exact enough to be one of many"


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """A search through all slices for those that are worse.

    Attributes:
        metric: A rate or a mean with one value, such as `recall@D` or `log_loss`.
        depth: Most conditions of a slice.
    """

    metric: ExpressionText
    depth: Annotated[int, Limits({"ge": 1, "le": 3})] = 3


_MOST_BINS: Final = 100
_Edges = Annotated[tuple[float, ...], Limits({"min_length": 1, "max_length": _MOST_BINS})]
_Bins = Annotated[int, Limits({"ge": 2, "le": _MOST_BINS})]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicesQuestion:
    """A request to judge a run slice by slice.

    Attributes:
        by: Attributes; of a search those looked through, all when empty.
        depth: How many attributes are crossed for a slice.
        bins: Of numbers: edges, or how many bins of equally many samples.
        metrics: When left out recall, precision and h_mean of two classes, of more every recall and h_mean.
        reference: What a slice is held against: the samples outside of it, all, or another slice.
        minimum_samples: Smaller slices take no part.
        level: Of limits; 1 less it is the false discovery rate.
        rope: Differences up to this are practically none.
    """

    by: Annotated[tuple[NameText, ...], Limits({"max_length": 50})] = ()
    depth: Annotated[int, Limits({"ge": 1, "le": 3})] = 1
    bins: Annotated[Mapping[NameText, _Edges | _Bins], Limits({"max_length": 50})] = field(default_factory=dict)
    metrics: Annotated[tuple[ExpressionText, ...], Limits({"max_length": 50})] = ()
    reference: str | Where = REST
    minimum_samples: Annotated[int, Limits({"ge": 1})] = 30
    level: Level = 0.95
    rope: NonNegative = 0.01
    search: SearchQuestion | None = None

    def check(self) -> None:
        """Refuse nothing to divide by, and edges that do not rise; raises ValueError."""
        if not self.by and self.search is None:
            raise ValueError("expected attributes in by, or a search")
        if not self.reference:
            raise ValueError("expected a reference with at least one condition")
        for name, edges in self.bins.items():
            if isinstance(edges, tuple) and any(low >= high for low, high in pairwise(edges)):
                raise ValueError(f"expected edges of {name} that rise")


def judge_slices(source: MatrixInput, asked: SlicesQuestion, identifier: UUID | None = None) -> Slices:
    """Judge an input slice by slice.

    Raises:
        InvalidInput: an attribute is not there, has too many values, or the reference is no slice.
        InvalidExpression: a metric is none.
        OutOfReach: more slices and metrics than one answer has.
    """
    attributes_of(source, "/by")
    return _Judgement(source, asked, identifier).answer()


def _usual(source: MatrixInput) -> tuple[str, ...]:
    if source.task is not None:
        return usual_metrics(source.task, inputs_of(source))
    return SLICED_OF_TWO if len(source.labels) == 2 else SLICED


@dataclass(frozen=True, slots=True)
class _Value:
    """One value that is asked for: its name, the metric, and its place among the values of that."""

    name: str
    estimand: Estimand
    place: int

    @property
    def rate(self) -> Rate | None:
        """The rate that it is, of a matrix of classes; None of a number of samples."""
        estimand = self.estimand
        if estimand.rates is None or estimand.task is not None or grows(estimand.expression):
            return None
        return estimand.rates[self.place]

    def alone(self, labels: Sequence[str]) -> Estimand:
        """Return the one value, if it is one of a list."""
        if not self.estimand.is_list:
            return self.estimand
        return estimand_of(of_each_class(self.estimand.expression, len(labels))[self.place], self.name, labels)


class _Measured(NamedTuple):
    """A slice with its values, which have no limits yet, and what the differences of rates are made of."""

    where: Where
    side: Side
    metrics: dict[str, SliceValue]
    facts: Mapping[str, RateFacts]


class _Judgement:
    """One request about one input."""

    def __init__(self, source: MatrixInput, asked: SlicesQuestion, identifier: UUID | None) -> None:
        self.asked, self.identifier = asked, identifier
        self._look_at(source)
        sought = () if asked.search is None else (asked.search.metric,)
        texts = asked.metrics or (() if sought else _usual(source))
        searched = self._understood(sought, "/search/metric")
        known = {one.text for one in searched}
        self.estimands = (*searched, *(one for one in self._understood(texts, "/metrics") if one.text not in known))
        # A value of a list may be asked for alone too.
        values = {
            name: _Value(name, estimand, place)
            for estimand in self.estimands
            for place, name in enumerate(estimand.names)
        }
        self.values = [*values.values()]

    def _look_at(self, source: MatrixInput) -> None:
        self.source, self.whole = source, Whole(source, self.asked.level)
        self.total = self.whole.size
        self.overall = Side(np.arange(self.total), source)

    def _understood(self, texts: Sequence[str], pointer: str) -> tuple[Estimand, ...]:
        source = self.source
        return parse_estimands(
            texts,
            source.labels,
            source.positive,
            inputs=inputs_of(source),
            task=source.task,
            decisions=source.decisions,
            pointer=pointer,
        )

    def answer(self) -> Slices:
        """All that is asked."""
        asked = self.asked
        columns = columns_of(self.source, asked.by, asked.bins)
        reference = None
        if isinstance(asked.reference, Mapping):
            reference = places_of(self.source, conditions_of(asked.reference), "/reference")
        if asked.search is not None:
            return self._searched(columns, asked.search, reference)
        if not columns:
            raise InvalidInput.at("/by", "missing_field", "expected at least one attribute, or a search")
        if len(columns) < asked.depth:
            detail = f"expected at least {asked.depth} attributes to cross, got {len(columns)}"
            raise InvalidInput.at("/depth", "out_of_range", detail)
        if not any(map(self._of_samples, self.estimands)):
            some, columns, reference = gathered(self.source, columns, reference)
            self._look_at(some)
        parts, small = crossed(self.source, columns, asked.depth, asked.minimum_samples)
        alone = [one for one in parts if one.places.size == self.total]
        slices, ranges, grouped = self._slices([one for one in parts if one.places.size < self.total], reference)
        why = f"fewer than {asked.minimum_samples} samples"
        left_out = [SliceLeftOut(one.where, one.size, why) for one in small]
        left_out += [SliceLeftOut(one.where, self.overall.size, ALONE) for one in alone]
        return self._answer(slices, ranges, [*left_out, *grouped])

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
            n_samples=self.overall.size,
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
            if rate.of is not None
            and rate.among is ConfusionCells.ACTUAL
            and rate.hits is ConfusionCells.TP
            # Of a share of the missed it is the missed that are counted.
            and rate.line.slope > 0
        }

    # --- sides -------------------------------------------------------------------------------------------------------

    def _one_held(self, part: Part, named: Side | None) -> Held:
        own = self._side(part.places)
        if named is None:
            rest = self._side(np.setdiff1d(np.arange(self.total), part.places, assume_unique=True))
            return Held(part.where, own, rest if self.asked.reference == REST else self.overall, rest, apart=True)
        outside = np.setdiff1d(named.places, own.places, assume_unique=True)
        shared = named.places.size - outside.size
        contained = shared == own.places.size and outside.size > 0
        return Held(part.where, own, named, self._side(outside) if contained else named, contained or shared == 0)

    def _side(self, places: Places) -> Side:
        return Side(places, restricted(self.source, places))

    # --- values ------------------------------------------------------------------------------------------------------

    def _slices(
        self, parts: Sequence[Part], reference: Places | None
    ) -> tuple[list[SliceOfRun], list[SliceRange], list[SliceLeftOut]]:
        """The slices, the ranges of their values, and what is left out since it is in one group. Raises OutOfReach:
        they are too many for so many metrics.
        """
        asked = self.asked
        if len(parts) * len(self.values) > MOST_VALUES:
            raise OutOfReach(
                f"{len(parts)} slices with {len(self.values)} values each are more than {MOST_VALUES}; ask for fewer "
                "metrics or attributes, or for larger slices (minimum_samples)"
            )
        named = None if reference is None else self._side(reference)
        # What a slice is held against may be nearly all samples, so it is looked at and let go.
        explained = self._explained(len(parts))
        measured: list[_Measured] = []
        left_out: list[SliceLeftOut] = []
        for held in (self._one_held(part, named) for part in parts):
            if any(side.run.uncounted is NoLimits.ONE_GROUP for side in (held.own, held.rest)):
                left_out.append(SliceLeftOut(held.where, held.own.size, IN_ONE_GROUP))
            else:
                measured.append(self._measured(held, explained))
        if not measured:
            return [], [], left_out
        self._add_rates([one for one in measured if one.facts])
        own, adjusted = _values(measured, "value"), _adjusted(measured)
        work = [work_of(one, measured[0].side.run) * len(measured) for one in self.estimands]
        self._affordable = [*zip(self.estimands, (np.cumsum(work) <= 1.0).tolist(), strict=True)]
        limits: list[list[Estimate]] = []
        ranges: list[SliceRange] = []
        for by, each in groupby(enumerate(measured), key=lambda one: tuple(one[1].where)):
            rows = [row for row, _ in each]
            some = own[rows]
            counts = np.unique((~np.isnan(some)).sum(axis=0)).tolist()
            levels = {asked.level, *(level_of_pairs(asked.level, count) for count in counts if count > 1)}
            found = self._limits([measured[row].side for row in rows], levels)
            limits += found[asked.level]
            ranges += self._ranges(", ".join(by), [measured[row].where for row in rows], some, found)
        slices = [
            SliceOfRun(
                where=one.where,
                n_samples=one.side.size,
                prevalence=_prevalence(one.side),
                metrics={
                    value.name: self._settled(value, one.metrics[value.name], *settled)
                    for value, *settled in zip(self.values, limits[row], adjusted[row].tolist(), strict=True)
                },
            )
            for row, one in enumerate(measured)
        ]
        return slices, ranges, left_out

    def _explained(self, n_slices: int) -> Mapping[str, bool]:
        """Say of the metrics whose differences have causes, by their text, whether these are found within seconds."""
        size = len(self.source.labels)
        known = [(one, kind) for one in self.estimands if (kind := kind_of_causes(one)) is not None]
        by_matrix = max(mixtures(size) * size * size, 10_000) * _BY_CELL
        by_sample = self.total * size * (size + 100) * _BY_PROBABILITY
        work = np.cumsum([by_sample if kind == "loss" else len(one.names) * by_matrix for one, kind in known])
        return {one.text: n_slices * upto <= _SECONDS for (one, _), upto in zip(known, work.tolist(), strict=True)}

    def _measured(self, held: Held, explained: Mapping[str, bool]) -> _Measured:
        """One slice, as far as it needs what it is held against."""
        own, other = (
            {
                name: value
                for one in self.estimands
                for name, value in zip(one.names, side.run.values(one).tolist(), strict=True)
            }
            for side in (held.own, held.other)
        )
        rates = {value.name: rate for value in self.values if (rate := value.rate) is not None}
        facts = {} if held.is_reference else {name: self.whole.rate_facts(rate, held) for name, rate in rates.items()}
        gaps = {} if held.is_reference else self._gaps(held)
        shifted = {} if held.is_reference else self._shifted(held)
        causes = {} if held.is_reference else self._causes(held, explained)
        metrics = {
            value.name: SliceValue(
                value=number(own[value.name]),
                low=None,
                high=None,
                level=self.asked.level,
                reference=number(other[value.name]),
                counts=_counts(value, rates[value.name], held) if value.name in rates else None,
                difference=gaps.get(value.name, _ITSELF),
                at_reference_prevalence=shifted.get(value.name),
                causes=causes.get(value.name),
            )
            for value in self.values
        }
        return _Measured(held.where, held.own, metrics, facts)

    def _gaps(self, held: Held) -> dict[str, SliceDifference]:
        """Differences of what is no rate."""
        sized = [one for one in self.estimands if _is_sized(one)]
        others = [one for one in self.estimands if one not in sized and (one.rates is None or one.task is not None)]
        smooth = [one for one in others if not self._of_samples(one) and is_smooth(one.expression)]
        found = {name: _SIZED for one in sized for name in one.names}
        found |= self.whole.cell_gaps(smooth, held) if smooth else {}
        for one in others:
            if one not in smooth:
                found |= self.whole.sample_gaps(one, held)
        return found

    def _shifted(self, held: Held) -> dict[str, AtReferencePrevalence]:
        """Values that prevalence moves at that of the reference."""
        moved = [one for one in self.estimands if _is_moved(one)]
        smooth = [one for one in moved if not one.scored and is_smooth(one.expression)]
        found = self.whole.at_shares(smooth, held) if smooth else {}
        for one in moved:
            if one.scored:
                found |= self.whole.value_at_shares(one, held)
        return found

    def _causes(self, held: Held, explained: Mapping[str, bool]) -> dict[str, Causes]:
        """Causes of the differences of what prevalence moves, and of losses."""
        asked = [value for value in self.values if value.estimand.text in explained]
        split = [value for value in asked if explained[value.estimand.text]]
        causes = self.whole.causes([(value.estimand, value.place) for value in split], held) if split else []
        too_many = Causes(difference=None, items=None, reason=_TOO_MANY_CAUSES)
        return {value.name: too_many for value in asked} | dict(zip([one.name for one in split], causes, strict=True))

    def _of_samples(self, estimand: Estimand) -> bool:
        """Does it follow from samples, and not from a matrix of classes?"""
        return estimand.scored or self.source.task is not None

    def _limits(self, sides: Sequence[Side], levels: Collection[float]) -> dict[float, list[list[Estimate]]]:
        """Values (V) of each side with their limits, by level; those of simulation only where that takes no long time.

        What has a closed form is computed of all at once, and asked for again where it does not exist, to know why.
        """
        made: dict[float, list[list[Estimate]]] = {level: [] for level in levels}
        many = {level: self._of_many(sides, level) for level in levels}
        for row, side in enumerate(sides):
            # A run of its own, so that what is drawn of it is let go.
            run = RunData(side.source)
            for level, found in made.items():
                known = many[level][row]
                open_ones = [pair for pair in self._affordable if not known.keys() >= {*pair[0].names}]
                settings = LimitSettings(level=level)
                each = iter(estimate([one for one, fits in open_ones if fits], run, settings))
                for one, fits in open_ones:
                    values = next(each) if fits else values_alone(one, run, settings, NoLimits.TOO_MANY_RUNS)
                    known.update(zip(one.names, values, strict=True))
                found.append([known[value.name] for value in self.values])
        return made

    def _of_many(self, sides: Sequence[Side], level: float) -> list[dict[str, Estimate]]:
        """Estimates of what has a closed form, made of all sides at once, by name."""
        found: list[dict[str, Estimate]] = [{} for _ in sides]
        if not self.whole.plain or self.source.task is not None:
            return found
        counts, labels = np.stack([one.run.counts for one in sides]), self.source.labels
        for value in self.values:
            made = limits_of_many(value.alone(labels), counts, labels, LimitSettings(level=level))
            if made is not None:
                for known, row in zip(found, zip(*(part.tolist() for part in made), strict=True), strict=True):
                    if not isnan(row[1]):
                        known[value.name] = Estimate(value=row[0], low=row[1], high=row[2], level=level)
        return found

    # --- differences -------------------------------------------------------------------------------------------------

    def _add_rates(self, measured: Sequence[_Measured]) -> None:
        """Add the differences of rates: those of all slices are made at once."""
        for value in self.values:
            if value.rate is not None and measured:
                facts = [one.facts[value.name] for one in measured]
                gaps = self.whole.rate_gaps(value.rate, gap_bounds(value.estimand.bounds), facts)
                for one, gap in zip(measured, gaps, strict=True):
                    one.metrics[value.name] = replace(one.metrics[value.name], difference=gap)

    def _settled(self, value: _Value, found: SliceValue, limits: Estimate, adjusted: float) -> SliceValue:
        """The value with its limits, the p of its difference adjusted, and the verdict."""
        gap = found.difference
        few, better = gap.p_value is not None and isnan(adjusted), value.estimand.preference
        verdict, clear = PairVerdict.UNDECIDED, adjusted <= 1.0 - self.asked.level
        if gap.low is not None and gap.high is not None and max(-gap.low, gap.high) <= self.asked.rope:
            verdict = PairVerdict.SAME
        elif clear and gap.value is not None and better is not None and better.better is not Better.NEAREST:
            higher = (gap.value > 0) is (better.better is Better.HIGHER)
            verdict = PairVerdict.BETTER if higher else PairVerdict.WORSE
        reason = gap.reason or (_FEW_OF_OTHERS if few else None)
        return replace(
            found,
            low=number(limits.low),
            high=number(limits.high),
            difference=replace(gap, p_adjusted=number(adjusted), verdict=verdict, reason=reason),
            reason=None if limits.reason is None else limits.reason.value,
        )

    # --- ranges ------------------------------------------------------------------------------------------------------

    def _ranges(
        self, by: str, slices: Sequence[Where], values: Array, limits: Mapping[float, Sequence[Sequence[Estimate]]]
    ) -> Iterator[SliceRange]:
        """The largest and the smallest of the values (S, V) of each metric over the slices of the same attributes."""
        for place, value in enumerate(self.values):
            if (~np.isnan(values[:, place])).sum() < 2 or _is_sized(value.estimand):
                continue

            def of_each(settings: LimitSettings, place: int = place) -> list[Estimate]:
                return [row[place] for row in limits[settings.level]]

            settings = LimitSettings(level=self.asked.level)
            gap, ratio = (
                picked_of(value.estimand, OverSlices(name, value.estimand.expression, by, 0), of_each, settings)
                for name in ("range", "ratio")
            )
            lowest = value.estimand.bounds[0]
            has_ratio = lowest is not None and lowest >= 0.0
            yield SliceRange(
                metric=value.name,
                by=by,
                largest=slices[int(np.nanargmax(values[:, place]))],
                smallest=slices[int(np.nanargmin(values[:, place]))],
                difference=number(gap.value),
                low=number(gap.low),
                high=number(gap.high),
                ratio=number(ratio.value) if has_ratio else None,
                ratio_low=number(ratio.low) if has_ratio else None,
                ratio_high=number(ratio.high) if has_ratio else None,
                reason=None if gap.reason is None else gap.reason.value,
            )

    # --- search ------------------------------------------------------------------------------------------------------

    def _searched(self, columns: Sequence[Column], search: SearchQuestion, reference: Places | None) -> Slices:
        """The slices that are worse than chance."""
        value, among, losses = self._losses()
        found, looked_at = find_weak(
            [column.codes[among] for column in columns],
            losses.taken(among),
            depth=min(search.depth, len(columns)),
            fewest=self.asked.minimum_samples,
            level=1.0 - self.asked.level,
        )
        parts = [
            Part.of(
                self.source,
                {columns[column].name: columns[column].values[code] for column, code in one.conditions},
                np.flatnonzero(
                    np.logical_and.reduce([columns[column].codes == code for column, code in one.conditions])
                ),
            )
            for one in found
        ]
        slices, _, left_out = self._slices(parts, reference)
        weak = {slice_text(part.where): one for part, one in zip(parts, found, strict=True)}
        slices = [_with_search(one, value.name, weak[slice_text(one.where)]) for one in slices]
        return self._answer(slices, [], left_out, SlicesSearched(sum(looked_at), search.depth))

    def _losses(self) -> tuple[_Value, Mask, SampleLosses]:
        """The value of a search, the samples that it is of, and what is lost to it in each. Raises InvalidInput: the
        metric is no mean over samples that says what is better, or samples are not at hand.
        """
        value, samples, whole = self.values[0], self.source.samples, self.whole
        rate, better = value.rate, value.estimand.preference
        if whole.times is not None:
            raise InvalidInput.at(
                "/search", "not_for_this_input", "expected no more samples than memory holds: a search looks at each"
            )
        weights = whole.weights if self.source.is_weighted else None
        groups = None if whole.grouping is None else whole.grouping.codes
        if better is not None and better.better is not Better.NEAREST and not value.estimand.is_list:
            if rate is not None and samples is not None:
                truth, predicted = samples.truth.astype(np.intp), samples.predicted.astype(np.intp)
                among, hits = (cells.hold(truth, predicted, rate.of) for cells in (rate.among, rate.hits))
                # In its canonical form what a rate counts is right.
                return value, among & (whole.weights > 0), sample_losses((~hits).astype(np.float64), weights, groups)
            each = whole.mean_of_samples(value.estimand, self.overall)
            if each is not None:
                lost = -each if better.better is Better.HIGHER else each
                return value, whole.weights > 0, sample_losses(lost, weights, groups)
        raise InvalidInput.at(
            "/search/metric",
            "not_a_mean",
            "expected a rate such as recall@D, or a mean over the samples such as log_loss, got "
            f"{value.estimand.text}: a search adds up what is lost in each sample",
        )


def _is_sized(estimand: Estimand) -> bool:
    """Is it another one of twice as many samples of the same kind?"""
    return grows(estimand.expression) or is_about_sample(estimand.expression)


def _is_moved(estimand: Estimand) -> bool:
    """Does prevalence move it, and has it a value at another class prevalence?"""
    return estimand.task is None and not (estimand.insensitive or depends_on_size(estimand.expression))


def _values(measured: Sequence[_Measured], name: str) -> Array:
    """A number (S, V) of the value in each slice, or of its difference."""
    return np.array([[attrgetter(name)(one) for one in row.metrics.values()] for row in measured], dtype=np.float64)


def _adjusted(measured: Sequence[_Measured]) -> Array:
    """Adjusted p (S, V) over all slices and metrics, never below the p of one alone."""
    p, of_many = (_values(measured, f"difference.{name}") for name in ("p_value", "p_of_many"))
    found = adjust(of_many.ravel(), Adjustment.BENJAMINI_HOCHBERG).reshape(of_many.shape)
    highest: Array = np.maximum(p, found)
    return highest


def _counts(value: _Value, rate: Rate, held: Held) -> SliceCounts:
    """Samples behind a rate on both sides."""
    (hits, among), (reference_hits, reference_among) = (
        (float(part) for part in rate.counts(side.run.table)) for side in (held.own, held.other)
    )
    if rate.line.slope < 0:
        # What the value is a share of, and not its canonical form.
        hits, reference_hits = among - hits, reference_among - reference_hits
    better, beyond = value.estimand.preference, nan
    if better is not None and reference_among:
        beyond = among * reference_hits / reference_among - hits
        beyond = beyond if better.better is Better.HIGHER else -beyond
    return SliceCounts(
        hits=hits,
        among=among,
        reference_hits=reference_hits,
        reference_among=reference_among,
        beyond=number(beyond),
    )


def _prevalence(side: Side) -> dict[str, float]:
    """Shares of the classes, of two of the positive one."""
    source = side.source
    if source.task is not None:
        return {}
    actual, positive = side.run.table.actual, source.positive
    shown = source.labels if positive is None else (source.labels[positive],)
    shares = dict(zip(source.labels, (actual / actual.sum()).tolist(), strict=True)) if actual.sum() else {}
    return {label: share for label, share in shares.items() if label in shown}


def _with_search(found: SliceOfRun, name: str, weak: WeakSlice) -> SliceOfRun:
    """A find with the p of its search."""
    value = found.metrics[name]
    difference = replace(
        value.difference, p_value=weak.p, p_adjusted=weak.p_adjusted, verdict=PairVerdict.WORSE, reason=None
    )
    return replace(found, metrics={**found.metrics, name: replace(value, difference=difference)})
