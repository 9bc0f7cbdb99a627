"""What is known to go wrong with intervals of one matrix, in words."""

from collections.abc import Iterator, Mapping, Sequence

from app.domain.findings import Finding
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import IntervalChoice, Options
from app.domain.wording import classes, samples
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.closed_forms import Caution, cautions, few_samples
from app.kernel.uncertainty.draws import Prior
from app.kernel.uncertainty.intervals import undercovers
from app.services.estimates.estimate import Estimate
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
