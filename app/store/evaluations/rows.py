"""Between records and rows."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import RowMapping

from app.domain.evaluation import DatasetRef, EvaluationRecord, EvaluationSummary, ModelRef, SummarisedInput
from app.domain.identifiers import new_id, time_of
from app.domain.inputs.content import Content
from app.domain.inputs.kinds import shape_of
from app.store.audit import who
from app.store.database.engine import write_json
from app.store.names import NameIds

_COUNT_TYPES = tuple((np.dtype(name), int(np.iinfo(name).max)) for name in ("<u1", "<u2", "<u4"))
_WIDEST_COUNT = np.dtype("<i8")
_WEIGHT = np.dtype("<f8")


def encode_record(
    project: str, record: EvaluationRecord, *, names: NameIds, slots: Mapping[str, int]
) -> dict[str, Any]:
    """Return the row of a record, keyed by column, JSON columns as text, and who makes it."""
    stored = _type_to_store(record)
    return {
        "id": record.id,
        "entry_id": new_id(),
        "project": project,
        "model_id": names.model_id,
        "model_name_id": names.model_name_id,
        "dataset_id": names.dataset_id,
        "n_classes": record.n_classes,
        "positive": record.positive,
        "n_samples": record.n_samples,
        "kind": record.kind,
        "content": record.content.value,
        "revision": record.revision,
        "counts_type": stored.str,
        "labels": record.labels,
        "tags": write_json(dict(record.tags)),
        "options": write_json(dict(record.options)) if record.options else None,
        "extra": write_json(dict(record.extra)) if record.extra else None,
        "metric_values": encode_values(record.values, slots),
        "counts": _to_bytes(record.counts, stored),
        "fold_counts": None if record.fold_counts is None else _to_bytes(record.fold_counts, stored),
        **who(),
    }


def decode_record(row: RowMapping, keys: Mapping[int, str]) -> EvaluationRecord:
    """Return the record of a row that has the names of its model and dataset; see `lists.RECORD`."""
    extra = row["extra"] or {}
    shape = shape_of(row["kind"], row["n_classes"], extra)
    content = Content(row["content"])
    stored = np.dtype(row["counts_type"])
    folds = row["fold_counts"]
    return EvaluationRecord(
        id=_plain(row["id"]),
        model=_model(row),
        dataset=_dataset(row),
        kind=row["kind"],
        labels=tuple(row["labels"]),
        content=content,
        counts=_from_bytes(row["counts"], stored, content, shape),
        revision=row["revision"],
        values=decode_values(row["metric_values"], keys),
        positive=row["positive"],
        fold_counts=None if folds is None else _from_bytes(folds, stored, content, (-1, *shape)),
        tags=row["tags"],
        options=row["options"] or {},
        extra=extra,
    )


def decode_summary(row: RowMapping, keys: Mapping[int, str]) -> EvaluationSummary:
    """Return the summary of a row that has the names of its model and dataset; see `lists.SUMMARY`."""
    content, labels, positive = Content(row["content"]), row["labels"], row["positive"]
    return EvaluationSummary(
        id=_plain(row["id"]),
        created_at=time_of(row["id"]),
        model=_model(row),
        dataset=_dataset(row),
        tags=dict(sorted(row["tags"].items())),
        input=SummarisedInput(
            kind=row["kind"],
            content=content,
            n_samples=_size(content, row["n_samples"]),
            n_classes=row["n_classes"],
            labels=labels,
            positive=None if positive is None else labels[positive],
        ),
        metrics=decode_values(row["metric_values"], keys),
    )


def _size(content: Content, total: float) -> float | None:
    match content:
        case Content.counts:
            return int(total)
        case Content.weights:
            return total
    return None


def encode_values(values: Mapping[str, float | None], slots: Mapping[str, int]) -> str:
    """Put each value in its slot, as the text of a Postgres array: NaN for undefined, null for what does not apply.

    The driver takes 16 us for the numbers of an evaluation, one by one; as text they take a third.
    """
    encoded: list[float | str | None] = [None] * max((slots[key] for key in values), default=0)
    for key, value in values.items():
        # JSON knows no infinities, Postgres knows them by these names too.
        encoded[slots[key] - 1] = "NaN" if value is None else value if isfinite(value) else str(value)
    return f"{{{write_json(encoded)[1:-1]}}}"


def decode_values(encoded: Sequence[float | None], keys: Mapping[int, str]) -> dict[str, float | None]:
    """Undo `encode_values`; NaN is the one value that differs from itself."""
    return {
        keys[slot]: value if value == value else None
        for slot, value in enumerate(encoded, start=1)
        if value is not None
    }


def _type_to_store(record: EvaluationRecord) -> np.dtype[Any]:
    """Return the narrowest type that holds every entry exactly: one byte for most counts in place of eight."""
    if record.content is not Content.counts:
        return _WEIGHT
    greatest = max(int(np.max(array, initial=0)) for array in (record.counts, record.fold_counts) if array is not None)
    return next((dtype for dtype, limit in _COUNT_TYPES if greatest <= limit), _WIDEST_COUNT)


def _to_bytes(array: NDArray[Any], stored: np.dtype[Any]) -> bytes:
    return np.ascontiguousarray(array, dtype=stored).tobytes()


def _from_bytes(data: bytes, stored: np.dtype[Any], content: Content, shape: tuple[int, ...]) -> NDArray[Any]:
    in_memory = np.int64 if content is Content.counts else np.float64
    return np.frombuffer(data, dtype=stored).reshape(shape).astype(in_memory)


def _model(row: RowMapping) -> ModelRef:
    return ModelRef(row["model_name"], row["model_version"])


def _dataset(row: RowMapping) -> DatasetRef:
    return DatasetRef(row["dataset_name"], row["dataset_version"], row["dataset_split"])


def _plain(identifier: UUID) -> UUID:
    """Return the driver's own subclass of UUID as the standard one."""
    return UUID(int=identifier.int)
