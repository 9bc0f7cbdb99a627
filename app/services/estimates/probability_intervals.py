"""Intervals of metrics of probabilities and scores, and of expressions with such metrics in them.

Where a metric is a sum over the samples or an area there is a closed form; all else is resampled, all of it at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from app.domain.expressions.expressions import render
from app.domain.expressions.syntax import write_label
from app.domain.findings import Finding
from app.domain.inputs.content import Content
from app.domain.inputs.labels import listed
from app.domain.inputs.matrices import MatrixInput
from app.domain.report import Interval, IntervalChoice, Options
from app.kernel.compare.linear import linearised
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Every, Expression, Measure, Subject, bounds, compute, is_biased, measures
from app.kernel.metrics.families.ranking import roc_auc
from app.kernel.samples.areas import area_variance
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.clusters import Grouping
from app.kernel.uncertainty.design import ClassCounts, Shares
from app.kernel.uncertainty.draws import MOST_UNDEFINED, Summary
from app.kernel.uncertainty.headline import Given
from app.kernel.uncertainty.influence import Influences, area_limits, effective_samples
from app.kernel.uncertainty.resampling import Plan, Resampled, bootstrap_samples, plan, resampled
from app.services.estimands import estimand_of
from app.services.estimates.closed_forms import FEW_EFFECTIVE, NO_VALUE, ClosedForms, Thin
from app.services.estimates.full_intervals import stretched_findings

# With fewer members or non-members DeLong's intervals miss their level (benchmarks/coverage.py).
FEW_MEMBERS = 30
# So many metrics beyond the catalogue are as much work as all that have to be resampled of it.
_METRICS_OF_A_LOAD = 8
# Up to so many samples what is left of the bias costs the intervals of biased values their level.
FEW_FOR_BIASED = 2000
_REASONS = {
    **NO_VALUE,
    "undefined_draws": f"the metric is undefined in more than {MOST_UNDEFINED:.0%} of the resamples",
    "too_large": "there are too many samples, classes or expressions for resampling them in reasonable time",
}


@dataclass(slots=True, eq=False)
class SampleIntervals:
    """Intervals by expression, and what to be careful about."""

    intervals: dict[str, Interval] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class _Item:
    """An expression with the names of its values: one, or one per class. Those of the catalogue share their work."""

    names: tuple[str, ...]
    expression: Expression
    in_catalogue: bool = False

    @property
    def method(self) -> str:
        """How its limits are read off the resamples."""
        return self.resampled.method

    @property
    def resampled(self) -> Resampled:
        """What is computed in resamples, and how limits are read off."""
        return resampled(self.expression, bounds(self.expression))

    @property
    def biased(self) -> bool:
        """Is a value in it that noise moves to one side?"""
        return is_biased(self.expression)


def sample_intervals(
    source: MatrixInput,
    scores: Scores,
    asked: Sequence[tuple[str, Expression]],
    *,
    options: Options,
    seed: int,
    calibration: Mapping[str, Mapping[str, Any]],
    grouping: Grouping | None = None,
) -> SampleIntervals:
    """The intervals that the options ask for; none of weighted samples, whose sampling error is not known.

    Args:
        source: With samples.
        scores: The same for the kernel.
        asked: Expressions with metrics of probabilities, by their text.
        options: Of the request.
        seed: Of what is resampled.
        calibration: Calibration errors beside those of chance, by metric.
        grouping: Which samples belong together, where they are not independent.
    """
    found = SampleIntervals()
    if source.content is not Content.counts or options.intervals is IntervalChoice.NONE:
        return found
    if options.intervals is IntervalChoice.ALL:
        _everything(
            found, source, scores, asked, options=options, seed=seed, calibration=calibration, grouping=grouping
        )
    else:
        _headline(found, source, scores, ClosedForms(options.level, grouping))
    found.findings.extend(_few_members(source, scores))
    return found


def _headline(found: SampleIntervals, source: MatrixInput, scores: Scores, closed: ClosedForms) -> None:
    """Closed forms that need no other order than the values themselves."""
    influences = Influences(scores)
    areas = _areas(scores, closed.level) if closed.grouping is None else _areas_by_groups(influences, closed)
    for label, interval in zip(source.labels, areas, strict=True):
        if interval is not None:
            found.intervals[f"{roc_auc.key}@{write_label(label)}"] = interval
    if scores.are_probabilities:
        thin = Thin(closed.unit)
        for metric in catalogue().of_probabilities.of_scope(Scope.OVERALL):
            linear = influences.of(metric) if metric.card.inference.headline else None
            if linear is not None:
                found.intervals[metric.key] = closed.interval(linear)
                thin.note(metric.key, closed.summed(linear))
        found.findings.extend(thin.findings())


def _areas(scores: Scores, level: float) -> Iterator[Interval | None]:
    spread: float | None = None
    for code in range(scores.n_classes):
        ranking = scores.ranking(code)
        members, others = int(ranking.positives), int(ranking.negatives)
        if not members or not others:
            yield None
            continue
        # With two classes both have the same order, one from above and one from below.
        spread = area_variance(ranking) if spread is None or scores.n_classes > 2 else spread
        low, high, method = area_limits(float(ranking.auc), spread, members, others, level)
        yield {"low": low, "high": high, "level": level, "method": method, "given": "actual_counts"}


def _areas_by_groups(influences: Influences, closed: ClosedForms) -> Iterator[Interval | None]:
    for code in range(influences.scores.n_classes):
        linear = influences.of(roc_auc, code)
        yield None if linear is None or not isfinite(linear.value) else closed.interval(linear)


def _everything(
    found: SampleIntervals,
    source: MatrixInput,
    scores: Scores,
    asked: Sequence[tuple[str, Expression]],
    *,
    options: Options,
    seed: int,
    calibration: Mapping[str, Mapping[str, Any]],
    grouping: Grouping | None,
) -> None:
    """Every metric of the catalogue with its default parameters, for every class, and what was asked beyond it."""
    aliases = {text: render(expression, source.labels) for text, expression in asked}
    influences, resampled, forms = Influences(scores), [], ClosedForms(options.level, grouping)
    thin = Thin(forms.unit)
    for item in _items(source.labels, [(aliases[text], expression) for text, expression in asked]):
        if set(item.names) <= set(found.intervals):
            continue
        closed = linearised(item.expression, influences)
        if closed is None:
            resampled.append(item)
            continue
        for name, linear in zip(item.names, closed, strict=True):
            # What a class does not have the report gives a reason for.
            if len(item.names) == 1 or isfinite(linear.value):
                found.intervals[name] = forms.interval(linear)
                thin.note(name, forms.summed(linear))
    found.findings.extend(thin.findings())
    found.findings.extend(_few_out_of_order(source, influences))
    _resample(found, source, scores, resampled, options=options, seed=seed, grouping=grouping)
    _reach_for_zero(found.intervals, calibration, options.level)
    for text, name in aliases.items():
        if name in found.intervals:
            found.intervals[text] = found.intervals[name]


def _items(labels: Sequence[str], asked: Sequence[tuple[str, Expression]]) -> Iterator[_Item]:
    suffixes = [f"@{write_label(label)}" for label in labels]
    for metric in catalogue().of_probabilities.of_scope(Scope.OVERALL):
        yield _Item((metric.key,), Measure(metric, metric.card.defaults, None), in_catalogue=True)
    for metric in catalogue().of_probabilities.of_scope(Scope.CLASS):
        names = tuple(metric.key + suffix for suffix in suffixes)
        yield _Item(names, Measure(metric, metric.card.defaults, Every.CLASS), in_catalogue=True)
    for name, expression in asked:
        yield _Item(estimand_of(expression, name, labels).names, expression)


def _resample(
    found: SampleIntervals,
    source: MatrixInput,
    scores: Scores,
    items: Sequence[_Item],
    *,
    options: Options,
    seed: int,
    grouping: Grouping | None,
) -> None:
    samples = source.samples
    if samples is None:
        raise ValueError("only samples can be resampled")
    fixed = options.sampling.shares is Shares.OBSERVED
    given = "actual_counts" if fixed else "n"
    drawn = _Drawn(
        options.level, given if grouping is None else Given.GROUPS.value, seed, clustered=grouping is not None
    )
    whole = Subject(Table(source.counts), scores)
    defined = [item for item in items if np.isfinite(np.atleast_1d(compute(item.expression, whole))).any()]
    for item in items:
        if item not in defined and len(item.names) == 1:
            found.intervals[item.names[0]] = drawn.none(item, "undefined")
    extra = sum(len(measures(item.expression)) for item in defined if not item.in_catalogue)
    load = 1.0 + extra / _METRICS_OF_A_LOAD
    made = plan(scores.n_samples, scores.n_classes, options.sampling.draws, load=load, whole=grouping is not None)
    if made is None:
        for item in defined:
            found.intervals.update({name: drawn.none(item, "too_large") for name in item.names})
        return
    summaries = bootstrap_samples(
        scores,
        samples.predicted.astype(np.intp),
        [item.resampled for item in defined],
        seed=seed,
        made=made,
        level=options.level,
        class_counts=ClassCounts.FIXED if fixed else ClassCounts.RANDOM,
        grouping=grouping,
    )
    stretched: list[str] = []
    for item, taken in zip(defined, summaries, strict=True):
        for index, name in enumerate(item.names):
            if len(item.names) == 1 or isfinite(taken.estimate[index]):
                found.intervals.setdefault(name, drawn.interval(item, taken, index, made.draws))
                stretched.extend([name] if taken.extended[index] else [])
    found.findings.extend(_about_resampling(made, defined))
    found.findings.extend(stretched_findings(stretched))


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What all resampled intervals have in common."""

    level: float
    given: str
    seed: int
    clustered: bool

    def method(self, item: _Item) -> str:
        """How limits are read off the resamples, and of what these are."""
        return f"cluster_{item.method}" if self.clustered else item.method

    def none(self, item: _Item, reason: str) -> Interval:
        """No interval, and why."""
        return {
            "low": None,
            "high": None,
            "level": self.level,
            "method": self.method(item),
            "given": self.given,
            "reason": _REASONS[reason],
        }

    def interval(self, item: _Item, summary: Summary, index: int, draws: int) -> Interval:
        """The interval of one value that exists."""
        estimate, deviation = float(summary.estimate[index]), float(summary.deviation[index])
        undefined = int(summary.undefined[index])
        interval: Interval = {
            "low": float(summary.low[index]),
            "high": float(summary.high[index]),
            "level": self.level,
            "method": self.method(item),
            "given": self.given,
            "seed": self.seed,
            "draws": draws,
            "monte_carlo_error": float(summary.monte_carlo_error[index]),
        }
        if undefined:
            interval["undefined_draws"] = undefined
        reason = None
        if undefined > MOST_UNDEFINED * draws:
            reason = "undefined_draws"
        elif not deviation > 1e-12 * max(abs(estimate), 1e-12):
            reason = "degenerate"
        if reason is not None:
            interval["low"] = interval["high"] = interval["monte_carlo_error"] = None
            interval["reason"] = _REASONS[reason]
        return interval


