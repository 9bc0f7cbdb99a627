"""The intervals of a report: closed forms that every report has, or those of everything, by expression."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import orjson

from app.domain.expressions.expressions import render
from app.domain.expressions.syntax import write_label
from app.domain.inputs.kind import Reported
from app.domain.members import WrittenObject
from app.domain.options import IntervalChoice, IntervalMethod, Options
from app.domain.report import Interval
from app.kernel.matrix.table import Table, at_equal_prevalence
from app.kernel.metrics.card import AnyMetric, Scope, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Bounds, Every, Expression, Measure, needs_counts
from app.kernel.metrics.families.score_ranking import roc_auc
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.closed_forms import (
    Given,
    Headlines,
    Method,
    OverallInterval,
    catalogue_rates,
    equal_share_headlines,
    headlines,
)
from app.kernel.uncertainty.draws import Alternative, Shares
from app.services.estimands import Estimand, estimand_of
from app.services.estimates.estimate import ClassShares, Estimate, Estimates, LimitSettings, NoLimits
from app.services.estimates.estimates import estimate, estimate_at
from app.services.estimates.methods import of_matrix, shifted_matrix
from app.services.estimates.methods.of_matrix import REFUSALS
from app.services.estimates.run_data import RunData
from app.services.json_values import NUMBER, Form, written_numbers

_FIRST = (slice(None), slice(1))
# The intervals of as many labels as this take some 100 kB.
_FEW_LABELS = 64


def overall_intervals(table: Table, level: float) -> list[dict[str, Interval]]:
    """Those of `headline_intervals` that are of overall metrics."""
    return [{form.key: _overall(form, level) for form in own} for own in headlines(table, level, of=_FIRST).overall]


def headline_intervals(table: Table, labels: Sequence[tuple[str, ...]], level: float) -> list[Mapping[str, Interval]]:
    """Intervals of the first matrix of each pair in a table (B, 2, K, K) by expression: overall metrics by key, rates
    as ``recall@D``.

    They are those of `estimate`, of many matrices of independent samples at once, and written out as they are answered:
    a report has more than a hundred. A rate with denominator 0 has none.
    """
    return written_headlines(first_headlines(table, level), labels)


def first_headlines(table: Table, level: float) -> Headlines:
    """Those of the first matrix of each pair as they are computed."""
    return headlines(table, level, of=_FIRST)


def balanced_intervals(table: Table, found: Headlines) -> list[dict[str, Interval]]:
    """Intervals of the second matrix of each pair, the first at balanced prevalence, by overall metric."""
    return [{form.key: _overall(form, found.level) for form in own} for own in equal_share_headlines(table, found)]


def written_headlines(found: Headlines, labels: Sequence[tuple[str, ...]]) -> list[Mapping[str, Interval]]:
    """Intervals by expression as they are answered."""
    level = found.level
    # (B, R, K, 2): one matrix after another, and in it rate by rate.
    ends = np.stack([found.rates.low[:, :, 0], found.rates.high[:, :, 0]], axis=-1).transpose(1, 0, 2, 3)
    kinds = _RateKinds(found.rates.keys, found.rates.given, found.rates.method, level)
    answers: list[Mapping[str, Interval]] = []
    for index, those in enumerate(found.overall):
        overall = {form.key: _overall(form, level) for form in those}
        own = ends[index]
        if np.isnan(own[..., 0]).any():
            answers.append(overall | _without_gaps(kinds, labels[index], own))
            continue
        form_of = _remembered_form if len(labels[index]) <= _FEW_LABELS else _form
        rates = form_of(kinds, labels[index]).filled(written_numbers(own))
        # Two objects become one.
        answers.append(WrittenObject(orjson.dumps(overall)[:-1] + b"," + rates[1:], overall))
    return answers


class _RateKinds(NamedTuple):
    """What intervals of rates have in common: `RateIntervals` without the numbers."""

    keys: tuple[str, ...]
    given: tuple[Given, ...]
    method: Method
    level: float

    def intervals(self, labels: Sequence[str], ends: Sequence[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """By expression, rate by rate, with these limits (R, K, 2)."""
        suffixes = [f"@{write_label(label)}" for label in labels]
        same = {"level": self.level, "method": self.method.value}
        for key, given, row in zip(self.keys, self.given, ends, strict=True):
            for suffix, (low, high) in zip(suffixes, row, strict=True):
                yield key + suffix, {"low": low, "high": high, **same, "given": given.value}


def _without_gaps(kinds: _RateKinds, labels: Sequence[str], ends: Array) -> dict[str, Any]:
    """Those of rates with samples in the denominator. NaN is the one value that differs from itself."""
    return {name: one for name, one in kinds.intervals(labels, ends.tolist()) if one["low"] == one["low"]}


def _form(kinds: _RateKinds, labels: tuple[str, ...]) -> Form:
    return Form.of(dict(kinds.intervals(labels, [[(NUMBER, NUMBER)] * len(labels)] * len(kinds.keys))))


# Who evaluates again does so on the same classes, most of the time.
_remembered_form = lru_cache(maxsize=128)(_form)


def _overall(form: OverallInterval, level: float) -> Interval:
    method, given = form.method.value, form.given.value
    if form.refusal is None:
        return {"low": form.low, "high": form.high, "level": level, "method": method, "given": given}
    reason = REFUSALS[form.refusal].value
    return {"low": None, "high": None, "level": level, "method": method, "given": given, "reason": reason}


@dataclass(frozen=True, slots=True, eq=False)
class ReportEstimates:
    """The values of a report that have limits, or a reason why they have none.

    Attributes:
        by_estimand: In the order of the report.
        aliases: By the text of an expression that was asked for, the name that it has here.
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
        """As they are answered, by expression."""
        found = {name: one.as_interval() for name, one in self.by_name.items()}
        return found | {text: found[name] for text, name in self.aliases.items() if name in found}


