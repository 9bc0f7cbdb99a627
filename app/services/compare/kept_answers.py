"""What services that compare have in common: an answer is computed elsewhere, kept whole, and given."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TypeVar

from app.domain.decisions import ComparisonKind, ComparisonRecord
from app.domain.members import as_json
from app.services.admission import Admission
from app.services.compare.answers import RunComparison
from app.services.compare.model_answers import ModelComparison
from app.services.ports.decisions import ComparisonStore
from app.services.ports.evaluations import EvaluationStore, PairedLabels
from app.services.processes.compute import ComputePool

_Answer = TypeVar("_Answer", RunComparison, ModelComparison)


@dataclass(frozen=True, slots=True)
class KeptAnswers:
    """Where runs come from, and where answers go."""

    store: EvaluationStore
    comparisons: ComparisonStore
    _: KW_ONLY
    labels: PairedLabels
    compute: ComputePool
    admission: Admission

    async def compute_and_keep(
        self, project: str, kind: ComparisonKind, compare: Callable[[], _Answer], compute: ComputePool | None = None
    ) -> _Answer:
        """The answer of a function that another process can be sent, once it is kept; ``compute`` is where, if that is
        not where everything is.
        """
        answer, record = await (compute or self.compute).run(partial(_recorded, kind, compare))
        async with self.admission:
            await self.comparisons.add(project, record)
        return answer


def _recorded(kind: ComparisonKind, compare: Callable[[], _Answer]) -> tuple[_Answer, ComparisonRecord]:
    answer = compare()
    return answer, ComparisonRecord(answer.id, kind, as_json(answer))
