"""What a report says of weighted samples: what they are worth, and intervals that know the weight of each."""

from collections.abc import Mapping, Sequence

import numpy as np

from app.domain.findings import Finding
from app.domain.inputs.samples import WeightSums
from app.domain.options import IntervalChoice
from app.domain.report import Section, WeightDesign
from app.domain.wording import rounded, significant
from app.kernel.folds.labels import WeightedMoments
from app.kernel.metrics.card import AnyMetric
from app.kernel.metrics.expression import Measure
from app.kernel.numerics.arrays import Array, kish_effective_n
from app.kernel.samples.label_units import LabelMoments, LabelPairs
from app.kernel.uncertainty.weights import design_effects
from app.services.estimates.report_intervals import balanced_for_report, estimate_for_report, matrix_metrics
from app.services.estimates.run_data import RunData
from app.services.estimates.warnings import everything_findings
from app.services.evaluate.questions import Question
from app.services.json_values import numbers

# With so few samples of one weight to their name the linearised variance is itself uncertain.
FEW_EFFECTIVE = 30


def weight_section(question: Question, run: RunData) -> Section:
    """The part of the report on the matrix that needs the weights."""
    weighted, samples = run.weighted, run.source.samples
    if weighted is None or samples is None or samples.weights is None:
        raise ValueError("expected weighted samples")
    effects = design_effects(weighted)
    if samples.tally is None or samples.tally.weights is None:
        design = _design(samples.weights, weighted.effective_samples, effects)
    else:
        design = _design_of_sums(samples.tally.weights, weighted.effective_samples, effects)
    options = question.options
    findings = _findings(question, design)
    if not question.has_intervals:
        return Section(details={**design}, findings=tuple(findings))
    found = estimate_for_report(matrix_metrics(options), question.of_matrix, run, options)
    if options.intervals is IntervalChoice.ALL:
        findings += everything_findings(found, run, options)
    return Section(
        details={**design},
        intervals=found.intervals(),
        balanced_intervals=balanced_for_report(run, options),
        findings=tuple(findings),
    )


def label_weights(question: Question, run: RunData, metrics: Sequence[AnyMetric]) -> tuple[WeightDesign, list[Finding]]:
    """What weights of samples with labels are worth, of these overall metrics too, and what is to be said of it."""
    influences = run.label_influences
    if influences is None:
        raise ValueError("expected weighted samples with labels")
    effects = {}
    for metric in metrics:
        linear = influences.of(metric) or influences.of_tables(Measure(metric, metric.card.defaults, None))
        if linear is not None:
            effects[metric.key] = influences.design_effect(linear)
    design = _design_of_labels(influences.pairs, run.weights, effects)
    return design, _findings(question, design)


def _design_of_labels(
    pairs: LabelPairs | LabelMoments | WeightedMoments, weights: Array | None, effects: Mapping[str, float]
) -> WeightDesign:
    if isinstance(pairs, WeightedMoments):
        return _designed(pairs.n_samples, *pairs.ends, pairs.weighed.worth[1], effects)
    if weights is None:
        raise ValueError("expected weighted samples")
    return _design(weights, kish_effective_n(weights), effects)


def _findings(question: Question, design: WeightDesign) -> list[Finding]:
    few = question.has_intervals and design["effective_samples"] < FEW_EFFECTIVE
    return [_worth(design), _few(design)] if few else [_worth(design)]


def _design(weights: Array, effective: float, known: Mapping[str, float]) -> WeightDesign:
    used = weights[weights > 0]
    return _designed(used.size, float(used.min()), float(used.max()), effective, known)


def _design_of_sums(sums: WeightSums, effective: float, known: Mapping[str, float]) -> WeightDesign:
    ends = float(np.nanmin(sums.lightest)), float(np.nanmax(sums.heaviest))
    return _designed(int(sums.used.sum()), *ends, effective, known)


def _designed(size: int, smallest: float, largest: float, effective: float, known: Mapping[str, float]) -> WeightDesign:
    return {
        "n_samples": size,
        "smallest": smallest,
        "largest": largest,
        "effective_samples": effective,
        "design_effects": dict(zip(known, numbers(np.array(list(known.values()))), strict=True)),
    }


def _worth(design: WeightDesign) -> Finding:
    total, effective = design["n_samples"], design["effective_samples"]
    return Finding.note(
        "samples_with_weights",
        f"The {total:,} samples have weights from {significant(design['smallest'])} to "
        f"{significant(design['largest'])} and carry as much information as about {rounded(effective, 0)} of equal "
        "weight. A weight is taken as the inverse of the chance to be sampled, not as how often a sample was seen. "
        "Intervals allow for that.",
        n_samples=total,
        effective_samples=effective,
    )


def _few(design: WeightDesign) -> Finding:
    effective = design["effective_samples"]
    return Finding.warning(
        "intervals_of_few_effective_samples",
        f"The weights differ so much that the samples carry only as much information as {rounded(effective, 0)} of "
        f"equal weight. With fewer than {FEW_EFFECTIVE} the variance is uncertain. Intervals are widened, but can miss "
        "the truth more often than their level says.",
        effective_samples=effective,
    )
