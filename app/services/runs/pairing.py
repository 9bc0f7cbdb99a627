"""Pairing of runs: whether they were made on the same samples, and which prediction belongs to which."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import IncomparableRuns, OutOfReach
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.content import DATA_FACT, MERGED_FACT, why_not_saved
from app.domain.inputs.ranking import Ranking
from app.domain.inputs.samples import Samples
from app.domain.wording import numbered
from app.kernel.compare.paired.joint import JointCounts, combine
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.groups import Grouping
from app.kernel.uncertainty.units import Units
from app.services.estimates.run_data import RunData, run_data
from app.services.ports import EvaluationStore

# Relative to each other, weights that differ by no more are the same.
SAME_WEIGHTS = 1e-9
_IDS, _QUERIES = "sample ids", "queries"
WEIGHTLESS = "the samples that the runs have in common weigh nothing"
ONE_GROUP = "these samples are one group, so how groups differ is not known"
GROUPED_OTHERWISE = "the runs do not group the samples that they have in common in the same way"


class PairingMode(StrEnum):
    """Pairing of runs: if possible, always, or never."""

    AUTO = "auto"
    TRUE = "true"
    FALSE = "false"


class PairingDesign(StrEnum):
    """The data that runs have in common."""

    SAMPLES = "sample_ids"
    TEST_SET = "same_test_set"
    INDEPENDENT = "independent"


@dataclass(frozen=True, slots=True, eq=False)
class Pairing:
    """The samples that runs have in common, and the reason to think so.

    Attributes:
        joint: The joint counts of paired runs.
        rows: For each of them the places of the common samples, in one order.
        n_common: How many these are, whatever they weigh; None if it is not known.
        unpaired: Why runs that were to be paired are not.
        grouping: Groups of the common samples, or why these cannot be used; None where the samples are independent.
    """

    design: PairingDesign
    reason: str
    joint: JointCounts | None = None
    rows: tuple[NDArray[np.intp], ...] | None = None
    n_common: int | None = None
    grouping: Grouping | IncomparableRuns | None = None
    unpaired: str | None = None

    @property
    def paired(self) -> bool:
        """Is it known which prediction belongs to which?"""
        return self.design is PairingDesign.SAMPLES


def pair(
    records: Sequence[EvaluationRecord], runs: Sequence[RunData], mode: PairingMode, minimum_matched: float
) -> Pairing:
    """Pair runs of one kind.

    Args:
        records: Of the runs.
        runs: The same with what is known of their samples, classes in one order.
        mode: FALSE takes the runs as independent whatever is known.
        minimum_matched: Share of the largest run's units that all runs must have in common.
    """
    if mode is PairingMode.FALSE:
        return Pairing(PairingDesign.INDEPENDENT, "asked for as independent runs")
    found = _joined(records, [one for one in runs if one.unit_ids is not None], minimum_matched)
    if isinstance(found, Pairing):
        return found
    margins = [one.counts.sum(axis=-1) for one in runs]
    same = all(np.array_equal(one, margins[0]) for one in margins[1:])
    # Sums of weights that are the same say less.
    if same and all(record.dataset == records[0].dataset and not record.is_weighted for record in records):
        return Pairing(
            PairingDesign.TEST_SET,
            f"{found}. Dataset and class counts are the same, so it is one test set, but which predictions belong "
            "together is unknown: p-values are given as the range that the unknown pairing allows, and intervals and "
            "probabilities hold whatever it is",
            unpaired=found,
        )
    return Pairing(PairingDesign.INDEPENDENT, f"{found}; taken as runs on different samples", unpaired=found)


def _joined(records: Sequence[EvaluationRecord], runs: Sequence[RunData], minimum: float) -> Pairing | str:
    """Pair the runs by id, or say why that cannot be."""
    of_classes, absent = records[0].task is None, len(records) - len(runs)
    if absent:
        names = f"{absent} of {len(records)} runs" if runs else "the runs"
        return f"{names} came without {'sample ' * of_classes}ids, or these were not saved"
    named = _QUERIES if records[0].kind == Ranking.kind else _IDS
    ids = [one.unit_ids for one in runs if one.unit_ids is not None]
    rows = _rows(ids)
    found = by_counts(len(rows[0]), max(map(len, ids)), minimum, named)
    if isinstance(found, str):
        return found
    truths = [None if one.truth is None else one.truth[row] for one, row in zip(runs, rows, strict=True)]
    for number, truth in enumerate(truths):
        if truth is not None and truths[0] is not None and not np.array_equal(truth, truths[0]):
            if not of_classes:
                return f"what is true of the common ids is not the same in run {number + 1} as in the first"
            return another_truth(ids[0][rows[0][int(np.argmax(truth != truths[0]))]], number)
    weights = _common_weights([one.weights for one in runs], rows)
    if isinstance(weights, str):
        return weights
    grouping, joint = _common_groups(runs, rows), None
    if of_classes and truths[0] is not None:
        predicted = np.stack([one.predicted[row] for one, row in zip(runs, rows, strict=True)])
        groups = grouping if isinstance(grouping, Grouping) else None
        joint = combine(truths[0], predicted, records[0].n_classes, weights=weights, grouping=groups)
    return replace(found, joint=joint, rows=tuple(rows), grouping=grouping)


def another_truth(sample: Any, place: int) -> str:
    """Why runs cannot be paired of which the one at a place says something else of a sample than the first."""
    return f"sample {sample} has another true class in run {place + 1} than in the first"


def by_counts(matched: int, largest: int, minimum: float, named: str = _IDS) -> Pairing | str:
    """Runs by how many samples all have in common, whatever these weigh, or why that is not enough.

    Args:
        matched: That number.
        largest: Samples of the run that has the most.
        minimum: Share of these that all runs must have in common.
        named: What samples are told apart by.
    """
    if matched == 0:
        return f"the runs have no {named} in common"
    if matched < minimum * largest:
        return f"only {matched:,} of {largest:,} {named} are common to all runs"
    same = "same " if matched == largest else ""
    rest = "" if matched == largest else f" in common; the others, of at most {largest:,}, are left out"
    return Pairing(PairingDesign.SAMPLES, f"{same}{numbered(matched, named)}{rest}", n_common=matched)


def _common_weights(known: Sequence[Array | None], rows: Sequence[NDArray[np.intp]]) -> Array | str | None:
    """Return the weights of the common samples (n) in all runs, None where they are 1 each, or the reason not to pair
    them.

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


