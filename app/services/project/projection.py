"""Metrics at another class prevalence, as long as each class is predicted as it was (label shift)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import chain
from math import nan
from typing import Annotated
from uuid import UUID

import numpy as np

from app.domain.asked import ExpressionText, LabelText, Level, Limits, Seed, Share, SoughtText
from app.domain.errors import InvalidInput, OutOfReach, in_pointer
from app.domain.inputs.labels import unknown_label
from app.domain.inputs.matrices import MatrixInput
from app.domain.members import LEFT_OUT, named, number, numbers
from app.domain.named_metrics import PROJECTED
from app.domain.options import DRAWS, Draws, Sampling, check_one_sided
from app.domain.wording import significant
from app.kernel.matrix.prevalence import ShareExtremes, ShareRanges, extremes, sweep_shares
from app.kernel.metrics.expression import is_biased
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.uncertainty.draws import Alternative
from app.kernel.uncertainty.groups import FEW_GROUPS
from app.services.estimands import Estimand
from app.services.estimates.estimate import ClassShares, Estimate, Estimates, LimitSettings, NoLimits
from app.services.estimates.estimates import estimate_at, values_at_shares
from app.services.estimates.methods import simulation
from app.services.estimates.report_intervals import caution_findings
from app.services.runs.aligned import Runs
from app.services.runs.causes import Causes, causes_of_shares, kind_of_causes

# At one point, or at every point of a grid.
Values = float | None | Sequence[float | None]


@dataclass(frozen=True, slots=True)
class ProjectedValue:
    """A metric at another class prevalence: one value, or lists over the grid of a sweep.

    Attributes:
        value: At these shares.
        low: Lower limit; null where there is no interval.
        high: Upper limit.
        observed: The value as it is.
        method: How the limits were made. What prevalence does not move has those of the report.
        causes: At one point, of the difference from the value as it is: all of it is prevalence.
        reason: Why there are no limits at any share.
    """

    value: Values
    low: Values
    high: Values
    observed: float | None
    causes: Causes | None = field(default=None, metadata=LEFT_OUT)
    method: str | None = field(default=None, metadata=LEFT_OUT)
    reason: str | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True)
class Lowest:
    """The lowest value in a range of class prevalences, its lower limit there, and where that is."""

    value: float | None
    low: float | None
    prevalence: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Highest:
    """The highest value in a range of class prevalences, its upper limit there, and where that is."""

    value: float | None
    high: float | None
    prevalence: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ExtremeValues:
    """A metric over a range of class prevalences; null where it has no value anywhere.

    Attributes:
        observed: The value as it is.
    """

    observed: float | None
    lowest: Lowest | None
    highest: Highest | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptClass:
    """One class from a rare to a frequent one.

    Attributes:
        observed: Its share in the data.
        equal: Its share where all classes that have samples are equally frequent.
    """

    label: str = field(metadata=named("class"))
    start: float = field(metadata=named("from"))
    end: float = field(metadata=named("to"))
    steps: int
    observed: float
    equal: float


@dataclass(frozen=True, slots=True)
class SampleDesign:
    """Design of the intervals of metrics of probabilities, beside those of the matrix."""

    method: str | None
    draws: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionDesign:
    """Design of the intervals of metrics that prevalence moves.

    Attributes:
        draws: Simulated or resampled data sets; 0 where all limits follow from formulas, or there are none.
        class_counts: `fixed`: those of the run are taken as chosen. Left out where they vary with groups.
        prior: Prior of the rows of the matrix.
        prevalence: `given` exactly, `uncertain`, or in a `range`.
        samples: The design for metrics of probabilities, where there are others too.
        alternative: Where limits are on one side: `greater` has lower ones, `less` upper ones, and the other end is
            that of the range of the metric, null where it has none.
    """

    level: float
    draws: int
    method: str | None = field(default=None, metadata=LEFT_OUT)
    class_counts: str | None = field(default=None, metadata=LEFT_OUT)
    prior: str | None = field(default=None, metadata=LEFT_OUT)
    seed: int | None = field(default=None, metadata=LEFT_OUT)
    prevalence: str = "given"
    samples: SampleDesign | None = field(default=None, metadata=LEFT_OUT)
    alternative: Alternative | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """Metrics at another class prevalence: single values, lists over the grid of a sweep, or the extremes of a range.

    Attributes:
        evaluation_id: `null` for an input that is not saved.
        prevalence: The shares of all classes.
        prevalence_samples: How many samples the shares are worth.
        prevalence_range: Lowest and highest share of some classes.
        grid: Shares of the class that is swept, with those that were asked for besides.
        metrics: By metric: value, low, high and observed, the value as it is; or lowest, highest and observed.
        against: The run that is compared with.
        crossings: Shares at which the two runs change places.
        notes: What is assumed, and what to be careful about.
    """

    evaluation_id: UUID | None
    prevalence: Mapping[str, float] | None = field(default=None, metadata=LEFT_OUT)
    prevalence_samples: float | None = field(default=None, metadata=LEFT_OUT)
    prevalence_range: Mapping[str, Sequence[float]] | None = field(default=None, metadata=LEFT_OUT)
    sweep: SweptClass | None = field(default=None, metadata=LEFT_OUT)
    grid: Sequence[float] | None = field(default=None, metadata=LEFT_OUT)
    metrics: Mapping[str, ProjectedValue | ExtremeValues]
    against: UUID | None = field(default=None, metadata=LEFT_OUT)
    crossings: Mapping[str, Sequence[float]] | None = field(default=None, metadata=LEFT_OUT)
    design: ProjectionDesign
    notes: Sequence[str]


class Marked(StrEnum):
    """Shares of a class that have a name."""

    OBSERVED = "observed"
    EQUAL = "equal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One class from a rare to a frequent one, the others keeping their proportions.

    Attributes:
        label: The class whose share is varied.
        at: Further shares that are points of the sweep exactly, within its ends or not: numbers, `observed` for the
            share in the data, `equal` for that of as many equally frequent classes.
    """

    label: LabelText = field(metadata=named("class"))
    start: Share = field(metadata=named("from"))
    end: Share = field(metadata=named("to"))
    steps: Annotated[int, Limits({"ge": 2, "le": 500})] = 50
    at: tuple[float | Marked, ...] = ()

    def check(self) -> None:
        """Refuse a sweep that does not go upwards, by ValueError."""
        if not self.start < self.end:
            raise ValueError("expected from to be smaller than to")


