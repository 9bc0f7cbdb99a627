"""Causes of differences of two runs, or of a slice and its reference: class prevalence, and how each class is
recognised; of losses of probabilities prevalence, calibration and refinement.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from math import isfinite
from typing import Literal

import numpy as np

from app.domain.members import LEFT_OUT, named, number
from app.domain.wording import number as worded
from app.domain.wording import percent, whole
from app.domain.wording import share as share_of
from app.kernel.causes import Sensitivities, Split, of_gradient, of_rate, split
from app.kernel.compare.differences import StudentDifferences
from app.kernel.compare.linear import join_runs
from app.kernel.loss_causes import MOST_WORK, LossSplit, split_loss
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Recalibration, is_of_matrices
from app.kernel.metrics.expression import depends_on_size, measures, usual_measure
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.losses import Codes
from app.kernel.uncertainty.groups import Grouping
from app.kernel.uncertainty.influence import Linearisation
from app.services.estimands import Estimand
from app.services.estimates.run_data import RunData
from app.services.runs.aligned import Runs
from app.services.runs.pairing import PairingDesign

Kind = Literal["matrix", "loss"]
# Parts below this are what arithmetic left over.
NOISE = 1e-12
_COUNTED = "the metric depends on the number of samples, which mixtures of two sides do not have"
_LACKING = "one side has no samples of class {!r}, so how it recognises that class is not known"
_UNDEFINED = "the metric is undefined for a mixture of class prevalence and recognition of the two sides"
_TOO_MANY = "too many classes for all mixtures of two sides"


class Factor(StrEnum):
    """Factors of a matrix: prevalence and recognition; of a loss of probabilities: prevalence and the others."""

    PREVALENCE = "prevalence"
    RECOGNITION = "recognition"
    CALIBRATION = "calibration"
    REFINEMENT = "refinement"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A part of a difference.

    Attributes:
        label: The class whose samples are recognised otherwise; `null` of all classes that have no part of their own,
            and of prevalence.
        low: `null` where the error of the part is not known.
    """

    factor: Factor
    label: str | None = field(metadata=named("class"))
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Causes:
    """Shapley values of class prevalence and of how each class is recognised: parts that add up to a difference.

    Attributes:
        kind: `matrix`, or `loss`, whose parts are class prevalence, calibration and refinement.
        difference: Of the values as observed, which the parts add up to.
        items: `null` where `reason` says why.
        because: The largest part in words; left out where its limits hold 0.
    """

    kind: Kind = "matrix"
    difference: float | None
    items: Sequence[Cause] | None
    because: str | None = field(default=None, metadata=LEFT_OUT)
    reason: str | None = field(default=None, metadata=LEFT_OUT)


def kind_of_causes(estimand: Estimand) -> Kind | None:
    """Return how differences of a metric are split: as those of a loss that can be recalibrated, or of a matrix of
    classes where prevalence moves it; None where they are not.
    """
    if estimand.task is not None:
        return None
    if _recalibration(estimand) is not None:
        return "loss"
    of_matrices = all(is_of_matrices(leaf.metric) for leaf in measures(estimand.expression))
    return "matrix" if of_matrices and not (estimand.insensitive or estimand.is_of_slices) else None


def causes_of(runs: Runs, pair: tuple[int, int], estimand: Estimand, place: int, level: float) -> Causes:
    """Split the difference of one value of two runs, first less second, by its causes."""
    if kind_of_causes(estimand) == "loss":
        return _loss_causes(runs, pair, estimand, level)

    def limits(found: Sequence[Split]) -> list[tuple[Array, Array]]:
        return [_limits(runs, pair, one, level) for one in found]

    return causes_of_counts(runs.counts[[*pair]], runs.labels, [(estimand, place)], limits)[0]


