"""Values at another class prevalence, and limits by simulation, of a run as it is or there.

Under label shift values at other shares are exact: a sample of a class stands for as many as the class has where the
model is used, with other probabilities if these are wanted. What is simulated is rows of a matrix, samples, cells of
streamed samples, or whole groups; all that is asked for sees the same draws.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from math import isfinite, isnan, nan
from typing import Final, NamedTuple

import numpy as np

from app.domain.inputs.classified import decide, decide_by_threshold
from app.domain.inputs.samples import DecidedBy
from app.domain.options import DRAWS, FEWEST_DRAWS, IntervalMethod
from app.kernel.matrix.prevalence import project, recalibrate
from app.kernel.matrix.table import Table, WeightedCounts, confusion_counts
from app.kernel.metrics.card import is_of_probabilities
from app.kernel.metrics.expression import Bounds, Every, Expression, Measure, is_over_cuts, measures, usual_measure
from app.kernel.metrics.families.rate_means import balanced_accuracy
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.scores import Scores
from app.kernel.streamed.cells import Cells, cells_of, cells_of_groups
from app.kernel.streamed.metrics import is_drawn, order_of, streams
from app.kernel.uncertainty.closed_forms import Headlines, Method, delta_interval
from app.kernel.uncertainty.designs import Design, Given, Grouped, Independent, Weighted
from app.kernel.uncertainty.draws import (
    MOST_UNDEFINED,
    Shares,
    Summary,
    chosen_seed,
    evaluate_draws,
    generator,
    summarise,
    within,
)
from app.kernel.uncertainty.groups import GroupedCounts, Grouping, expanded_level
from app.kernel.uncertainty.resampling import (
    Plan,
    Reading,
    Resampled,
    bootstrap_samples,
    plan,
    replicated,
    resampled,
    resamples,
    values_of,
)
from app.kernel.uncertainty.simulation import RowPosterior, accelerated, acceleration
from app.kernel.uncertainty.units import Run, TableUnits, Units
from app.services.estimands import Estimand
from app.services.estimates.estimate import ClassShares, Estimate, Estimates, LimitSettings, NoLimits
from app.services.estimates.run_data import RunData

# Probabilities, or cells of units, passed over at all points together; and at which values of a matrix are looked at.
MOST_ENTRIES = 100_000_000
_MOST_POINTS = 1_000_000
# Cells of the matrices, or probabilities, that are measured together.
_AT_ONCE = 1 << 20
# Values of draws held in memory at once: 64 MB.
_VALUES_AT_ONCE = 1 << 23
# Cells of all simulated matrices together: some seconds of one run as it is, a second or two of others.
MOST_CELLS: Final = 40_000_000
_MOST_DRAWN_CELLS = 20_000_000
# Cells of matrices simulated for one metric only: as long.
_MOST_CELLS_OF_ONE = 4 * MOST_CELLS
# So many metrics are as much work as all that have to be resampled of the catalogue.
_METRICS_OF_A_LOAD = 8
# Relative to the value, a deviation below this is rounding.
_NO_VARIANCE = 1e-12


# --- values at other shares ------------------------------------------------------------------------------------------


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
            found.append(_values_of_samples(estimands, run, replace(shares, points=some)))
        else:
            found.append(values_at(np.broadcast_to(run.counts, (len(some), *run.counts.shape)), estimands, some))
    return [np.concatenate(of_estimand) for of_estimand in zip(*found, strict=True)]


def _values_of_samples(estimands: Sequence[Estimand], run: RunData, shares: ClassShares) -> list[Array]:
    """Values (G, V) at shares whose points have the same probabilities."""
    units, found = _units_at(run, shares.calibrated_to, shares.points[0]), []
    still = units.subject(run.weights)
    with silently():
        moved = units.subject(units.at_shares(run.weights, shares.points))
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


# --- what is drawn, and how often ------------------------------------------------------------------------------------


def affordable_draws(cells: int, wanted: int = DRAWS, *, most_cells: int = _MOST_DRAWN_CELLS) -> int:
    """Draws of so many cells each that can be afforded; 0 where they are fewer than ``FEWEST_DRAWS``."""
    most = most_cells // max(cells, 1)
    return min(wanted, most) if most >= FEWEST_DRAWS else 0


def resampling_plan(run: RunData, draws: int, points: int = 1) -> Plan | None:
    """Return the numbers of resamples and of samples in each, from the run alone, for values at so many class shares;
    None when even few take long, or samples cannot be drawn.
    """
    if not run.at_hand:
        return None
    # Of cells all are drawn at once: a part of them is no part of the samples.
    whole = run.grouping is not None or run.units.multiplicities is not None
    return plan(run.units.n_units, run.units.width * points, draws, whole=whole)


def simulated_form(
    run: RunData, settings: LimitSettings, shares: ClassShares | None = None, *, from_samples: bool
) -> Estimate:
    """Estimate without a value, from which all simulated ones begin; its reason is set where nothing can be simulated,
    and it has no draws where derivatives do.

    At other shares class counts are fixed unless groups vary.
    """
    sampling, grouped = settings.sampling, run.source.is_grouped
    fixed = shares is not None or sampling.shares is Shares.OBSERVED
    draws: int | None
    if from_samples:
        made = resampling_plan(run, sampling.draws, 1 if shares is None else shares.work)
        # Where units are in no strata their mix is as random as everything else.
        fixed &= shares is not None or run.units.n_strata > 1
        method, prior, draws = run.in_design("bootstrap"), None, 0 if made is None else made.draws
        why = NoLimits.TOO_LARGE
    elif grouped:
        method, prior, why = Method.CLUSTER_BOOTSTRAP.value, None, NoLimits.TOO_LARGE
        draws = _draws_of_matrices(run, sampling.draws, shares)
    else:
        method, why = run.in_design(sampling.of_matrices.value), NoLimits.TOO_MANY_CLASSES
        prior = sampling.prior.value if sampling.of_matrices is IntervalMethod.POSTERIOR else None
        drawn = sampling.of_matrices is not IntervalMethod.DELTA
        draws = _draws_of_matrices(run, sampling.draws, shares) if drawn else None
    given = run.given(Given.ACTUAL if fixed else Given.SAMPLES)
    form = Estimate(value=nan, level=settings.level, method=method, given=given, prior=prior)
    if draws is None:
        return form
    if not draws:
        return form.without_limits(why if shares is None else NoLimits.TOO_MANY_POINTS)
    return replace(form, seed=chosen_seed(settings.seed, run.source.counts), draws=draws, monte_carlo_error=nan)


def _draws_of_matrices(run: RunData, wanted: int, shares: ClassShares | None) -> int:
    """So many draws of the matrix at so many points as can be afforded; 0 where these are too few to be of use."""
    if shares is not None:
        wanted = affordable_draws(run.counts.size * shares.work, wanted)
    elif run.groups is None:
        wanted = affordable_draws(run.counts.size, wanted, most_cells=MOST_CELLS)
    draws = wanted if run.groups is None else run.groups.affordable_draws(wanted)
    return draws if draws >= FEWEST_DRAWS else 0


def work_of(estimand: Estimand, run: RunData, settings: LimitSettings) -> float:
    """Return the time that simulating an estimand takes, as a part of the longest that anyone waits."""
    if not estimand.scored:
        return _draws_of_matrices(run, settings.sampling.draws, None) * run.counts.size / _MOST_CELLS_OF_ONE
    made = None if run.streamed is not None else resampling_plan(run, settings.sampling.draws)
    if made is None:
        return 0.0
    return len(measures(estimand.expression)) / _METRICS_OF_A_LOAD / made.loads(run.units.width)


def row_posterior(run: RunData, settings: LimitSettings) -> RowPosterior:
    """Posterior of the matrix of a run."""
    sampling = settings.sampling
    custom = None if sampling.pseudo_counts is None else np.array(sampling.pseudo_counts, dtype=np.float64)
    return RowPosterior(run.counts, prior=sampling.prior, custom=custom, shares=sampling.shares, squares=run.squares)


# --- limits of what was drawn ----------------------------------------------------------------------------------------


def simulated(
    estimands: Sequence[Estimand], run: RunData, shares: ClassShares | None, settings: LimitSettings
) -> list[list[Estimates]]:
    """For every estimand its values at each point, one without shares; all points see the same draws, so that they are
    on smooth curves.

    All estimands are computed from samples, or all from the matrix.
    """
    if shares is None and estimands[0].scored:
        return [[one] for one in (_of_samples if run.streamed is None else _of_streamed)(estimands, run, settings)]
    of_samples = shares is not None and shares.from_samples(estimands[0])
    form = simulated_form(run, settings, shares, from_samples=of_samples)
    if form.reason is not None:
        return [[form.of_values(own) for own in of_all] for of_all in _values(estimands, run, shares)]
    constant: NoLimits | None = NoLimits.DEGENERATE
    if shares is not None and not of_samples:
        # What does not vary of a matrix follows from the shares alone, and these are given.
        constant = None
    elif form.prior is not None and settings.sampling.shares is Shares.OBSERVED:
        constant = NoLimits.FIXED
    # Some at a time, so that draws fit into memory; at other shares there are fewer of them.
    most = _VALUES_AT_ONCE // ((form.draws or 1) * run.n_classes)
    size = max(1, most) if shares is None else len(estimands)
    found = []
    for start in range(0, len(estimands), size):
        some = estimands[start : start + size]
        with silently():
            points = [*_summaries(some, run, shares, settings, form)]
        for one, summaries in zip(some, zip(*points, strict=True), strict=True):
            made = partial(_estimates_from, form=form, bounds=one.bounds, of_samples=of_samples, constant=constant)
            found.append([made(summary) for summary in summaries])
    return found


def _values(estimands: Sequence[Estimand], run: RunData, shares: ClassShares | None) -> list[Array]:
    """Values (G, V) of every estimand at each point; one without shares."""
    return [run.values(one)[None] for one in estimands] if shares is None else shifted_values(estimands, run, shares)


# Why a value, or too many of its draws, do not exist: by whether it is of samples, or of a matrix.
_UNDEFINED = {
    True: (NoLimits.UNDEFINED_FOR_SAMPLES, NoLimits.UNDEFINED_RESAMPLES),
    False: (NoLimits.UNDEFINED, NoLimits.UNDEFINED_DRAWS),
}


def _estimates_from(
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
    estimates = []
    rows = zip(*(getattr(found, column.name).tolist() for column in fields(found)), strict=True)
    for value, low, high, deviation, error, lost, stretched in rows:
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


def _summaries(
    estimands: Sequence[Estimand], run: RunData, shares: ClassShares | None, settings: LimitSettings, form: Estimate
) -> Iterator[list[Summary]]:
    """Limits of every estimand by simulation, or by derivatives where these are asked for, point by point."""
    sampling, level, counts = settings.sampling, settings.level_of_each, run.counts
    if form.seed is None or form.draws is None:
        delta = partial(delta_interval, counts, level=level, shares=sampling.shares, squares=run.squares)
        yield [delta(one.functional, bounds=one.bounds) for one in estimands]
        return
    if shares is None and run.groups is None and sampling.of_matrices is not IntervalMethod.POSTERIOR:
        asked = []
        for one in estimands:
            read: Reading = summarise
            if sampling.of_matrices is IntervalMethod.BCA:
                fixed = sampling.shares is Shares.OBSERVED
                read = partial(accelerated, acceleration(counts, one.functional, stratified=fixed))
            asked.append(Resampled(one.functional, read))
        made = Plan(form.draws, counts.size, counts.size)
        of_cells = TableUnits(counts, Table)
        yield bootstrap_samples(of_cells, asked, seed=form.seed, made=made, level=level, shares=sampling.shares)
        return
    middle, values = None, _values(estimands, run, shares)
    if run.groups is None and (shares is None or not shares.from_samples(estimands[0])):
        middle = row_posterior(run, settings).middle
    level, draws = _draws(estimands, run, shares, settings, form)
    for place, drawn in enumerate(draws):
        centers: Sequence[Array | None] = [None] * len(estimands)
        if middle is not None:
            centers = values_at(middle, estimands, None if shares is None else shares.points[place])
        each = zip(drawn, values, centers, strict=True)
        yield [summarise(of_draws, at[place], level, center=center) for of_draws, at, center in each]


# --- resamples -------------------------------------------------------------------------------------------------------


# Of the names of the methods of streamed samples, before those of samples at hand.
_STREAMED: Final = "folded_"


class _Asked(NamedTuple):
    """An expression that is resampled, with its bounds, the estimate that its values begin from, and how it is read off
    the resamples.
    """

    form: Estimate
    expression: Expression
    bounds: Bounds
    read: Resampled


def _of_samples(estimands: Sequence[Estimand], run: RunData, settings: LimitSettings) -> list[Estimates]:
    """Any estimands by resampling. All see the same resamples."""
    made, values = resampling_plan(run, settings.sampling.draws), [run.values(one) for one in estimands]
    form = replace(simulated_form(run, settings, from_samples=True), seed=None, draws=None, monte_carlo_error=None)
    asked = []
    for one in estimands:
        read = resampled(one.expression, one.bounds)
        named = replace(form, method=run.in_design(read.method))
        asked.append(_Asked(named, one.expression, one.bounds, read))
    why = NoLimits.TOO_LARGE if run.at_hand else NoLimits.FOLDED
    found = [
        tuple(_undrawn(replace(one.form, value=value), why) for value in own.tolist())
        for one, own in zip(asked, values, strict=True)
    ]
    chosen = [] if made is None else _affordable(estimands, values, made, run.units.width)
    if made is not None and chosen:
        drawn = _bootstrap(run.units, [asked[index] for index in chosen], made, run, settings)
        for index, estimates in zip(chosen, drawn, strict=True):
            found[index] = estimates
    return found


def _over_cuts(one: _Asked, units: Units, run: RunData, settings: LimitSettings) -> _Asked:
    """The largest informedness over all cuts (Youden 1950) has the limits of that at the cut found (MOVER), and below
    them the bias of a maximum, which resampling shows; all else is as asked.

    The value found lies above that at the best cut of the population, so the upper limit at the cut found holds. Its
    bias is about what resamples add, and as much again, since the same samples chose the cut. Reflected percentiles
    held the truth in 58 to 92 % of cases (benchmarks/RESULTS.md).
    """
    expression = one.expression
    if not is_over_cuts(expression):
        return one
    if isinstance(units, Cells) and run.streamed is not None:
        designs = [units.at_best_cut(run.streamed.whole.used)]
    else:
        designs = [
            _at_best_cut(run, code)
            for code in (range(run.n_classes) if isinstance(expression.of, Every) else [expression.of or 0])
        ]
    known = [Headlines(design, settings.level_of_each).of(balanced_accuracy) or [] for design in designs]
    # Informedness of two classes is twice the balanced accuracy, less one.
    low, high = 2.0 * np.array([(form.low, form.high) for forms in known for form in forms]).T - 1.0

    def read(drawn: Array, found: Array, level: float) -> Summary:
        summary = summarise(drawn, found, level)
        bias = np.maximum(np.nanmean(drawn, axis=0) - found, 0.0)
        error = 2.0 * summary.deviation / np.sqrt(len(drawn))
        return replace(summary, low=np.maximum(low - 2.0 * bias, 0.0), high=high, monte_carlo_error=error)

    method = (one.form.method or "").replace(one.read.method, Method.MOVER_BEST_CUT.value)
    return one._replace(form=replace(one.form, method=method), read=replace(one.read, read=read))


def _at_best_cut(run: RunData, code: int) -> Design:
    """Design of the decisions at the cut where the informedness of a class is largest, members and others."""
    scores = run.scores
    member, called = (one.astype(np.int64) for one in (scores.members(code), scores.ranking(code).above_best_cut()))
    if run.grouping is not None:
        return Grouped(GroupedCounts.gather(run.grouping.codes, member, called, 2, run.weights))
    if run.weights is not None:
        return Weighted(WeightedCounts.of(member, called, run.weights, 2))
    return Independent(Table(confusion_counts(member, called, 2)))


def _undrawn(one: Estimate, why: NoLimits) -> Estimate:
    return one.without_limits(why if isfinite(one.value) else NoLimits.UNDEFINED_FOR_SAMPLES)


def _affordable(estimands: Sequence[Estimand], values: Sequence[Array], made: Plan, n_classes: int) -> list[int]:
    """Return the estimands that can be resampled in reasonable time: the first of those that have a value.

    Metrics of the catalogue share their work, all of them together are one load.
    """
    chosen, catalogued, others = [], 0, 0
    for index, (estimand, own) in enumerate(zip(estimands, values, strict=True)):
        if not np.isfinite(own).any():
            continue
        leaves = len(measures(estimand.expression))
        usual = usual_measure(estimand.expression) is not None
        more = (catalogued + leaves, others) if usual else (catalogued, others + leaves)
        if min(1.0, more[0] / _METRICS_OF_A_LOAD) + more[1] / _METRICS_OF_A_LOAD <= made.loads(n_classes):
            catalogued, others = more
            chosen.append(index)
    return chosen


def _bootstrap(
    units: Units, asked: Sequence[_Asked], made: Plan, run: RunData, settings: LimitSettings
) -> list[Estimates]:
    """Limits of expressions from the same resamples of all samples of a run, or of cells of them."""
    asked = [_over_cuts(one, units, run, settings) for one in asked]
    seed, shares = chosen_seed(settings.seed, run.source.counts), settings.sampling.shares
    level, grouping, weighting = settings.level_of_each, run.grouping, run.weights
    if run.streamed is not None:
        # Of groups whole sets are drawn as cells.
        grouping = weighting = None
        if run.grouping is not None:
            level = expanded_level(level, min(run.grouping.effective_groups, units.n_units))
    draw = partial(bootstrap_samples, units, [one.read for one in asked], seed=seed, made=made, level=level)
    summaries = draw(shares=shares, grouping=grouping, weighting=weighting)
    # Where units are in no strata their mix is as random as everything else.
    given = run.given(Given.ACTUAL if shares is Shares.OBSERVED and units.n_strata > 1 else Given.SAMPLES)
    found = []
    for one, summary in zip(asked, summaries, strict=True):
        form = replace(one.form, given=given, seed=seed, draws=made.draws, monte_carlo_error=nan)
        estimates = _estimates_from(summary, form, one.bounds, of_samples=True)
        found.append(tuple(_reaching_for_zero(each, one.expression, run, settings) for each in estimates))
    return found


def _reaching_for_zero(one: Estimate, expression: Expression, run: RunData, settings: LimitSettings) -> Estimate:
    """A calibration error that perfect probabilities might show as well has 0 within its limits."""
    if one.reason is not None or one.seed is None or not isinstance(expression, Measure):
        return one
    if not is_of_probabilities(expression.metric):
        return one
    chance = run.by_chance(expression.metric, expression.parameters, one.seed)
    error = 1.0 - settings.stated_level_of_each
    return one if chance is None or chance.p_value <= error else replace(one, low=0.0)


def _of_streamed(estimands: Sequence[Estimand], run: RunData, settings: LimitSettings) -> list[Estimates]:
    """Any estimands of streamed probabilities by resampling cells: the numbers of samples between the cuts that were
    saved, and in the bins. All that are of the same cells see the same resamples.
    """
    assert run.streamed is not None  # noqa: S101 - checked by the caller
    found: list[list[Estimate]] = []
    # By order, and within by the places of an estimand and of its value.
    orders: dict[int | None, dict[tuple[int, int], _Asked]] = {}
    for place, estimand in enumerate(estimands):
        usual, of = usual_measure(estimand.expression), None
        if isinstance(estimand.expression, Measure):
            of = estimand.expression.of
        streamed = usual is not None and is_of_probabilities(usual.metric) and streams(usual.metric, run.streamed)
        method = _STREAMED + run.in_design(resampled(estimand.expression, estimand.bounds).method)
        form = Estimate(value=nan, level=settings.level, method=method, given=run.given(Given.SAMPLES))
        own = [replace(form, value=value) for value in run.values(estimand).tolist()]
        codes = range(run.n_classes) if isinstance(of, Every) else (of,)
        for index, (code, one) in enumerate(zip(codes, own, strict=True)):
            if usual is not None and streamed and isfinite(one.value) and is_drawn(usual.metric, run.n_classes, code):
                measure, bounds = replace(usual, of=code), estimand.bounds
                known = np.atleast_1d(resampled(measure, bounds).values(run.subject))
                # Of the two classes of the cells the members are the second.
                inside = resampled(replace(measure, of=None if code is None else 1), bounds)
                asked = _Asked(one, measure, bounds, replace(inside, known=known))
                orders.setdefault(order_of(usual.metric, code), {})[place, index] = asked
        found.append([_undrawn(one, NoLimits.FOLDED) for one in own])
    grouped = {} if run.grouping is None or not orders else cells_of_groups(run.streamed, orders)
    for code, by_place in orders.items():
        cells, those = grouped.get(code) or cells_of(run.streamed, code), [*by_place.values()]
        made = plan(cells.n_units, cells.width, settings.sampling.draws, whole=True)
        drawn: list[Estimates] = [(one.form.without_limits(NoLimits.TOO_LARGE),) for one in those]
        if made is not None:
            drawn = _bootstrap(cells, those, made, run, settings)
        for (place, index), (estimate,) in zip(by_place, drawn, strict=True):
            found[place][index] = estimate
    return [tuple(own) for own in found]


# --- draws at other shares -------------------------------------------------------------------------------------------


def moved_by(estimand: Estimand, run: RunData, shares: ClassShares, settings: LimitSettings) -> Estimates:
    """Differences that one point makes of the values of an estimand, each draw at both."""
    form = simulated_form(run, settings, shares, from_samples=estimand.scored)
    gaps = shifted_values([estimand], run, shares)[0][0] - run.values(estimand)
    if not form.draws:
        return form.of_values(gaps)
    level, draws = _draws([estimand], run, shares, settings, form, unmoved=True)
    (there,), (here,) = draws
    return _estimates_from(summarise(there - here, gaps, level), form, (None, None), of_samples=False, constant=None)


def _draws(
    estimands: Sequence[Estimand],
    run: RunData,
    shares: ClassShares | None,
    settings: LimitSettings,
    form: Estimate,
    *,
    unmoved: bool = False,
) -> tuple[float, Iterator[list[Array]]]:
    """The level that limits are read at, and the values (D, V) of every estimand in the same draws at each point; as
    the run is without shares, or after them where these are wanted ``unmoved`` too.
    """
    assert form.draws is not None  # noqa: S101 - something can be simulated
    assert form.seed is not None  # noqa: S101 - what has draws has a seed
    groups: Grouping | None = run.groups
    tables = _tables(run, settings, form.draws, form.seed)
    if shares is None:
        asked = form.seed, settings.sampling, [one.text for one in estimands]
        drawn = run.drawn(asked, partial(evaluate_draws, tables, [one.functional for one in estimands]))
        at_points = iter([[one.reshape(len(one), -1) for one in drawn]])
    else:
        spreads = shares.drawn(form.draws, form.seed)
        points = [*zip(shares.points, spreads, strict=True), *[None] * unmoved]
        if shares.from_samples(estimands[0]):
            groups = run.grouping
            at_points = (_resampled(estimands, run, shares, settings, form.seed, at) for at in points)
        else:
            matrices = [table.counts for table in tables]
            if run.groups is not None:
                # A class that no drawn group has leaves nothing to weigh.
                lacking = [(some.sum(axis=-1) == 0) & (run.counts.sum(axis=-1) > 0) for some in matrices]
                matrices = [np.where(none[..., None], nan, some) for some, none in zip(matrices, lacking, strict=True)]
            at_points = (_values_in_parts(matrices, estimands, None if at is None else at[1]) for at in points)
    level = settings.level_of_each
    return level if groups is None else expanded_level(level, groups.effective_groups), at_points


def _values_in_parts(matrices: Sequence[Array], estimands: Sequence[Estimand], shares: Array | None) -> list[Array]:
    """Values (D, V) of every estimand for batches of matrices, at shares (1 or D, K): all at once would be many times
    as large as the draws.
    """
    ends = np.cumsum([0, *map(len, matrices)])
    found = []
    for some, start, end in zip(matrices, ends[:-1], ends[1:], strict=True):
        own = shares if shares is None or len(shares) == 1 else shares[start:end]
        found.append(values_at(some, estimands, own))
    return [np.concatenate(of_one) for of_one in zip(*found, strict=True)]


def _tables(run: RunData, settings: LimitSettings, draws: int, seed: int) -> Iterator[Table]:
    """Batches of drawn matrices: rows by their posterior, or sums of resampled groups."""
    if run.groups is None:
        yield from row_posterior(run, settings).batches(draws, generator(seed))
    else:
        yield from map(Table, run.groups.resample(draws=draws, random=generator(seed)))


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
        weights = units.at_shares(run.weights, None if moved is None else moved[0])
        drawn = resamples(units, made, seed, Shares.OBSERVED, run.grouping, run.weights)
        if some:
            own = values_of(units, [*some.values()], weights)
            found |= zip(some, replicated(units, [*some.values()], drawn, own, run.weights, moved), strict=True)
    return [found[place] for place in range(len(estimands))]
