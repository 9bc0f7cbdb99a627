"""Runs whose samples lie elsewhere, where their data was named: read again, so that they can be paired."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import DataNotAllowed, Fault, InvalidInput, TooLarge
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.ranking import Ranking
from app.services.ports.cluster import Cluster
from app.services.ports.data import SamplesElsewhere
from app.services.processes.progress import as_step
from app.services.runs.reading import KeptSamples

_IDS: Final = "sample_id"
# Relative to each other, sums of weights that differ by no more are the same.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Rereading:
    """How samples are read again.

    Attributes:
        memory_bytes: That the columns of all runs together may take.
        folder: Where files are made of what takes more.
        cluster: What joins parts of them; None: nobody else does.
    """

    samples: SamplesElsewhere
    memory_bytes: int
    folder: Path
    cluster: Cluster | None = None


def lies_elsewhere(record: EvaluationRecord) -> bool:
    """Do the samples of a run lie where its data was named, with ids as far as that is known? Queries are ids."""
    data = record.data
    return data is not None and (record.kind == Ranking.kind or _IDS in data.get("columns", (_IDS,)))


def can_be_paired(records: Sequence[EvaluationRecord], kept: KeptSamples) -> bool:
    """Would runs that are not paired have ids if those that lie elsewhere were read again?"""
    with_ids = {identifier for identifier, one in kept.labels.items() if one.ids is not None}
    elsewhere = {record.id for record in records if lies_elsewhere(record)}
    return bool(elsewhere) and all(record.id in with_ids | elsewhere for record in records)


def read_again(
    reading: Rereading, records: Sequence[EvaluationRecord], kept: KeptSamples, *, whole: bool
) -> KeptSamples:
    """What is known of the samples of all runs once those that lie elsewhere were read.

    Args:
        reading: How.
        records: The runs, in the order of the request.
        kept: Of those that were kept.
        whole: Whether more of them is needed than their labels.

    Raises:
        DataNotAllowed: data may not be read any more.
        InvalidInput: it is not what was evaluated (`data_changed`), or cannot be read.
        TooLarge: it takes more memory than there is.
    """
    chosen = [(place, record) for place, record in enumerate(records) if lies_elsewhere(record)]
    found = {}
    for done, (place, record) in enumerate(chosen):
        # What is computed of them is a step too.
        with as_step(done, len(chosen) + 1), of_run(place):
            source = reading.samples.whole(record, reading.memory_bytes // len(chosen))
            check_same(source.labels, source.counts, record)
            if source.samples is not None:
                found[record.id] = source.samples
    read = KeptSamples.of(found)
    outputs = {**(kept.outputs or {}), **found} if whole else kept.outputs
    return KeptSamples({**kept.labels, **read.labels}, outputs)


def check_same(labels: Sequence[str], counts: NDArray[Any], record: EvaluationRecord) -> None:
    """Whether what was read again is what was evaluated; raises InvalidInput if not (`data_changed`)."""
    # Sums of weights are rounded, and in parts otherwise than at once.
    tolerance = _ROUNDING if record.is_weighted else 0.0
    same = tuple(labels) == record.labels and counts.shape == record.counts.shape
    if not same or not np.allclose(counts, record.counts, rtol=tolerance, atol=0.0):
        raise InvalidInput.at("/data", "data_changed", "expected the counts that were evaluated, other ones were read")


@contextmanager
def of_run(place: int) -> Iterator[None]:
    """What is wrong with data, said of the run that it is of."""
    pointer = f"/evaluations/{place}"
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput([Fault(pointer, one.code, one.detail) for one in error.faults]) from None
    except (DataNotAllowed, TooLarge) as error:
        raise type(error)(error.detail, pointer=pointer) from None