def causes_of_counts(
    counts: Array,
    labels: Sequence[str],
    values: Sequence[tuple[Estimand, int]],
    limits: Callable[[Sequence[Split]], Sequence[tuple[Array, Array]]],
    *,
    side_by_side: bool = False,
) -> list[Causes]:
    """Split the differences of values of two matrices, first less second, by their causes.

    Args:
        counts: (2, K, K) of both.
        labels: The classes.
        values: Estimands whose ``kind_of_causes`` is of matrices, and the place of the value among those of each.
        limits: Gives lower and upper limits (F) of the parts of each.
        side_by_side: The first does not come after the second, which is for the words alone.
    """
    table, actual = Table(counts), counts.sum(axis=-1)
    lacking = np.flatnonzero((actual > 0).any(axis=0) & (actual == 0).any(axis=0))
    able = [] if lacking.size else [value for value in values if not depends_on_size(value[0].expression)]
    splits = iter(split(counts, [(partial(_value, *value), _closed_form(*value)) for value in able]) if able else ())
    found: list[Causes] = []
    known: dict[int, Split] = {}
    for index, value in enumerate(values):
        with silently():
            first, second = _value(*value, table).tolist()
        gap, why = first - second if isfinite(first) and isfinite(second) else None, None
        if depends_on_size(value[0].expression):
            gap, why = None, _COUNTED
        elif lacking.size:
            why = _LACKING.format(labels[int(lacking[0])])
        elif (one := next(splits)) is None:
            why = _TOO_MANY
        elif not np.isfinite(one.values).all():
            why = _UNDEFINED
        else:
            known[index] = one
        found.append(Causes(difference=gap, items=None, reason=why))
    for (index, one), ends in zip(known.items(), limits([*known.values()]) if known else (), strict=True):
        words = partial(_moved, counts, labels, values[index][0], side_by_side=side_by_side)
        rows = [labels[classes[0]] if len(classes) == 1 else None for classes in one.rows]
        factors = [(Factor.PREVALENCE, None), *((Factor.RECOGNITION, label) for label in rows)]
        found[index] = _caused("matrix", found[index].difference, factors, one.values, ends, words)
    return found


def _value(estimand: Estimand, place: int, table: Table) -> Array:
    found: Array = estimand.values(estimand.functional(table))[..., place]
    return found


def _caused(
    kind: Kind,
    gap: float | None,
    factors: Sequence[tuple[Factor, str | None]],
    values: Array,
    ends: tuple[Array, Array],
    moved: Callable[[Cause], str],
) -> Causes:
    """Name the parts (F) of a difference, with their limits, and the largest of them in words."""
    parts = zip(factors, values.tolist(), *(end.tolist() for end in ends), strict=True)
    items = [
        Cause(factor=factor, label=label, value=value, low=number(low), high=number(high))
        for (factor, label), value, low, high in parts
    ]
    return Causes(kind=kind, difference=gap, items=items, because=_largest(gap, items, moved))


def causes_of_shares(
    estimand: Estimand, labels: Sequence[str], shares: tuple[Array, Array], gap: float, limits: tuple[float, float]
) -> Causes:
    """Causes of what another class prevalence makes of a value: prevalence is all of it.

    Args:
        estimand: What has a ``kind_of_causes``.
        labels: The classes.
        shares: (K) then, and as they are.
        gap: Value then, less the value as it is.
        limits: Of that; NaN where its error is not known.
    """
    low, high = map(number, limits)
    after, before = shares
    of = _moved_class(estimand, after, before)
    moved = "more frequent" if after[of] > before[of] else "rarer"
    item = Cause(factor=Factor.PREVALENCE, label=None, value=gap, low=low, high=high)
    return Causes(
        kind=kind_of_causes(estimand) or "matrix",
        difference=gap,
        items=[item],
        because=None
        if abs(gap) <= NOISE
        else f"all of it because {labels[of]} becomes {moved} ({share_of(before[of])} to {share_of(after[of])})",
    )


_LOSS = (Factor.PREVALENCE, Factor.CALIBRATION, Factor.REFINEMENT)
_STREAMED = "a loss is split by the probabilities of all samples, and these were streamed"
_TOO_LARGE = "there are too many samples of too many classes for recalibrating their probabilities"
_NO_LOSS = "the loss of one side is undefined"
_SEPARATED = "no line in log odds recalibrates probabilities that separate the classes"


def _recalibration(estimand: Estimand) -> Recalibration | None:
    expression = usual_measure(estimand.expression)
    if expression is None or estimand.task is not None:
        return None
    return expression.metric.card.inference.recalibrated


