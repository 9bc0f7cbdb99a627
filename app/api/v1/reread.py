"""Comparisons of runs whose samples are read again, where their data was named: taken as jobs, as the runs were."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, cast

from fastapi import Request
from starlette.responses import Response

from app.api.bodies.parsing import Body
from app.api.bodies.referenced import Asked, NamedRows, Reading, check_data
from app.api.deps import CARRIED_OUT_BY, Context, NamedData
from app.api.jobs import put_aside
from app.api.presentation import View
from app.api.v1.requests.referenced import each_part, with_columns
from app.domain.data import DataFormat, DataReference, LabelReference
from app.domain.errors import InvalidInput
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.classified import Predictions
from app.domain.inputs.content import DataFacts, LabelFacts
from app.domain.inputs.ignored import NothingLeft
from app.domain.inputs.kinds import KINDS
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.merging import together
from app.domain.members import as_json
from app.services.compare.comparisons import AskedComparison
from app.services.compare.elsewhere import Rereading
from app.services.ports import DataSource
from app.services.processes.worker import as_step, each_as_step


def asked_again(
    record: EvaluationRecord,
    memory_bytes: int,
    *,
    in_parts: bool = False,
    sliced: bool = False,
    decided: bool = True,
) -> Asked:
    """A request for the columns of data that was evaluated once; it has to be the same files.

    Args:
        record: What was saved of it.
        memory_bytes: That columns may take.
        in_parts: Are the rows to be read in parts, with their ids?
        sliced: And with their attributes?
        decided: Is a threshold that was assumed kept? Else all rows say again which it is.

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
        request=as_json({"input": {"kind": record.kind, **_options(record, decided=decided)}}),
    )


def _reference(data: DataFacts | LabelFacts) -> DataReference:
    version = int(data["version"]) if "version" in data else None
    form, columns = DataFormat(data["format"]), {**data.get("columns", {})}
    attributes = cast(dict[str, str], columns.pop("attributes", {}))
    named = cast(dict[str, str | list[str]], columns) or None
    return DataReference(data["uri"], form, named, data.get("filter"), version, attributes=attributes)


def _options(record: EvaluationRecord, *, decided: bool) -> dict[str, Any]:
    """Options that make the same samples of the same columns, as far as what is saved of an evaluation says."""
    positive = {} if record.positive is None else {"positive": record.labels[record.positive]}
    options = KINDS[record.kind].options_of({**record.facts, "labels": record.labels, **positive})
    if not decided and "threshold_assumed" in record.facts:
        options = {name: option for name, option in options.items() if name not in _THRESHOLDS}
    return options


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


class DataAgain(Reading):
    """The port `app.services.ports.SamplesElsewhere` for whatever the operator allows now."""

    def whole(self, record: EvaluationRecord, memory_bytes: int, *, sliced: bool = False) -> MatrixInput:
        """The input with its samples, and with their attributes if it is to be ``sliced``; raises as the port says."""
        parts, found = record.elsewhere, []
        for place, part in enumerate(parts):
            with as_step(place, len(parts)):
                asked = asked_again(part, memory_bytes // len(parts), sliced=sliced, decided=False)
                found.append(with_columns(asked.request, NamedRows(self.source, self.at_hand(asked)).whole()).source)
        return together(found)

    def parts(self, record: EvaluationRecord, *, outputs: bool) -> Iterator[MatrixInput]:
        """The input in parts with their samples; raises as the port says."""
        parts = in_parts(record)
        for place, part in enumerate(parts):
            yield from each_as_step(place, len(parts), self._parts(part, outputs=outputs))

    def _parts(self, record: EvaluationRecord, *, outputs: bool) -> Iterator[MatrixInput]:
        named = NamedRows(self.source, self.at_hand(asked_again(record, 0, in_parts=True)))
        for part in each_part(named):
            # Ignored rows alone are no fault of a part.
            if isinstance(part, NothingLeft):
                continue
            found = part.source
            if found.samples is not None and not outputs:
                found = replace(found, samples=replace(found.samples, outputs=None))
            yield found


@contextmanager
def reading_again(data: NamedData) -> Iterator[DataAgain]:
    """Reading in a folder that goes with the request."""
    with data.room() as folder:
        yield DataAgain(data.source, data.engine, Path(folder), data.spill_bytes)


async def admit(context: Context, asked: Asked) -> None:
    """Refuse what can be refused without reading a row.

    Raises:
        InvalidInput: the data does not fit, and lies on this machine.
        DataNotAllowed: it does not lie where the operator allows it.
    """
    source = context.services.data.source
    here = [source.check(part.uri) for part in asked.reference.parts]
    if all(here):
        await context.services.compute.run(partial(check_data, source, asked))


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
    with reading_again(data) as again:
        reading = Rereading(again, data.memory_bytes, again.folder, data.engine)
        answer = await context.services.comparisons.answer(context.project, asked, reading, data.compute)
    return view.answer(answer, HTTPStatus.CREATED, {"Location": f"/v1/comparisons/{answer.id}"})
