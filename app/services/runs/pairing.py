"""Pairing of runs: whether they were made on the same samples, and which prediction belongs to which."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import IncomparableRuns, OutOfReach
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.kinds import units_of
from app.domain.inputs.ranking import Ranking
from app.domain.inputs.samples import Samples
from app.kernel.compare.paired.joint import JointCounts, combine
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.units import Units
from app.services.ports import PairedLabels, SampleLabels
from app.services.stored import stored_input

# Relative to each other, weights that differ by no more are the same.
SAME_WEIGHTS = 1e-9
_IDS, _QUERIES = "sample ids", "queries"
WEIGHTLESS = "the samples that the runs have in common weigh nothing"


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
        weights: What these weigh; None is 1 each.
        matched: How many they are, whatever they weigh, where rows do not say it.
    """

    design: PairingDesign
    reason: str
    joint: JointCounts | None = None
    rows: tuple[NDArray[np.intp], ...] | None = None
    weights: Array | None = None
    matched: int | None = None

    @property
    def paired(self) -> bool:
        """Is it known which prediction belongs to which?"""
        return self.design is PairingDesign.SAMPLES

    @property
    def n_common(self) -> int | None:
        """How many samples paired runs have in common."""
        if self.rows is not None:
            return len(self.rows[0])
        if self.matched is not None:
            return self.matched
        return None if self.joint is None else int(self.joint.counts.sum())


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
    known = [samples.get(record.id) for record in records]
    with_ids = [one for one in known if one is not None and one.ids is not None]
    absent = len(records) - len(with_ids)
    if not absent:
        found = _join(with_ids, codes, matrices.shape[-1], minimum_matched)
        return found if isinstance(found, Pairing) else _without_ids(records, matrices, found)
    names = f"{absent} of {len(records)} runs" if absent < len(records) else "the runs"
    return _without_ids(records, matrices, f"{names} came without sample ids, or these were not retained")


@dataclass(frozen=True, slots=True, eq=False)
class PairedUnits:
    """What pairs runs that are more than matrices of classes.

    Attributes:
        ids: (n) of the units, all different; None when there are none.
        truth: (n) or (n, m), what is true of each; None where that cannot be held side by side.
        weights: (n) of them; None is 1 each.
    """

    ids: NDArray[Any] | None
    truth: NDArray[Any] | None
    weights: Array | None = None


def pair_units(
    records: Sequence[EvaluationRecord],
    margins: Sequence[NDArray[Any]],
    units: Sequence[PairedUnits | None],
    mode: PairingMode,
    minimum_matched: float,
) -> Pairing:
    """How such runs belong together.

    Args:
        records: The runs.
        margins: For each what the data alone say of its counts, labels in one order.
        units: For each its units, None where they were not kept.
        mode: FALSE takes the runs as independent whatever is known.
        minimum_matched: Share of the largest run's units that all runs must have in common.
    """
    if mode is PairingMode.FALSE:
        return Pairing(PairingDesign.INDEPENDENT, "asked for as independent runs")
    same = all(np.array_equal(one, margins[0]) for one in margins[1:])
    present = [one for one in units if one is not None and one.ids is not None]
    if len(present) < len(units):
        absent = len(units) - len(present)
        names = f"{absent} of {len(units)} runs" if present else "the runs"
        return _by_test_set(records, f"{names} came without ids, or these were not retained", same=same)
    rows = _rows([one.ids for one in present if one.ids is not None])
    named = _QUERIES if records[0].kind == Ranking.kind else _IDS
    fault = _too_few(len(rows[0]), _largest(present), minimum_matched, named) or _other_truth(present, rows)
    if fault is not None:
        return _by_test_set(records, fault, same=same)
    weights = common_weights([one.weights for one in present], rows)
    if isinstance(weights, str):
        return _by_test_set(records, weights, same=same)
    return Pairing(PairingDesign.SAMPLES, _matched(len(rows[0]), _largest(present), named), None, tuple(rows), weights)


def _largest(units: Sequence[PairedUnits]) -> int:
    return max(len(one.ids) for one in units if one.ids is not None)


def _other_truth(units: Sequence[PairedUnits], rows: Sequence[NDArray[np.intp]]) -> str | None:
    """Why units cannot be paired of which something else is true in each run."""
    truths = [None if one.truth is None else one.truth[row] for one, row in zip(units, rows, strict=True)]
    for number, truth in enumerate(truths):
        if truth is not None and truths[0] is not None and not np.array_equal(truth, truths[0]):
            return f"what is true of the common ids is not the same in run {number + 1} as in the first"
    return None


