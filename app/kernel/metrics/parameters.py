"""What the parameters of a metric can be."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric parameter with its bounds; ``None`` is unbounded. ``integral`` asks for a whole number, and one that is
    ``written`` stands in the canonical text of an expression even where it is the default.
    """

    name: str
    default: float
    description: str
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    infinite: bool = False
    integral: bool = False
    written: bool = False


class MatrixOf(StrEnum):
    """What the numbers of a matrix among the parameters are, actual classes as rows."""

    WEIGHTS = "weights"
    COSTS = "costs"
    COSTS_OF_ANYTHING = "costs_of_anything"


@dataclass(frozen=True, slots=True)
class Choice:
    """A parameter with named values. ``matrix`` allows one of numbers too, as a tuple of its K rows: K columns, or any
    number of them where what is decided need not be a class.
    """

    name: str
    default: str
    description: str
    options: tuple[str, ...]
    matrix: MatrixOf | None = None


class Decision(NamedTuple):
    """Something that can be decided, with its place among the columns; 0 where these are not known yet."""

    name: str
    place: int


NO_DECISION = Decision("", 0)


@dataclass(frozen=True, slots=True)
class DecisionName:
    """A parameter that is something that can be decided, by its name. It has to be given."""

    name: str
    description: str
    default: Decision = NO_DECISION


Parameter = Number | Choice | DecisionName
