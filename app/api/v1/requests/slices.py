"""Requests about the slices of a run."""

from typing import Annotated, Any, Literal

from pydantic import Field, Strict

from app.api.bodies.parsing import Wire
from app.api.v1.requests.asked import Declared
from app.api.v1.requests.fields import Name
from app.api.v1.requests.inputs import AnyInput
from app.api.v1.requests.referenced import ReferencedInput
from app.services.slices.slices import SearchQuestion, SlicesQuestion

Value = Annotated[str, Field(max_length=256)] | Annotated[bool, Strict()] | int | float | None


class Bin(Wire):
    """A range of a number: from this value on, to below that one."""

    start: float | None = Field(None, alias="from")
    end: float | None = Field(None, alias="to")


class SearchField(Declared, of=SearchQuestion):
    """Look through all slices for those that are worse."""


class SlicesRequest(Declared, of=SlicesQuestion):
    """The slices of a run, and what is asked of them."""

    reference: Literal["rest", "overall"] | dict[Name, Value | Bin]
    search: SearchField | None = None

    def to_domain(self, **others: Any) -> Any:
        """The question as the services know it."""
        dumped = self.model_dump(include={"reference"}, by_alias=True)
        return super().to_domain(**dumped, **others)


class InputSlicesRequest(SlicesRequest):
    """The slices of an input that is not saved."""

    input: AnyInput


class ReferencedSlicesRequest(SlicesRequest):
    """The slices of an input whose data is named and not sent. They are made by a job."""

    input: ReferencedInput