# By label.
Shares = Annotated[Mapping[SoughtText, Share], Limits({"min_length": 1, "max_length": 1000})]
_Ends = Annotated[tuple[Share, ...], Limits({"min_length": 2, "max_length": 2})]
MOST_NAMED = 3
_Ranges = Annotated[Mapping[SoughtText, _Ends], Limits({"min_length": 1, "max_length": MOST_NAMED})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A question about another class prevalence: exactly one of prevalence, prevalence_range and sweep.

    Attributes:
        prevalence: Shares by class. Classes not named share the rest in the proportions that they have.
        prevalence_samples: How many samples the shares are worth; they are exact when it is left out.
        prevalence_range: Lowest and highest share of some classes.
        recalibrate: Fit the saved probabilities to the shares (Elkan 2001) and decide again before measuring.
        old_prevalence: With recalibrate: the shares they were calibrated to; the evaluation's when left out.
        alternative: Two-sided limits, or one limit alone at this level: `greater` gives a lower limit.
    """

    prevalence: Shares | None = None
    prevalence_samples: Annotated[float, Limits({"ge": 1})] | None = None
    prevalence_range: _Ranges | None = None
    sweep: Sweep | None = None
    recalibrate: bool = False
    old_prevalence: Shares | None = None
    metrics: Annotated[tuple[ExpressionText, ...], Limits({"min_length": 1, "max_length": 50})] = PROJECTED
    level: Level = 0.95
    alternative: Alternative = Alternative.TWO_SIDED
    seed: Seed | None = None
    draws: Draws = DRAWS

    def check(self) -> None:
        """Exactly one scenario, with what belongs to it; raises ValueError."""
        check_one_sided(self.level, self.alternative)
        given = [name for name in ("prevalence", "prevalence_range", "sweep") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"expected exactly one of prevalence, prevalence_range and sweep, got {len(given)}")
        if self.prevalence_samples is not None and self.prevalence is None:
            raise ValueError("expected prevalence_samples with prevalence only")
        if self.recalibrate and self.prevalence_range is not None:
            raise ValueError("expected recalibrate with prevalence or a sweep: within a range the shares are not known")
        if self.old_prevalence is not None and not self.recalibrate:
            raise ValueError("expected old_prevalence with recalibrate only")
        for label, (low, high) in (self.prevalence_range or {}).items():
            if low > high:
                raise ValueError(f"expected a range from low to high for {label!r}")


_SUM_TOLERANCE = 1e-6
# Shares that sum to 1 within rounding are taken as they are.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class ClassSizes:
    """The K classes of a run, and how many samples (K) each has."""

    labels: tuple[str, ...]
    actual: Array

    @classmethod
    def of(cls, source: MatrixInput) -> "ClassSizes":
        """Make it from an evaluation."""
        return cls(source.labels, source.counts.sum(axis=1).astype(np.float64))

    def index(self, label: str, pointer: str) -> int:
        """Place of a class. Raises InvalidInput if there is none of that name."""
        if label not in self.labels:
            raise unknown_label(pointer, label, self.labels)
        return self.labels.index(label)

    def refuse_shares_of_nothing(self, wanted: Mask, pointer: str) -> None:
        """Raise InvalidInput if a class without samples is to have a share (K)."""
        for index in np.flatnonzero(wanted & (self.actual == 0)):
            label = self.labels[int(index)]
            raise InvalidInput.at(
                f"{pointer}/{in_pointer(label)}",
                "no_samples",
                f"expected no share of {label!r}: how it is predicted is unknown",
            )


def old_shares(classes: ClassSizes, named: Mapping[str, float] | None) -> Array:
    """Shares (K) that probabilities were fitted to; those not named are as by ``named_shares``. Raises InvalidInput if
    a class has none.
    """
    shares = named_shares(classes, named or {}, "/old_prevalence")
    if (shares == 0).any():
        label = classes.labels[int(np.argmin(shares))]
        raise InvalidInput.at(
            "/old_prevalence", "no_samples", f"expected the share of {label!r} that probabilities are fitted to"
        )
    return shares


def named_shares(classes: ClassSizes, named: Mapping[str, float], pointer: str) -> Array:
    """Shares (K) of all classes; those not named share the rest in the proportions that they have.

    Raises:
        InvalidInput: an unknown class, shares that do not sum to 1, or one given to a class without samples.
    """
    actual = classes.actual
    shares = np.full(actual.size, np.nan)
    for label, share in named.items():
        shares[classes.index(label, f"{pointer}/{in_pointer(label)}")] = share
    missing = np.isnan(shares)
    given = float(shares[~missing].sum())
    rest = 1.0 - given
    if rest < -_SUM_TOLERANCE or (not missing.any() and abs(rest) > _SUM_TOLERANCE):
        raise InvalidInput.at(
            pointer, "shares_do_not_sum_to_one", f"expected shares that sum to 1, got {significant(given, 6)}"
        )
    if missing.any():
        kept = np.where(missing, actual, 0.0)
        if rest > _SUM_TOLERANCE and kept.sum() == 0:
            raise InvalidInput.at(
                pointer, "no_samples", "expected shares that sum to 1: no class without one has samples"
            )
        scale = max(rest, 0.0) / kept.sum() if kept.sum() else 0.0
        shares = np.where(missing, kept * scale, shares)
    classes.refuse_shares_of_nothing(shares > 0, pointer)
    total = float(shares.sum())
    scaled: Array = shares if abs(total - 1.0) < _ROUNDING else shares / total
    return scaled


class NamedRanges:
    """Ranges of the shares of some classes; what they leave goes to all others in the proportions that these have.

    Raises:
        InvalidInput: an unknown class, a share for one without samples, or ranges in which no shares sum to 1.
    """

    def __init__(self, classes: ClassSizes, ranges: Mapping[str, Sequence[float]]) -> None:
        pointer = "/prevalence_range"
        self._codes = [classes.index(label, f"{pointer}/{in_pointer(label)}") for label in ranges]
        low, high = np.array(list(ranges.values())).T
        actual = classes.actual
        self._classes = actual.size
        given = np.zeros(actual.size)
        given[self._codes] = high
        classes.refuse_shares_of_nothing(given > 0, pointer)
        if np.count_nonzero(actual) < 2:
            raise InvalidInput.at(pointer, "no_samples", "expected samples of two classes or more")
        others = actual.copy()
        others[self._codes] = 0.0
        if low.sum() > 1.0 + _ROUNDING:
            raise InvalidInput.at(pointer, "shares_above_one", "expected ranges with lower ends that sum to at most 1")
        # Where the named classes are all that there are, the last of them has what the others leave.
        self._others = others / others.sum() if others.sum() else None
        if self._others is None and high.sum() < 1.0 - _ROUNDING:
            raise InvalidInput.at(
                pointer,
                "shares_do_not_sum_to_one",
                "expected ranges with upper ends that sum to at least 1, as they name all classes with samples",
            )
        rest = ([], []) if self._others is None else ([0.0], [1.0])
        self.bounds = ShareRanges(np.append(low, rest[0]), np.append(high, rest[1]))

    def shares(self, points: Array) -> Array:
        """Shares (G, K) of all classes at points (G, d) of the ranges."""
        left: Array = np.maximum(1.0 - points.sum(axis=1), 0.0)[:, None]
        if self._others is not None:
            found: Array = left * self._others
            found[:, self._codes] = points
            return found
        found = np.zeros((len(points), self._classes))
        found[:, self._codes] = np.column_stack([points, left])
        return found


# Shares closer than this are one.
_SAME_SHARE = 1e-12
_FITTED = (
    "Probabilities are fitted to the shares, p'(c|x) proportional to p(c|x) new_c / old_c, and decisions are made "
    "again from them. This is right as far as the probabilities were calibrated."
)


class ProjectedRun:
    """One run in one scenario: matrix metrics from its matrix, metrics of probabilities from its samples.

    Where probabilities are re-calibrated decisions change with them, and everything comes from the samples. These are
    known where an estimand is ``scored`` or probabilities are re-calibrated.
    """

    def __init__(self, runs: Runs, estimands: Sequence[Estimand], scenario: Scenario) -> None:
        self.estimands, self.scenario = estimands, scenario
        self.identifier: UUID = runs.records[0].id
        (self.data,) = runs.data
        self.classes = ClassSizes.of(self.data.source)
        # Those that are computed from the matrix, and those that are computed from the samples.
        anew = scenario.recalibrate
        sources = ((one, [each for each in estimands if (each.scored or anew) is one]) for one in (False, True))
        self.by_source = {one: some for one, some in sources if some}
        # Of the matrix, and of the samples: what was drawn so far, and whether that was too much.
        self._drawn, self._beyond = dict[bool, Estimate](), set[bool]()
        self._settings = LimitSettings(
            level=scenario.level,
            seed=scenario.seed,
            sampling=Sampling(draws=scenario.draws),
            alternative=scenario.alternative,
        )

    @cached_property
    def _calibrated_to(self) -> Array | None:
        """The shares that probabilities are fitted from. Raises InvalidInput: the old shares make no sense, or scores
        are to be re-calibrated.
        """
        if not self.scenario.recalibrate:
            return None
        old = old_shares(self.classes, self.scenario.old_prevalence)
        if not self.data.scores.are_probabilities:
            raise InvalidInput.at(
                "/recalibrate", "needs_probabilities", "expected an evaluation of probabilities, not of scores"
            )
        if isinstance(self.data.source.facts.get("threshold"), list):
            raise InvalidInput.at(
                "/recalibrate", "mixed_thresholds", "expected one threshold, the folds of the run have several"
            )
        return old

    def shares(self, points: Array, *, in_all: int | None = None) -> ClassShares:
        """Shares (G, K) of this scenario; ``in_all`` says at how many limits will be asked for in the end."""
        return ClassShares(points, self.scenario.prevalence_samples, self._calibrated_to, in_all)

    def values(self, estimand: Estimand, points: Array) -> Array:
        """Values (G, V) at shares (G, K). Raises OutOfReach of too many samples for so many points."""
        shares = self.shares(points)
        self._refuse_too_many([estimand], shares)
        return values_at_shares(estimand, self.data, shares)

    def estimates(self, estimands: Sequence[Estimand], shares: ClassShares) -> list[list[Estimates]]:
        """For every estimand its values with their limits at each point.

        Raises:
            OutOfReach: too many samples for so many points.
        """
        self._refuse_too_many(estimands, shares)
        found = estimate_at(estimands, self.data, shares, self._settings)
        for estimand, points in zip(estimands, found, strict=True):
            of_samples = estimand in self.by_source.get(True, ())
            for one in chain.from_iterable(points):
                if one.reason is NoLimits.TOO_MANY_POINTS:
                    self._beyond.add(of_samples)
                elif one.reason is None and one.draws:
                    self._drawn[of_samples] = one
        return found

    def limits_of_prevalence(self, estimand: Estimand, shares: ClassShares) -> list[tuple[float, float]]:
        """Limits of what one point makes of each value of an estimand; NaN where they are not known."""
        if self.scenario.recalibrate or self.data.uncounted is not None:
            return [(nan, nan)] * len(estimand.names)
        settings = replace(self._settings, alternative=Alternative.TWO_SIDED)
        return [(one.low, one.high) for one in simulation.moved_by(estimand, self.data, shares, settings)]

    def sharing_time_with(self, estimand: Estimand) -> list[Estimand]:
        """Return the estimands that are computed from the same data as this one: the matrix, or the samples."""
        return next(some for some in self.by_source.values() if estimand in some)

    def most_points(self, estimand: Estimand) -> int:
        """At how many shares values can be had in reasonable time."""
        return simulation.most_points(self.data, from_samples=estimand in self.by_source.get(True, ()))

    def _refuse_too_many(self, estimands: Sequence[Estimand], shares: ClassShares) -> None:
        most = min(self.most_points(estimand) for estimand in estimands)
        if len(shares) > most:
            raise OutOfReach(
                f"expected at most {most} points for {self.data.units.n_units} samples, got {len(shares)}: "
                "metrics of probabilities pass over all samples at every point"
            )

    def by_label(self, shares: Array) -> dict[str, float]:
        """Shares (K) by class."""
        return dict(zip(self.classes.labels, shares.tolist(), strict=True))

    def design(self, prevalence: str) -> ProjectionDesign:
        """Return the design of what was drawn: of the matrix, and of the samples beside it."""
        side = self.scenario.alternative
        found = ProjectionDesign(
            level=self.scenario.level,
            draws=0,
            prevalence=prevalence,
            alternative=None if side is Alternative.TWO_SIDED else side,
        )
        if not self._drawn:
            return found
        first, *others = (self._drawn[one] for one in sorted(self._drawn))
        return replace(
            found,
            draws=first.draws or 0,
            method=first.method,
            class_counts=None if self.data.source.is_grouped else "fixed",
            prior=first.prior,
            seed=first.seed,
            samples=SampleDesign(others[0].method, others[0].draws or 0) if others else None,
        )

    def notes(self, shares: ClassShares) -> list[str]:
        """Return the assumptions and cautions."""
        notes = ["It is assumed that how each class is predicted does not depend on how frequent it is."]
        still = [estimand for estimand in self.estimands if shares.leave(estimand)]
        if still:
            notes.append(f"Prevalence does not move {', '.join(one.text for one in still)}.")
        moved = [estimand for estimand in self.estimands if estimand not in still]
        source, reason = self.data.source, self.data.uncounted
        if reason is NoLimits.NO_COUNTS and source.task is None:
            notes.append(f"No intervals: they need numbers of samples, and the matrix holds {source.content}.")
        elif reason is not None:
            notes.append(f"No intervals: {reason}.")
        else:
            for from_samples, some in self.by_source.items():
                notes += self._cautions(some, shares, from_samples=from_samples)
            groups = None if self.data.grouping is None else self.data.grouping.effective_groups
            if moved and groups is not None and groups < FEW_GROUPS:
                notes.append(
                    f"The groups count as {groups:.0f} equal ones. With fewer than {FEW_GROUPS} intervals can miss the "
                    "truth more often than their level says."
                )
        return [*notes, _FITTED] if shares.calibrated_to is not None else notes

    def _cautions(self, estimands: Sequence[Estimand], shares: ClassShares, *, from_samples: bool) -> list[str]:
        """Cautions about the limits of what comes from the samples, or from the matrix."""
        if from_samples in self._beyond:
            entries, done = ("samples and points", "resampled") if from_samples else ("points and classes", "simulated")
            return [
                f"No intervals of what has to be {done}: so many {entries} are too much for that; ask for fewer points."
            ]
        if not from_samples:
            if self.data.source.is_grouped:
                return []
            return [one.message for one in caution_findings(self.data.sampled, self.data.source.labels)]
        biased = [one.text for one in estimands if is_biased(one.expression) and not shares.leave(one)]
        if not biased:
            return []
        return [
            f"No intervals of {', '.join(biased)}: noise biases them to one side, and resampling adds the same bias "
            "again."
        ]


def at_shares(run: ProjectedRun, prevalence: Mapping[str, float]) -> Projection:
    """Values and limits at given shares; equal ones are those of a balanced test set.

    Raises:
        InvalidInput: the shares make no sense for this run.
    """
    at = named_shares(run.classes, prevalence, "/prevalence")
    shares = run.shares(at[None])
    return Projection(
        evaluation_id=run.identifier,
        prevalence=run.by_label(at),
        prevalence_samples=shares.worth,
        metrics=_explained(run, shares, _metrics(run, shares, lambda values: number(values[0]))),
        design=run.design("given" if shares.worth is None else "uncertain"),
        notes=run.notes(shares),
    )


def swept(run: ProjectedRun, sweep: Sweep) -> Projection:
    """Values and limits with one class from rare to frequent.

    Raises:
        InvalidInput: there is no such class, or the data have no samples of it or of another.
        OutOfReach: too many samples for so many points.
    """
    index = run.classes.index(sweep.label, "/sweep/class")
    actual = run.classes.actual
    observed, equal = float(actual[index] / actual.sum()), float(1.0 / np.count_nonzero(actual))
    grid = _grid(sweep, {Marked.OBSERVED: observed, Marked.EQUAL: equal})
    if 0 in (actual[index], np.delete(actual, index).sum()):
        raise InvalidInput.at("/sweep/class", "no_samples", "expected samples of this class and of another")
    shares = run.shares(sweep_shares(actual, index, grid))
    return Projection(
        evaluation_id=run.identifier,
        sweep=SweptClass(
            label=sweep.label, start=sweep.start, end=sweep.end, steps=sweep.steps, observed=observed, equal=equal
        ),
        grid=grid.tolist(),
        metrics=_metrics(run, shares, numbers),
        design=run.design("given"),
        notes=run.notes(shares),
    )


def _grid(sweep: Sweep, marked: Mapping[Marked, float]) -> Array:
    """Shares (G) of the class, each once: exact ones replace the steps that differ from them by rounding only."""
    steps = np.linspace(sweep.start, sweep.end, sweep.steps)
    exactly = np.array([marked[one] if isinstance(one, Marked) else one for one in sweep.at])
    apart = np.abs(steps[:, None] - exactly).min(axis=1, initial=np.inf) > _SAME_SHARE
    return np.unique(np.concatenate([steps[apart], exactly]))


def _metrics(run: ProjectedRun, shares: ClassShares, written: Callable[[Array], Values]) -> dict[str, ProjectedValue]:
    """By name everything at shares (G, K); ``written`` makes an answer of values (G)."""
    found = {}
    for estimand, at in zip(run.estimands, run.estimates(run.estimands, shares), strict=True):
        own = run.data.values(estimand)
        for place, name in enumerate(estimand.names):
            ones = [estimates[place] for estimates in at]
            value, low, high = np.array([(one.value, one.low, one.high) for one in ones]).T
            limited = [one for one in ones if one.reason is None]
            found[name] = ProjectedValue(
                written(value),
                written(low),
                written(high),
                number(own[place]),
                method=limited[0].method if limited else None,
                reason=None if limited or ones[0].reason is None else ones[0].reason.value,
            )
    return found


_ANEW = "decisions are made anew from probabilities that are fitted to the shares, so prevalence is not all of it"


def _explained(run: ProjectedRun, shares: ClassShares, metrics: dict[str, ProjectedValue]) -> dict[str, ProjectedValue]:
    """Put causes to values at one point."""
    actual, at = run.classes.actual, shares.points[0]
    for estimand in run.estimands:
        if kind_of_causes(estimand) is None:
            continue
        for name, limits in zip(estimand.names, run.limits_of_prevalence(estimand, shares), strict=True):
            one = metrics[name]
            if isinstance(one.value, float) and one.observed is not None:
                gap = one.value - one.observed
                causes = causes_of_shares(estimand, run.classes.labels, (at, actual / actual.sum()), gap, limits)
                if run.scenario.recalibrate:
                    causes = replace(causes, items=None, because=None, reason=_ANEW)
                metrics[name] = replace(one, causes=causes)
    return metrics


# Shares per named class at which a range is looked at first; its corners besides.
_POINTS = 21


def within_ranges(run: ProjectedRun, named: Mapping[str, Sequence[float]]) -> Projection:
    """The lowest and the highest value of every metric, each with its limit and the shares at which it is taken.

    Raises:
        InvalidInput: the ranges make no sense for this run.
        OutOfReach: too many samples for so many points.
    """
    ranges = NamedRanges(run.classes, named)
    points = ranges.bounds.points(_POINTS)
    in_all = 2 * sum(len(estimand.names) for estimand in run.estimands)
    found: dict[str, ExtremeValues] = {}
    settled = True
    for estimand in run.estimands:

        def values(points: Array, estimand: Estimand = estimand) -> Array:
            return run.values(estimand, ranges.shares(points))

        most = (run.most_points(estimand) - len(points)) // len(run.sharing_time_with(estimand))
        reached = extremes(ranges.bounds, values, points, values(points), most=most)
        settled &= reached.settled
        found |= _answered(run, estimand, ranges, reached, in_all)
    note = (
        f"Searched on {_POINTS} shares per named class and in all corners of what the ranges allow, then from the best "
    )
    note += "of these on" + (" until nothing was gained" if settled else ", as far as so many samples let it")
    note += "; the ends of the intervals are those at the worst and at the best shares."
    searched = run.shares(ranges.shares(points[:1]), in_all=in_all)
    return Projection(
        evaluation_id=run.identifier,
        prevalence_range={label: list(ends) for label, ends in named.items()},
        metrics=found,
        design=run.design("range"),
        notes=[note, *run.notes(searched)],
    )


def _answered(
    run: ProjectedRun, estimand: Estimand, ranges: NamedRanges, reached: ShareExtremes, in_all: int
) -> dict[str, ExtremeValues]:
    """Both ends of every value of an estimand, with the limits there."""
    observed = run.data.values(estimand)
    found = {name: ExtremeValues(number(own), None, None) for name, own in zip(estimand.names, observed, strict=True)}
    known = np.flatnonzero(~np.isnan(reached.values[0]))
    if not known.size:
        return found
    shares = ranges.shares(np.concatenate(reached.points[:, known]))
    (limits,) = run.estimates([estimand], run.shares(shares, in_all=in_all))
    for index, place in enumerate(known.tolist()):
        worst, best = index, known.size + index
        found[estimand.names[place]] = ExtremeValues(
            number(observed[place]),
            Lowest(number(reached.values[0, place]), number(limits[worst][place].low), run.by_label(shares[worst])),
            Highest(number(reached.values[1, place]), number(limits[best][place].high), run.by_label(shares[best])),
        )
    return found
