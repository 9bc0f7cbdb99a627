"""Evaluations of data that is named and not sent: the same requests, with a reference in place of the arrays."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field

from app.api.bodies.files.filters import LONGEST, read_filter
from app.api.bodies.parsing import Body, Wire, parse_body, parse_value
from app.api.bodies.referenced import LABELS, Asked, NamedRows, ReadData, Reading, of_reference, of_rows
from app.api.v1.requests.evaluations import EvaluationRequest, NamedRequest
from app.api.v1.requests.fields import Name
from app.api.v1.requests.inputs import referenced_input
from app.domain.data import DataFormat, DataReference, LabelReference
from app.domain.errors import InvalidInput, in_pointer, moved_faults
from app.domain.evaluation import ModelRef
from app.domain.inputs.ignored import NothingLeft
from app.domain.inputs.kinds import KINDS
from app.domain.inputs.labels import LONGEST_NAME, label_text
from app.domain.inputs.matrices import SCORED_KINDS
from app.domain.inputs.ranking import Ranking
from app.domain.options import Retain
from app.services.evaluate.evaluations import NewEvaluation, with_data
from app.services.evaluate.streamed.labels import streamed_labels
from app.services.evaluate.streamed.scores import streamed_scores
from app.services.evaluate.streamed.units import Part, StreamedParts, streamed_rankings
from app.services.processes.worker import each_as_step

_MEMBER = b'"data"'
_COLUMNS = ", ".join(
    dict.fromkeys(f"`{one.name}`" for kind in KINDS.values() if kind.beyond for one in kind.file().values())
)
_MOST_MODELS = 100
_ColumnName = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


class FilesField(Wire):
    """A reference to files: their address, and the columns and rows to read."""

    uri: str = Field(
        min_length=1,
        max_length=2000,
        description="A file, a folder or a pattern (`*` within a part of the path, `**` for any number of parts) below "
        "a prefix that the operator of the service allows: `s3://bucket/preds/*.parquet`. A path of the service's own "
        "machine, `s3://`, `gs://`, `http://` or `https://`. Plain text, without credentials.",
    )
    format: Literal["parquet", "arrow", "csv", "delta", "iceberg"] | None = Field(
        None,
        description="How the files are written (`arrow`: IPC files); by the ends of their names when left out. `delta` "
        "and `iceberg`: `uri` is the folder of a table, or the file of its metadata.",
    )
    version: int | Annotated[str, Field(pattern=r"^[0-9]{1,19}$")] | None = Field(
        None, description="Of a `delta` table, or a snapshot of `iceberg`; the present one when left out."
    )
    columns: dict[str, _ColumnName | list[_ColumnName] | dict[Name, _ColumnName]] | None = Field(
        None,
        description=f"What columns are called in the files: {_COLUMNS}, each with a name, or a list with one for every "
        "class of `labels`, or one that holds a list or a struct of them; `attributes` has names by the attributes of "
        "samples. All others are left aside. When left out they have the names of the service.",
        json_schema_extra={"maxProperties": 1000},
    )

    filter: str | None = Field(
        None,
        min_length=1,
        max_length=LONGEST,
        description="Which rows: comparisons of columns with literals or with each other, `between`, `in (…)`, `like`, "
        "`is null`, joined by `and`, `or`, `not`, such as `day >= '2026-01-01' and country in ('ch', 'li')`.",
    )

    def to_domain(self) -> DataReference:
        """The domain's form.

        Raises:
            InvalidInput: the filter is none.
        """
        if self.filter is not None:
            read_filter(self.filter)
        if self.version is not None and not (self.format and DataFormat(self.format).is_table):
            raise InvalidInput.at("/input/data/version", "no_versions", "expected none: only tables have versions")
        named = self.columns or {}
        for ours, theirs in named.items():
            if (ours == "attributes") is not isinstance(theirs, dict):
                expected = "names of columns by attributes" if ours == "attributes" else "a name or a list"
                raise InvalidInput.at(f"/input/data/columns/{in_pointer(ours)}", "column_names", f"expected {expected}")
        columns = {ours: theirs for ours, theirs in named.items() if ours != "attributes"}
        attributes = named.get("attributes", {})
        version = None if self.version is None else int(self.version)
        return self.filled(DataReference, columns=columns or None, attributes=attributes, version=version)


class LabelsField(Wire):
    """Other files with one row for each id, whose columns are joined to the rows."""

    data: FilesField = Field(description="Where they lie. `columns` is required.")
    on: _ColumnName | Annotated[list[_ColumnName], Field(min_length=2, max_length=2)] = Field(
        description="The column of ids; two names where it is called otherwise in the files of the labels."
    )

    def to_domain(self) -> LabelReference:
        """The domain's form. Raises as `FilesField.to_domain`."""
        with of_reference(LABELS):
            data = self.data.to_domain()
            if data.columns is None or data.attributes:
                detail = "expected names of the columns to join, and no attributes: these are columns of the samples"
                raise InvalidInput.at("/input/data/columns", "missing", detail)
        here, there = (self.on, self.on) if isinstance(self.on, str) else self.on
        return LabelReference(data, (here, there))


