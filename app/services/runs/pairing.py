"""Whether runs were made on the same samples, and if so which prediction belongs to which."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import IncomparableLabels
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.labels import listed
from app.kernel.compare.joint import JointCounts, combine
from app.kernel.numerics.arrays import Array
from app.services.ports import PairedLabels, SampleLabels


class Wanted(StrEnum):
    """Whether runs are to be paired."""

    AUTO = "auto"
    TRUE = "true"
    FALSE = "false"


# Samples of all runs together whose labels are read to pair them: some hundred megabytes.
MOST_SAMPLES = 20_000_000


async def read_samples(
    labels: PairedLabels, project: str, records: Sequence[EvaluationRecord]
) -> Mapping[UUID, SampleLabels]:
    """What is kept of the samples of runs; nothing when there are too many to look at."""
    if len(records) < 2 or sum(record.n_samples for record in records) > MOST_SAMPLES:
        return {}
    return await labels.read_labels(project, [record.id for record in records])


class Bond(StrEnum):
    """What runs have in common."""

    SAMPLES = "sample_ids"
    TEST_SET = "same_test_set"
    NOTHING = "independent"


@dataclass(frozen=True, slots=True, eq=False)
class Pairing:
    """What runs have in common, and why that is thought.

    Attributes:
        joint: The joint counts of paired runs.
        rows: For each of them the places of the common samples, in one order.
    """

    bond: Bond
    reason: str
    joint: JointCounts | None = None
    rows: tuple[NDArray[np.intp], ...] | None = None

    @property
    def paired(self) -> bool:
        """Is it known which prediction belongs to which?"""
        return self.bond is Bond.SAMPLES


def align(records: Sequence[EvaluationRecord], pointer: str = "/evaluations") -> tuple[Array, list[NDArray[np.intp]]]:
    """Matrices (R, K, K) with the classes in the order of the first, and for each run the place of its codes there.

    Raises:
        IncomparableLabels: two runs have different classes.
    """
    labels = records[0].labels
    places = {label: place for place, label in enumerate(labels)}
    matrices, codes = [], []
    for index, record in enumerate(records):
        if set(record.labels) != set(labels):
            missing, extra = sorted(set(labels) - set(record.labels)), sorted(set(record.labels) - set(labels))
            parts = [f"lacks {listed(missing)}"] * bool(missing) + [f"has {listed(extra)}"] * bool(extra)
            raise IncomparableLabels(
                f"expected runs with the same classes; {record.id} {' and '.join(parts)} compared with {records[0].id}",
                pointer=f"{pointer}/{index}" if pointer.endswith("s") else pointer,
            )
        place = np.array([places[label] for label in record.labels], dtype=np.intp)
        matrix = np.empty(record.counts.shape)
        matrix[np.ix_(place, place)] = record.counts
        matrices.append(matrix)
        codes.append(place)
    return np.stack(matrices), codes


def pair_runs(
    records: Sequence[EvaluationRecord],
    samples: Mapping[UUID, SampleLabels],
    wanted: Wanted = Wanted.AUTO,
    *,
    minimum_matched: float = 1.0,
) -> Pairing:
    """How runs with the same classes belong together.

    Args:
        records: the runs.
        samples: of those that were kept with ids.
        wanted: FALSE takes the runs as independent whatever is known.
        minimum_matched: share of the largest run's samples that all runs must have in common.
    """
    if wanted is Wanted.FALSE:
        return Pairing(Bond.NOTHING, "asked for as independent runs")
    counts, codes = align(records)
    absent = [record for record in records if record.id not in samples]
    if not absent:
        found = _join([samples[record.id] for record in records], codes, len(records[0].labels), minimum_matched)
        if isinstance(found, Pairing):
            return found
        return _without_ids(records, counts, found)
    names = f"{len(absent)} of {len(records)} runs" if len(absent) < len(records) else "the runs"
    return _without_ids(records, counts, f"{names} came without sample ids, or these were not retained")


def _without_ids(records: Sequence[EvaluationRecord], counts: Array, why: str) -> Pairing:
    sums = counts.sum(axis=2)
    if all(record.dataset == records[0].dataset for record in records) and (sums == sums[0]).all():
        return Pairing(
            Bond.TEST_SET,
            f"{why}; dataset and class counts are the same, so it is one test set, but which predictions belong "
            "together is unknown: p-values are given as the range that the unknown pairing allows, and intervals and "
            "probabilities as if the runs were independent",
        )
    return Pairing(Bond.NOTHING, f"{why}; taken as runs on different samples")


def _join(
    samples: Sequence[SampleLabels], codes: Sequence[NDArray[np.intp]], n_classes: int, minimum: float
) -> Pairing | str:
    """The runs paired by id, or why that cannot be."""
    first = samples[0]
    rows = _rows([one.ids for one in samples])
    matched, largest = len(rows[0]), max(len(one.ids) for one in samples)
    if matched == 0:
        return "the runs have no sample id in common"
    if matched < minimum * largest:
        return f"only {matched} of {largest} sample ids are common to all runs"
    truth = codes[0][first.truth[rows[0]]]
    for number, (one, code, row) in enumerate(zip(samples, codes, rows, strict=True)):
        other = code[one.truth[row]]
        if not np.array_equal(other, truth):
            place = int(np.argmax(other != truth))
            return f"sample {first.ids[rows[0][place]]} has another true class in run {number + 1} than in the first"
    predictions = np.stack([code[one.predicted[row]] for one, code, row in zip(samples, codes, rows, strict=True)])
    same = "same " if matched == largest else ""
    rest = "" if matched == largest else f" in common; the others, of at most {largest}, are left out"
    joint = combine(truth, predictions, n_classes)
    return Pairing(Bond.SAMPLES, f"{same}{matched} sample ids{rest}", joint, tuple(rows))


def _rows(ids: Sequence[NDArray[np.generic]]) -> list[NDArray[np.intp]]:
    """For each run the rows of the samples that all have, in one order."""
    if all(np.array_equal(one, ids[0]) for one in ids[1:]):
        return [np.arange(len(ids[0]))] * len(ids)
    if len({one.dtype.kind for one in ids}) > 1:
        # The integer 3 and the text "3" are the same id.
        ids = [one.astype(np.str_) for one in ids]
    common = ids[0]
    for one in ids[1:]:
        common = np.intersect1d(common, one, assume_unique=True)
    rows = []
    for one in ids:
        order = np.argsort(one, kind="stable")
        rows.append(order[np.searchsorted(one, common, sorter=order)])
    return rows
