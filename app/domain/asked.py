"""Types of the members of requests, for the dataclasses that declare them: kinds of text, and bounds.

Models of the JSON are made of such dataclasses; the section `Attributes:` of a docstring describes the members.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Bounds of a member.

    Attributes:
        checked: By the parser of requests, in the words of JSON models (`ge`, `le`, `min_length`, `max_length`; with
            `fail_fast` only the first fault of a list is told: a large matrix of nothing else would have a million).
        said: In the OpenAPI document only; `read` refuses with a message of its own.
    """

    checked: Mapping[str, float] = field(default_factory=dict)
    said: Mapping[str, Any] = field(default_factory=dict)


# A label, as it came and as text.
LabelOf = Annotated[str | int, "label"]
LabelText = Annotated[str, "label"]
# A metric expression.
ExpressionText = Annotated[str, "expression"]
# Text with nothing in it that is not seen.
NameText = Annotated[str, "name"]
# A name that something is looked for by, which may have been stored before names were checked.
SoughtText = Annotated[str, "sought"]
Level = Annotated[float, Limits({"gt": 0, "lt": 1})]
Share = Annotated[float, Limits({"ge": 0, "le": 1})]
NonNegative = Annotated[float, Limits({"ge": 0})]
Seed = Annotated[int, Limits({"ge": 0, "lt": 2**63})]
# Of a curve.
PointsAtMost = Annotated[int, Limits({"ge": 2, "le": 100_000})]
