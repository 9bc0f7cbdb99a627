"""Known weaknesses of intervals in a given run, in words."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

import numpy as np

from app.domain.findings import Finding
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import IntervalChoice, Options
from app.domain.wording import classes, names, samples
from app.kernel.metrics.expression import is_biased
from app.kernel.metrics.families.score_ranking import roc_auc
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.closed_forms import Caution, cautions, few_samples
from app.kernel.uncertainty.draws import Prior
from app.kernel.uncertainty.influence import effective_samples
from app.kernel.uncertainty.intervals import undercovers
from app.services.estimands import Estimand
from app.services.estimates.estimate import Estimate, Estimates
from app.services.estimates.methods.of_samples import FEW_EFFECTIVE, resampling_plan
from app.services.estimates.report_intervals import ReportEstimates
from app.services.estimates.run_data import RunData


def headline_cautions(source: MatrixInput, options: Options) -> list[Finding]:
    """What is to be said of the closed-form intervals of a report."""
    if options.intervals is IntervalChoice.NONE:
        return []
    if source.is_weighted:
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
    actual = source.counts.sum(axis=1)
    if options.intervals is IntervalChoice.ALL or source.is_grouped:
        return []
    found = []
    if few_samples(actual).any():
        found.append(_worded(Caution.FEWER_THAN_FIVE, actual, source.labels, Prior.EDGE))
    if undercovers(actual):
        smallest = int(actual[actual > 0].min())
        found.append(
            Finding.note(
                "headline_intervals_narrow",
                f"With {len(actual)} classes and only {samples(smallest)} in one, the quick intervals of h_mean, "
                'g_mean and balanced_accuracy are a little too narrow. Use "intervals": "all".',
                n_classes=len(actual),
                smallest=smallest,
            )
        )
    return found


def caution_findings(counts: Array, labels: Sequence[str], prior: Prior = Prior.EDGE) -> tuple[Finding, ...]:
    """Warnings about intervals of a matrix (K, K) with this prior."""
    actual = counts.sum(axis=-1)
    return tuple(_worded(caution, actual, labels, prior) for caution in cautions(counts, prior))


def _worded(caution: Caution, actual: Array, labels: Sequence[str], prior: Prior) -> Finding:
    present = actual[actual > 0]
    match caution:
        case Caution.EMPTY_CLASS:
            empty = [label for label, total in zip(labels, actual, strict=True) if total == 0]
            return Finding.warning(
                "intervals_without_a_class",
                f"There are no samples of {classes(empty)}. No interval covers what is unknown about them.",
                classes=empty[:20],
            )
        case Caution.FEWER_THAN_FIVE:
            few = [label for label, is_few in zip(labels, few_samples(actual), strict=True) if is_few]
            return Finding.warning(
                "intervals_of_few_samples",
                f"There are fewer than 5 samples of {classes(few)}. Intervals that depend on them are wide and rough.",
                classes=few[:20],
                smallest=int(present.min()),
            )
        case Caution.MANY_SMALL_CLASSES:
            return Finding.warning(
                "intervals_of_many_small_classes",
                f"With {len(labels)} classes, some of them weak, and only {samples(int(present.min()))} in one, "
                "intervals of g_mean, h_mean and other means that weigh weak classes can lie too low and miss their "
                "level by some points.",
                n_classes=len(labels),
                smallest=int(present.min()),
            )
        case Caution.PERFECT_SMALL_CLASSES:
            return Finding.warning(
                "intervals_of_perfect_small_classes",
                "Many small classes have a recall of 0 or 1, and the intervals allow for values in between. Over many "
                "classes this adds up: intervals of means over the classes lie too low, and their level can be 10 "
                "points too small.",
                n_classes=len(labels),
                smallest=int(present.min()),
            )
        case Caution.INFORMATIVE_PRIOR:
            return Finding.warning(
                "informative_prior",
                f"The prior {prior.value} moves every class the same way. Over {len(labels)} classes this adds up, and "
                "intervals of means over the classes can miss the truth. The prior edge does not do this.",
                prior=prior.value,
                n_classes=len(labels),
            )


def stretched_findings(estimates: Mapping[str, Estimate]) -> Iterator[Finding]:
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
    """What is to be said of intervals of everything that a matrix has."""
    counts = run.source.counts if run.weighted is None else run.weighted.samples
    cautious = caution_findings(counts, run.source.labels, options.sampling.prior)
    return (*cautious, *stretched_findings(found.by_name))


# With fewer members or non-members DeLong's intervals miss their level (benchmarks/coverage.py).
FEW_MEMBERS = 30
# Up to so many samples what is left of the bias costs the intervals of biased values their level.
FEW_FOR_BIASED = 2000


def few_effective_samples(estimates: Mapping[str, Estimate], run: RunData) -> Iterator[Finding]:
    """Means whose variance comes from a few samples or groups, such as the log loss of one confident mistake."""
    few = {name: one.effective_samples for name, one in estimates.items() if one.effective_samples is not None}
    if not few:
        return
    unit, fewest = "sample" if run.grouping is None else "group", min(few.values())
    yield Finding.warning(
        "intervals_rest_on_few_samples",
        f"The intervals of {names(list(few))} are rough: they rest on about {fewest:.0f} "
        f"{unit if round(fewest) == 1 else f'{unit}s'}. Their upper ends are too low.",
        metrics=list(few)[:20],
        effective_samples=fewest,
    )


def few_members(run: RunData) -> Iterator[Finding]:
    """Areas under curves of which one side has few samples."""
    scores, labels = run.scores, run.source.labels
    counted = scores.y if scores.weights is None else scores.y[scores.weights > 0]
    members = np.bincount(counted, minlength=scores.n_classes).tolist()
    sizes = [min(own, counted.size - own) for own in members]
    few = [label for label, size in zip(labels, sizes, strict=True) if 0 < size < FEW_MEMBERS]
    if few:
        yield Finding.warning(
            "area_intervals_of_few_samples",
            f"The intervals of the areas under the curves of {classes(few)} are rough: there are fewer than "
            f"{FEW_MEMBERS} samples of the class, or of the others.",
            classes=few[:20],
            smallest=min(size for size in sizes if size),
        )


def few_out_of_order(run: RunData) -> Iterator[Finding]:
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
            "better.",
            classes=few[:20],
            effective_samples=min(carrying[label] for label in few),
        )


def about_biased(found: Mapping[Estimand, Estimates], run: RunData) -> Iterator[Finding]:
    """What was resampled although resampling moves it."""
    resampled = [one for one, estimates in found.items() if any(each.seed is not None for each in estimates)]
    biased = sorted({name for one in resampled if is_biased(one.expression) for name in one.names})
    n_samples = run.scores.n_samples
    if biased:
        few = n_samples < FEW_FOR_BIASED
        yield (Finding.warning if few else Finding.note)(
            "intervals_of_biased_values",
            "Calibration errors, H-measure and Kolmogorov-Smirnov statistic take absolute values or the best of many "
            "cuts, so chance makes them larger. Their intervals are corrected for this and reach further down than up"
            + (f"; with {n_samples} samples they are still too narrow." if few else "."),
            metrics=biased[:20],
            n_samples=n_samples,
        )


def about_resampling(found: Mapping[Estimand, Estimates], run: RunData, draws: int) -> Iterator[Finding]:
    """What was resampled although resampling moves it, and of what."""
    yield from about_biased(found, run)
    n_samples, made = run.scores.n_samples, resampling_plan(run, draws)
    if made is not None and not made.of_all:
        yield Finding.note(
            "bootstrap_of_subsets",
            f"Resampling all {n_samples} samples would take too long. Every resample is as large as the data, but "
            f"drawn from one of ten subsets of {made.subset} samples.",
            n_samples=n_samples,
            subset=made.subset,
        )
