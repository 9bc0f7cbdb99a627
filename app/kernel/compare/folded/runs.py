"""Runs on the same samples compared on means of what samples contribute: what the samples at hand would say, from sums.

An influence is written in deviations from the means of the classes and in their means, of which sums of products are
known: what is a product of influences elsewhere is one of their coefficients with these sums in between.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from app.kernel.compare.folded.leaves import Group, Leaf, group_of, groups_of, key_of, parts_of
from app.kernel.compare.folded.moments import ClassMoments, Moments
from app.kernel.compare.linear import LinearRuns, linearised, runs_of
from app.kernel.compare.paired.joint import JointCounts, combine, merged
from app.kernel.metrics.expression import Expression
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.influence import Over, Strata
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.of_samples.influence import Linearisation

# Samples that are looked at together, so that what is made of them stays in the cache.
_ROWS = 1 << 15


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be summed of R runs of K classes. Can be sent to another process."""

    expressions: tuple[Expression, ...]
    n_classes: int
    n_runs: int

    def groups(self) -> dict[str, Group]:
        """Leaves whose values are looked at together, by key."""
        return groups_of(self.expressions, self.n_classes, self.n_runs)


class PairedSums:
    """Sums over samples that R runs have in common. States merge in any order, and can be sent to another process."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._moments = {key: Moments(plan.n_classes, len(group) * plan.n_runs) for key, group in plan.groups().items()}
        # Of shares which samples count for which runs, as predictions that are right where they do.
        self._hits: dict[str, JointCounts] = {}

    def add(self, y: Codes, runs: Sequence[Scores]) -> None:
        """Add samples: their codes (n), and what each of the runs says of them."""
        groups = self.plan.groups()
        for start in range(0, y.size, _ROWS):
            rows = np.arange(start, min(start + _ROWS, y.size))
            # Of one row alone numpy adds up the columns in another order.
            some = np.repeat(rows, 2) if rows.size == 1 else rows
            self._add(y[rows], [_some(run, some) for run in runs], groups)

    def merge(self, other: Self) -> Self:
        """Take in the sums of others."""
        for key, moments in self._moments.items():
            moments.merge(other._moments[key])
        for key, joint in other._hits.items():
            self._hits[key] = merged([joint, *self._own_hits(key)], self.plan.n_runs, self.plan.n_classes)
        return self

    def read(self) -> "FoldedRuns":
        """What they say."""
        plan = self.plan
        groups = plan.groups()
        found = {
            key: _Sums(groups[key], moments.read(), moments.infinite(), self._hits.get(key))
            for key, moments in self._moments.items()
        }
        return FoldedRuns(plan.n_runs, plan.n_classes, found)

    def _own_hits(self, key: str) -> list[JointCounts]:
        return [self._hits[key]] if key in self._hits else []

    def _add(self, y: Codes, runs: Sequence[Scores], groups: Mapping[str, Group]) -> None:
        known: dict[str, Array] = {}
        for key, group in groups.items():
            for leaf in group:
                if leaf.key not in known:
                    known[leaf.key] = np.stack([leaf.rows(run)[: y.size] for run in runs])
            # One run after the other.
            values = np.stack([known[leaf.key][run] for run in range(len(runs)) for leaf in group])
            self._moments[key].add(values, y)
            if len(group) == 1 and group[0].is_share and np.isfinite(values).all():
                self._add_hits(key, values, y)

    def _add_hits(self, key: str, hits: Array, y: Codes) -> None:
        size = self.plan.n_classes
        decided = np.where(hits > 0, y, (y + 1) % size)
        joint = combine(y.astype(np.int64), decided.astype(np.int64), size)
        self._hits[key] = merged([joint, *self._own_hits(key)], self.plan.n_runs, size)


def _some(run: Scores, rows: Codes) -> Scores:
    part = Scores(run.y.take(rows), run.probabilities.take(rows, axis=0))
    part.are_probabilities = run.are_probabilities
    return part


class FoldedValue(NamedTuple):
    """One value of all runs.

    Attributes:
        parts: Of each run, as if one sample had all the influence.
        runs: The same together.
        hits: Of a share of the samples, which count for which runs, as predictions that are right where they do.
    """

    parts: tuple[Linearisation, ...]
    runs: LinearRuns
    hits: JointCounts | None


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    group: Group
    moments: ClassMoments
    infinite: Mask
    hits: JointCounts | None


@dataclass(frozen=True, slots=True, eq=False)
class FoldedRuns:
    """What is left of the samples that R runs of K classes have in common."""

    n_runs: int
    n_classes: int
    _sums: Mapping[str, _Sums]

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
        each = [
            sums.infinite[run * len(sums.group) : (run + 1) * len(sums.group)].any(axis=0)
            for sums in self._sums.values()
        ]
        return np.flatnonzero(np.stack(each).any(axis=0)) if each else np.zeros(0, dtype=np.intp)

    def _of(self, value: Expression) -> FoldedValue | None:
        group = group_of(value, self.n_classes, self.n_runs)
        sums = None if group is None else self._sums.get(key_of(group))
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
        return FoldedValue(alone, runs_of(alone, covariance), sums.hits)


def _covariance(moments: ClassMoments, influences: Array) -> Array:
    """Of influences (R, K * (V + 1)): coefficients of the deviations of V values, and what is the same in a class."""
    size, width = moments.means.shape
    unknown: Mask = np.logical_or.reduce(~np.isfinite(influences), axis=1)
    by_class = np.where(unknown[:, None], 0.0, influences).reshape(len(influences), size, width + 1)
    # What is not known is of the runs without a value.
    products = np.where(np.isnan(moments.products), 0.0, moments.products)
    found = np.zeros((len(influences), len(influences)))
    for code, count in enumerate(moments.counts):
        inner, means = by_class[:, code, :width], by_class[:, code, width]
        found += inner @ products[code] @ inner.T + count * np.outer(means, means)
    found[unknown, :] = found[:, unknown] = np.nan
    return found


class _FoldedInfluences:
    """Metrics of one run as coefficients of what sums are known of."""

    def __init__(self, sums: _Sums, run: int, n_classes: int) -> None:
        self._sums, self._moments, self._run, self.n_classes = sums, sums.moments, run, n_classes
        self._places = {leaf.key: place for place, leaf in enumerate(sums.group)}
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
        at = self._run * len(self._sums.group) + self._places[leaf.key]
        value, slopes, means, freedom = _MADE[_over(leaf)](self._moments, at, leaf)
        coefficients = np.zeros((self.n_classes, self._width))
        coefficients[:, at], coefficients[:, -1] = slopes, means
        if not np.isfinite(value):
            coefficients[:] = np.nan
        card, whole = leaf.metric.card, _over(leaf) is Over.SAMPLES
        return Linearisation(
            value,
            coefficients.ravel(),
            card.inference.scale,
            Strata.WHOLE if whole else Strata.BY_CLASS,
            leaf.form.method,
            card.range,
            np.inf if leaf.is_share else freedom,
        )


def _over(leaf: Leaf) -> Over:
    assert leaf.form.row_mean is not None  # noqa: S101 - others are not made
    return leaf.form.row_mean.over


# Value; slopes (K) by the deviations within the classes; influence (K) that all of a class have; degrees of freedom.
_Made = tuple[float, Array, Array, float]


def _of_samples(moments: ClassMoments, at: int, _: Leaf) -> _Made:
    size = float(moments.counts.sum())
    each = 1.0 / np.sqrt(size * max(size - 1.0, 1.0))
    slopes = np.full(moments.counts.size, each)
    return float(moments.overall[at]), slopes, each * moments.away[:, at], max(size - 1.0, 1.0)


def _of_class_means(moments: ClassMoments, at: int, _: Leaf) -> _Made:
    sizes, n_classes = moments.counts, moments.counts.size
    spare = np.maximum(sizes - 1.0, 1.0)
    slopes = np.divide(1.0, n_classes * np.sqrt(sizes * spare), out=np.zeros(n_classes), where=sizes > 0)
    parts = slopes**2 * moments.products[:, at, at]
    per_freedom = float((parts**2 / spare).sum())
    freedom = float(parts.sum()) ** 2 / per_freedom if per_freedom else np.nan
    return float(moments.means[:, at].mean()), slopes, np.zeros(n_classes), freedom


def _of_members(moments: ClassMoments, at: int, leaf: Leaf) -> _Made:
    assert leaf.of is not None  # noqa: S101 - a metric of one class
    size, slopes = float(moments.counts[leaf.of]), np.zeros(moments.counts.size)
    spare = max(size - 1.0, 1.0)
    if size:
        slopes[leaf.of] = 1.0 / np.sqrt(size * spare)
    return float(moments.means[leaf.of, at]), slopes, np.zeros(slopes.size), spare


_MADE = {Over.SAMPLES: _of_samples, Over.CLASS_MEANS: _of_class_means, Over.MEMBERS: _of_members}