def estimate_for_report(
    metrics: Sequence[AnyMetric | Reported], asked: Sequence[tuple[str, Expression]], run: RunData, options: Options
) -> ReportEstimates:
    """Every metric with its parameters, of every class, and with intervals of everything what was asked too.

    Args:
        metrics: Of the matrix, or of probabilities.
        asked: Expressions of the same kind, by their text.
        run: With its samples where the metrics or groups need them.
        options: Of the report.
    """
    everything = options.intervals is IntervalChoice.ALL
    settings = settings_of(options)
    labels, task = run.source.labels, run.source.task
    if not run.is_counted and run.source.is_weighted:
        metrics = [metric for metric in metrics if not metric.card.needs_counts]
        asked = [(text, expression) for text, expression in asked if not needs_counts(expression)]
    estimands = [_every_value(metric, labels, task) for metric in metrics]
    aliases = {text: render(expression, labels) for text, expression in asked} if everything else {}
    known = {name for estimand in estimands for name in estimand.names}
    for expression, name in zip((expression for _, expression in asked), aliases.values(), strict=False):
        estimand = estimand_of(expression, name, labels, task=task)
        if not set(estimand.names) <= known:
            estimands.append(estimand)
            known |= set(estimand.names)
    found = estimate(estimands, run, settings)
    return ReportEstimates(dict(zip(estimands, found, strict=True)), aliases)


def balanced_for_report(run: RunData, options: Options) -> dict[str, Interval]:
    """Intervals of the values at balanced prevalence of a run of classes: closed forms of the headline where these are
    what is asked for and samples are independent, else as `estimate_at` makes them at equal class shares.
    """
    everything = options.intervals is IntervalChoice.ALL
    # There is one way to simulate other class shares.
    sampling = replace(options.sampling, method=IntervalMethod.POSTERIOR, shares=Shares.OBSERVED)
    settings = replace(settings_of(options), sampling=sampling)
    twins = [one for one in matrix_metrics(options) if one.card.has_twin(run.n_classes)]
    if run.groups is None and run.weighted is None and not everything:
        counts = run.counts[None, None]
        with silently():
            pairs = Table(np.concatenate([counts, at_equal_prevalence(counts)], axis=1))
        forms = equal_share_headlines(pairs, first_headlines(pairs, settings.level_of_each))[0]
        bounds = {one.key: one.card.range for one in twins}
        return {form.key: _one_sided(form, settings, bounds[form.key]) for form in forms}
    if not everything:
        twins = [one for one in twins if one.card.inference.headline]
    labels = run.source.labels
    estimands = [_every_value(one, labels, run.source.task) for one in twins]
    shares = ClassShares(np.full((1, run.n_classes), 1.0 / run.n_classes))
    grouped = run.groups is not None
    form = of_matrix.simulated_form(run, settings) if grouped else shifted_matrix.simulation(run, shares, settings)
    if (run.counts.sum(axis=1) == 0).any():
        nothing = form.without_limits(NoLimits.UNDEFINED).as_interval()
        return {one.key: nothing for one in twins if one.card.scope is Scope.OVERALL}
    found = {}
    for estimand, (at_equal,) in zip(estimands, estimate_at(estimands, run, shares, settings), strict=True):
        for name, one in zip(estimand.names, at_equal, strict=True):
            if not estimand.is_list or isfinite(one.value):
                known = replace(one, method=one.method or form.method, given=one.given or form.given)
                found[name] = known.as_interval()
    return found


def _one_sided(form: OverallInterval, settings: LimitSettings, bounds: Bounds) -> Interval:
    interval = _overall(form, settings.level)
    if settings.alternative is Alternative.TWO_SIDED or form.refusal is not None:
        return interval
    low, high = settings.alternative.opened(form.low, form.high, bounds)
    interval["low"], interval["high"] = low if isfinite(low) else None, high if isfinite(high) else None
    interval["alternative"] = settings.alternative.value
    return interval


def settings_of(options: Options) -> LimitSettings:
    """How the limits of a report are to be made."""
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
    """Of the metrics of a kind of input those of which a report gives intervals, overall ones in front."""
    everything = sorted(metrics, key=lambda one: one.card.scope is Scope.CLASS)
    if options.intervals is IntervalChoice.ALL:
        return everything
    rates = catalogue_rates().keys
    return [
        metric
        for metric in everything
        if metric.metric.key in rates
        or metric.card.inference.terms is not None
        or (metric.card.inference.leads(task) and metric.card.scope is Scope.OVERALL)
    ]


def probability_metrics(scores: Scores, options: Options) -> list[AnyMetric]:
    """The metrics of probabilities or scores of which a report gives intervals, overall ones in front."""
    metrics = catalogue().of_probabilities.reported
    overall = metrics.of_scope(Scope.OVERALL)
    if options.intervals is IntervalChoice.ALL:
        return [*overall, *metrics.of_scope(Scope.CLASS)]
    return [roc_auc, *(metric for metric in overall if metric.card.inference.headline and scores.are_probabilities)]
