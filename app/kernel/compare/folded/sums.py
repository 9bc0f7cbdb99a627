"""What is added up of samples that R runs have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from app.kernel.compare.folded.leaves import Group, Order, groups_of
from app.kernel.compare.folded.moments import Moments
from app.kernel.compare.paired.joint import JointCounts, combine, merged
from app.kernel.metrics.expression import Expression
from app.kernel.numerics.arrays import Array
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores

# Samples that are looked at together, so that what is made of them stays in the cache.
_ROWS = 1 << 15

# Values of all runs (R, n) by the keys of summands.
Known = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be summed of R runs of K classes. Can be sent to another process.

    Attributes:
        weighted: Have the samples weights?
    """

    expressions: tuple[Expression, ...]
    n_classes: int
    n_runs: int
    weighted: bool = False

    def groups(self, *, ordered: bool) -> dict[str, Group]:
        """Those that rows say, or those that need an order, by key."""
        found = groups_of(self.expressions, self.n_classes, self.n_runs)
        return {key: group for key, group in found.items() if group.ordered is ordered}

    def orders(self) -> dict[str, Order]:
        """In what is counted, by the keys of the summands."""
        summands = (one for group in self.groups(ordered=True).values() for one in group.summands)
        return {one.key: one.order for one in summands if one.order is not None}

    @property
    def entries(self) -> float:
        """How many a sample has in all orders of a run."""
        return sum(order.entries(self.n_classes) for order in self.orders().values())


class PairedSums:
    """Sums of some groups. States merge in any order, and can be sent to another process."""

    def __init__(self, plan: Plan, *, ordered: bool) -> None:
        self.plan, self.ordered = plan, ordered
        groups = plan.groups(ordered=ordered)
        self.moments = {
            key: Moments(plan.n_classes, len(one.summands) * plan.n_runs, weighted=plan.weighted)
            for key, one in groups.items()
        }
        self._counted: dict[str, list[JointCounts]] = {}

    @property
    def counted(self) -> Mapping[str, JointCounts]:
        """Of shares which samples count for which runs, as predictions that are right where they do; without
        weights.
        """
        self.add_up()
        return {key: found for key, (found,) in self._counted.items()}

    @property
    def nbytes(self) -> int:
        """Bytes in memory of what grows with the samples."""
        return sum(one.nbytes for joints in self._counted.values() for one in joints)

    def add_up(self) -> None:
        """What was counted of one share becomes one."""
        for key, joints in self._counted.items():
            if len(joints) > 1:
                self._counted[key] = [merged(joints, self.plan.n_runs, self.plan.n_classes)]

    def add(self, y: Codes, runs: Sequence[Scores], weights: Array | None = None) -> Self:
        """Add samples: their codes (n), what each of the runs says of them, and their weights (n) above 0."""
        groups = self.plan.groups(ordered=self.ordered)
        for start in range(0, y.size, _ROWS):
            rows = slice(start, start + _ROWS)
            known = known_of(groups, [_some(run, rows) for run in runs])
            self._add(y[rows], known, None if weights is None else weights[rows], groups)
        return self

    def add_known(self, y: Codes, known: Known, weights: Array | None = None) -> Self:
        """The same where the values are known."""
        groups = self.plan.groups(ordered=self.ordered)
        for start in range(0, y.size, _ROWS):
            rows = slice(start, start + _ROWS)
            some = {key: values[:, rows] for key, values in known.items()}
            self._add(y[rows], some, None if weights is None else weights[rows], groups)
        return self

    def merge(self, other: Self) -> Self:
        """Take in the sums of others."""
        for key, moments in self.moments.items():
            moments.merge(other.moments[key])
        for key, joints in other._counted.items():
            self._counted.setdefault(key, []).extend(joints)
        return self

    def _add(self, y: Codes, known: Known, weights: Array | None, groups: Mapping[str, Group]) -> None:
        for key, group in groups.items():
            # One run after the other.
            values = np.concatenate(np.stack([known[one.key] for one in group.summands], axis=1))
            self.moments[key].add(values, y, weights)
            if group.share and weights is None and np.isfinite(values).all():
                size = self.plan.n_classes
                decided = np.where(values > 0, y, (y + 1) % size)
                joint = combine(y.astype(np.int64), decided.astype(np.int64), size)
                self._counted.setdefault(key, []).append(joint)


def known_of(groups: Mapping[str, Group], runs: Sequence[Scores]) -> dict[str, Array]:
    """The values of the summands of some groups that rows say by themselves."""
    summands = {one.key: one for group in groups.values() for one in group.summands if one.order is None}
    return {key: np.stack([one.rows(run) for run in runs]) for key, one in summands.items()}


def _some(run: Scores, rows: slice) -> Scores:
    part = Scores(run.y[rows], run.probabilities[rows])
    part.are_probabilities = run.are_probabilities
    return part
