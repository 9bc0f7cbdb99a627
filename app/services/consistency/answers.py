"""What is answered about reported scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.domain.members import LEFT_OUT


@dataclass(frozen=True, slots=True)
class Cells:
    """A matrix of two classes."""

    tp: int
    fn: int
    fp: int
    tn: int

    @classmethod
    def of(cls, tp: int, tn: int, positives: int, negatives: int) -> "Cells":
        """From what is right, and the numbers of samples."""
        return cls(tp, positives - tp, negatives - tn, tn)


@dataclass(frozen=True, slots=True)
class ClassesExample:
    """A matrix of several classes, rows actual."""

    labels: Sequence[str]
    confusion_matrix: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class FoldsExample:
    """A matrix of each fold."""

    folds: Sequence[Cells]


@dataclass(frozen=True, slots=True)
class ScoreEnds:
    """From the smallest to the largest value."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MetricEnds:
    """A metric over the matrices that fit; `null` where no matrix has a value."""

    low: float | None
    high: float | None
    undefined_count: int


@dataclass(frozen=True, slots=True)
class AlternativeReading:
    """Another reading of the report that some matrix fits: something to ask its authors."""

    code: str
    message: str
    feasible_count: int | None


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of samples of the two classes."""

    p: int
    n: int


@dataclass(frozen=True, slots=True)
class SizeRange:
    """Whole numbers without a gap."""

    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedSizes:
    """Unknown numbers of samples: what was searched and which fit.

    Attributes:
        total: All samples, whose divisions were searched.
        total_up_to: How many samples together were searched.
        p: What was given, or the ranges that fit.
        n: What was given, or the ranges that fit.
        p_up_to: How far p was searched.
        n_up_to: How far n was searched.
        searched: How many pairs of sizes were looked at.
        fitting: How many of them fit.
        smallest: The smallest that fit, where neither is known.
        ranges: How many ranges there are; not all need be shown.
    """

    total: int | None = field(default=None, metadata=LEFT_OUT)
    total_up_to: int | None = field(default=None, metadata=LEFT_OUT)
    p: int | Sequence[SizeRange] | None = field(default=None, metadata=LEFT_OUT)
    n: int | Sequence[SizeRange] | None = field(default=None, metadata=LEFT_OUT)
    p_up_to: int | None = field(default=None, metadata=LEFT_OUT)
    n_up_to: int | None = field(default=None, metadata=LEFT_OUT)
    searched: int
    fitting: int
    smallest: Sequence[Sizes] | None = field(default=None, metadata=LEFT_OUT)
    ranges: int | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistencyAnswer:
    """Whether the scores are possible together. Inconsistent scores are a question to their authors, not a verdict.

    Attributes:
        consistent: `null`: could not be decided.
        feasible_count: How many matrices fit; `null` where they are not counted.
        examples: Some of the matrices that fit.
        implied: Ranges of other scores over the matrices that fit.
        alternatives: Other readings of the report that some matrix fits.
        metrics: Ranges of the further metrics that were asked for.
        sizes: With unknown sizes: what was searched, how many fit, and which, as ranges or the smallest.
    """

    consistent: bool | None
    feasible_count: int | None
    examples: Sequence[Cells | ClassesExample | FoldsExample]
    implied: Mapping[str, ScoreEnds]
    alternatives: Sequence[AlternativeReading]
    assumptions: Sequence[str]
    metrics: Mapping[str, MetricEnds] | None = field(default=None, metadata=LEFT_OUT)
    sizes: SearchedSizes | None = field(default=None, metadata=LEFT_OUT)
