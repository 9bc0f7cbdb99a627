"""The intervals of a report, by expression: closed forms, or those of everything, and their known weaknesses."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite, isnan, nan

import numpy as np

from app.domain.expressions.expressions import render
from app.domain.expressions.syntax import of_class, write_label
from app.domain.findings import Finding, Severity
from app.domain.inputs.content import Content
from app.domain.inputs.kind import Reported
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import IntervalChoice, Options
from app.domain.report import Interval
from app.domain.wording import classes, listed, names, numbered
from app.kernel.metrics.card import AnyMetric, Scope, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import (
    Every,
    Expression,
    Measure,
    is_biased,
    is_list,
    is_of_slices,
    is_over_cuts,
    measures,
    needs_counts,
)
from app.kernel.metrics.families.score_ranking import roc_auc, roc_auc_ovr_macro
from app.kernel.numerics.arrays import Array
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.closed_forms import Headlines, Method, OverallInterval, curvature, edge_pull
from app.kernel.uncertainty.designs import Given, catalogue_rates
from app.kernel.uncertainty.draws import Prior, Shares
from app.kernel.uncertainty.influence import effective_samples
from app.services.estimands import Estimand, estimand_of
from app.services.estimates.estimate import ClassShares, Estimate, Estimates, LimitSettings, NoLimits
from app.services.estimates.estimates import estimate, estimate_at, values_alone, work_of
from app.services.estimates.methods.closed_forms import FEW_EFFECTIVE
from app.services.estimates.methods.simulation import resampling_plan, simulated_form
from app.services.estimates.run_data import RunData

# Of the longest that anyone waits: limits that take longer are made with those of everything.
_QUICK = 0.1


def intervals_by_key(found: Iterable[Iterable[OverallInterval]], level: float) -> list[dict[str, Interval]]:
    """Return the intervals of the overall metrics of each matrix as they are answered."""
    return [{form.key: _as_interval(form, level) for form in forms} for forms in found]


def headline_intervals(found: Headlines, labels: Sequence[tuple[str, ...]]) -> list[dict[str, Interval]]:
    """Intervals of the first matrix of each pair by expression as they are answered: overall metrics by key, rates as
    ``recall@D``.

    They are those of `estimate`, of many matrices of independent samples at once: a report has more than a hundred. A
    rate with denominator 0 has none.
    """
    level, method = found.level, Method.WILSON.value
    # (B, R K): one matrix after another, and in it rate by rate.
    ends = zip(*(end[:, :, 0].swapaxes(0, 1).reshape(len(labels), -1).tolist() for end in found.rates), strict=True)
    answers = intervals_by_key(found.overall, level)
    for intervals, own, of_matrix in zip(answers, labels, ends, strict=True):
        for (name, given), low, high in zip(_named_rates(own), *of_matrix, strict=True):
            if not isnan(low):
                intervals[name] = {"low": low, "high": high, "level": level, "method": method, "given": given}
    return answers


# Whoever evaluates again does so on the same classes, most of the time.
@lru_cache(maxsize=16)
def _named_rates(labels: tuple[str, ...]) -> list[tuple[str, str]]:
    """The rate of each class as an expression, and what its limits take as fixed, rate by rate."""
    rates, selectors = catalogue_rates(), [f"@{write_label(label)}" for label in labels]
    return [
        (key + selector, given.value)
        for key, given in zip(rates.keys, rates.given, strict=True)
        for selector in selectors
    ]


def _as_interval(form: OverallInterval, level: float) -> Interval:
    method, given = form.method, form.given.value
    if form.refusal is None:
        return {"low": form.low, "high": form.high, "level": level, "method": method, "given": given}
    return {"low": None, "high": None, "level": level, "method": method, "given": given, "reason": form.refusal.value}


@dataclass(frozen=True, slots=True, eq=False)
class ReportEstimates:
    """The values of a report that have limits, or a reason why they have none.

    Attributes:
        by_estimand: In the order of the report.
        aliases: By what a value that was asked for is called there, the name that it has here.
    """

    by_estimand: Mapping[Estimand, Estimates]
    aliases: Mapping[str, str]

    @property
    def by_name(self) -> dict[str, Estimate]:
        """All but those of a list that do not exist: what a class does not have the report gives a reason for."""
        return {
            name: one
            for estimand, estimates in self.by_estimand.items()
            for name, one in zip(estimand.names, estimates, strict=True)
            if not estimand.is_list or isfinite(one.value)
        }

    def intervals(self) -> dict[str, Interval]:
        """Return the intervals as they are answered, by expression."""
        found = {name: one.as_interval() for name, one in self.by_name.items()}
        return found | {text: found[name] for text, name in self.aliases.items() if name in found}


def estimate_for_report(
    metrics: Sequence[AnyMetric | Reported], asked: Sequence[tuple[str, Expression]], run: RunData, options: Options
) -> ReportEstimates:
    """Every metric with its parameters, of every class, and what was asked."""
    everything = options.intervals is IntervalChoice.ALL
    settings = settings_of(options)
    labels, task = run.source.labels, run.source.task
    if not run.is_counted and run.source.is_weighted:
        metrics = [metric for metric in metrics if not metric.card.needs_counts]
        asked = [(text, expression) for text, expression in asked if not needs_counts(expression)]
    estimands = [_every_value(metric, labels, task) for metric in metrics]
    aliases: dict[str, str] = {}
    known = {name for estimand in estimands for name in estimand.names}
    slow: list[Estimand] = []
    # What is asked twice is answered once.
    for text, expression in dict(asked).items():
        estimand = estimand_of(expression, render(expression, labels), labels, task=task)
        called = [of_class(text, label) for label in labels] if is_list(expression) else [text]
        aliases |= zip(called, estimand.names, strict=True)
        if not set(estimand.names) <= known:
            if everything or work_of(estimand, run, settings) <= _QUICK:
                estimands.append(estimand)
            else:
                slow.append(estimand)
            known |= set(estimand.names)
    found = [*estimate(estimands, run, settings), *(values_alone(one, run, settings, NoLimits.SLOW) for one in slow)]
    return ReportEstimates(dict(zip([*estimands, *slow], found, strict=True)), aliases)


def balanced_for_report(run: RunData, options: Options) -> dict[str, Interval]:
    """Intervals of the values at balanced prevalence of a run of classes, as `estimate_at` makes them at equal class
    prevalence; of the headline metrics where these are what is asked for.
    """
    everything = options.intervals is IntervalChoice.ALL
    # There is one way to simulate other class shares.
    sampling = replace(options.sampling, method=None, shares=Shares.OBSERVED)
    settings = replace(settings_of(options), sampling=sampling)
    twins = [one for one in matrix_metrics(options) if one.card.has_twin(run.n_classes)]
    if not everything:
        twins = [one for one in twins if one.card.inference.headline]
    labels = run.source.labels
    estimands = [_every_value(one, labels, run.source.task) for one in twins]
    shares = ClassShares(np.full((1, run.n_classes), 1.0 / run.n_classes))
    form = Estimate(value=nan, level=settings.level, method=Method.MOVER.value, given=Given.ACTUAL.value)
    if everything or run.source.is_grouped or run.source.is_weighted:
        form = simulated_form(run, settings, shares, from_samples=False)
    if (run.counts.sum(axis=1) == 0).any():
        nothing = form.without_limits(NoLimits.UNDEFINED).as_interval()
        return {one.key: nothing for one in twins if one.card.scope is Scope.OVERALL}
    found = {}
    for estimand, (at_equal,) in zip(estimands, estimate_at(estimands, run, shares, settings), strict=True):
        for name, one in zip(estimand.names, at_equal, strict=True):
            if not estimand.is_list or isfinite(one.value):
                named = replace(one, method=one.method or form.method, given=one.given or form.given)
                found[name] = named.as_interval()
    return found


def settings_of(options: Options) -> LimitSettings:
    """Return the settings of a report's limits."""
    return LimitSettings(
        level=options.level,
        seed=options.seed,
        simulate=options.intervals is IntervalChoice.ALL,
        sampling=options.sampling,
        proportions=options.proportion_interval,
        areas=options.area_interval,
        alternative=options.alternative,
    )


