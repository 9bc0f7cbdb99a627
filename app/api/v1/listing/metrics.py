"""Which metrics of the catalogue are asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Depends, Query

Task = Annotated[
    Literal["binary", "multiclass", "decisions", "multilabel", "clustering", "ranking", "sets"] | None,
    Query(description="What is judged: two classes, several classes, decisions, labels, clusters, rankings or sets."),
]
_Input = Literal[
    "matrix",
    "probabilities",
    "labels",
    "label_scores",
    "contingency",
    "features",
    "queries",
    "overlaps",
    "class_overlaps",
]


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
