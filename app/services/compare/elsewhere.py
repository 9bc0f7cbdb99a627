"""Samples of runs that were not saved: they are read again where the data of the runs was named."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import DataNotAllowed, Fault, IncomparableRuns, InvalidInput, TooLarge
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.ranking import Ranking
from app.domain.inputs.samples import Samples
from app.services.ports import Engine, SamplesElsewhere
from app.services.processes.worker import as_step
from app.services.runs.pairing import KeptSamples, unpaired

_IDS: Final = "sample_id"
# Relative to each other, sums of weights that differ by no more are the same.
_ROUNDING: Final = 1e-9


def lies_elsewhere(record: EvaluationRecord) -> bool:
    """Do the samples of a run lie where its data was named, with ids as far as that is known? Queries are ids."""
    named = [part.data for part in record.elsewhere if part.data is not None]
    return bool(named) and (record.kind == Ranking.kind or all(_IDS in data.get("columns", (_IDS,)) for data in named))


def can_be_paired(records: Sequence[EvaluationRecord], kept: KeptSamples) -> bool:
    """Would runs that are not paired have ids if those that lie elsewhere were read again?"""
    with_ids = {identifier for identifier, one in kept.samples.items() if one.ids is not None}
    elsewhere = {record.id for record in records if lies_elsewhere(record)}
    return bool(elsewhere) and all(record.id in with_ids | elsewhere for record in records)


@dataclass(frozen=True, slots=True)
class Rereading:
    """Resources for reading samples again: the columns of all runs together may take so much memory, what takes more
    goes into files of a folder, or into an engine.
    """

    samples: SamplesElsewhere
    memory_bytes: int
    folder: Path
    engine: Engine

    def at_once(self, records: Sequence[EvaluationRecord], kept: KeptSamples, *, whole: bool) -> KeptSamples:
        """The samples of all runs that were named by a reference, and those that are stored.

        Nothing but their labels is kept of them, unless they are needed ``whole``.

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
                source = self.samples.whole(record, self.memory_bytes // len(chosen))
                check_same(source.labels, source.counts, record)
                samples = source.samples if whole or source.samples is None else source.samples.labels
                if samples is not None:
                    found[record.id] = samples
        return KeptSamples({**kept.samples, **found})

    def parts(self, record: EvaluationRecord, kept: KeptSamples, *, outputs: bool) -> Iterator[Samples]:
        """The samples of a run some at a time, or all of them where they are stored; raises as before, but for
        rankings, whose parts do not say what was evaluated.

        Raises:
            IncomparableRuns: there are none.
        """
        if not lies_elsewhere(record):
            yield _known(kept.samples.get(record.id), record)
            return
        counts = np.zeros_like(record.counts)
        for part in self.samples.parts(record, outputs=outputs):
            check_same(part.labels, record.counts, record)
            counts += part.counts
            yield _known(part.samples, record)
        if record.task is None:
            check_same(record.labels, counts, record)


def _known(samples: Samples | None, record: EvaluationRecord) -> Samples:
    if samples is None:
        raise without_ids(record)
    return samples


def without_ids(record: EvaluationRecord) -> IncomparableRuns:
    """Why a run cannot be paired."""
    return unpaired(f"{record.id} came without sample ids, or these were not saved")


def check_same(labels: Sequence[str], counts: NDArray[Any], record: EvaluationRecord) -> None:
    """Check that the data read again has the counts that were evaluated; raises InvalidInput if not
    (`data_changed`).
    """
    # Sums of weights are rounded, and in parts otherwise than at once.
    tolerance = _ROUNDING if record.is_weighted else 0.0
    same = tuple(labels) == record.labels and counts.shape == record.counts.shape
    if not same or not np.allclose(counts, record.counts, rtol=tolerance, atol=0.0):
        raise InvalidInput.at("/data", "data_changed", "expected the counts that were evaluated, other ones were read")


@contextmanager
def of_run(place: int) -> Iterator[None]:
    """Point errors of data at the run that it belongs to."""
    pointer = f"/evaluations/{place}"
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput([Fault(pointer, one.code, one.detail) for one in error.faults]) from None
    except (DataNotAllowed, TooLarge) as error:
        raise type(error)(error.detail, pointer=pointer) from None
