"""Cost of one class at any prevalence, threshold and costs: rates at each threshold with their limits, from
which everything else is arithmetic that a page can do too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

import numpy as np

from app.domain.inputs.matrices import MatrixInput
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.intervals import clopper_pearson, ratio_limits, wilson
from app.services.estimates.methods.closed_forms import shares_of_rows
from app.services.stored import scores_of

LEVEL = 0.95
_STEPS = 99
# Costs that differ by this part, as those of a share in six digits do, are one.
_SAME = 1e-5
# Value with both limits; these are None where numbers of samples are not known.
Rate = tuple[float, float | None, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The rates of one class at each of T thresholds.

    Attributes:
        thresholds: Null where decisions are taken as they were made, and T is 1.
        start: The place of the threshold that the run decided by, or of the nearest one.
        observed: The share of the class in the data.
        recall: Share of the class that raises an alert, with Wilson's limits.
        alarms: Share of all others that does, likewise.
        exact_recall: Ends of the limits of Clopper and Pearson, from which those of precision follow.
        exact_alarms: Likewise.
    """

    thresholds: Sequence[float] | None
    start: int
    observed: float
    n: float
    others: float
    recall: Sequence[Rate]
    alarms: Sequence[Rate]
    exact_recall: Sequence[tuple[float | None, float | None]]
    exact_alarms: Sequence[tuple[float | None, float | None]]

    def at(self, place: int, share: float, cost_fp: float, cost_fn: float) -> "SimulatedOutcome":
        """Return what happens at a threshold, a share of the class, and costs of a false alarm and of a miss."""
        recall, alarms, rest = self.recall[place], self.alarms[place], 1.0 - share
        caught, false = share * recall[0], rest * alarms[0]
        cost = (share - caught) * cost_fn + false * cost_fp
        low = high = None
        (hit, hit_low, hit_high), (alarm, alarm_low, alarm_high) = recall, alarms
        if hit_low is not None and hit_high is not None and alarm_low is not None and alarm_high is not None:
            below = hypot(share * cost_fn * (hit_high - hit), rest * cost_fp * (alarm - alarm_low))
            above = hypot(share * cost_fn * (hit - hit_low), rest * cost_fp * (alarm_high - alarm))
            low, high = max(0.0, cost - below), cost + above
        return SimulatedOutcome(
            caught=caught,
            missed=share - caught,
            false=false,
            precision=self._precision(place, share),
            cost=(cost, low, high),
        )

    def cheapest(self, share: float, cost_fp: float, cost_fn: float) -> int:
        """Return the place of the threshold of the least cost on these samples, the lowest of several."""
        costs = [self.at(place, share, cost_fp, cost_fn).cost[0] for place in range(len(self.recall))]
        least = min(costs)
        return next(place for place, cost in enumerate(costs) if cost <= least * (1.0 + _SAME))

    def _precision(self, place: int, share: float) -> tuple[float | None, float | None, float | None]:
        (recall, *_), (alarms, *_) = self.recall[place], self.alarms[place]
        a, b = share * recall, (1.0 - share) * alarms
        value = a / (a + b) if a + b else None
        ends = (*self.exact_recall[place], *self.exact_alarms[place])
        if value is None or None in ends:
            return value, None, None
        hits, false = np.array([recall, *ends[:2]]) * share, np.array([alarms, *ends[2:]]) * (1.0 - share)
        least, most = ratio_limits(tuple(false), tuple(hits))
        return value, float(1.0 / (1.0 + most)), float(1.0 / (1.0 + least))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedOutcome:
    """Parts of all cases, and what follows: precision and the expected cost of a case, with their limits."""

    caught: float
    missed: float
    false: float
    precision: tuple[float | None, float | None, float | None]
    cost: tuple[float, float | None, float | None]


def simulated(source: MatrixInput, place: int, *, samples: bool) -> Simulated:
    """Return the rates of a class.

    With ``samples`` there are two classes, whose decisions can be made anew at any threshold.
    """
    counts = np.asarray(source.counts, dtype=np.float64)
    sizes = counts.sum(axis=1)
    n, others = float(sizes[place]), float(sizes.sum() - sizes[place])
    counted = source.counts_independent and not source.is_weighted
    thresholds, start = None, 0
    hits, false = counts[place, place][None], (counts[:, place].sum() - counts[place, place])[None]
    if samples:
        scores = scores_of(source)
        of_class = np.asarray(scores.columns[place], dtype=np.float64)
        member = scores.y == place
        cuts = np.arange(1, _STEPS + 1) / (_STEPS + 1)
        if not scores.are_probabilities:
            cuts = np.unique(np.quantile(of_class, cuts, method="inverted_cdf"))
        own = source.facts.get("threshold") if place == source.positive else None
        # Folds have several.
        if isinstance(own, int | float):
            cuts = np.union1d(cuts, own)
        else:
            own = 0.5
        hits, false = (
            part.size - np.searchsorted(np.sort(part), cuts, side="left").astype(np.float64)
            for part in (of_class[member], of_class[~member])
        )
        away = np.abs(hits + false - counts[:, place].sum())
        # Of thresholds that decide alike the run's own.
        thresholds, start = cuts.tolist(), int(np.lexsort((np.abs(cuts - own), away))[0])
    return Simulated(
        thresholds=thresholds,
        start=start,
        observed=n / (n + others),
        n=n,
        others=others,
        recall=_rates(hits, n, counted=counted),
        alarms=_rates(false, others, counted=counted),
        exact_recall=_ends(clopper_pearson(hits, np.asarray(n), LEVEL), counted=counted),
        exact_alarms=_ends(
            _of_others(counts, place) if thresholds is None else clopper_pearson(false, np.asarray(others), LEVEL),
            counted=counted,
        ),
    )


def _of_others(counts: Array, place: int) -> tuple[Array, Array]:
    """Return the limits of the part of all others that is taken for a class, a rate of each row, by MOVER."""
    sizes = counts.sum(axis=1)
    sizes[place] = 0.0
    mask = np.zeros(counts.shape, dtype=np.bool_)
    mask[:, place] = True
    mask[place] = False
    _, low, high = shares_of_rows(counts, mask, sizes / sizes.sum(), LEVEL)
    return low[None], high[None]


def _rates(hits: Array, size: float, *, counted: bool) -> list[Rate]:
    values = (hits / size).tolist()
    low, high = wilson(hits, np.asarray(size), LEVEL)
    ends = zip(low.tolist(), high.tolist(), strict=True)
    return [(value, *(end if counted else (None, None))) for value, end in zip(values, ends, strict=True)]


def _ends(limits: tuple[Array, Array], *, counted: bool) -> list[tuple[float | None, float | None]]:
    found = zip(*(one.tolist() for one in limits), strict=True)
    return [end if counted else (None, None) for end in found]
