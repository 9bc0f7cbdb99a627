"""What is known to go wrong with intervals of metrics of probabilities and scores, in words."""

from collections.abc import Iterator, Mapping
from math import isfinite

import numpy as np

from app.domain.findings import Finding
from app.domain.wording import classes, names
from app.kernel.metrics.expression import is_biased
from app.kernel.metrics.families.score_ranking import roc_auc
from app.kernel.uncertainty.influence import effective_samples
from app.services.estimands import Estimand
from app.services.estimates.estimate import Estimate, Estimates
from app.services.estimates.methods.of_samples import FEW_EFFECTIVE, resampling_plan
from app.services.estimates.run_data import RunData

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