def _every_value(of: AnyMetric | Reported, labels: Sequence[str], task: Task | None) -> Estimand:
    """A metric with its parameters, of all classes if it is of one."""
    one = of if isinstance(of, Reported) else Reported.plain(of)
    if one.card.scope is Scope.OVERALL:
        return estimand_of(Measure(one.metric, one.parameters, None), one.name, labels, task=task)
    names = tuple(f"{one.name}@{write_label(label)}" for label in labels)
    return estimand_of(Measure(one.metric, one.parameters, Every.CLASS), one.name, labels, names=names, task=task)


def matrix_metrics(options: Options) -> list[AnyMetric]:
    """The metrics of a matrix of which a report gives intervals, overall ones in front."""
    metrics = catalogue().of_matrices.reported
    everything = [*metrics.of_scope(Scope.OVERALL), *metrics.of_scope(Scope.CLASS)]
    if options.intervals is IntervalChoice.ALL:
        # Those about the sample have a reason in place of limits.
        return everything
    rates = catalogue_rates().keys
    return [metric for metric in everything if metric.card.inference.headline or metric.key in rates]


def unit_metrics(metrics: Sequence[Reported], task: Task, options: Options) -> list[Reported]:
    """Select the metrics of a kind of input that get intervals in a report, overall ones in front."""
    everything = sorted(metrics, key=lambda one: one.card.scope is Scope.CLASS)
    if options.intervals is IntervalChoice.ALL:
        return everything
    rates = catalogue_rates().keys
    return [
        metric
        for metric in everything
        if metric.metric.key in rates or metric.card.inference.terms is not None or metric.card.inference.leads(task)
    ]


