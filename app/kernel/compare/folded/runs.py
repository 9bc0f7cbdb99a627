"""Runs on the same samples compared by sums: what the samples at hand would say of what is linear in values of theirs.

An influence is written in deviations from the means of the classes and in their means, of which sums of products are
known: what is a product of influences elsewhere is one of their coefficients with these sums in between.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from app.kernel.compare.folded.leaves import Group, Leaf, group_of, pairs_of, parts_of
from app.kernel.compare.folded.moments import ClassMoments
from app.kernel.compare.folded.sums import PairedSums
from app.kernel.compare.linear import LinearRuns, linearised, runs_of
from app.kernel.compare.paired.joint import JointCounts
from app.kernel.metrics.expression import Expression
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.samples.areas import ROUNDING
from app.kernel.samples.influence import AreaOf, LinearMethod, Over, Skill, Strata
from app.kernel.samples.losses import Codes
from app.kernel.uncertainty.of_samples.influence import Linearisation

_ALL = slice(None)


class FoldedValue(NamedTuple):
    """One value of all runs.

    Attributes:
        parts: Of each run, as if one sample had all the influence.
        runs: The same together.
        counted: Of a share of samples without weights, which count for which runs, as predictions that are right where
            they do.
    """

    parts: tuple[Linearisation, ...]
    runs: LinearRuns
    counted: JointCounts | None


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    group: Group
    moments: ClassMoments
    infinite: Mask
    counted: JointCounts | None
    weighted: bool

    @property
    def worth(self) -> tuple[int, float] | None:
        """Of weighted samples, how many they are and how many of one weight are worth as much."""
        if not self.weighted:
            return None
        moments = self.moments
        return int(moments.counts.sum()), float(_effective(moments.masses.sum(), moments.squares.sum()))

    @property
    def width(self) -> int:
        """Values of one run."""
        return len(self.group.summands)


@dataclass(frozen=True, slots=True, eq=False)
class FoldedRuns:
    """What is left of the samples that R runs of K classes have in common."""

    n_runs: int
    n_classes: int
    _sums: Mapping[str, _Sums]

    @classmethod
    def read(cls, sums: Sequence[PairedSums]) -> Self:
        """What sums of one plan say."""
        found: dict[str, _Sums] = {}
        plan = sums[0].plan
        for one in sums:
            groups = plan.groups(ordered=one.ordered)
            found |= {
                key: _Sums(groups[key], moments.read(), moments.infinite(), one.counted.get(key), plan.weighted)
                for key, moments in one.moments.items()
            }
        return cls(plan.n_runs, plan.n_classes, found)

    def of(self, expression: Expression) -> tuple[FoldedValue, ...] | None:
        """The values of an expression; None where it was not folded, or has no closed form."""
        found = [self._of(value) for value in parts_of(expression, self.n_classes)]
        known = tuple(one for one in found if one is not None)
        return known if len(known) == len(found) else None

    def values(self, expression: Expression) -> Array | None:
        """Values (R, V); None as above."""
        found = self.of(expression)
        return None if found is None else np.stack([one.runs.values for one in found], axis=-1)

    def ruled_out(self, run: int) -> Codes:
        """Classes of which a run has samples whose value is infinite."""
        each = [sums.infinite[run * sums.width : (run + 1) * sums.width].any(axis=0) for sums in self._sums.values()]
        return np.flatnonzero(np.stack(each).any(axis=0)) if each else np.zeros(0, dtype=np.intp)

    def _of(self, value: Expression) -> FoldedValue | None:
        group = group_of(value, self.n_classes, self.n_runs)
        sums = None if group is None else self._sums.get(group.key)
        if sums is None:
            return None
        parts = []
        for run in range(self.n_runs):
            found = linearised(value, _FoldedInfluences(sums, run, self.n_classes))
            if found is None:
                return None
            parts.append(found[0])
        covariance = _covariance(sums.moments, np.stack([part.influence for part in parts]))
        alone = tuple(
            replace(part, influence=np.sqrt(np.maximum(covariance[[run], run], 0.0))) for run, part in enumerate(parts)
        )
        return FoldedValue(alone, runs_of(alone, covariance), sums.counted)


def _covariance(moments: ClassMoments, influences: Array) -> Array:
    """Of influences (R, K * (V + 1)): coefficients of the deviations of V values, and what is the same in a class."""
    size, width = moments.means.shape
    unknown: Mask = np.logical_or.reduce(~np.isfinite(influences), axis=1)
    by_class = np.where(unknown[:, None], 0.0, influences).reshape(len(influences), size, width + 1)
    # What is not known is of the runs without a value.
    products, leaning = (np.where(np.isnan(one), 0.0, one) for one in (moments.products, moments.leaning))
    found = np.zeros((len(influences), len(influences)))
    for code, square in enumerate(moments.squares):
        inner, means = by_class[:, code, :width], by_class[:, code, width]
        mixed = np.outer(inner @ leaning[code], means)
        found += inner @ products[code] @ inner.T + mixed + mixed.T + square * np.outer(means, means)
    found[unknown, :] = found[:, unknown] = np.nan
    return found


class _Made(NamedTuple):
    """One value of a run, and what samples add to its influence in each unit of weight.

    Attributes:
        slopes: (K, S) by the deviations within the classes.
        levels: (K) the same for all of a class.
    """

    value: float
    slopes: Array
    levels: Array
    freedom: float = np.inf
    sizes: tuple[float, float] | None = None


class _FoldedInfluences:
    """Metrics of one run as coefficients of what sums are known of."""

    def __init__(self, sums: _Sums, run: int, n_classes: int) -> None:
        self._sums, self._moments, self.n_classes = sums, sums.moments, n_classes
        self._places = {one.key: run * sums.width + place for place, one in enumerate(sums.group.summands)}
        self._width: int = self._moments.means.shape[1] + 1

    @property
    def n_units(self) -> int:
        """How many coefficients."""
        return self.n_classes * self._width

    def of(
        self, metric: Any, class_index: int | None = None, *, parameters: Mapping[str, Any] | None = None
    ) -> Linearisation | None:
        """A metric of the group."""
        leaf = Leaf.made(metric, class_index, parameters)
        if leaf is None:
            return None
        at = [self._places[one.key] for one in leaf.summands(self.n_classes)]
        made = _made(leaf, self._moments, at)
        coefficients = np.zeros((self.n_classes, self._width))
        coefficients[:, at], coefficients[:, -1] = made.slopes, made.levels
        if not np.isfinite(made.value):
            coefficients[:] = np.nan
        card, one_area = leaf.metric.card, leaf.form.area is not None and made.sizes is not None
        return Linearisation(
            made.value,
            coefficients.ravel(),
            card.inference.scale,
            Strata.BY_CLASS if one_area or _by_class(leaf) else Strata.WHOLE,
            LinearMethod.DELONG_LOGIT if one_area else leaf.form.method,
            card.range,
            made.freedom,
            made.sizes,
            self._sums.worth,
        )


def _by_class(leaf: Leaf) -> bool:
    return leaf.form.row_mean is not None and leaf.form.row_mean.over is not Over.SAMPLES


def _made(leaf: Leaf, moments: ClassMoments, at: Sequence[int]) -> _Made:
    if leaf.form.row_mean is not None:
        made = _MEANS[leaf.form.row_mean.over](leaf, moments, at[0])
        return made._replace(freedom=np.inf) if leaf.is_share else made
    return _of_areas(leaf, moments, at) if leaf.form.skill is None else _of_skill(leaf.form.skill, moments, at[0])


def _of_skill(skill: Skill, moments: ClassMoments, at: int) -> _Made:
    each, mean = _scale(moments), float(moments.overall[at])
    shares = moments.masses / moments.masses.sum()
    with silently():
        reference, moves = skill.reference(shares)
    if not reference > 0.0:
        return _Made(np.nan, np.zeros((shares.size, 1)), np.zeros(shares.size))
    moves = np.where(shares > 0.0, moves, 0.0)
    moved = mean / reference**2 * (moves - float(shares @ moves))
    slopes, levels = np.full((shares.size, 1), -each / reference), -moments.away[:, at] / reference + moved
    return _Made(1.0 - mean / reference, slopes, each * levels, _freedom(moments))


def _of_samples(_: Leaf, moments: ClassMoments, at: int) -> _Made:
    each = _scale(moments)
    slopes = np.full((moments.counts.size, 1), each)
    return _Made(float(moments.overall[at]), slopes, each * moments.away[:, at], _freedom(moments))


def _of_class_means(_: Leaf, moments: ClassMoments, at: int) -> _Made:
    n_classes = moments.counts.size
    squares, means = moments.products[:, at, at], moments.means[:, at]
    # Of a class without variance all of it is rounding.
    varies = squares > moments.squares * (ROUNDING * means) ** 2
    slopes = np.array([_scale(moments, inside) / n_classes for inside in np.eye(n_classes, dtype=np.bool_)])
    slopes = np.where(varies, slopes, 0.0)
    parts = np.where(varies, slopes**2 * squares, 0.0)
    per_freedom = float((parts**2 / np.maximum(_effective(moments.masses, moments.squares) - 1.0, 1.0)).sum())
    freedom = float(parts.sum()) ** 2 / per_freedom if per_freedom else np.inf
    return _Made(float(means.mean()), slopes[:, None], np.zeros(n_classes), freedom)


def _of_members(leaf: Leaf, moments: ClassMoments, at: int) -> _Made:
    code, n_classes = leaf.of or 0, moments.counts.size
    inside, slopes = np.arange(n_classes) == code, np.zeros((n_classes, 1))
    slopes[code] = _scale(moments, inside)
    return _Made(float(moments.means[code, at]), slopes, np.zeros(n_classes), _freedom(moments, inside))


_MEANS: Mapping[Over, Callable[[Leaf, ClassMoments, int], _Made]] = {
    Over.SAMPLES: _of_samples,
    Over.CLASS_MEANS: _of_class_means,
    Over.MEMBERS: _of_members,
}


def _scale(moments: ClassMoments, inside: Mask | slice = _ALL) -> float:
    """What makes of deviations times weights influences on the mean over all classes, or over some."""
    size, mass = float(moments.counts[inside].sum()), float(moments.masses[inside].sum())
    return float(np.sqrt(size / max(size - 1.0, 1.0))) / mass if mass else 0.0


def _freedom(moments: ClassMoments, inside: Mask | slice = _ALL) -> float:
    """Degrees of freedom of the variance of that mean."""
    worth = _effective(moments.masses[inside].sum(), moments.squares[inside].sum())
    return max(float(worth) - 1.0, 1.0)


def _effective(masses: Array, squares: Array) -> Array:
    """Kish's effective numbers of samples (...) from sums of weights and of their squares; 0 where there are none."""
    found: Array = np.divide(masses * masses, squares, out=np.zeros_like(masses), where=squares > 0)
    return found