def _without_ids(records: Sequence[EvaluationRecord], matrices: Array, why: str) -> Pairing:
    sums = matrices.sum(axis=2)
    return _by_test_set(records, why, same=bool((sums == sums[0]).all()))


def _by_test_set(records: Sequence[EvaluationRecord], why: str, *, same: bool) -> Pairing:
    """Runs that nothing pairs; ``same``: their data have the same counts, or sums of weights, which say less."""
    same = same and not any(record.is_weighted for record in records)
    if same and all(record.dataset == records[0].dataset for record in records):
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
    first, ids = samples[0], [one.ids for one in samples if one.ids is not None]
    rows = _rows(ids)
    matched, largest = len(rows[0]), max(len(one.truth) for one in samples)
    fault = _too_few(matched, largest, minimum)
    if fault is not None:
        return fault
    truth = codes[0][first.truth[rows[0]]]
    for number, (one, code, row) in enumerate(zip(samples, codes, rows, strict=True)):
        other = code[one.truth[row]]
        if not np.array_equal(other, truth):
            place = int(np.argmax(other != truth))
            return another_truth(ids[0][rows[0][place]], number)
    weights = common_weights([one.weights for one in samples], rows)
    if isinstance(weights, str):
        return weights
    predictions = np.stack([code[one.predicted[row]] for one, code, row in zip(samples, codes, rows, strict=True)])
    joint = combine(truth, predictions, n_classes, weights=weights)
    return Pairing(PairingDesign.SAMPLES, _matched(matched, largest), joint, tuple(rows), weights)


def another_truth(sample: Any, place: int) -> str:
    """Why runs cannot be paired of which the one at a place says something else of a sample than the first."""
    return f"sample {sample} has another true class in run {place + 1} than in the first"


def by_counts(matched: int, largest: int, minimum: float) -> Pairing | str:
    """Runs whose samples were joined by their ids somewhere else, or why that is not enough.

    Args:
        matched: How many samples all runs have in common, whatever they weigh.
        largest: Samples of the run that has the most.
        minimum: Share of these that all runs must have in common.
    """
    fault = _too_few(matched, largest, minimum)
    return fault or Pairing(PairingDesign.SAMPLES, _matched(matched, largest), matched=matched)


def _too_few(matched: int, largest: int, minimum: float, named: str = _IDS) -> str | None:
    if matched == 0:
        return f"the runs have no {named} in common"
    return f"only {matched} of {largest} {named} are common to all runs" if matched < minimum * largest else None


def _matched(matched: int, largest: int, named: str = _IDS) -> str:
    same = "same " if matched == largest else ""
    rest = "" if matched == largest else f" in common; the others, of at most {largest}, are left out"
    return f"{same}{matched} {named}{rest}"


def common_weights(known: Sequence[Array | None], rows: Sequence[NDArray[np.intp]]) -> Array | str | None:
    """What the common samples weigh (n) in all runs, None where that is 1 each, or why they cannot be paired.

    The unit of a run's weights says nothing, so weights that are multiples of those of the first are the same.
    """
    if all(one is None for one in known):
        return None
    each = [np.ones(row.size) if one is None else one[row] for one, row in zip(known, rows, strict=True)]
    sums = [float(one.sum()) for one in each]
    if min(sums) <= 0.0:
        return WEIGHTLESS
    for number, (one, total) in enumerate(zip(each, sums, strict=True)):
        if not np.allclose(one / total, each[0] / sums[0], rtol=SAME_WEIGHTS, atol=0.0):
            return weighs_otherwise(number)
    return each[0]


def weighs_otherwise(place: int) -> str:
    """Why runs cannot be paired of which the one at a place has other weights than the first."""
    return f"run {place + 1} weighs the samples that it has in common with the first differently"


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


# Samples of all runs together whose labels are read to pair them: some hundred megabytes.
MOST_SAMPLES = 20_000_000
# Samples times classes of all runs together that are read at once: some 200 MB.
MOST_ENTRIES = 24_000_000


@dataclass(frozen=True, slots=True, eq=False)
class NamedUnits:
    """Units of a run whose samples were streamed.

    Attributes:
        ids: (n) of the units.
        units: What is left of them.
    """

    ids: NDArray[Any]
    units: Units