def probability_metrics(scores: Scores, options: Options) -> list[AnyMetric]:
    """The metrics of probabilities or scores of which a report gives intervals, overall ones in front."""
    metrics = catalogue().of_probabilities.reported
    overall, of_classes = metrics.of_scope(Scope.OVERALL), metrics.of_scope(Scope.CLASS)
    if options.intervals is IntervalChoice.ALL:
        return [*overall, *of_classes]
    shown = [metric for metric in overall if metric.card.inference.headline and scores.are_probabilities]
    # Of two classes it is the area of either.
    if scores.n_classes > 2:
        shown.append(roc_auc_ovr_macro)
    # What is said of two classes without naming one is about the positive one.
    of_each = of_classes if options.details or scores.n_classes == 2 else []
    return [*(metric for metric in of_each if metric.card.inference.headline), *shown]


def headline_cautions(source: MatrixInput, options: Options) -> list[Finding]:
    """Return findings on the closed-form intervals of a report."""
    if options.intervals is IntervalChoice.NONE or source.is_weighted:
        return []
    if source.content is not Content.counts:
        return [
            Finding.note(
                "no_intervals",
                "No intervals are given: they need the number of samples behind every entry, and the matrix holds "
                f"{source.content}.",
                content=source.content.value,
            )
        ]
    if options.intervals is IntervalChoice.ALL or source.is_grouped:
        return []
    return [*_few_samples(source.counts.sum(axis=1), source.labels)]


# Beyond these, 95 % intervals of G, H or A held the truth less than 93 times in 100 in most of the settings simulated:
# 2 to 100 classes of 5 to 100 samples, recalls alike, spread out, or weak in one class (benchmarks/coverage.py).
_CURVATURE = 0.6
_PULL = 0.6
_SEVERAL_CLASSES = 8


def caution_findings(counts: Array, labels: Sequence[str], prior: Prior = Prior.EDGE) -> Iterator[Finding]:
    """Warnings about known weaknesses of intervals of a matrix (K, K) with this prior, whatever the metric."""
    actual = counts.sum(axis=-1)
    present = actual[actual > 0]
    several, smallest = present.size >= _SEVERAL_CLASSES, int(present.min()) if present.size else 0
    empty = [label for label, total in zip(labels, actual, strict=True) if total == 0]
    if empty:
        yield Finding.warning(
            "intervals_without_a_class",
            f"There are no samples of {classes(empty)}. No interval covers what is unknown about them.{listed(empty)}",
            classes=empty[:20],
        )
    yield from _few_samples(actual, labels)
    if several and curvature(counts) > _CURVATURE:
        yield Finding.warning(
            "intervals_of_many_small_classes",
            f"With {len(labels)} classes, some of them weak, and only {numbered(smallest)} in one, intervals of "
            "g_mean, h_mean and other means that weigh weak classes can lie too low and miss their level by some "
            "points.",
            n_classes=len(labels),
            smallest=smallest,
        )
    if several and prior is Prior.EDGE and edge_pull(counts) > _PULL:
        yield Finding.warning(
            "intervals_of_perfect_small_classes",
            "Many small classes have a recall of 0 or 1, and the intervals allow for values in between. Over many "
            "classes this adds up: intervals of means over the classes lie too low, and their level can be 10 "
            "points too small.",
            n_classes=len(labels),
            smallest=smallest,
        )
    if prior in (Prior.UNIFORM, Prior.JEFFREYS_RECALL) and len(labels) > 2:
        yield Finding.warning(
            "informative_prior",
            f"The prior {prior.value} moves every class the same way. Over {len(labels)} classes this adds up, and "
            "intervals of means over the classes can miss the truth. The prior edge does not do this.",
            prior=prior.value,
            n_classes=len(labels),
        )


