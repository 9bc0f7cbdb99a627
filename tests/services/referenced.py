"""Runs whose samples lie elsewhere, in memory: read in parts of any size, in any order."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from app.domain.errors import TooLarge
from app.domain.evaluation import EvaluationRecord
from app.domain.identifiers import new_id
from app.domain.inputs.matrices import MatrixInput
from app.services.compare.comparisons import AskedComparison, NewComparison, understood
from app.services.runs.aligned import Runs
from app.services.runs.pairing import KeptSamples, PairingMode
from app.services.stored import unkept_record


class Parts:
    """Runs whose samples come in some parts, and are too many for memory."""

    def __init__(self, parts: dict[Any, list[MatrixInput]]) -> None:
        self._parts = parts

    def check(self, record: EvaluationRecord) -> None:
        raise NotImplementedError

    def whole(self, record: EvaluationRecord, memory_bytes: int) -> MatrixInput:
        raise TooLarge(f"{record.id} takes more than {memory_bytes}")

    def parts(self, record: EvaluationRecord, *, outputs: bool) -> Iterator[MatrixInput]:
        for part in self._parts[record.id]:
            assert not outputs or (part.samples is not None and part.samples.outputs is not None)
            yield part


def asked_of_sources(
    sources: Sequence[MatrixInput], metrics: Sequence[str], **others: Any
) -> tuple[AskedComparison, KeptSamples]:
    """A comparison in pairs of runs that were made of some inputs, and their samples at hand."""
    records = [replace(unkept_record(one), id=new_id()) for one in sources]
    ids = tuple(record.id for record in records)
    new = NewComparison(evaluations=ids, metrics=tuple(metrics), paired=PairingMode.TRUE, **others)
    aligned = Runs.align(records)
    asked = AskedComparison(new, aligned, understood(new, aligned), tuple(records))
    samples = {record.id: one.samples for record, one in zip(records, sources, strict=True) if one.samples is not None}
    return asked, KeptSamples(samples)