def _common_groups(runs: Sequence[RunData], rows: Sequence[NDArray[np.intp]]) -> Grouping | IncomparableRuns | None:
    """Return the groups of the common samples, or why these cannot be used; None where no run came with any."""
    known = [one.source.groups for one in runs]
    found = [Grouping.of(one[row]) for one, row in zip(known, rows, strict=True) if one is not None]
    if not found:
        return None
    for other in found[1:]:
        pairs = np.unique(np.stack([found[0].codes, other.codes]), axis=1).shape[1]
        if not found[0].n_groups == other.n_groups == int(pairs):
            return refused_groups(GROUPED_OTHERWISE)
    return found[0] if found[0].n_groups > 1 else refused_groups(ONE_GROUP)


def unpaired(why: str) -> IncomparableRuns:
    """Return why runs that were to be paired cannot be."""
    return IncomparableRuns(f"the runs cannot be paired: {why}", pointer="/paired")


def refused_groups(why: str) -> IncomparableRuns:
    """Return why runs cannot be compared whose samples come in groups."""
    return IncomparableRuns(f"the samples of the runs come in groups (group_ids): {why}", pointer="/evaluations")


def weighs_otherwise(place: int) -> str:
    """Why runs cannot be paired of which the one at a place has other weights than the first."""
    return f"run {place + 1} weighs the samples that it has in common with the first differently"


def _rows(ids: Sequence[NDArray[np.generic]]) -> list[NDArray[np.intp]]:
    """For each run the rows of the samples that all have, in the order of their ids, wherever they stand."""
    if all(np.array_equal(one, ids[0]) for one in ids[1:]):
        return [np.argsort(ids[0], kind="stable")] * len(ids)
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
_FEWER = "take fewer runs, or metrics of matrices"


