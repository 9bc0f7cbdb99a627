"""Evaluations as they are remembered, made without a store."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.domain.evaluation import AlikeEvaluations, DatasetRef, EvaluationRecord, ModelRef
from app.domain.identifiers import new_id
from app.domain.inputs.content import GROUPS_FACT, Content
from app.domain.inputs.samples import Samples
from app.kernel.matrix.table import confusion_counts
from app.kernel.numerics.arrays import Array
from app.kernel.samples.losses import Codes


def record_of(
    counts: Sequence[Sequence[float]] | Array,
    content: Content = Content.counts,
    groups: int | None = None,
    labels: Sequence[str] | None = None,
    positive: int | None = None,
    kind: str = "confusion_matrix",
    extra: Mapping[str, Any] | None = None,
) -> EvaluationRecord:
    """An evaluation of a matrix whose classes are A, B, C ..."""
    matrix = np.array(counts)
    return EvaluationRecord(
        id=new_id(),
        model=ModelRef("m"),
        dataset=DatasetRef("d"),
        kind=kind,
        labels=tuple(labels or [chr(ord("A") + code) for code in range(len(matrix))]),
        content=content,
        counts=matrix,
        positive=positive,
        revision="",
        values={},
        facts={**(extra or {}), **({} if groups is None else {GROUPS_FACT: groups})},
    )


def scored(y: Codes, p: Array) -> tuple[EvaluationRecord, Samples]:
    """An evaluation of probabilities (n, K), decided by argmax."""
    predicted = p.argmax(axis=1)
    counts = confusion_counts(y, predicted, p.shape[1])
    record = record_of(counts, kind="probabilities", positive=1 if p.shape[1] == 2 else None)
    return record, Samples(y, predicted, p)


def alike(records: Sequence[EvaluationRecord]) -> AlikeEvaluations:
    """Evaluations of a history that differ in nothing but versions and counts."""
    ids = np.frombuffer(b"".join(one.id.bytes for one in records), ">u8").reshape(-1, 2).astype(np.uint64)
    return AlikeEvaluations(
        records[0], ids, [one.model.version for one in records], np.array([one.counts for one in records])
    )
