"""Answers about the slices of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from app.domain.decisions import PairVerdict
from app.domain.division import Where
from app.domain.findings import Finding
from app.domain.members import LEFT_OUT
from app.services.runs.causes import Causes


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceDifference:
    """A slice less its reference.

    Attributes:
        p_value: Two-sided.
        p_adjusted: Holds the false discovery rate over all slices and metrics; of a search the chance of any false
            find.
        verdict: By the adjusted p; `same` where the limits lie within the rope.
        reason: Why limits or p are missing.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    p_value: float | None = field(default=None, metadata=LEFT_OUT)
    p_adjusted: float | None = field(default=None, metadata=LEFT_OUT)
    verdict: PairVerdict | None = field(default=None, metadata=LEFT_OUT)
    method: str | None = field(default=None, metadata=LEFT_OUT)
    reason: str | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtReferencePrevalence:
    """A metric with the rows of the slice at the class prevalence of the reference."""

    value: float | None
    difference: SliceDifference


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceCounts:
    """Samples behind a rate.

    Attributes:
        hits: That are right, or are counted.
        among: Of so many.
        beyond: Lost beyond what the reference would lose of as many; below 0 where fewer are lost.
    """

    hits: float
    among: float
    reference_hits: float
    reference_among: float
    beyond: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceValue:
    """A metric in a slice.

    Attributes:
        counts: Of a rate.
        at_reference_prevalence: Of what prevalence moves.
        causes: Of the difference of what prevalence moves, or of a loss.
        reason: Why there is no value, or there are no limits.
    """

    value: float | None
    low: float | None
    high: float | None
    level: float
    reference: float | None
    counts: SliceCounts | None = field(default=None, metadata=LEFT_OUT)
    difference: SliceDifference
    at_reference_prevalence: AtReferencePrevalence | None = field(default=None, metadata=LEFT_OUT)
    causes: Causes | None = field(default=None, metadata=LEFT_OUT)
    reason: str | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceOfRun:
    """A slice of a run.

    Attributes:
        where: A value of each attribute, or `from` (included) and `to` (not) of a number.
        prevalence: Share of each class, of two of the positive one.
    """

    where: Where
    n_samples: int
    prevalence: Mapping[str, float]
    metrics: Mapping[str, SliceValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRange:
    """The largest and the smallest value over slices.

    Attributes:
        difference: Largest less smallest, with limits that hold though the slices were picked for their values.
        ratio: Smallest over largest.
    """

    metric: str
    by: str
    largest: Where
    smallest: Where
    difference: float | None
    low: float | None
    high: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    reason: str | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True)
class SliceLeftOut:
    """A slice that takes no part."""

    where: Where
    n_samples: int
    reason: str


@dataclass(frozen=True, slots=True)
class SlicesSearched:
    """Number of slices that were looked through, with so many conditions at most."""

    slices: int
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Slices:
    """A run judged slice by slice.

    Attributes:
        reference: What slices are held against: `rest`, `overall` or a slice.
        slices: Of a search the finds, the clearest first.
        ranges: Over the slices of each attribute.
    """

    evaluation_id: UUID | None
    n_samples: int
    reference: str | Where
    level: float
    slices: Sequence[SliceOfRun]
    ranges: Sequence[SliceRange]
    left_out: Sequence[SliceLeftOut]
    searched: SlicesSearched | None
    findings: Sequence[Finding]