def _of_areas(leaf: Leaf, moments: ClassMoments, at: Sequence[int]) -> _Made:
    """A line of one area, or an average of those of all classes or pairs."""
    area, n_classes = leaf.form.area, moments.counts.size
    assert area is not None  # noqa: S101 - who calls has looked
    if area.of is AreaOf.ENTRIES:
        return _of_entries(moments, at[0])
    if area.of in (AreaOf.PAIRS, AreaOf.PAIR_SHARES) and n_classes > 2:
        return _of_pairs(area.of, moments, at)
    if len(at) == 1:
        one = _of_area(moments, at[0], 1 if leaf.of is None else leaf.of)
        return one._replace(
            value=1.0 - area.slope * (1.0 - one.value), slopes=area.slope * one.slopes, levels=area.slope * one.levels
        )
    each = [_of_area(moments, place, code) for code, place in enumerate(at)]
    values, levels = np.array([one.value for one in each]), np.stack([one.levels for one in each])
    shares = np.full(n_classes, 1.0 / n_classes)
    if area.of is AreaOf.CLASS_SHARES:
        shares = moments.masses / moments.masses.sum()
    value = float(shares @ values)
    moved = shares @ levels
    if area.of is AreaOf.CLASS_SHARES:
        # The shares of the classes are random too.
        moved = moved + _scale(moments) * (values - value)
    slopes = np.concatenate([share * one.slopes for share, one in zip(shares, each, strict=True)], axis=1)
    return _Made(value, slopes, moved)


