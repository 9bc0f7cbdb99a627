"""Values and limits at another class prevalence: every class in another weight, and, if wanted, other probabilities.

Under label shift this is exact: a sample of a class stands for as many as the class has where the model is used. What
is simulated is what is simulated of the run as it is: rows of a matrix, samples within the classes, or whole groups.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import nan

import numpy as np

from app.domain.inputs.classified import decide, decide_by_threshold
from app.domain.inputs.samples import DecidedBy
from app.kernel.matrix.prevalence import project, recalibrate
from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import usual_measure
from app.kernel.metrics.proportion import ACCURACY, Rate
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.closed_forms import Method
from app.kernel.uncertainty.designs import Given
from app.kernel.uncertainty.draws import Shares, chosen_seed, generator, summarise
from app.kernel.uncertainty.groups import GroupedCounts, Grouping, expanded_level
from app.kernel.uncertainty.intervals import ValueWithEnds, clopper_pearson, jeffreys, ratio_limits, share_limits
from app.kernel.uncertainty.resampling import (
    at_shares,
    replicated,
    resamples,
    values_of,
)
from app.kernel.uncertainty.simulation import CURVED_CLASSES
from app.kernel.uncertainty.units import Run, Units
from app.services.estimands import Estimand
from app.services.estimates.estimate import ClassShares, Estimate, Estimates, LimitSettings, NoLimits
from app.services.estimates.methods.of_matrix import (
    affordable_draws,
    estimates_from,
    given_of,
    row_posterior,
)
from app.services.estimates.methods.of_samples import resampling_plan
from app.services.estimates.run_data import RunData

# Probabilities, or cells of units, passed over at all points together; and at which values of a matrix are looked at.
MOST_ENTRIES = 100_000_000
_MOST_POINTS = 1_000_000
# Cells of the matrices, or probabilities, that are measured together.
_AT_ONCE = 1 << 20
# Shares closer than this are one.
_SAME_SHARE = 1e-12


def most_points(run: RunData, *, from_samples: bool) -> int:
    """At how many shares values can be had in reasonable time."""
    return max(MOST_ENTRIES // (run.units.n_units * run.units.width), 1) if from_samples else _MOST_POINTS


def values_at(counts: Array, estimands: Sequence[Estimand], shares: Array | None = None) -> list[Array]:
    """Values (..., V) of every estimand for matrices (..., K, K); what prevalence moves at the shares (K), if given."""
    table = Table(counts)
    projected = table if shares is None else Table(project(counts, shares))
    with silently():
        return [
            estimand.values(np.asarray(estimand.functional(table if estimand.insensitive else projected)))
            for estimand in estimands
        ]


def shifted_values(estimands: Sequence[Estimand], run: RunData, shares: ClassShares) -> list[Array]:
    """Values (G, V) of every estimand at the shares; all are computed from samples, or all from the matrix."""
    of_samples = shares.from_samples(estimands[0])
    entries = run.units.n_units * run.n_classes if of_samples else run.counts.size
    size = 1 if shares.calibrated_to is not None else max(1, _AT_ONCE // entries)
    found = []
    for start in range(0, len(shares), size):
        some = shares.points[start : start + size]
        if of_samples:
            found.append(_values_of_samples(estimands, run, shares.at(some)))
        else:
            found.append(values_at(np.broadcast_to(run.counts, (len(some), *run.counts.shape)), estimands, some))
    return [np.concatenate(of_estimand) for of_estimand in zip(*found, strict=True)]


def _values_of_samples(estimands: Sequence[Estimand], run: RunData, shares: ClassShares) -> list[Array]:
    """Values (G, V) at shares whose points have the same probabilities."""
    units, found = _units_at(run, shares.calibrated_to, shares.points[0]), []
    still = units.subject(run.weights)
    with silently():
        moved = units.subject(at_shares(units, run.weights, shares.points))
        for estimand in estimands:
            own = estimand.values(np.asarray(estimand.functional(still if estimand.insensitive else moved)))
            found.append(np.broadcast_to(own, (len(shares), own.shape[-1])))
    return found


def _units_at(run: RunData, calibrated_to: Array | None, shares: Array) -> Units:
    """Units whose scores and decisions are fitted to shares (K), if they are to be."""
    if calibrated_to is None:
        return run.units
    rows = recalibrate(run.scores.probabilities, calibrated_to, shares)
    facts, positive = run.source.facts, run.source.positive or 0
    if facts.get("rule") == DecidedBy.THRESHOLD.value:
        codes = decide_by_threshold(rows[:, positive], float(facts["threshold"]), positive)
    else:
        codes, _ = decide(rows)
    return Run(Scores(run.scores.y, rows), codes.astype(np.intp))


def simulation(run: RunData, shares: ClassShares, settings: LimitSettings, *, from_samples: bool) -> Estimate:
    """Estimate without a value, from which all simulated ones begin; or the reason why nothing can be simulated.

    Class counts are fixed unless groups vary.
    """
    sampling, grouped = settings.sampling, run.source.is_grouped
    form = Estimate(value=nan, level=settings.level, given=given_of(Given.ACTUAL, run))
    if from_samples:
        made = resampling_plan(run, settings.sampling.draws, shares.work)
        draws = 0 if made is None else made.draws
        form = replace(form, method=run.in_design("bootstrap", "cluster"))
    else:
        draws = affordable_draws(run.counts.size * shares.work, sampling.draws)
        if grouped:
            form = replace(form, method=Method.CLUSTER_BOOTSTRAP.value)
            draws = 0 if run.groups is None else min(draws, run.groups.affordable_draws(draws))
        else:
            form = replace(form, method=run.in_design(sampling.method.value), prior=sampling.prior.value)
    form = replace(form, seed=chosen_seed(settings.seed, run.source.counts), draws=draws, monte_carlo_error=nan)
    return form if draws else form.without_limits(NoLimits.TOO_MANY_POINTS)


def in_closed_form(
    estimand: Estimand, run: RunData, shares: ClassShares, settings: LimitSettings
) -> list[Estimates | None]:
    """An estimand of the matrix at each point; None where only simulation does, as at shares that are uncertain.

    Accuracy is a mean of the recalls in weights, for every design of samples. At equal shares the usual metrics have
    the limits of a report. Rates among what was predicted have limits where samples are independent.
    """
    nothing: list[Estimates | None] = [None] * len(shares)
    if shares.worth is not None or shares.from_samples(estimand):
        return nothing
    if estimand.rates is None:
        return nothing if settings.simulate else [_headline(estimand, run, one, settings) for one in shares.points]
    if all(rate.same_as(ACCURACY) and not rate.counted for rate in estimand.rates):
        if settings.simulate:
            return nothing
        return [tuple(_accuracy(rate, run, one, settings) for rate in estimand.rates) for one in shares.points]
    plain = run.grouping is None and run.weighted is None
    if not plain or any(rate.by_truth or rate.counted for rate in estimand.rates):
        return nothing
    values = shifted_values([estimand], run, shares)[0]
    return [
        tuple(
            _among_predicted(rate, value, run.counts, point, settings)
            for rate, value in zip(estimand.rates, of_point.tolist(), strict=True)
        )
        for point, of_point in zip(shares.points, values, strict=True)
    ]


def _headline(estimand: Estimand, run: RunData, shares: Array, settings: LimitSettings) -> Estimates | None:
    """One of the usual metrics at shares (K), where these are equal."""
    expression = usual_measure(estimand.expression)
    if expression is None or np.ptp(shares) > _SAME_SHARE:
        return None
    forms = run.at_equal_shares(settings.level_of_each)
    form = next((one for one in forms if one.key == expression.metric.key), None)
    if form is None:
        return None
    value = float(shifted_values([estimand], run, ClassShares(shares[None]))[0][0, 0])
    return (Estimate.of(form, value, settings.level),)


def _accuracy(rate: Rate, run: RunData, shares: Array, settings: LimitSettings) -> Estimate:
    """A line of the mean of the recalls in weights (K), by MOVER on their Jeffreys limits."""
    design, level = run.design, settings.level_of_each
    with silently():
        recall, (hits, worth) = design.table.recall, design.recalls(level)
        recalls = jeffreys(hits, worth, level)
    ends = share_limits(recall, *recalls, worth, shares, level, design.spread)
    value = float(shares @ np.where(shares > 0, recall, 0.0))
    low, high = (float(end) for end in rate.line.limits(*ends))
    method, given = run.in_design(Method.MOVER.value), design.given or Given.ACTUAL
    found = Estimate(value=float(rate.line(np.asarray(value))), level=settings.level, method=method, given=given.value)
    return replace(found, low=low, high=high) if low < high else found.without_limits(NoLimits.ONE_GROUP)


def _among_predicted(rate: Rate, value: float, counts: Array, shares: Array, settings: LimitSettings) -> Estimate:
    """A rate among what was predicted, such as precision, at shares (K).

    It is a / (a + b), each a sum of shares times rates of rows: the hits, and what else was predicted. With few false
    positives draws put too little weight on none. So each rate of a row has the limits of Clopper and Pearson; sums
    have those of MOVER, and the ratio b / a those of MOVER-R (Donner & Zou 2012).
    """
    form = Estimate(value=value, level=settings.level, method=Method.MOVER.value, given=Given.ACTUAL.value)
    if np.isnan(value):
        return form.without_limits(NoLimits.UNDEFINED)
    places = np.arange(len(counts))
    hits, among = (cells.hold(places[:, None], places, rate.of) for cells in (rate.hits, rate.among))
    level = settings.level_of_each
    a, b = (shares_of_rows(counts, mask, shares, level) for mask in (hits, among & ~hits))
    least, most = ratio_limits(b, a)
    low, high = rate.line.limits(1.0 / (1.0 + most), 1.0 / (1.0 + least))
    return replace(form, low=float(low), high=float(high))


def shares_of_rows(counts: Array, mask: Mask, shares: Array, level: float) -> ValueWithEnds:
    """Return the sum of shares times the part of each row in some cells, with limits."""
    sizes = counts.sum(axis=1)
    rows = mask.any(axis=1) & (sizes > 0)
    hits, sizes, weights = np.where(mask, counts, 0.0).sum(axis=1)[rows], sizes[rows], shares[rows]
    rates, (low, high) = hits / sizes, clopper_pearson(hits, sizes, level)
    value = np.asarray(weights @ rates)
    below, above = (np.sqrt(((weights * (rates - end)) ** 2).sum()) for end in (low, high))
    return value, np.maximum(value - below, 0.0), value + above


def simulated(
    estimands: Sequence[Estimand], run: RunData, shares: ClassShares, settings: LimitSettings
) -> list[list[Estimates]]:
    """For every estimand its values at each point; all points see the same draws, so that they are on smooth curves.

    All estimands are computed from samples, or all from the matrix.
    """
    of_samples = shares.from_samples(estimands[0])
    form = simulation(run, shares, settings, from_samples=of_samples)
    values = shifted_values(estimands, run, shares)
    if not form.draws:
        return [[form.of_values(one) for one in of_all] for of_all in values]
    center = None
    if not of_samples and run.groups is None and run.n_classes >= CURVED_CLASSES:
        center = row_posterior(run, settings).mean()
    # What does not vary of a matrix follows from the shares alone, and these are given.
    constant = NoLimits.DEGENERATE if of_samples else None
    found = [list[Estimates]() for _ in estimands]
    level, draws = _draws(estimands, run, shares, settings, form)
    for place, drawn in enumerate(draws):
        centers: Sequence[Array | None] = [None] * len(estimands)
        if center is not None:
            centers = values_at(center, estimands, shares.points[place])
        for one, own, at, of_draws, middle in zip(estimands, found, values, drawn, centers, strict=True):
            summary = summarise(of_draws, at[place], level, center=middle)
            own.append(estimates_from(summary, form, one.bounds, of_samples=of_samples, constant=constant))
    return found


def moved_by(estimand: Estimand, run: RunData, shares: ClassShares, settings: LimitSettings) -> Estimates:
    """Differences that one point makes of the values of an estimand, each draw at both."""
    form = simulation(run, shares, settings, from_samples=estimand.scored)
    gaps = shifted_values([estimand], run, shares)[0][0] - run.values(estimand)
    if not form.draws:
        return form.of_values(gaps)
    level, draws = _draws([estimand], run, shares, settings, form, unmoved=True)
    (there,), (here,) = draws
    return estimates_from(summarise(there - here, gaps, level), form, (None, None), of_samples=False, constant=None)


def _draws(
    estimands: Sequence[Estimand],
    run: RunData,
    shares: ClassShares,
    settings: LimitSettings,
    form: Estimate,
    *,
    unmoved: bool = False,
) -> tuple[float, Iterator[list[Array]]]:
    """The level that limits are read at, and the values (D, V) of every estimand in the same draws at each point, and
    then as the run is where these are wanted ``unmoved`` too.
    """
    assert form.draws is not None  # noqa: S101 - something can be simulated
    assert form.seed is not None  # noqa: S101 - what has draws has a seed
    spreads = shares.drawn(form.draws, form.seed)
    points = [*zip(shares.points, spreads, strict=True), *[None] * unmoved]
    if shares.from_samples(estimands[0]):
        groups: Grouping | GroupedCounts | None = run.grouping
        at_points = (_resampled(estimands, run, shares, settings, form.seed, at) for at in points)
    else:
        groups, matrices = run.groups, _matrices(run, settings, form.draws, form.seed)
        at_points = (values_at(matrices, estimands, None if at is None else at[1]) for at in points)
    level = settings.level_of_each
    return level if groups is None else expanded_level(level, groups.effective_groups), at_points


def _matrices(run: RunData, settings: LimitSettings, draws: int, seed: int) -> Array:
    """Drawn matrices (D, K, K): rows by their posterior, or sums of resampled groups."""
    if run.groups is None:
        return row_posterior(run, settings).matrices(draws, generator(seed))
    matrices = np.concatenate([*run.groups.resample(draws=draws, random=generator(seed))])
    # A class that no drawn group has leaves nothing to weigh.
    matrices[(matrices.sum(axis=-1) == 0) & (run.counts.sum(axis=-1) > 0)] = nan
    return matrices


def _resampled(
    estimands: Sequence[Estimand],
    run: RunData,
    shares: ClassShares,
    settings: LimitSettings,
    seed: int,
    at: tuple[Array, Array] | None,
) -> list[Array]:
    """Values (D, V) in a bootstrap within the classes or of whole groups, at one point and the shares of its draws."""
    made = resampling_plan(run, settings.sampling.draws, shares.work)
    assert made is not None  # noqa: S101 - something can be simulated
    units = run.units if at is None else _units_at(run, shares.calibrated_to, at[0])
    found: dict[int, Array] = {}
    for still in (False, True):
        some = {place: one.functional for place, one in enumerate(estimands) if one.insensitive is still}
        moved = None if still else at
        weights = run.weights if moved is None else at_shares(units, run.weights, moved[0])
        drawn = resamples(units, made, seed, Shares.OBSERVED, run.grouping)
        if some:
            own = values_of(units, [*some.values()], weights)
            found |= zip(some, replicated(units, [*some.values()], drawn, own, run.weights, moved), strict=True)
    return [found[place] for place in range(len(estimands))]
