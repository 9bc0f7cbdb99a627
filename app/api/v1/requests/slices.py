"""Requests about the slices of a run."""

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, Strict, model_validator

from app.api.bodies.parsing import Wire
from app.api.v1.requests.fields import Expression, Level, Name
from app.api.v1.requests.inputs import AnyInput
from app.api.v1.requests.referenced import ReferencedInput
from app.services.slices.slices import SearchQuestion, SlicesQuestion

_MOST_BINS = 100
Value = Annotated[str, Field(max_length=256)] | Annotated[bool, Strict()] | int | float | None


class Bin(Wire):
    """A range of a number: from this value on, to below that one."""

    start: float | None = Field(None, alias="from")
    end: float | None = Field(None, alias="to")


class SearchField(Wire):
    """Look through all slices for those that are worse."""

    metric: Expression = Field(description="A rate or a mean with one value, such as `recall@D` or `log_loss`.")
    depth: int = Field(3, ge=1, le=3, description="Most conditions of a slice.")


class SlicesRequest(Wire):
    """The slices of a run, and what is asked of them."""

    by: list[Name] = Field(
        default_factory=list, max_length=50, description="Attributes; of a search those looked through, all when empty."
    )
    depth: int = Field(1, ge=1, le=3, description="How many attributes are crossed for a slice.")
    bins: dict[
        Name,
        Annotated[list[float], Field(min_length=1, max_length=_MOST_BINS)] | Annotated[int, Field(ge=2, le=_MOST_BINS)],
    ] = Field(
        default_factory=dict, max_length=50, description="Of numbers: edges, or how many bins of equally many samples."
    )
    metrics: list[Expression] = Field(
        default_factory=list,
        max_length=50,
        description="When left out recall, precision and h_mean of two classes, of more every recall and h_mean.",
    )
    reference: Literal["rest", "overall"] | dict[Name, Value | Bin] = Field(
        "rest", description="What a slice is held against: the samples outside of it, all, or another slice."
    )
    minimum_samples: int = Field(30, ge=1, description="Smaller slices take no part.")
    level: Level = Field(0.95, description="Of limits; 1 less it is the false discovery rate.")
    rope: float = Field(0.01, ge=0, description="Differences up to this are practically none.")
    search: SearchField | None = None

    @model_validator(mode="after")
    def check_choice(self) -> Self:
        """Refuse nothing to divide by, and edges that do not rise."""
        if not self.by and self.search is None:
            raise ValueError("expected attributes in by, or a search")
        if isinstance(self.reference, dict) and not self.reference:
            raise ValueError("expected a reference with at least one condition")
        for name, edges in self.bins.items():
            if isinstance(edges, list) and any(low >= high for low, high in pairwise(edges)):
                raise ValueError(f"expected edges of {name} that rise")
        return self

    def to_question(self) -> SlicesQuestion:
        """The question as the services know it."""
        dumped, by = self.model_dump(include={"reference"}, by_alias=True), tuple(dict.fromkeys(self.by))
        search = None if self.search is None else self.search.filled(SearchQuestion)
        return self.filled(SlicesQuestion, by=by, search=search, **dumped)


class InputSlicesRequest(SlicesRequest):
    """The slices of an input that is not saved."""

    input: AnyInput


class ReferencedSlicesRequest(SlicesRequest):
    """The slices of an input whose data is named and not sent. They are made by a job."""

    input: ReferencedInput