# Samples of a class.
_FEW = 5


def _few_samples(actual: Array, labels: Sequence[str]) -> Iterator[Finding]:
    few = [label for label, size in zip(labels, actual.tolist(), strict=True) if 0 < size < _FEW]
    if few:
        yield Finding.warning(
            "intervals_of_few_samples",
            f"There are fewer than 5 samples of {classes(few)}. Intervals that depend on them are wide and rough."
            f"{listed(few)}",
            classes=few[:20],
            smallest=int(actual[actual > 0].min()),
        )


def _stretched(estimates: Mapping[str, Estimate]) -> Iterator[Finding]:
    """Values that their intervals were stretched to hold."""
    names = [name for name, one in estimates.items() if one.stretched]
    if names:
        said = "1 value lies outside its simulated interval, which was stretched to contain it"
        if len(names) > 1:
            said = f"{len(names)} values lie outside their simulated intervals, which were stretched to contain them"
        yield Finding.note(
            "intervals_stretched",
            f"{said}. This happens at the ends of a range and with strong priors.",
            metrics=names[:20],
        )


def everything_findings(found: ReportEstimates, run: RunData, options: Options) -> tuple[Finding, ...]:
    """Return findings on the intervals of all metrics of a matrix."""
    cautious = caution_findings(run.sampled, run.source.labels, options.sampling.prior)
    return (*cautious, *_stretched(found.by_name))


def limit_findings(found: Mapping[Estimand, Estimates], run: RunData) -> list[Finding]:
    """Return the warnings of a report about the limits of some values, each with the metrics that it bears on."""
    if run.source.task is not None:
        return []
    found = {one: estimates for one, estimates in found.items() if not is_of_slices(one.expression)}
    of_matrix = [one for one in found if not one.scored and one.rates is None]
    simulated = [one for one in of_matrix if any(each.seed is not None for each in found[one])]
    # What follows from a rate has its limits, which these cautions are not about.
    follows = [
        isinstance(one.expression, Measure) and one.expression.metric.card.inference.overlap for one in of_matrix
    ]
    closed = [one for one, rate in zip(of_matrix, follows, strict=True) if one not in simulated and not rate]
    scored = {one: estimates for one, estimates in found.items() if one.scored}
    names = {name: each for one, own in scored.items() for name, each in zip(one.names, own, strict=True)}
    areas = [one for one in scored if any(leaf.metric is roc_auc for leaf in measures(one.expression))]
    said: Sequence[tuple[Iterable[Estimand], Iterable[Finding]]] = (
        (closed, headline_cautions(run.source, Options())),
        (simulated, caution_findings(run.sampled, run.source.labels)),
        (scored, _few_effective_samples(names, run)),
        (scored, _about_biased(scored, run)),
        (areas, _few_members(run)),
    )
    return [
        replace(one, metrics=[text for text in texts if text in one.evidence.get("metrics", texts)] or texts)
        for estimands, findings in said
        if (texts := [estimand.text for estimand in estimands])
        for one in findings
        if one.severity is not Severity.NOTE
    ]


# With fewer members or non-members intervals of areas are those of a variance that is partly assumed (`steadied`). Of
# fewer than the second number a class is too small to say much of (benchmarks/RESULTS.md, warnings on good models).
FEW_MEMBERS, FEWEST_MEMBERS = 30, 10


def _few_effective_samples(estimates: Mapping[str, Estimate], run: RunData) -> Iterator[Finding]:
    """Sums whose variance comes from a few samples or groups, such as the log loss of one confident mistake."""
    few = {name: one.effective_samples for name, one in estimates.items() if one.effective_samples is not None}
    if not few:
        return
    units, (least, fewest) = "samples" if run.grouping is None else "groups", min(few.items(), key=lambda one: one[1])
    which = f"about {numbered(round(fewest), units)}"
    if len(few) > 1:
        which = f"few {units}, that of {names([least])} on about {round(fewest)}"
    matters = any(one < _TOO_FEW and _is_far_from_perfect(name, estimates[name], run) for name, one in few.items())
    yield (Finding.warning if matters else Finding.note)(
        "intervals_rest_on_few_samples",
        f"The intervals of {names(list(few))} are rough: they rest on {which}.",
        metrics=list(few)[:20],
        effective_samples=fewest,
    )


# With fewer samples or groups the next one like them may move the interval far, though it held the truth in 95 to 99 %
# of the cases (benchmarks/RESULTS.md, means of skewed values).
_TOO_FEW = 5
# Of the way from perfect probabilities to those that know the class shares alone.
_NEARLY_PERFECT = 0.2


