"""An evaluation as a line of JSON, and back. No digit is lost."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.identifiers import read_id
from app.domain.inputs.content import Content
from app.domain.inputs.kinds import shape_of
from app.services.ports import Archived


def write_evaluation(one: Archived) -> bytes:
    """A line, its end included."""
    record = one.record
    model, dataset = record.model, record.dataset
    line = {
        "id": record.id,
        "created_at": record.created_at,
        "model": {"name": model.name, "version": model.version},
        "dataset": {"name": dataset.name, "version": dataset.version, "split": dataset.split},
        "tags": dict(record.tags),
        "kind": record.kind,
        "labels": record.labels,
        "positive": record.positive,
        "content": record.content.value,
        "counts": record.counts.tolist(),
        "fold_counts": None if record.fold_counts is None else record.fold_counts.tolist(),
        "options": dict(record.options),
        "extra": dict(record.extra),
        "revision": record.revision,
        "values": {key: _number(value) for key, value in record.values.items()},
        "samples": {name: digest.hex() for name, digest in one.columns.items()} or None,
        "fold_sizes": one.fold_sizes,
        "said_of_samples": record.part,
    }
    return orjson.dumps(line, option=orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE)


def read_evaluation(line: bytes) -> Archived:
    """The reverse of `write_evaluation`.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the line is none of ours.
    """
    found: Mapping[str, Any] = orjson.loads(line)
    content, labels, extra = Content(found["content"]), tuple(found["labels"]), found["extra"]
    shape = shape_of(found["kind"], len(labels), extra)
    folds = found["fold_counts"]
    record = EvaluationRecord(
        id=read_id(found["id"]),
        model=ModelRef(**found["model"]),
        dataset=DatasetRef(**found["dataset"]),
        kind=found["kind"],
        labels=labels,
        content=content,
        counts=_counts(found["counts"], content, shape),
        revision=found["revision"],
        values={key: None if value is None else float(value) for key, value in found["values"].items()},
        positive=found["positive"],
        fold_counts=None if folds is None else _counts(folds, content, (-1, *shape)),
        tags=found["tags"],
        options=found["options"],
        extra=extra,
        part=found["said_of_samples"],
    )
    sizes = found["fold_sizes"]
    return Archived(
        record,
        {name: bytes.fromhex(digest) for name, digest in (found["samples"] or {}).items()},
        None if sizes is None else tuple(sizes),
    )


def _number(value: float | None) -> float | str | None:
    # JSON knows no infinities; Python reads these words.
    return value if value is None or math.isfinite(value) else str(value)


def _counts(entries: list[Any], content: Content, shape: tuple[int, ...]) -> NDArray[Any]:
    in_memory = np.int64 if content is Content.counts else np.float64
    return np.array(entries, dtype=in_memory).reshape(shape)