def _loss_causes(runs: Runs, pair: tuple[int, int], estimand: Estimand, level: float) -> Causes:
    """Split the difference of a loss of two runs, first less second."""
    if runs.streamed is not None:
        return Causes(kind="loss", difference=None, items=None, reason=_STREAMED)
    groupings = [runs.groupings[run] for run in pair] if runs.groupings else []

    def limits(found: LossSplit) -> tuple[Array, Array]:
        parts = [*zip(found.values, *found.influences, strict=True)]
        of_parts = [_with_error(*one, paired=runs.pairing.paired, groupings=groupings) for one in parts]
        low, high = np.array([np.concatenate(one.limits(level)) for one in of_parts]).T
        return low, high

    first, second = (runs.scored[run] for run in pair)
    return loss_causes_of_sides((first, second), [one.codes for one in groupings], runs.labels, estimand, limits)


def loss_causes_of_sides(
    sides: tuple[RunData, RunData],
    groups: Sequence[Codes],
    labels: Sequence[str],
    estimand: Estimand,
    limits: Callable[[LossSplit], tuple[Array, Array]],
    *,
    side_by_side: bool = False,
) -> Causes:
    """Split the difference of a loss of two sides, first less second.

    Args:
        sides: Both.
        groups: Of each side (n) codes of what its samples are one of; none where they are independent.
        labels: The classes.
        estimand: Of whose ``kind_of_causes`` it is.
        limits: Lower and upper limits (3) of the parts.
        side_by_side: The first does not come after the second, which is for the words alone.
    """
    kind = _recalibration(estimand)
    first, second = (float(one.values(estimand)[0]) for one in sides)
    if kind is None or not (isfinite(first) and isfinite(second)):
        return Causes(kind="loss", difference=None, items=None, reason=_NO_LOSS)
    gap, why, size, scores = first - second, None, len(labels), (sides[0].scores, sides[1].scores)
    lacking = np.flatnonzero([one.actual == 0 for one in scores])
    work = max(one.n_samples for one in scores) * size * (size + 100)
    if lacking.size:
        why = _LACKING.format(labels[int(lacking[0]) % size])
    elif size > 2 and work > MOST_WORK:
        why = _TOO_LARGE
    found = None if why else split_loss(kind, scores, groups)
    if found is None:
        return Causes(kind="loss", difference=gap, items=None, reason=why or _SEPARATED)
    ends = limits(found)
    if found.near:
        for end in ends:
            end[_LOSS.index(Factor.CALIBRATION)] = np.nan
    words = partial(_moved, np.stack([one.counts for one in sides]), labels, estimand, side_by_side=side_by_side)
    return _caused("loss", gap, [(factor, None) for factor in _LOSS], np.array(found.values), ends, words)


def _closed_form(estimand: Estimand, place: int) -> Sensitivities | None:
    if estimand.rates is not None:
        return of_rate(estimand.rates[place])
    expression = usual_measure(estimand.expression)
    gradient = None if expression is None or expression.of is not None else expression.metric.card.inference.gradient
    return None if gradient is None else of_gradient(gradient)


def _limits(runs: Runs, pair: tuple[int, int], found: Split, level: float) -> tuple[Array, Array]:
    """Limits (F) of the parts, from what each sample adds to both runs; NaN where nothing varies."""
    none = np.full(found.values.shape, np.nan)
    ends = none, none.copy()
    if found.influences is not None:
        for place, (part, of_cells) in enumerate(zip(found.values.tolist(), found.influences, strict=True)):
            low, high = _difference(runs, pair, part, of_cells).limits(level)
            ends[0][place], ends[1][place] = low[0], high[0]
    if runs.pairing.design is not PairingDesign.INDEPENDENT and found.values[0] == 0.0:
        # Of the same samples the class shares are the same, whatever samples these are.
        ends[0][0] = ends[1][0] = 0.0
    return ends


def _difference(runs: Runs, pair: tuple[int, int], part: float, of_cells: Array) -> StudentDifferences:
    """Return a part with its error, from what a sample in each cell of both runs (2, K, K) adds to it."""
    added, groups = zip(*(runs.added(run, cells) for run, cells in zip(pair, of_cells, strict=True)), strict=True)
    groupings = [one for one in groups if one is not None]
    return _with_error(part, *added, paired=runs.pairing.joint is not None, groupings=groupings)