def _of_entries(moments: ClassMoments, at: int) -> _Made:
    """Of all scores of all samples; a value is twice what is on the wrong side of the scores of a sample."""
    pairs = float(moments.masses.sum()) * (moments.counts.size - 1)
    slope = -_scale(moments) / (2.0 * pairs)
    slopes = np.full((moments.counts.size, 1), slope)
    # What is lost by members to others is lost by others to members.
    return _Made(1.0 - float(moments.overall[at]) / (4.0 * pairs), slopes, slope * moments.away[:, at])


def _of_pairs(of: AreaOf, moments: ClassMoments, at: Sequence[int]) -> _Made:
    """An average of the areas of ordered pairs of classes (Hand & Till 2001)."""
    masses, n_classes = moments.masses, moments.counts.size
    shares = masses / masses.sum()
    if not shares.all():
        return _Made(np.nan, np.zeros((n_classes, len(at))), np.zeros(n_classes))
    each = np.full((n_classes, n_classes), 1.0 / (n_classes * (n_classes - 1)))
    if of is AreaOf.PAIR_SHARES:
        each = (shares[:, None] + shares) / (2.0 * (n_classes - 1))
    scales = [_scale(moments, inside) for inside in np.eye(n_classes, dtype=np.bool_)]
    areas, slopes = np.zeros((n_classes, n_classes)), np.zeros((n_classes, len(at)))
    for place, (one, other) in enumerate(pairs_of(n_classes)):
        areas[one, other] = 1.0 - moments.means[one, at[place]] / (2.0 * masses[other])
        slopes[one, place] = -each[one, other] * scales[one] / (2.0 * masses[other])
        slopes[other, place] = -each[one, other] * scales[other] / (2.0 * masses[one])
    levels = np.zeros(n_classes)
    if of is AreaOf.PAIR_SHARES:
        # The shares of the classes are random too.
        moves = (areas.sum(axis=0) + areas.sum(axis=1)) / (2.0 * (n_classes - 1))
        levels = _scale(moments) * (moves - float(shares @ moves))
    return _Made(float((each * areas).sum()), slopes, levels)


def _of_area(moments: ClassMoments, at: int, code: int) -> _Made:
    """DeLong's influences, of members and others apart; values are twice what is on the wrong side of a sample."""
    sizes, masses = moments.counts, moments.masses
    inside = np.arange(sizes.size) == code
    positives, negatives = float(masses[code]), float(masses[~inside].sum())
    if not positives or not negatives:
        return _Made(np.nan, np.full((sizes.size, 1), np.nan), np.full(sizes.size, np.nan))
    of_members, of_rest = -_scale(moments, inside) / (2.0 * negatives), -_scale(moments, ~inside) / (2.0 * positives)
    slopes = np.where(inside, of_members, of_rest)
    lost = np.where(sizes > 0, moments.means[:, at], 0.0)
    of_others = float(masses[~inside] @ lost[~inside]) / negatives
    levels = np.where(inside | (sizes == 0), 0.0, slopes * (lost - of_others))
    worth = tuple(float(_effective(masses[side].sum(), moments.squares[side].sum())) for side in (inside, ~inside))
    return _Made(1.0 - float(lost[code]) / (2.0 * negatives), slopes[:, None], levels, sizes=(worth[0], worth[1]))
