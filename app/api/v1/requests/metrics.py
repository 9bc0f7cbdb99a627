"""Requests for advice on metrics and for bounds."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from app.api.bodies.parsing import Wire
from app.api.v1.requests.asked import Declared
from app.domain.advice import CLASSIFICATION
from app.domain.advice import Request as Question
from app.domain.errors import InvalidInput
from app.services.decide.h_mean_bounds import RecallGrid

# Reciprocals of smaller recalls would lose what they are added to.
_SMALLEST_RECALL = 1e-9
_Rate = Annotated[float, Field(ge=0, le=1)]


class RecommendationRequest(Wire):
    """A question for metrics: the task and its priorities. Each task has questions of its own."""

    task: Literal["classification", "binary", "multiclass", "multilabel", "clustering", "ranking", "sets"] = Field(
        "classification", description="`binary` and `multiclass` are `classification` with these `classes`."
    )
    classes: Literal["binary", "multiclass"] | None = Field(None, description="Of classification, which needs it.")
    balanced: bool | None = Field(
        None, description="Are the classes about equally frequent? Of classification, which needs it, and clustering."
    )
    error_priority: Literal["type1", "type2", "both", "costs", "first", "order"] | None = Field(
        None,
        description="type1: false alarms; type2: misses; costs: they have prices; both, the default of classification. "
        "Of rankings type1: irrelevant items among the first; type2: relevant ones behind them; first: how early the "
        "first relevant one comes; order, their default.",
    )
    chance_corrected: bool | None = Field(None, description="Should guessing score 0? Classification and clustering.")
    graphical: bool | None = Field(None, description="Is a curve wanted? Classification.")
    known_classes: bool | None = Field(None, description="Are the classes of the samples known? Clustering needs it.")
    same_number_of_clusters: bool | None = Field(
        None, description="Have all clusterings that are compared the same number of clusters? Clustering."
    )
    fixed_cutoff: bool | None = Field(None, description="Is it known how many items are looked at? Ranking.")
    judged: Literal["labels", "samples", "items", "pixels", "classes", "whole_sets"] | None = Field(
        None,
        description="What is to be right. Of multilabel labels, the default, samples or whole_sets; of sets items, the "
        "default, pixels, classes or whole_sets.",
    )
    inputs: list[Literal["matrix", "probabilities"]] = Field(["matrix"], min_length=1, max_length=2)

    def to_domain(self) -> Question:
        """The question as the trees know it.

        Raises:
            InvalidInput: the task and the classes contradict each other.
        """
        said = self.model_dump(exclude_none=True, exclude={"task", "inputs"})
        task: str = self.task
        if self.task in ("binary", "multiclass"):
            task = CLASSIFICATION
            if said.setdefault("classes", self.task) != self.task:
                raise InvalidInput.at("/classes", "one_of", f"expected {self.task} as the task says, or none")
        return Question(task=task, answers=said, inputs=self.inputs)


class RecallSweepField(Declared, of=RecallGrid):
    """Some classes from a low recall to a high one, all others as they are (Aguilar-Ruiz 2025, figure 2)."""

    shares: list[list[Annotated[float, Field(gt=0)]]] = Field(
        [], max_length=10, description="Mixes of the classes whose accuracy is wanted, a number per class."
    )


class BoundsRequest(Wire):
    """Either the recalls of all classes, or how many classes are weak."""

    recalls: list[_Rate] | None = Field(None, min_length=1, max_length=10_000)
    classes: int | None = Field(None, ge=1, le=1_000_000)
    weak: int | None = Field(None, ge=1, description="Classes with a recall of at most weak_recall.")
    weak_recall: float | None = Field(None, ge=0, le=1)
    max_recall: float = Field(1.0, ge=_SMALLEST_RECALL, le=1, description="No class is better than this.")
    target: float | None = Field(None, ge=_SMALLEST_RECALL, le=1, description="The H that is to be reached.")
    recall_sweep: RecallSweepField | None = None

    @model_validator(mode="after")
    def check_sweep(self) -> Self:
        """A sweep is one of the classes there are."""
        count = self.classes if self.recalls is None else len(self.recalls)
        if self.recall_sweep is not None and count is not None:
            self.recall_sweep.to_domain().check_classes(count)
        return self

    @model_validator(mode="after")
    def check_choice(self) -> Self:
        """Exactly one of the two forms, complete."""
        if self.recalls is not None:
            if self.classes is not None or self.weak is not None or self.weak_recall is not None:
                raise ValueError("expected either recalls or classes with weak, got both")
            if "max_recall" in self.model_fields_set:
                raise ValueError("expected no max_recall with recalls: their best is known")
            return self
        if self.classes is None or self.weak is None:
            raise ValueError("expected recalls, or classes and weak")
        if self.weak > self.classes:
            raise ValueError(f"expected weak of at most classes, got {self.weak} of {self.classes}")
        if self.target is None and self.weak_recall is None and self.recall_sweep is None:
            raise ValueError("expected target, weak_recall or recall_sweep")
        if self.weak_recall is not None and self.weak_recall > self.max_recall:
            raise ValueError("expected weak_recall of at most max_recall")
        return self


class StoredBoundsRequest(Wire):
    """Options of the bounds from the recalls of a stored evaluation."""

    target: float | None = Field(None, ge=_SMALLEST_RECALL, le=1, description="The H that is to be reached.")
    recall_sweep: RecallSweepField | None = None


class IsocurvesRequest(Wire):
    """A point whose curves of equal means are wanted."""

    tpr: _Rate = Field(description="Sensitivity.")
    tnr: _Rate = Field(description="Specificity.")
    steps: int = Field(101, ge=2, le=1000, description="Points over the false positive rate from 0 to 1.")


def fitting_sweep(sweep: RecallSweepField | None, count: int) -> RecallGrid | None:
    """The sweep of an evaluation with so many classes.

    Raises:
        InvalidInput: the sweep does not fit so many classes.
    """
    grid: RecallGrid | None = None if sweep is None else sweep.to_domain()
    try:
        if grid is not None:
            grid.check_classes(count)
    except ValueError as error:
        raise InvalidInput.at("/recall_sweep", "invalid_value", str(error)) from error
    return grid