def _is_far_from_perfect(name: str, found: Estimate, run: RunData) -> bool:
    """Return whether an end of an interval that is too near to the ideal can mislead about how good the model is."""
    metric = catalogue().of_probabilities.by_name.get(name)
    if metric is None or metric.card.ideal is None or run.source.task is not None:
        return True
    scores, ideal = run.scores, metric.card.ideal
    if run.streamed is None:
        y, weights = scores.y, scores.weights
    else:
        # One sample of each class weighs what all of them do.
        y = np.flatnonzero(scores.actual)
        weights = scores.actual[y]
    shares = np.broadcast_to(scores.prevalence, (y.size, scores.n_classes))
    uninformed = float(np.max(metric.compute(Scores(y, shares, weights))))
    return not max(abs(found.low - ideal), abs(found.high - ideal)) < _NEARLY_PERFECT * abs(uninformed - ideal)


def _few_members(run: RunData) -> Iterator[Finding]:
    """Areas under curves of which one side has few samples."""
    scores, labels = run.scores, run.source.labels
    members = scores.used.tolist()
    sizes = [min(own, sum(members) - own) for own in members]
    few = [label for label, size in zip(labels, sizes, strict=True) if 0 < size < FEW_MEMBERS]
    if few:
        smallest = min(size for size in sizes if size)
        yield (Finding.warning if smallest < FEWEST_MEMBERS else Finding.note)(
            "area_intervals_of_few_samples",
            f"The intervals of the areas under the curves of {classes(few)} are rough: there are fewer than "
            f"{FEW_MEMBERS} samples of the class, or of the others.{listed(few)}",
            classes=few[:20],
            smallest=smallest,
        )


def _few_out_of_order(run: RunData) -> Iterator[Finding]:
    """Curves that resampling hardly moves."""
    forms = [run.influences.of(roc_auc, code) for code in range(run.n_classes)]
    carrying = {
        label: effective_samples(form)
        for label, form in zip(run.source.labels, forms, strict=True)
        if form is not None and isfinite(form.value)
    }
    few = [label for label, samples in carrying.items() if samples < FEW_EFFECTIVE]
    if few:
        yield Finding.warning(
            "curve_intervals_of_few_mistakes",
            f"The scores of {classes(few)} put few samples out of order, so resampling changes little. Intervals of "
            "average precision, partial AUC, Kolmogorov-Smirnov and H-measure are too narrow; those of the AUC are "
            f"better.{listed(few)}",
            classes=few[:20],
            effective_samples=min(carrying[label] for label in few),
        )


def _about_biased(found: Mapping[Estimand, Estimates], run: RunData) -> Iterator[Finding]:
    """Yield a note about resampled metrics that resampling biases, unless their limits are about a cut."""
    resampled = [one for one, estimates in found.items() if any(each.seed is not None for each in estimates)]
    expressions = {name: one.expression for one in resampled for name in one.names}
    biased = sorted(name for name, one in expressions.items() if is_biased(one) and not is_over_cuts(one))
    if biased:
        yield Finding.note(
            "intervals_of_biased_values",
            "Calibration errors and H-measure take absolute values or the best of many cuts, so chance makes them "
            "larger. Their intervals are corrected for this and reach further down than up.",
            metrics=biased[:20],
            n_samples=run.scores.n_samples,
        )


def _of_subsets(run: RunData, draws: int) -> Iterator[Finding]:
    """Yield a caution about subsets that are resampled in place of all samples."""
    n_samples, made = run.scores.n_samples, resampling_plan(run, draws)
    if made is not None and not made.of_all:
        yield Finding.note(
            "bootstrap_of_subsets",
            f"Resampling all {numbered(n_samples)} would take too long. Every resample is as large as the data, but "
            f"drawn from one of ten subsets of {numbered(made.subset)}.",
            n_samples=n_samples,
            subset=made.subset,
        )


def cautions_of_samples(found: ReportEstimates, run: RunData, options: Options) -> Iterator[Finding]:
    """Yield cautions about the intervals of metrics of probabilities or scores."""
    yield from _few_effective_samples(found.by_name, run)
    if options.intervals is IntervalChoice.ALL:
        if run.at_hand:
            yield from _few_out_of_order(run)
        yield from _about_biased(found.by_estimand, run)
        yield from _of_subsets(run, options.sampling.draws)
        yield from _stretched(found.by_name)
    yield from _few_members(run)
