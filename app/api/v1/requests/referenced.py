"""Evaluations of data that is named and not sent: the same requests, with a reference in place of the arrays."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field

from app.api.bodies.files.filters import LONGEST, read_filter
from app.api.bodies.parsing import Body, Wire, parse_body, parse_value
from app.api.bodies.referenced import Asked, PartsOfData, ReadData, of_rows
from app.api.v1.requests.evaluations import EvaluationRequest, OptionsField
from app.api.v1.requests.fields import DatasetField, ModelField, PastMoment, Tags
from app.api.v1.requests.inputs import referenced_input
from app.domain.data import DataFormat, DataReference
from app.domain.errors import InvalidInput
from app.domain.evaluation import DatasetRef, ModelRef
from app.domain.inputs.classified import Probabilities, Scores
from app.domain.inputs.ignored import NothingLeft
from app.domain.inputs.kinds import KINDS
from app.domain.inputs.labels import LONGEST_NAME, label_text
from app.domain.inputs.ranking import Ranking
from app.domain.options import Retain
from app.services.evaluate.evaluations import NewEvaluation, with_data
from app.services.evaluate.streamed.labels import streamed_labels
from app.services.evaluate.streamed.rankings import streamed_rankings
from app.services.evaluate.streamed.scores import NoPart, streamed_scores
from app.services.ports import Engine
from app.services.processes.worker import each_as_step

_MEMBER = b'"data"'
_COLUMNS = ", ".join(
    dict.fromkeys(f"`{one.name}`" for kind in KINDS.values() if kind.beyond for one in kind.file().values())
)
_ColumnName = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


class DataField(Wire):
    """Where the data lies, and what of it is read."""

    uri: str = Field(
        min_length=1,
        max_length=2000,
        description="A file, a folder or a pattern (`*` within a part of the path, `**` for any number of parts) below "
        "a prefix that the operator of the service allows: `s3://bucket/preds/*.parquet`. A path of the service's own "
        "machine, `s3://`, `gs://`, `http://` or `https://`. Plain text, without credentials.",
    )
    format: Literal["parquet", "arrow", "csv"] | None = Field(
        None,
        description="How the files are written (`arrow`: IPC files); by the ends of their names when left out.",
    )
    columns: dict[str, _ColumnName | list[_ColumnName]] | None = Field(
        None,
        description=f"What columns are called in the files: {_COLUMNS}, each with a name, or a list with one for every "
        "class of `labels`, or one that holds a list or a struct of them. All others are left aside. When left out "
        "they have the names of the service.",
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
        form = None if self.format is None else DataFormat(self.format)
        return DataReference(self.uri, form, self.columns, self.filter)


ReferencedInput: Any = referenced_input(
    (DataField, Field(description="In place of the arrays: where they lie. Such a request is always a job."))
)


class ReferencedRequest(Wire):
    """An evaluation of data that is named and not sent. It is made by a job."""

    input: ReferencedInput
    model: ModelField | None = Field(None, description="Required when the evaluation is kept.")
    dataset: DatasetField | None = Field(None, description="Required when the evaluation is kept.")
    tags: Tags = Field(default_factory=dict, description="Free pairs of text to find it by; a key has no colon.")
    options: OptionsField = Field(
        default_factory=OptionsField, description="As elsewhere, but samples are never kept: `retain` is `none`."
    )
    created_at: PastMoment | None = Field(None, description="When it was made. Needs the scope `admin`.")

    @property
    def uri(self) -> str:
        """Where the data lies."""
        uri: str = self.input.data.uri
        return uri

    @property
    def reference(self) -> DataReference:
        """What is to be read. Raises as `DataField.to_domain`."""
        data: DataField = self.input.data
        return data.to_domain()

    def names(self) -> tuple[ModelRef | None, DatasetRef | None]:
        """Whose evaluation it is."""
        return self.model.to_domain() if self.model else None, self.dataset.to_domain() if self.dataset else None

    def asked(self, memory_bytes: int) -> Asked:
        """What decides about the columns.

        Raises:
            InvalidInput: the filter is none, or the samples are to be kept.
        """
        if "retain" in self.options.model_fields_set and self.options.retain != Retain.NONE.value:
            raise InvalidInput.at(
                "/options/retain", "not_kept", "expected none: samples that are named by a reference are never kept"
            )
        labels = getattr(self.input, "labels", None)
        texts = None if labels is None else [*map(label_text, labels)]
        return Asked(self.reference, self.input.kind, texts, memory_bytes)


def referenced(body: Body) -> ReferencedRequest | None:
    """The request, if it names its data; None if it does not.

    Raises:
        MalformedRequest: it does, and is of another form.
    """
    if _MEMBER not in body or not _names_data(body):
        return None
    return parse_body(body, ReferencedRequest)


def _names_data(body: Body) -> bool:
    try:
        request = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(request, dict) and isinstance(request.get("input"), dict) and "data" in request["input"]


def with_columns(body: bytes, read: ReadData) -> NewEvaluation:
    """What is asked for, with what was read in its place.

    Raises:
        MalformedRequest, InvalidInput: a member has no meaning together with these columns, or an entry none by itself.
    """
    request = orjson.loads(body)
    source = {name: value for name, value in request["input"].items() if name != "data"}
    # Classes that are declared keep their order; the columns say no other.
    filled = {**request, "input": {**read.columns, **source}}
    with of_rows(read):
        return with_data(parse_value(filled, EvaluationRequest).to_domain(read.tally, part=read.part), read.facts)


def with_parts(
    body: bytes,
    parts: PartsOfData,
    *,
    engine: Engine,
    budget: int,
    folder: Path,
) -> NewEvaluation:
    """The same of more rows than memory holds, whose report is made while they go by.

    Args:
        body: The request.
        parts: The rows.
        engine: What holds the rows.
        budget: Bytes of memory, about, that the order of the rows may take; more goes into files.
        folder: Where files are made.

    Raises:
        MalformedRequest, InvalidInput: as `with_columns`.
    """
    with engine.opened(folder) as opened:
        if parts.kind in (Probabilities.kind, Scores.kind):
            left = _with_left_out(body, each_as_step(0, 2, parts.read()))
            return streamed_scores(left, parts.facts, engine=opened, budget=budget)
        read = each_as_step(0, 2, (with_columns(body, part) for part in parts.read()))
        if parts.kind == Ranking.kind:
            return streamed_rankings(read, parts.facts, engine=opened, budget=budget, folder=folder)
        return streamed_labels(read, parts.facts, engine=opened, budget=budget)


def _with_left_out(body: bytes, parts: Iterable[ReadData]) -> Iterator[NewEvaluation | NoPart]:
    for part in parts:
        try:
            yield with_columns(body, part)
        except NothingLeft as error:
            yield NoPart(part.facts["rows"], error)
