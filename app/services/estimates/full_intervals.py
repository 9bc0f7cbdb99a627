"""Intervals of every matrix metric and every expression: ``options.intervals = "all"``.

Plain rates keep their Wilson intervals; all else comes from one set of simulated matrices, or by the delta method.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, isnan

import numpy as np

from app.domain.errors import InvalidInput
from app.domain.expressions.expressions import render
from app.domain.expressions.syntax import write_label
from app.domain.findings import Finding
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.report import FEWEST_DRAWS, Interval, IntervalChoice, IntervalMethod, Options, Sampling
from app.kernel.metrics.card import Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Every, Expression, Measure, is_about_sample
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty import estimation
from app.kernel.uncertainty.bootstrap import BootstrapInterval
from app.kernel.uncertainty.clusters import GroupedRuns, group_intervals
from app.kernel.uncertainty.design import ClassCounts, Prior, Shares
from app.kernel.uncertainty.draws import MOST_UNDEFINED, Functional, Summary
from app.kernel.uncertainty.headline import Given, Method
from app.services.estimands import Estimand, estimand_of
from app.services.estimates.interval_warnings import caution_findings
from app.services.seeds import chosen_seed

# Cells of all simulated matrices together: some seconds.
MOST_CELLS = 40_000_000
# Values of draws held in memory at once: 64 MB.
_VALUES_AT_ONCE = 1 << 23
_KEPT = frozenset({Method.WILSON.value, Method.GROUPED_WILSON.value})
_REASONS = {
    "undefined": "the metric is undefined for this matrix",
    "undefined_draws": f"the metric is undefined in more than {MOST_UNDEFINED:.0%} of the simulated matrices",
    "fixed": "the value follows from the class counts, which are taken as fixed",
    "degenerate": "the value does not vary around what was found, which says nothing about its uncertainty",
    "unbounded": "an end of the interval is infinite",
    "statistic": "the metric describes this sample and is no property of the classifier",
}


@dataclass(frozen=True, slots=True, eq=False)
class FullIntervals:
    """Intervals by expression, and what to be careful about."""

    intervals: Mapping[str, Interval]
    findings: tuple[Finding, ...]


def check_sampling(source: MatrixInput, options: Options) -> None:
    """Refuse intervals of everything where they cannot be given.

    Raises:
        InvalidInput: the entries are no counts, a prior does not fit, or the work is too much.
    """
    if options.intervals is not IntervalChoice.ALL:
        return
    sampling, size = options.sampling, len(source.labels)
    if source.content is not Content.counts:
        raise _refused(
            "intervals",
            "intervals_need_counts",
            "expected numbers of samples: an interval needs to know how many stand behind every entry, and the matrix "
            f"holds {source.content}",
        )
    check_draws(sampling.draws, size, sampling.method)
    rows = sampling.pseudo_counts
    if (sampling.prior is Prior.CUSTOM) != (rows is not None):
        raise _refused(
            "pseudo_counts", "custom_prior", "expected pseudo_counts with the prior custom, and only with it"
        )
    if rows is not None and (len(rows) != size or any(len(row) != size for row in rows)):
        raise _refused("pseudo_counts", "wrong_shape", f"expected {size} rows of {size} pseudo-counts")


def check_draws(draws: int, size: int, method: IntervalMethod = IntervalMethod.POSTERIOR) -> None:
    """Refuse simulations that would take minutes.

    Raises:
        InvalidInput: too many draws for this many classes.
    """
    if method is IntervalMethod.DELTA or draws * size * size <= MOST_CELLS:
        return
    most = MOST_CELLS // (size * size)
    advice = f"at most {most} draws" if most >= FEWEST_DRAWS else "the headline intervals or the delta method"
    raise _refused("draws", "too_many_draws", f"expected {advice} for {size} classes, got {draws} draws")


def _refused(member: str, code: str, detail: str) -> InvalidInput:
    return InvalidInput.at(f"/options/{member}", code, detail)


def full_intervals(
    source: MatrixInput,
    options: Options,
    asked: Sequence[tuple[str, Expression]],
    headline: Mapping[str, Interval],
    runs: GroupedRuns | None = None,
) -> FullIntervals:
    """Intervals of every matrix metric with its default parameters, and of the expressions asked for.

    Args:
        source: Counts.
        options: What is asked.
        asked: Metric expressions of the matrix, by their text.
        headline: The closed-form intervals, of which those by Wilson are kept.
        runs: The samples in their groups, where they come in groups: then these are resampled.
    """
    intervals = {name: found for name, found in headline.items() if found["method"] in _KEPT}
    seed = chosen_seed(options.seed, source.counts)
    canonical = [render(expression, source.labels) for _, expression in asked]
    known = dict(zip(canonical, (expression for _, expression in asked), strict=True))
    estimands = [estimand for estimand in _targets(source.labels, known) if not set(estimand.names) <= set(intervals)]
    stretched: list[str] = []
    if runs is not None:
        options = _within_reach(runs, options)
    with silently():
        summaries = list(_summaries(runs or source.counts.astype(np.float64), estimands, options, seed))
    for estimand, found in zip(estimands, summaries, strict=True):
        for index, name in enumerate(estimand.names):
            interval = _interval(estimand, found, index, options, seed, grouped=runs is not None)
            if interval is not None:
                intervals.setdefault(name, interval)
                stretched.extend([name] if found.extended[index] and interval["low"] is not None else [])
    for (text, _), name in zip(asked, canonical, strict=True):
        if name in intervals:
            intervals[text] = intervals[name]
    findings = caution_findings(source.counts, source.labels, options.sampling.prior)
    return FullIntervals(intervals, (*findings, *stretched_findings(stretched)))


def stretched_findings(names: Sequence[str]) -> tuple[Finding, ...]:
    """What is to be said of intervals that were stretched to hold these values."""
    if not names:
        return ()
    return (
        Finding.note(
            "intervals_stretched",
            f"{len(names)} values lie outside of what the simulation leaves likely; their intervals were stretched to "
            "hold them. This happens at the ends of a range and with strong priors.",
            metrics=list(names[:20]),
        ),
    )


def _targets(labels: Sequence[str], asked: Mapping[str, Expression]) -> Iterator[Estimand]:
    """The catalogue, then what was asked beyond it."""
    for metric in catalogue().of_matrices.of_scope(Scope.OVERALL):
        yield estimand_of(Measure(metric, metric.card.defaults, None), metric.key, labels)
    suffixes = [f"@{write_label(label)}" for label in labels]
    for metric in catalogue().of_matrices.of_scope(Scope.CLASS):
        names = tuple(metric.key + suffix for suffix in suffixes)
        yield estimand_of(Measure(metric, metric.card.defaults, Every.CLASS), metric.key, labels, names=names)
    for text, expression in asked.items():
        yield estimand_of(expression, text, labels)


def _within_reach(runs: GroupedRuns, options: Options) -> Options:
    """Fewer draws where there are many groups.

    Raises:
        InvalidInput: not even the fewest draws would take less than minutes.
    """
    draws = runs.affordable_draws(options.sampling.draws)
    if draws < FEWEST_DRAWS:
        raise _refused(
            "intervals",
            "too_many_groups",
            f"expected the headline intervals for {runs.n_groups} groups: drawing them {FEWEST_DRAWS} times takes too "
            "long",
        )
    return replace(options, sampling=replace(options.sampling, draws=draws))


def _summaries(
    data: Array | GroupedRuns, estimands: Sequence[Estimand], options: Options, seed: int
) -> Iterator[Summary]:
    """Limits of every estimand, some of them at a time so that draws fit into memory; all see the same draws."""
    n_classes = data.n_classes if isinstance(data, GroupedRuns) else data.shape[0]
    size = max(1, _VALUES_AT_ONCE // (options.sampling.draws * n_classes))
    for start in range(0, len(estimands), size):
        yield from _some(data, estimands[start : start + size], options, seed)


def _some(data: Array | GroupedRuns, estimands: Sequence[Estimand], options: Options, seed: int) -> Sequence[Summary]:
    sampling, level = options.sampling, options.level
    functionals = [_functional(estimand) for estimand in estimands]
    if isinstance(data, GroupedRuns):
        return group_intervals(data, functionals, seed=seed, draws=sampling.draws, level=level)
    counts = data
    match sampling.method:
        case IntervalMethod.DELTA:
            return [_by_delta(counts, estimand, sampling, level) for estimand in estimands]
        case IntervalMethod.POSTERIOR:
            return estimation.posterior_intervals(counts, functionals, posterior(sampling, seed), level=level)
    return estimation.bootstrap_intervals(
        counts,
        functionals,
        seed=seed,
        draws=sampling.draws,
        level=level,
        method=BootstrapInterval.BCA if sampling.method is IntervalMethod.BCA else BootstrapInterval.PERCENTILE,
        class_counts=_class_counts(sampling),
    )


def _functional(estimand: Estimand) -> Functional:
    """What is simulated: nothing of what gets no interval anyway, such as a p-value, which is dear to compute."""
    if is_about_sample(estimand.expression):
        return lambda table: np.zeros(table.counts.shape[:-2])
    return estimand.functional


def posterior(sampling: Sampling, seed: int) -> estimation.Sampling:
    """How the kernel is to draw matrices."""
    custom = None if sampling.pseudo_counts is None else np.array(sampling.pseudo_counts, dtype=np.float64)
    return estimation.Sampling(
        seed=seed, draws=sampling.draws, prior=sampling.prior, custom=custom, shares=sampling.shares
    )


def _class_counts(sampling: Sampling) -> ClassCounts:
    return ClassCounts.FIXED if sampling.shares is Shares.OBSERVED else ClassCounts.RANDOM


def _by_delta(counts: Array, estimand: Estimand, sampling: Sampling, level: float) -> Summary:
    found = estimation.delta_interval(
        counts, estimand.functional, bounds=estimand.bounds, level=level, class_counts=_class_counts(sampling)
    )
    none = np.zeros(found.estimate.shape)
    return Summary(found.estimate, found.low, found.high, found.error, none, none, none.astype(np.bool_))


def _interval(
    estimand: Estimand, found: Summary, index: int, options: Options, seed: int, *, grouped: bool
) -> Interval | None:
    """One interval; None for a value of one class that does not exist, which the report gives a reason for."""
    estimate, low, high = (float(values[index]) for values in (found.estimate, found.low, found.high))
    if estimand.is_list and not isfinite(estimate):
        return None
    sampling = options.sampling
    interval: Interval = {
        "low": low,
        "high": high,
        "level": options.level,
        "method": Method.CLUSTER_BOOTSTRAP.value if grouped else sampling.method.value,
        "given": Given.GROUPS.value if grouped else "actual_counts" if sampling.shares is Shares.OBSERVED else "n",
    }
    if sampling.method is not IntervalMethod.DELTA:
        if sampling.method is IntervalMethod.POSTERIOR:
            interval["prior"] = sampling.prior.value
        interval["seed"] = seed
        interval["draws"] = sampling.draws
        interval["monte_carlo_error"] = float(found.monte_carlo_error[index])
    reason = _reason(estimand, found, index, sampling)
    if reason is not None:
        interval["low"] = interval["high"] = None
        interval["reason"] = _REASONS[reason]
        if "monte_carlo_error" in interval:
            interval["monte_carlo_error"] = None
    return interval


def _reason(estimand: Estimand, found: Summary, index: int, sampling: Sampling) -> str | None:
    estimate, deviation = float(found.estimate[index]), float(found.deviation[index])
    width = float(found.high[index]) - float(found.low[index])
    if is_about_sample(estimand.expression):
        return "statistic"
    if not isfinite(estimate):
        return "undefined"
    if found.undefined[index] > MOST_UNDEFINED * sampling.draws:
        return "undefined_draws"
    if sampling.method is IntervalMethod.DELTA and isnan(width):
        return "degenerate"
    if deviation <= 1e-12 * max(abs(estimate), 1e-12):
        by_design = sampling.method is IntervalMethod.POSTERIOR and sampling.shares is Shares.OBSERVED
        return "fixed" if by_design else "degenerate"
    if not isfinite(width):
        return "unbounded"
    return None
