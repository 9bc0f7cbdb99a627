"""Which metrics of the catalogue are asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, Query

from app.domain.catalogue import INPUTS, TASKS

_Task: Any = Literal[tuple(TASKS)]
_Input: Any = Literal[tuple(INPUTS)]
*_MOST, _LAST = TASKS.values()
Task = Annotated[_Task | None, Query(description=f"What is judged: {', '.join(_MOST)} or {_LAST}.")]


@dataclass(frozen=True, slots=True)
class MetricFilters:
    """Filters of the catalogue as they came; all of them must hold."""

    scope: Annotated[
        Literal["class", "overall"] | None, Query(description="Metrics of one class, or of the whole matrix.")
    ] = None
    prevalence: Annotated[
        Literal["insensitive", "sensitive", "insensitive_binary"] | None,
        Query(description="How prevalence affects the metric."),
    ] = None
    input: Annotated[_Input | None, Query(description="What the metric is computed from.")] = None
    task: Task = None
    q: Annotated[str | None, Query(max_length=128, description="Part of a key, a name, an alias or the sentence.")] = (
        None
    )

    @property
    def query(self) -> Mapping[str, str | None]:
        """The same for the catalogue."""
        return {
            "scope": self.scope,
            "prevalence": self.prevalence,
            "inputs": self.input,
            "task": self.task,
            "text": self.q,
        }


UseMetricFilters = Annotated[MetricFilters, Depends()]
