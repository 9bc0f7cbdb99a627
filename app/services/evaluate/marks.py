"""What a list says of each evaluation beside its values."""

from collections.abc import Sequence
from uuid import UUID

from app.domain.evaluation import EvaluationRecord
from app.domain.findings import FindingMark
from app.services.evaluate.questions import ask
from app.services.evaluate.sections.matrix import findings_of
from app.services.stored import stored_request


def marks_of(records: Sequence[EvaluationRecord]) -> dict[UUID, list[FindingMark]]:
    """By evaluation of classes what its matrix says; findings of samples, which would have to be read, are left out."""
    return {
        record.id: [found.mark for found in findings_of(ask(*stored_request(record)), record.values, None)]
        for record in records
        if record.task is None
    }