@dataclass(frozen=True, slots=True, eq=False)
class KeptSamples:
    """What is known of the samples of some runs.

    Attributes:
        labels: Of runs whose samples were kept with ids or weights.
        outputs: With probabilities or scores, where a metric needs them; None when these are too many to look at.
        units: In place of these, of runs whose samples were streamed.
    """

    labels: Mapping[UUID, SampleLabels] = field(default_factory=dict)
    outputs: Mapping[UUID, Samples] | None = field(default_factory=dict)
    units: Mapping[UUID, NamedUnits] = field(default_factory=dict)

    @classmethod
    def of(cls, outputs: Mapping[UUID, Samples]) -> "KeptSamples":
        """From samples with all that is known of them."""
        labels = {identifier: SampleLabels.of(one) for identifier, one in outputs.items()}
        return cls({identifier: one for identifier, one in labels.items() if one is not None}, outputs)

    def weights(self, identifier: UUID) -> NDArray[np.float64] | None:
        """What the samples of a run weigh; None where that is 1 each, or not known."""
        found = self.labels.get(identifier)
        return None if found is None else found.weights

    def samples(self, identifier: UUID) -> Samples | None:
        """The samples of a run that came with probabilities, scores or weights."""
        found, labels = (self.outputs or {}).get(identifier), self.labels.get(identifier)
        return labels.samples if found is None and labels is not None and labels.weights is not None else found


async def read_labels(
    port: PairedLabels, project: str, records: Sequence[EvaluationRecord], *, elsewhere: Collection[UUID] = ()
) -> KeptSamples:
    """What pairs runs, and what their samples weigh; nothing when there are too many samples to look at.

    The samples of those ``elsewhere`` are not kept, and read by somebody else.
    """
    alone = len(records) < 2 and not any(record.is_weighted for record in records)
    kept = [record for record in records if record.id not in elsewhere]
    if alone or not kept or sum(record.n_rows for record in kept) > MOST_SAMPLES:
        return KeptSamples()
    return KeptSamples(await port.read_labels(project, [record.id for record in kept]))


async def read_outputs(
    port: PairedLabels,
    project: str,
    records: Sequence[EvaluationRecord],
    metric: str,
    *,
    pointers: Sequence[str] | None = None,
    elsewhere: Collection[UUID] = (),
) -> KeptSamples:
    """The samples of runs that are to be judged by a metric of probabilities.

    The samples of those ``elsewhere`` are not kept, and read by somebody else.

    Raises:
        IncomparableRuns: a run came without probabilities and scores, or they were not kept.
        OutOfReach: there are too many to be looked at together.
    """
    check_entries([record for record in records if record.id not in elsewhere], metric)
    found = await port.read_outputs(project, [record.id for record in records if record.id not in elsewhere])
    for index, record in enumerate(records):
        is_elsewhere = record.id in elsewhere
        if not is_scored(record) if is_elsewhere else _lacks_outputs(record, found.get(record.id)):
            where = f"/evaluations/{index}" if pointers is None else pointers[index]
            raise IncomparableRuns(f"{metric} {missing_outputs(record, is_elsewhere=is_elsewhere)}", pointer=where)
    return KeptSamples.of(found)


def check_entries(records: Sequence[EvaluationRecord], metric: str) -> None:
    """Raises OutOfReach where runs have too many probabilities to be looked at together."""
    entries = entries_of(records)
    if entries > MOST_ENTRIES:
        raise OutOfReach(
            f"{metric} needs the probabilities of all samples of the runs, and {entries} of them (samples times "
            f"classes) are more than the {MOST_ENTRIES} that are looked at together; take fewer runs, or metrics of "
            "matrices"
        )


def _lacks_outputs(record: EvaluationRecord, samples: Samples | None) -> bool:
    form = units_of(record.kind, record.extra)
    if form is not None:
        return samples is None and form.needs_samples(record.extra)
    return samples is None or samples.outputs is None


def entries_of(records: Iterable[EvaluationRecord]) -> int:
    """Samples times classes."""
    return sum(int(record.n_rows) * record.n_classes for record in records)


def is_scored(record: EvaluationRecord) -> bool:
    """Did the run come with probabilities or scores, or with units that metrics are computed of?"""
    return stored_input(record).is_scored or record.task is not None


def missing_outputs(record: EvaluationRecord, *, is_elsewhere: bool = False) -> str:
    """Why a metric of probabilities has nothing to work on in a run."""
    what = "probabilities or scores of the samples" if record.task is None else "samples"
    needs = f"needs the {what}, and those of {record.id} ({record.model.name})"
    if record.data is not None and is_scored(record):
        return f"{needs} were not kept: they lie where its data was named, and comparisons with `paired: true` read it"
    if record.options.get("retain") == "none" and not is_elsewhere:
        return f"{needs} were not kept: it was sent with the option retain=none"
    return f"{needs} are not there: it came as {record.kind.replace('_', ' ')}"
