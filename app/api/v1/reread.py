"""Comparisons of runs whose samples are read again, where their data was named: taken as jobs, as the runs were."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Final, cast

import orjson
from fastapi import Request
from starlette.responses import Response

from app.api.bodies.parsing import Body
from app.api.bodies.referenced import Asked, PartsOfData, ReadData, copied, of_rows, read_data
from app.api.deps import CARRIED_OUT_BY, Context
from app.api.jobs import put_aside
from app.api.presentation import View
from app.api.v1.requests.referenced import with_columns
from app.domain.data import DataFormat, DataReference, LabelReference
from app.domain.errors import InvalidInput
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.classified import Predictions
from app.domain.inputs.content import IGNORED_FACT, DataFacts, LabelFacts
from app.domain.inputs.ignored import NothingLeft, rows_left
from app.domain.inputs.kinds import KINDS
from app.domain.inputs.labels import taken
from app.domain.inputs.matrices import MatrixInput, with_weights
from app.domain.inputs.merging import together
from app.services.compare.comparisons import AskedComparison
from app.services.compare.elsewhere import Rereading
from app.services.ports import DataSource, Engine
from app.services.processes.worker import as_step, each_as_step


def asked_again(record: EvaluationRecord, memory_bytes: int, *, in_parts: bool = False, sliced: bool = False) -> Asked:
    """A request for the columns of data that was evaluated once; it has to be the same files.

    Args:
        record: What was saved of it.
        memory_bytes: That columns may take.
        in_parts: Are the rows to be read in parts, with their ids?
        sliced: And with their attributes?

    Raises:
        ValueError: it did not come by a reference.
    """
    data = record.data
    if data is None:
        raise ValueError("expected an evaluation of data that was named")
    labels = data.get("labels")
    joined = labels and LabelReference(_reference(labels), (labels["on"][0], labels["on"][1]))
    reference = replace(_reference(data), labels=joined)
    return Asked(
        reference,
        record.kind,
        record.labels or None,
        memory_bytes,
        data["digest"],
        in_parts,
        labels_digest=labels and labels["digest"],
        sliced=sliced,
    )


def _reference(data: DataFacts | LabelFacts) -> DataReference:
    version = int(data["version"]) if "version" in data else None
    form, columns = DataFormat(data["format"]), {**data.get("columns", {})}
    attributes = cast(dict[str, str], columns.pop("attributes", {}))
    named = cast(dict[str, str | list[str]], columns) or None
    return DataReference(data["uri"], form, named, data.get("filter"), version, attributes=attributes)


def request_of(record: EvaluationRecord, *, decided: bool = True) -> bytes:
    """The request that makes the same samples of the same columns, as far as what is saved of it says; unless
    ``decided`` all of them say again which threshold is assumed.
    """
    positive = {} if record.positive is None else {"positive": record.labels[record.positive]}
    options = KINDS[record.kind].options_of({**record.facts, "labels": record.labels, **positive})
    if not decided and "threshold_assumed" in record.facts:
        options = {name: option for name, option in options.items() if name not in _THRESHOLDS}
    return orjson.dumps({"input": {"kind": record.kind, **options}})


def in_parts(record: EvaluationRecord) -> list[EvaluationRecord]:
    """The evaluations whose data is read as that of one; raises InvalidInput for classes in different orders."""
    # Predictions tell classes by their names, and a part may lack some.
    if record.kind != Predictions.kind and any(part.labels != record.labels for part in record.elsewhere):
        detail = "expected the labels of all parts in one order, since they are more than memory holds"
        raise InvalidInput.at("/input/labels", "order_of_labels", detail)
    decided = {"threshold": record.facts["threshold"]} if "threshold" in record.facts else {}
    return [
        replace(part, labels=record.labels, positive=record.positive, facts={**part.facts, **decided})
        for part in record.elsewhere
    ]


def check_allowed(source: DataSource, records: Sequence[EvaluationRecord]) -> None:
    """Check that the data of evaluations may still be read; raises DataNotAllowed if not."""
    for record in records:
        for part in record.elsewhere:
            for one in asked_again(part, 0).reference.parts:
                source.check(one.uri)


_THRESHOLDS: Final = ("threshold", "thresholds")
_WEIGHT: Final = "sample_weight"
_TRUTH: Final = "y_true"


@dataclass(frozen=True, slots=True)
class DataAgain:
    """The port `app.services.ports.SamplesElsewhere` for whatever the operator allows now.

    Attributes:
        engine: Joins labels that lie in other files.
        folder: Where it makes files.
        file_bytes: That one of them may take.
    """

    source: DataSource
    engine: Engine
    folder: Path
    file_bytes: int = 1 << 40

    def whole(self, record: EvaluationRecord, memory_bytes: int, *, sliced: bool = False) -> MatrixInput:
        """The input with its samples, and with their attributes if it is to be ``sliced``; raises as the port says."""
        parts, found = record.elsewhere, []
        for place, part in enumerate(parts):
            with as_step(place, len(parts)):
                read = read_data(self.source, self.asked(asked_again(part, memory_bytes // len(parts), sliced=sliced)))
                found.append(with_columns(request_of(part, decided=False), read).source)
        return together(found)

    def parts(self, record: EvaluationRecord, *, outputs: bool) -> Iterator[MatrixInput]:
        """The input in parts with their samples; raises as the port says."""
        parts = in_parts(record)
        for place, part in enumerate(parts):
            yield from each_as_step(place, len(parts), self._parts(part, outputs=outputs))

    def _parts(self, record: EvaluationRecord, *, outputs: bool) -> Iterator[MatrixInput]:
        data = PartsOfData(self.source, self.asked(asked_again(record, 0, in_parts=True)))
        body, ignored = request_of(record), tuple(record.facts.get(IGNORED_FACT, ()))
        for read in data.read():
            try:
                found = _weighted(with_columns(body, _unweighted(read)).source, read, ignored)
            except NothingLeft:
                # Rows of no weight at all, and ignored ones, are no fault of a part.
                continue
            if found.samples is not None and not outputs:
                found = replace(found, samples=replace(found.samples, outputs=None))
            yield found

    def asked(self, asked: Asked) -> Asked:
        """Return the request, of the file that columns were joined in where some are."""
        if not asked.is_copied:
            return asked
        return copied(self.source, replace(asked, file_bytes=self.file_bytes), self.engine, self.folder)[0]


def _unweighted(read: ReadData) -> ReadData:
    return replace(read, columns={name: column for name, column in read.columns.items() if name != _WEIGHT})


def _weighted(source: MatrixInput, read: ReadData, ignored: tuple[str, ...]) -> MatrixInput:
    """Add the weights of the samples, without those that are ignored."""
    if _WEIGHT not in read.columns:
        return source
    weights = read.columns[_WEIGHT]
    if ignored:
        weights = taken(weights, rows_left(ignored, read.columns[_TRUTH], "/input"))
    with of_rows(read):
        return with_weights(source, weights, f"/input/{_WEIGHT}")


async def compare_elsewhere(
    http: Request, context: Context, body: Body, asked: AskedComparison, view: View
) -> Response:
    """Answer a comparison of runs whose data is read again: 202, or the comparison when a job carries it out.

    Raises:
        DataNotAllowed: data may not be read any more.
        InvalidInput: it has changed.
        IncomparableRuns: the runs cannot be paired.
    """
    data = context.services.data
    if CARRIED_OUT_BY not in http.scope["state"]:
        check_allowed(data.source, asked.elsewhere)
        return await put_aside(http, context, body)
    with data.room() as folder:
        again = DataAgain(data.source, data.engine, Path(folder), data.spill_bytes)
        reading = Rereading(again, data.memory_bytes, Path(folder), data.engine)
        answer = await context.services.comparisons.answer_elsewhere(context.project, asked, reading, data.compute)
    return view.answer(answer, HTTPStatus.CREATED, {"Location": f"/v1/comparisons/{answer.id}"})
