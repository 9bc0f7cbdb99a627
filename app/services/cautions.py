"""What is known to go wrong with intervals of one matrix, in words."""

from collections.abc import Sequence

from app.domain.findings import Finding
from app.domain.labels import listed
from app.kernel.numerics import Array
from app.kernel.uncertainty.design import Caution, Prior, cautions


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
                f"There are no samples of {listed(empty)}: how it is predicted is unknown, which no interval covers.",
                classes=empty[:20],
            )
        case Caution.FEWER_THAN_FIVE:
            few = [label for label, total in zip(labels, actual, strict=True) if 0 < total < 5]
            return Finding.warning(
                "intervals_of_few_samples",
                f"Fewer than 5 samples of {listed(few)}: intervals that depend on it are wide and only roughly right.",
                classes=few[:20],
                smallest=int(present.min()),
            )
        case Caution.MANY_SMALL_CLASSES:
            return Finding.warning(
                "intervals_of_many_small_classes",
                f"With {len(labels)} classes and only {int(present.min())} samples in one, intervals of means over "
                "the classes, above all of H, are too narrow: count on 85 % instead of 95 % coverage.",
                n_classes=len(labels),
                smallest=int(present.min()),
            )
        case Caution.INFORMATIVE_PRIOR:
            return Finding.warning(
                "informative_prior",
                f"The prior {prior.value} pulls every class the same way; over {len(labels)} classes this adds up, and "
                "intervals of means over the classes can miss the truth altogether. The prior edge does not.",
                prior=prior.value,
                n_classes=len(labels),
            )
        case Caution.BOUNDARY:
            return Finding.note("intervals_at_the_boundary", "A value stands at an end of its range.")
