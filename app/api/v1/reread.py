"""Comparisons of runs whose samples are read again, where their data was named: taken as jobs, as the runs were."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fastapi import Request
from starlette.responses import Response

from app.api.bodies.files.pieces import Piece
from app.api.bodies.gathered import made_of
from app.api.bodies.parsing import Body
from app.api.bodies.referenced import PartsOfData, ReadData, Reading, of_rows, read_data
from app.api.deps import CARRIED_OUT_BY, Context
from app.api.jobs.deferral import put_aside
from app.api.presentation import View
from app.api.v1.requests.again import asked_again, request_of
from app.api.v1.requests.referenced import with_columns
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.content import IGNORED_FACT
from app.domain.inputs.ignored import NothingLeft, rows_left
from app.domain.inputs.labels import taken
from app.domain.inputs.matrices import MatrixInput, with_weights
from app.services.compare.comparisons import AskedComparison
from app.services.compare.elsewhere import Rereading
from app.services.ports.cluster import Cluster, workers_of
from app.services.ports.data import DataSource
from app.services.processes.progress import as_step

_WEIGHT: Final = "sample_weight"
_TRUTH: Final = "y_true"


@dataclass(frozen=True, slots=True)
class DataAgain:
    """The port `app.services.ports.data.SamplesElsewhere` for whatever the operator allows now.

    Attributes:
        cluster: What reads pieces of more rows than memory holds; None: nobody else does.
    """

    source: DataSource
    cluster: Cluster | None = None

    def check(self, record: EvaluationRecord) -> None:
        """Whether its data may be read now; raises `DataNotAllowed`."""
        self.source.check(asked_again(record, 0).reference.uri)

    def whole(self, record: EvaluationRecord, memory_bytes: int) -> MatrixInput:
        """The input with its samples; raises as the port says."""
        read = read_data(self.source, asked_again(record, memory_bytes))
        return with_columns(request_of(record), read).source

    def parts(self, record: EvaluationRecord, *, outputs: bool) -> Iterator[MatrixInput]:
        """The input in parts with their samples; raises as the port says."""
        body, before = request_of(record), 0
        data = PartsOfData(self.source, asked_again(record, 0, in_parts=True))
        ignored = tuple(record.extra.get(IGNORED_FACT, ()))
        with as_step(0, 2):
            reading = data.reading
        apart = partial(_read, body, reading, ignored=ignored, outputs=outputs)

        def here(piece: Piece) -> _Rows:
            return apart(piece, before)

        with workers_of(self.cluster) as workers:
            for rows, parts in made_of(data.pieces, workers, apart, here):
                before += rows
                yield from parts
        data.facts(before)


# How many rows were read, and what is left of them.
_Rows = tuple[int, list[MatrixInput]]


def _read(
    body: bytes, reading: Reading, piece: Piece, before: int = 0, *, ignored: tuple[str, ...], outputs: bool
) -> _Rows:
    """The labels and ids of a piece, and perhaps its outputs; ``before`` rows of others come first."""
    rows, found = 0, []
    for read in reading.parts(piece, before):
        rows += read.facts["rows"]
        # Rows of no weight at all, and ignored ones, are no fault of a part.
        with suppress(NothingLeft):
            found.append(_weighted(with_columns(body, _unweighted(read)).source, read, ignored))
    if not outputs:
        found = [replace(one, samples=one.samples and replace(one.samples, outputs=None)) for one in found]
    return rows, found


def _unweighted(read: ReadData) -> ReadData:
    return replace(read, columns={name: column for name, column in read.columns.items() if name != _WEIGHT})


def _weighted(source: MatrixInput, read: ReadData, ignored: tuple[str, ...]) -> MatrixInput:
    """The same with the weights of its samples, which are those that are not ignored."""
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
    """What a comparison of such runs is answered: 202, or the comparison when it is carried out as a job.

    Raises:
        DataNotAllowed: data may not be read any more.
        InvalidInput: it has changed.
        IncomparableRuns: the runs cannot be paired.
    """
    data = context.services.data
    again = DataAgain(data.source, data.cluster)
    if CARRIED_OUT_BY not in http.scope["state"]:
        for record in asked.elsewhere:
            again.check(record)
        return await put_aside(http, context, body)
    # Made here, so that it goes also where the process is ended that fills it.
    with TemporaryDirectory(prefix="prevail-", ignore_cleanup_errors=True) as folder:
        reading = Rereading(again, data.memory_bytes, Path(folder), data.cluster)
        answer = await context.services.comparisons.answer_elsewhere(context.project, asked, reading, data.compute)
    return view.answer(answer, HTTPStatus.CREATED, {"Location": f"/v1/comparisons/{answer.id}"})