class NamedUnits(NamedTuple):
    """Units of a run whose samples were streamed, and their ids (n)."""

    units: Units
    ids: NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class KeptSamples:
    """Samples of some runs, as far as they are known.

    Attributes:
        samples: With probabilities or scores where a metric needs them, else what pairs runs: ids, weights and groups.
        units: In place of these, of runs whose samples were streamed.
        too_many: Are there more than can be looked at together?
    """

    samples: Mapping[UUID, Samples] = field(default_factory=dict)
    units: Mapping[UUID, NamedUnits] = field(default_factory=dict)
    too_many: bool = False


async def read_labels(
    port: EvaluationStore, project: str, records: Sequence[EvaluationRecord], *, elsewhere: Collection[UUID] = ()
) -> KeptSamples:
    """Read ids, labels and weights of stored samples, which pair runs; nothing when there are too many samples.

    The samples of those ``elsewhere`` are not saved, and read by somebody else.
    """
    alone = len(records) < 2 and not any(record.is_weighted or record.is_grouped for record in records)
    kept = [record for record in records if record.id not in elsewhere]
    if alone or not kept or sum(record.n_rows for record in kept) > MOST_SAMPLES:
        return KeptSamples()
    return KeptSamples(await port.read_labels(project, [record.id for record in kept]))


async def read_outputs(
    port: EvaluationStore,
    project: str,
    records: Sequence[EvaluationRecord],
    metric: str,
    *,
    scored: bool = True,
    pointers: Sequence[str] | None = None,
    elsewhere: Collection[UUID] = (),
    advice: str = _FEWER,
) -> KeptSamples:
    """The samples of runs that are to be judged by a metric of probabilities, or of slices.

    The samples of those ``elsewhere`` are not saved, and read by somebody else. Unless ``scored`` they need no
    probabilities. ``advice`` says what else there is where they are too many.

    Raises:
        IncomparableRuns: a run came without probabilities and scores, or they were not saved.
        OutOfReach: there are too many to be looked at together.
    """
    check_entries([record for record in records if record.id not in elsewhere], metric, advice)
    found = await port.read_outputs(project, [record.id for record in records if record.id not in elsewhere])
    for index, record in enumerate(records if scored else ()):
        known = is_scored(record) if record.id in elsewhere else run_data(record, found.get(record.id)).has_outputs
        if not known:
            where = f"/evaluations/{index}" if pointers is None else pointers[index]
            raise IncomparableRuns(f"{metric} {missing_outputs(record)}", pointer=where)
    return KeptSamples(found)


def check_entries(records: Sequence[EvaluationRecord], metric: str, advice: str = _FEWER) -> None:
    """Raises OutOfReach where runs have too many probabilities to be looked at together."""
    entries = entries_of(records)
    if entries > MOST_ENTRIES:
        raise OutOfReach(
            f"{metric} needs the probabilities of all samples of the runs, and {entries} of them (samples times "
            f"classes) are more than the {MOST_ENTRIES} that are looked at together; {advice}"
        )


def entries_of(records: Iterable[EvaluationRecord]) -> int:
    """Samples times classes."""
    return sum(int(record.n_rows) * record.n_classes for record in records)


def is_scored(record: EvaluationRecord) -> bool:
    """Did the run come with probabilities or scores, or with units that metrics are computed of?"""
    return record.is_scored or record.task is not None


def missing_outputs(record: EvaluationRecord) -> str:
    """Why a metric of probabilities has nothing to work on in a run."""
    what = "probabilities or scores of the samples" if record.task is None else "samples"
    needs = f"needs the {what}, and those of {record.id} ({record.model.name})"
    if record.options.get("retain") == "none" and is_scored(record):
        return f"{needs} were not saved: {why_not_saved(record.facts)}{_read_again(record)}"
    return f"{needs} are not there: it came as {record.kind.replace('_', ' ')}"


def missing_design(record: EvaluationRecord, what: str) -> str:
    """Why weights or groups of the samples of a run are not known."""
    samples = f"the samples of {record.id} ({record.model.name})"
    return f"{samples} {what} that were not saved, or are too many to be used together{_read_again(record)}"


def _read_again(record: EvaluationRecord) -> str:
    """Advice where data was named and not sent; empty for data that was sent."""
    named = record.facts.keys() & {DATA_FACT, MERGED_FACT}
    return "; comparisons with `paired: true` read again what was named by a reference" if named else ""
