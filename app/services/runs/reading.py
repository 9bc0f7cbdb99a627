"""What is kept of the samples of runs: read together, or why it is not there."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import IncomparableRuns, OutOfReach
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.kinds import units_of
from app.domain.inputs.samples import Samples
from app.kernel.uncertainty.units import Units
from app.services.ports.evaluations import PairedLabels, SampleLabels
from app.services.stored import stored_input

# Samples of all runs together whose labels are read to pair them: some hundred megabytes.
MOST_SAMPLES = 20_000_000
# Samples times classes of all runs together that are read at once: some 200 MB.
MOST_ENTRIES = 24_000_000


@dataclass(frozen=True, slots=True, eq=False)
class NamedUnits:
    """Units of a run whose samples went by.

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
        units: In place of these, of runs whose samples went by.
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
