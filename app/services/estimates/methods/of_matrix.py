"""Limits of metrics of a matrix: rates, the usual metrics in closed form, everything else by simulation."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite, isnan, nan
from typing import Final

import numpy as np

from app.domain.options import DRAWS, FEWEST_DRAWS, IntervalMethod, Sampling
from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import Bounds, Measure, usual_measure
from app.kernel.metrics.proportion import ConfusionCells, Rate
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.closed_forms import Method, delta_interval, headline_limits
from app.kernel.uncertainty.designs import GIVEN, Given, Independent
from app.kernel.uncertainty.draws import MOST_UNDEFINED, Shares, Summary, chosen_seed, within
from app.kernel.uncertainty.groups import group_intervals
from app.kernel.uncertainty.intervals import Limits, proportion_limits
from app.kernel.uncertainty.simulation import RowPosterior, bootstrap_intervals
from app.services.estimands import Estimand
from app.services.estimates.estimate import Estimate, Estimates, LimitSettings, NoLimits
from app.services.estimates.run_data import RunData

# Relative to the value, a deviation below this is rounding.
_NO_VARIANCE = 1e-12
# Cells of all simulated matrices together: a second or two.
MOST_DRAWN_CELLS = 20_000_000


def affordable_draws(cells: int, wanted: int = DRAWS, *, most_cells: int = MOST_DRAWN_CELLS) -> int:
    """Draws of so many cells each that can be afforded; 0 where they are fewer than ``FEWEST_DRAWS``."""
    most = most_cells // max(cells, 1)
    return min(wanted, most) if most >= FEWEST_DRAWS else 0


# Why a value, or too many of its draws, do not exist: by whether it is of samples, or of a matrix.
_UNDEFINED = {
    True: (NoLimits.UNDEFINED_FOR_SAMPLES, NoLimits.UNDEFINED_RESAMPLES),
    False: (NoLimits.UNDEFINED, NoLimits.UNDEFINED_DRAWS),
}


def estimates_from(
    found: Summary,
    form: Estimate,
    bounds: Bounds,
    *,
    of_samples: bool,
    constant: NoLimits | None = NoLimits.DEGENERATE,
) -> Estimates:
    """The values (V) of one estimand, whose limits stay within its range; ``constant`` is why one that does not vary
    has no limits, None where it is certain.

    Draws leave the range where they are no samples: pairs within classes of one sample are less than none.
    """
    columns = (found.estimate, found.low, found.high, found.deviation, found.monte_carlo_error)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    estimates = []
    for (value, low, high, deviation, error), lost, stretched in zip(
        rows, found.undefined.tolist(), found.extended.tolist(), strict=True
    ):
        low, high = within(low, high, bounds)
        one = replace(form, value=value, low=low, high=high, undefined_draws=int(lost), stretched=stretched)
        if form.draws is not None:
            one = replace(one, monte_carlo_error=error)
        reason = _reason(one, deviation, _UNDEFINED[of_samples], constant)
        estimates.append(one if reason is None else one.without_limits(reason))
    return tuple(estimates)


def _reason(
    one: Estimate, deviation: float, undefined: tuple[NoLimits, NoLimits], constant: NoLimits | None
) -> NoLimits | None:
    if not isfinite(one.value):
        return undefined[0]
    if one.draws is not None and one.undefined_draws > MOST_UNDEFINED * one.draws:
        return undefined[1]
    if one.draws is None and isnan(one.high - one.low):
        return NoLimits.DEGENERATE
    if constant is not None and deviation <= _NO_VARIANCE * max(abs(one.value), _NO_VARIANCE):
        return constant
    return None if isfinite(one.high - one.low) else NoLimits.UNBOUNDED


# Cells of all simulated matrices together: some seconds.
MOST_CELLS: Final = 40_000_000
# Cells of matrices simulated for one metric only: as long.
_MOST_CELLS_OF_ONE = 4 * MOST_CELLS
# Values of draws held in memory at once: 64 MB.
_VALUES_AT_ONCE = 1 << 23


def of_rates(estimand: Estimand, rates: Sequence[Rate], run: RunData, settings: LimitSettings) -> Estimates:
    """An estimand that is a rate or follows from one: the same limits by whatever name the rate is asked for. A label
    is there or not in every sample, so its rates are those of two classes.
    """
    each = zip(*limits_of_counts(run.counted(rates, settings.level_of_each), settings), strict=True)
    # Of two classes one may have the rate of the other turned round.
    low, high = np.array([_on_line(rate, ends, run.table) for rate, ends in zip(rates, each, strict=True)]).T
    return by_proportions(estimand, (low, high), given_of(GIVEN[rates[0].among], run), run, settings)


def _on_line(rate: Rate, ends: Limits, table: Table) -> Limits:
    """Limits of what is a line of a rate, from those of the rate."""
    times = table.counts.sum(axis=(-2, -1)) if rate.counted else 1.0
    low, high = rate.line.limits(*ends)
    return times * low, times * high


def limits_of_many(estimand: Estimand, table: Table, settings: LimitSettings) -> Limits | None:
    """Limits (B) of one value of many matrices of independent samples (B, K, K), as `of_rates` and `in_closed_form`
    make them of each; NaN where there are none. None for what has no closed form.
    """
    design, expression = Independent(table), usual_measure(estimand.expression)
    with silently():
        if estimand.rates is not None:
            (rate, *_), level = estimand.rates, settings.level_of_each
            return _on_line(rate, limits_of_counts(design.counts(rate, level), settings), table)
        if expression is None:
            return None
        inference = expression.metric.card.inference
        if inference.overlap is not None and isinstance(expression.of, int):
            hits, among = design.rates(settings.level_of_each)
            counts = hits[-1][..., expression.of], among[-1][..., expression.of]
            low, high = map(inference.overlap, limits_of_counts(counts, settings))
            return low, high
        found = headline_limits(expression.metric, design, settings.level_of_each)
    if found is not None and inference.over_classes:
        found = np.where((table.actual == 0).any(axis=-1), nan, found[0]), found[1]
    return found


def limits_of_counts(counts: tuple[Array, Array], settings: LimitSettings) -> Limits:
    """Limits of proportions from hits and samples (...)."""
    return proportion_limits(*counts, settings.level_of_each, settings.proportions_of_each)


def by_proportions(estimand: Estimand, ends: Limits, given: str, run: RunData, settings: LimitSettings) -> Estimates:
    """Values (V) with limits (V) that follow from those of proportions."""
    method = run.in_design(settings.proportions_of_each.value)
    form, found = Estimate(value=nan, level=settings.level, method=method, given=given), []
    for value, low, high in zip(run.values(estimand).tolist(), ends[0].tolist(), ends[1].tolist(), strict=True):
        one = replace(form, value=value, low=low, high=high)
        if isnan(value) or not low < high:
            alone = NoLimits.ONE_GROUP if isnan(low) else NoLimits.DEGENERATE
            one = one.without_limits(NoLimits.UNDEFINED if isnan(value) else alone)
        found.append(one)
    return tuple(found)


def in_closed_form(estimand: Estimand, run: RunData, settings: LimitSettings) -> Estimates | None:
    """One of the usual metrics; None for others."""
    expression = usual_measure(estimand.expression)
    if expression is None:
        return None
    inference = expression.metric.card.inference
    if inference.overlap is not None:
        return of_overlaps(estimand, expression, inference.overlap, run, settings)
    form = run.closed_forms(settings.level_of_each).of(expression.metric) if inference.headline else None
    if form is None:
        return None
    return (Estimate.of(form, float(run.values(estimand)[0]), settings.level),)


def of_overlaps(
    estimand: Estimand, expression: Measure, overlap: Callable[[Array], Array], run: RunData, settings: LimitSettings
) -> Estimates:
    """F1 or the Jaccard index, of one class or label or of all, from the share of actual and predicted members that are
    both.
    """
    classes = [expression.of] if isinstance(expression.of, int) else range(run.n_classes)
    rates = [Rate(ConfusionCells.TP, ConfusionCells.UNION, of) for of in classes]
    low, high = map(overlap, limits_of_counts(run.counted(rates, settings.level_of_each), settings))
    return by_proportions(estimand, (low, high), given_of(Given.SAMPLES, run), run, settings)


def simulated(estimands: Sequence[Estimand], run: RunData, settings: LimitSettings) -> list[Estimates]:
    """Any estimands by simulation, or by derivatives where these are asked for. All see the same draws."""
    form = simulated_form(run, settings)
    if form.reason is not None:
        return [form.of_values(run.values(estimand)) for estimand in estimands]
    fixed = form.prior is not None and settings.sampling.shares is Shares.OBSERVED
    constant = NoLimits.FIXED if fixed else NoLimits.DEGENERATE
    # Some at a time, so that draws fit into memory.
    size = max(1, _VALUES_AT_ONCE // ((form.draws or 1) * run.n_classes))
    found: list[Estimates] = []
    for start in range(0, len(estimands), size):
        with silently():
            summaries = _summaries(estimands[start : start + size], run, settings, form)
        bounds = [one.bounds for one in estimands[start : start + size]]
        found += [
            estimates_from(summary, form, ends, of_samples=False, constant=constant)
            for summary, ends in zip(summaries, bounds, strict=True)
        ]
    return found


def simulated_form(run: RunData, settings: LimitSettings) -> Estimate:
    """Return the estimate that all simulated values start from; its reason is set when nothing can be simulated."""
    sampling, by_groups = settings.sampling, run.groups is not None
    drawn = by_groups or sampling.method is not IntervalMethod.DELTA
    of_posterior = not by_groups and sampling.method is IntervalMethod.POSTERIOR
    draws = _affordable_draws(run, sampling) if drawn else None
    form = Estimate(
        value=nan,
        level=settings.level,
        method=Method.CLUSTER_BOOTSTRAP.value if by_groups else run.in_design(sampling.method.value),
        given=given_of(Given.ACTUAL if sampling.shares is Shares.OBSERVED else Given.SAMPLES, run),
        prior=sampling.prior.value if of_posterior else None,
    )
    if draws is None:
        return form
    if not draws:
        return form.without_limits(NoLimits.TOO_LARGE if by_groups else NoLimits.TOO_MANY_CLASSES)
    seed = chosen_seed(settings.seed, run.source.counts)
    return replace(form, seed=seed, draws=draws, monte_carlo_error=nan)


def _affordable_draws(run: RunData, sampling: Sampling) -> int:
    """Return the affordable number of draws, at most the requested one; 0 if it is too small to be of use."""
    if run.groups is None:
        return affordable_draws(run.counts.size, sampling.draws, most_cells=MOST_CELLS)
    most = run.groups.affordable_draws(sampling.draws)
    return most if most >= FEWEST_DRAWS else 0


def work_of(run: RunData, settings: LimitSettings) -> float:
    """Return the time that simulating one metric takes, as a part of the longest that anyone waits."""
    return _affordable_draws(run, settings.sampling) * run.counts.size / _MOST_CELLS_OF_ONE


def _summaries(
    estimands: Sequence[Estimand], run: RunData, settings: LimitSettings, form: Estimate
) -> Sequence[Summary]:
    sampling, level, counts = settings.sampling, settings.level_of_each, run.counts
    functionals = [estimand.functional for estimand in estimands]
    if form.seed is None or form.draws is None:
        return [
            delta_interval(
                counts,
                one.functional,
                bounds=one.bounds,
                level=level,
                shares=sampling.shares,
                squares=run.squares,
            )
            for one in estimands
        ]
    if run.groups is not None:
        return group_intervals(run.groups, functionals, seed=form.seed, draws=form.draws, level=level)
    if sampling.method is IntervalMethod.POSTERIOR:
        draw = partial(row_posterior(run, settings).drawn, functionals, seed=form.seed, draws=form.draws)
        return run.drawn((form.seed, sampling, [one.text for one in estimands]), draw).intervals(level)
    return bootstrap_intervals(
        counts,
        functionals,
        seed=form.seed,
        draws=form.draws,
        level=level,
        accelerated=sampling.method is IntervalMethod.BCA,
        shares=sampling.shares,
    )


def row_posterior(run: RunData, settings: LimitSettings) -> RowPosterior:
    """Posterior of the matrix of a run."""
    sampling, custom = settings.sampling, settings.pseudo_counts
    return RowPosterior(run.counts, prior=sampling.prior, custom=custom, shares=sampling.shares, squares=run.squares)


def given_of(given: Given, run: RunData) -> str:
    """The counts that limits take as fixed: of weighted samples their number alone, or the classes where these are."""
    if run.source.is_grouped:
        return Given.GROUPS.value
    return (Given.SAMPLES if run.weighted is not None and given is Given.PREDICTED else given).value
