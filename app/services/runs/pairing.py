"""Whether runs were made on the same samples, and if so which prediction belongs to which."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.domain.evaluation import EvaluationRecord
from app.kernel.compare.paired.joint import JointCounts, combine
from app.kernel.numerics.arrays import Array
from app.services.ports import SampleLabels


class PairingMode(StrEnum):
    """Whether runs are to be paired."""

    AUTO = "auto"
    TRUE = "true"
    FALSE = "false"


class PairingDesign(StrEnum):
    """What runs have in common."""

    SAMPLES = "sample_ids"
    TEST_SET = "same_test_set"
    INDEPENDENT = "independent"


@dataclass(frozen=True, slots=True, eq=False)
class Pairing:
    """What runs have in common, and why that is thought.

    Attributes:
        joint: The joint counts of paired runs.
        rows: For each of them the places of the common samples, in one order.
    """

    design: PairingDesign
    reason: str
    joint: JointCounts | None = None
    rows: tuple[NDArray[np.intp], ...] | None = None

    @property
    def paired(self) -> bool:
        """Is it known which prediction belongs to which?"""
        return self.design is PairingDesign.SAMPLES


def pair(
    records: Sequence[EvaluationRecord],
    matrices: Array,
    codes: Sequence[NDArray[np.intp]],
    samples: Mapping[UUID, SampleLabels],
    mode: PairingMode = PairingMode.AUTO,
    *,
    minimum_matched: float = 1.0,
) -> Pairing:
    """How runs with the same classes belong together.

    Args:
        records: The runs.
        matrices: (R, K, K), theirs, with the classes in one order.
        codes: For each run the place of its classes (K) in that order.
        samples: Of those that were kept with ids.
        mode: FALSE takes the runs as independent whatever is known.
        minimum_matched: Share of the largest run's samples that all runs must have in common.
    """
    if mode is PairingMode.FALSE:
        return Pairing(PairingDesign.INDEPENDENT, "asked for as independent runs")
    absent = [record for record in records if record.id not in samples]
    if not absent:
        found = _join([samples[record.id] for record in records], codes, matrices.shape[-1], minimum_matched)
        return found if isinstance(found, Pairing) else _without_ids(records, matrices, found)
    names = f"{len(absent)} of {len(records)} runs" if len(absent) < len(records) else "the runs"
    return _without_ids(records, matrices, f"{names} came without sample ids, or these were not retained")


def _without_ids(records: Sequence[EvaluationRecord], matrices: Array, why: str) -> Pairing:
    sums = matrices.sum(axis=2)
    if all(record.dataset == records[0].dataset for record in records) and (sums == sums[0]).all():
        return Pairing(
            PairingDesign.TEST_SET,
            f"{why}; dataset and class counts are the same, so it is one test set, but which predictions belong "
            "together is unknown: p-values are given as the range that the unknown pairing allows, and intervals and "
            "probabilities as if the runs were independent",
        )
    return Pairing(PairingDesign.INDEPENDENT, f"{why}; taken as runs on different samples")


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
    return Pairing(PairingDesign.SAMPLES, f"{same}{matched} sample ids{rest}", joint, tuple(rows))


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
