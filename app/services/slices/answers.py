"""Answers about the slices of a run, and sentences on them: who is worse off, what prevalence does, what is small."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from app.domain.decisions import PairVerdict
from app.domain.division import Where, slice_text
from app.domain.findings import Finding
from app.domain.members import HIDDEN, LEFT_OUT
from app.domain.wording import number, p_said, percent, whole
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
        p_of_many: The p that is adjusted; null where none is fit for that.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    p_of_many: float | None = field(default=None, metadata=HIDDEN)
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


IN_ONE_GROUP = "its samples, or those that it is held against, are all in one group, so how groups differ is not known"
_ELSEWHERE = {"rest": "elsewhere", "overall": "overall"}
# Slices that are told of, the largest losses first.
_MOST_TOLD = 20
# Code and words of what is left out, by how its reason begins.
_LEFT_OUT = (
    ("slices_too_small", "Too few samples to judge", "fewer"),
    ("slices_in_one_group", "Not judged, since all samples of one side are in one group", IN_ONE_GROUP),
)


def findings_of(
    slices: Sequence[SliceOfRun],
    left_out: Sequence[SliceLeftOut],
    searched: SlicesSearched | None,
    *,
    reference: str | Where,
    rope: float,
    missed: Mapping[str, str],
) -> Iterator[Finding]:
    """Findings about slices; ``missed`` has by the name of a recall the class that it is of."""
    elsewhere = _ELSEWHERE[reference] if isinstance(reference, str) else f"in {slice_text(reference)}"
    told = [found for one in slices if (found := _of_slice(one, rope, missed)) is not None]
    told.sort(key=lambda found: -_lost(found[1][0][1]))
    for one, worse in told[:_MOST_TOLD]:
        yield _worse(one, worse, elsewhere, missed)
    if len(told) > _MOST_TOLD:
        more = len(told) - _MOST_TOLD
        said = "more slice is" if more == 1 else "more slices are"
        yield Finding.note("more_slices_worse", f"{more} {said} worse beyond chance.", slices=more)
    by_prevalence = [
        (one, name, value, at)
        for one in slices
        for name, value in one.metrics.items()
        if value.difference.verdict is PairVerdict.WORSE and (at := _of_prevalence(value, rope)) is not None
    ]
    for one, name, value, at in by_prevalence[:_MOST_TOLD]:
        yield _gap_of_prevalence(one, name, value, at, elsewhere)
    if searched is not None and not slices and not left_out:
        yield Finding.note(
            "no_weak_slice",
            f"None of {whole(searched.slices)} slices is worse beyond what chance does to so many.",
            slices=searched.slices,
        )
    for code, said, reason in _LEFT_OUT:
        left = [one for one in left_out if one.reason.startswith(reason)]
        if left:
            names = "; ".join(slice_text(one.where) for one in left[:5])
            others = f" and {len(left) - 5} more" if len(left) > 5 else ""
            slices_left = [{"where": one.where, "n_samples": one.n_samples} for one in left[:_MOST_TOLD]]
            yield Finding.note(code, f"{said}: {names}{others}.", slices=slices_left)


_Named = tuple[str, SliceValue]


def _of_slice(one: SliceOfRun, rope: float, missed: Mapping[str, str]) -> tuple[SliceOfRun, list[_Named]] | None:
    """A slice with the values that are worse, and not by prevalence alone: missed cases and the largest loss first."""
    worse = [
        (name, value)
        for name, value in one.metrics.items()
        if value.difference.verdict is PairVerdict.WORSE and _of_prevalence(value, rope) is None
    ]
    return (one, sorted(worse, key=lambda found: (found[0] not in missed, -_lost(found[1])))) if worse else None


def _lost(value: SliceValue) -> float:
    return 0.0 if value.counts is None else value.counts.beyond or 0.0


def _worse(one: SliceOfRun, worse: Sequence[_Named], elsewhere: str, missed: Mapping[str, str]) -> Finding:
    (name, value), others = worse[0], [name for name, _ in worse[1:]]
    counts, difference = value.counts, value.difference
    where = slice_text(one.where)
    p = "" if difference.p_adjusted is None else f" ({p_said(difference.p_adjusted)}, adjusted)"
    if counts is not None and name in missed:
        lost, lost_elsewhere = counts.among - counts.hits, counts.reference_among - counts.reference_hits
        text = (
            f"In {where}, {whole(lost)} of {whole(counts.among)} {missed[name]} are missed, "
            f"{elsewhere} {whole(lost_elsewhere)} of {whole(counts.reference_among)}{p}."
        )
    else:
        own, other = number(value.value), number(value.reference)
        if counts is not None:
            own = f"{own} ({whole(counts.hits)} of {whole(counts.among)})"
            other = f"{other} ({whole(counts.reference_hits)} of {whole(counts.reference_among)})"
        text = f"In {where}, {name} is {own}, {elsewhere} {other}{p}."
        if value.causes is not None and value.causes.because is not None:
            text = f"{text[:-1]}: a gap of {number(abs(value.causes.difference or 0.0))}; {value.causes.because}."
    return Finding.warning(
        "slice_worse",
        text + (f" Worse too: {', '.join(others[:5])}." if others else ""),
        where=one.where,
        metric=name,
        value=value.value,
        reference=value.reference,
        counts=counts,
        metrics_worse=[name, *others],
    )


def _of_prevalence(value: SliceValue, rope: float) -> AtReferencePrevalence | None:
    """Return the metric at the prevalence of the reference if a settled gap is gone there, to half of it at most."""
    at, gap = value.at_reference_prevalence, value.difference.value
    if at is None or gap is None or at.difference.low is None or at.difference.high is None:
        return None
    part = value.causes.items[0] if value.causes is not None and value.causes.items else None
    if part is not None and (part.low is None or part.high is None or part.low <= 0.0 <= part.high):
        # What prevalence does may be nothing.
        return None
    reach = max(rope, abs(gap) / 2.0)
    return at if -reach <= at.difference.low and at.difference.high <= reach else None


def _gap_of_prevalence(
    one: SliceOfRun, name: str, value: SliceValue, at: AtReferencePrevalence, elsewhere: str
) -> Finding:
    why = "" if value.causes is None else value.causes.because
    shares = ", ".join(f"{label} {percent(share)}" for label, share in one.prevalence.items())
    why = f": {why}" if why else f" ({shares} there)"
    return Finding.note(
        "gap_of_prevalence",
        f"The gap of {name} in {slice_text(one.where)}, {number(value.value)} against "
        f"{number(value.reference)} {elsewhere}, comes from prevalence{why}. At the prevalence of the reference it is "
        f"{number(at.value)}.",
        where=one.where,
        metric=name,
        value=value.value,
        reference=value.reference,
        at_reference_prevalence=at.value,
    )