class DataField(FilesField):
    """A reference to data: its address, and the columns and rows to read."""

    labels: LabelsField | None = Field(
        None,
        description="Columns of other files, such as `y_true`, joined by an id. Each sample has to have one row there.",
    )

    def to_domain(self) -> DataReference:
        """The domain's form. Raises as `FilesField.to_domain`."""
        reference = super().to_domain()
        if self.labels is not None and reference.columns is None:
            raise InvalidInput.at("/input/data/columns", "missing", "expected names of columns, where some are joined")
        return reference


class ModelColumnsField(Wire):
    """The columns of one of several models."""

    version: Name | None = Field(None, description="Its version.")
    columns: dict[str, _ColumnName | list[_ColumnName]] = Field(
        description="As `input.data.columns`, which all models have beside these.",
        json_schema_extra={"maxProperties": 1000},
    )


ReferencedInput: Any = referenced_input(
    (DataField, Field(description="In place of the arrays: where they lie. Such a request is always a job."))
)


class ReferencedRequest(NamedRequest):
    """An evaluation of data that is named and not sent. A job makes it, and saves no samples: `retain` is `none`."""

    input: ReferencedInput
    models: dict[Name, ModelColumnsField] | None = Field(
        None,
        min_length=1,
        max_length=_MOST_MODELS,
        description="In place of `model`: several models by their names, whose predictions are columns of the same "
        "rows. These are read once. Each model has an evaluation; all of them are saved, or none is.",
    )

    @property
    def names(self) -> list[ModelRef | None]:
        """The models of the evaluations that are asked for."""
        if self.models is None:
            return [self.model.to_domain() if self.model else None]
        return [ModelRef(name, one.version) for name, one in self.models.items()]

    def asked(self, body: Body, memory_bytes: int) -> Asked:
        """Return what is asked of the data, which columns may take so many bytes of.

        Raises:
            InvalidInput: the filter is none, or the samples are to be kept.
        """
        if "retain" in self.options.model_fields_set and self.options.retain != Retain.NONE.value:
            raise InvalidInput.at(
                "/options/retain", "not_kept", "expected none: samples that are named by a reference are never saved"
            )
        if self.models is not None and self.model is not None:
            raise InvalidInput.at("/models", "one_of", "expected either model or models")
        models = tuple((ModelRef(name, one.version), one.columns) for name, one in (self.models or {}).items())
        request = {name: value for name, value in orjson.loads(body).items() if name != "models"}
        return replace(asked_of(self.input, memory_bytes, request), models=models)


def asked_of(source: Any, memory_bytes: int, request: Mapping[str, Any], *, sliced: bool = False) -> Asked:
    """Return what a request with an input that names its data asks of it. Raises as `DataField.to_domain`."""
    labels = getattr(source, "labels", None)
    texts = None if labels is None else [*map(label_text, labels)]
    return Asked(source.data.to_domain(), source.kind, texts, memory_bytes, sliced=sliced, request=request)


def referenced(body: Body) -> ReferencedRequest | None:
    """The request, if it names its data; None if it does not.

    Raises:
        MalformedRequest: it does, and is of another form.
    """
    return parse_body(body, ReferencedRequest) if names_data(body) else None


def names_data(body: Body) -> bool:
    """True if the input of a request is named and not sent."""
    if _MEMBER not in body:
        return False
    try:
        request = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(request, dict) and isinstance(request.get("input"), dict) and "data" in request["input"]


@contextmanager
def of_model(model: ModelRef | None) -> Iterator[None]:
    """Faults of the columns of one of several models, told of it."""
    own = "" if model is None else f"/models/{in_pointer(model.name)}"
    # The dataset is that of all models.
    moved = lambda one: one if model is None or one.pointer == "/dataset" else replace(one, pointer=own)  # noqa: E731
    with moved_faults(moved):
        yield


def with_columns(request: Mapping[str, Any], read: ReadData) -> NewEvaluation:
    """Return the evaluation that is asked for, with the columns that were read in place of the reference.

    Raises:
        MalformedRequest, InvalidInput: a member has no meaning together with these columns, or an entry none by itself.
    """
    source = {name: value for name, value in request["input"].items() if name != "data"}
    # Classes that are declared keep their order; the columns say no other.
    filled = {**request, "input": {**read.columns, **source}}
    with of_rows(read):
        return with_data(parse_value(filled, EvaluationRequest).to_domain(read.tally, part=read.part), read.facts)


def each_part(named: NamedRows) -> Iterator[Part]:
    """Each part of more rows than memory holds, as `with_columns` makes it."""
    for part in named.parts():
        try:
            yield with_columns(named.asked.request, part)
        except NothingLeft as error:
            yield error


def streamed(
    kind: str, parts: Iterable[Part], facts_of: Callable[[int], Mapping[str, Any]], reading: Reading, budget: int
) -> NewEvaluation:
    """Evaluate more rows than memory holds, read in parts, with these facts of the input of so many rows.

    Their order may take about ``budget`` bytes of memory; more goes into files. Raises as `with_columns`.
    """
    with reading.engine.opened(reading.folder) as opened:
        read = StreamedParts(each_as_step(0, 2, parts), facts_of, opened, budget)
        if kind in SCORED_KINDS:
            return streamed_scores(read)
        return streamed_rankings(read, reading.folder) if kind == Ranking.kind else streamed_labels(read)