def _reach_for_zero(intervals: dict[str, Interval], calibration: Mapping[str, Mapping[str, Any]], level: float) -> None:
    """Calibration errors that perfect probabilities might show too have 0 in their interval."""
    for key, chance in calibration.items():
        interval = intervals.get(key)
        if interval is not None and interval["low"] is not None and chance["p_value"] > 1.0 - level:
            interval["low"] = 0.0


def _few_members(source: MatrixInput, scores: Scores) -> list[Finding]:
    sizes = [int(min(own, scores.n_samples - own)) for own in scores.actual.tolist()]
    few = [label for label, size in zip(source.labels, sizes, strict=True) if 0 < size < FEW_MEMBERS]
    if not few:
        return []
    return [
        Finding.warning(
            "area_intervals_of_few_samples",
            f"Fewer than {FEW_MEMBERS} samples stand on one side of the curves of {listed(few)}: intervals of the "
            "areas under them are only roughly right.",
            classes=few[:20],
            smallest=min(size for size in sizes if size),
        )
    ]


def _few_out_of_order(source: MatrixInput, influences: Influences) -> list[Finding]:
    forms = [influences.of(roc_auc, code) for code in range(len(source.labels))]
    carrying = {
        label: effective_samples(form)
        for label, form in zip(source.labels, forms, strict=True)
        if form is not None and isfinite(form.value)
    }
    few = [label for label, samples in carrying.items() if samples < FEW_EFFECTIVE]
    if not few:
        return []
    return [
        Finding.warning(
            "curve_intervals_of_few_mistakes",
            f"Only few samples of {listed(few)} are out of order: resampling hardly moves what is read off the curves, "
            "and intervals of average precision, partial AUC, Kolmogorov-Smirnov and H-measure are too narrow. Those "
            "of the AUC are better.",
            classes=few[:20],
            effective_samples=min(carrying[label] for label in few),
        )
    ]


def _about_resampling(made: Plan, items: Sequence[_Item]) -> Iterator[Finding]:
    biased = sorted({name for item in items if item.biased for name in item.names})
    if biased:
        few = made.n_samples < FEW_FOR_BIASED
        yield (Finding.warning if few else Finding.note)(
            "intervals_of_biased_values",
            "Calibration errors, H-measure and Kolmogorov-Smirnov statistic take absolute values or the best of many "
            "cuts, so chance alone makes them larger. Their intervals are corrected for it and reach further below "
            "what was found than above"
            + (f"; with {made.n_samples} samples they are still too narrow." if few else "."),
            metrics=biased[:20],
            n_samples=made.n_samples,
        )
    if not made.of_all:
        yield Finding.note(
            "bootstrap_of_subsets",
            f"Resampling all {made.n_samples} samples would take too long: every resample is as large as the data but "
            f"drawn from one of ten subsets of {made.subset} samples.",
            n_samples=made.n_samples,
            subset=made.subset,
        )