def _with_error(
    part: float, first: Array, second: Array, *, paired: bool, groupings: Sequence[Grouping]
) -> StudentDifferences:
    """Return a part with its error, from what the units of both runs add to it."""
    # Both add, so that it is the first less the second turned round.
    parts = [Linearisation(part, first), Linearisation(0.0, -second)]
    return join_runs(parts, [], paired=paired, same_items=False, groupings=groupings).difference(0, 1)


# --- words -----------------------------------------------------------------------------------------------------------


def said_causes(causes: Causes, name: str, between: str) -> str | None:
    """Say a difference and its largest part in a sentence; None where the limits of that hold 0."""
    gap = causes.difference
    if gap is None or causes.because is None:
        return None
    return f"{name} {'rose' if gap > 0 else 'fell'} by {worded(abs(gap))}{between}; {causes.because}."


def _largest(gap: float | None, items: Sequence[Cause], moved: Callable[[Cause], str]) -> str | None:
    """Say the largest part of a difference; None where its limits hold 0."""
    if gap is None or abs(gap) <= NOISE:
        return None
    sign = 1.0 if gap > 0 else -1.0
    lead = max(items, key=lambda one: sign * one.value)
    if lead.low is None or lead.high is None or lead.low <= 0.0 <= lead.high:
        return None
    because, rest = moved(lead), abs(lead.value) - abs(gap)
    if rest <= NOISE:
        return f"{worded(abs(lead.value))} of it because {because}"
    moved_by, back = ("gives", "take") if gap > 0 else ("takes", "give")
    return f"that {because} alone {moved_by} {worded(abs(lead.value))}, and the other causes {back} {worded(rest)} back"


_MADE_WORSE = {
    Factor.CALIBRATION: "errors of calibration cost {}",
    Factor.REFINEMENT: "what recalibrated probabilities leave open costs {}",
}


def _moved(counts: Array, labels: Sequence[str], estimand: Estimand, lead: Cause, *, side_by_side: bool = False) -> str:
    """Say what a part is of, with its numbers on both sides."""
    after, before = counts
    if lead.factor in _MADE_WORSE:
        return _MADE_WORSE[lead.factor].format("more" if lead.value > 0 else "less")
    if lead.factor is Factor.PREVALENCE:
        sizes, totals = (before, after), (before.sum(), after.sum())
        of = _moved_class(estimand, *(one.sum(axis=1) / one.sum() for one in counts))
        hits, among = [float(one[of].sum()) for one in sizes], [float(one) for one in totals]
        words = ("rarer", "more frequent")
        became = "is {}" if side_by_side else "became {}"
    elif lead.label is None:
        return "the other classes are recognised differently"
    else:
        of = labels.index(lead.label)
        hits, among = [float(one[of, of]) for one in (before, after)], [float(one[of].sum()) for one in (before, after)]
        words = ("less often", "more often")
        became = "is recognised {}"
    shares = [hit / all_of for hit, all_of in zip(hits, among, strict=True)]
    if shares[0] == shares[1]:
        return f"{labels[of]} is taken for other classes" + ("" if side_by_side else " than before")
    said = [share_of(one) for one in shares]
    if said[0] == said[1]:
        said = [percent(one, 2) for one in shares]
    sizes_said = [f"{whole(hit)} of {whole(all_of)}" for hit, all_of in zip(hits, among, strict=True)]
    order, joint = (slice(None, None, -1), " against ") if side_by_side else (slice(None), " to ")
    moved = became.format(words[shares[1] > shares[0]])
    return f"{labels[of]} {moved} ({joint.join(said[order])}, {joint.join(sizes_said[order])})"


def _moved_class(estimand: Estimand, after: Array, before: Array) -> int:
    """Return the class whose share (K) a sentence names: that of the metric if it moved, else the one that moved most;
    of two classes, which move alike, the rarer one.
    """
    classes = {leaf.of for leaf in measures(estimand.expression) if isinstance(leaf.of, int)}
    moves = np.abs(after - before)
    if len(classes) == 1 and moves[of := classes.pop()] > NOISE:
        return of
    return int((after + before).argmin() if len(after) == 2 else moves.argmax())
