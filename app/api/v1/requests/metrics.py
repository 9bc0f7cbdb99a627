"""Requests for advice on metrics and for bounds."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from app.api.bodies.parsing import Wire
from app.domain.advice.recommendations import Request as Question

# Reciprocals of smaller recalls would lose what they are added to.
_SMALLEST_RECALL = 1e-9


class RecommendationRequest(Wire):
    """What is to be judged, and what matters about it."""

    task: Literal["classification"] = "classification"
    classes: Literal["binary", "multiclass"]
    balanced: bool = Field(description="Are the classes about equally frequent?")
    error_priority: Literal["type1", "type2", "both", "costs"] = Field(
        "both", description="type1: false alarms; type2: misses; costs: they have prices."
    )
    chance_corrected: bool = False
    graphical: bool = False
    inputs: list[Literal["matrix", "probabilities"]] = Field(["matrix"], min_length=1, max_length=2)

    def to_domain(self) -> Question:
        """The question as the trees know it; there is one task so far."""
        return Question(**self.model_dump(exclude={"task"}))


class BoundsRequest(Wire):
    """Either the recalls of all classes, or how many classes are weak."""

    recalls: list[Annotated[float, Field(ge=0, le=1)]] | None = Field(None, min_length=1, max_length=10_000)
    classes: int | None = Field(None, ge=1, le=1_000_000)
    weak: int | None = Field(None, ge=1, description="Classes with a recall of at most weak_recall.")
    weak_recall: float | None = Field(None, ge=0, le=1)
    max_recall: float = Field(1.0, ge=_SMALLEST_RECALL, le=1, description="No class is better than this.")
    target: float | None = Field(None, ge=_SMALLEST_RECALL, le=1, description="The H that is to be reached.")

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
        if self.target is None and self.weak_recall is None:
            raise ValueError("expected target, weak_recall or both")
        if self.weak_recall is not None and self.weak_recall > self.max_recall:
            raise ValueError("expected weak_recall of at most max_recall")
        return self


RECOMMENDATIONS = {
    "rare class": {
        "task": "classification",
        "classes": "multiclass",
        "balanced": False,
        "error_priority": "both",
        "chance_corrected": False,
        "graphical": False,
        "inputs": ["matrix"],
    }
}
BOUNDS = {
    "critical recall": {"classes": 35, "weak": 1, "max_recall": 1, "target": 0.8},
    "one weak class": {"classes": 4, "weak": 1, "max_recall": 1, "weak_recall": 0.16},
    "known recalls": {"recalls": [1, 1, 1, 0.16]},
}
