"""The worst and the best over all class shares within ranges."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from app.kernel.matrix.prevalence import ShareExtremes, extremes
from app.kernel.numerics.arrays import Array
from app.services.estimands import Estimand
from app.services.json_values import number
from app.services.project.answers import ExtremeValues, Highest, Lowest, Projection
from app.services.project.projection import ProjectedRun
from app.services.project.shares import NamedRanges

# Shares per named class at which a range is looked at first; its corners besides.
_POINTS = 21
MOST_NAMED = 3


def within_ranges(run: ProjectedRun, named: Mapping[str, tuple[float, float]]) -> Projection:
    """The lowest and the highest value of every metric, each with its limit and the shares at which it is taken.

    Raises:
        InvalidInput: the ranges make no sense for this run.
        OutOfReach: too many samples for so many points.
    """
    ranges = NamedRanges(run.classes, named)
    points = ranges.bounds.points(_POINTS)
    in_all = 2 * sum(len(estimand.names) for estimand in run.estimands)
    found: dict[str, ExtremeValues] = {}
    settled = True
    for estimand in run.estimands:
        at = run.values(estimand, ranges.shares(points))
        most = (run.most_points(estimand) - len(points)) // len(run.sharing_time_with(estimand))
        reached = extremes(ranges.bounds, partial(_values, run, estimand, ranges), points, at, most=most)
        settled &= reached.settled
        found |= _answered(run, estimand, ranges, reached, in_all)
    note = (
        f"Searched on {_POINTS} shares per named class and in all corners of what the ranges allow, then from the best "
    )
    note += "of these on" + (" until nothing was gained" if settled else ", as far as so many samples let it")
    note += "; the ends of the intervals are those at the worst and at the best shares."
    searched = run.shares(ranges.shares(points[:1]), in_all=in_all)
    return Projection(
        evaluation=run.identifier,
        prevalence_range={label: list(ends) for label, ends in named.items()},
        metrics=found,
        design=run.design(searched, "range"),
        notes=[note, *run.notes(searched)],
    )


def _values(run: ProjectedRun, estimand: Estimand, ranges: NamedRanges, points: Array) -> Array:
    """Values (G, V) of one estimand at points (G, d) of the ranges."""
    return run.values(estimand, ranges.shares(points))


def _answered(
    run: ProjectedRun, estimand: Estimand, ranges: NamedRanges, reached: ShareExtremes, in_all: int
) -> dict[str, ExtremeValues]:
    """Both ends of every value of an estimand, with the limits there."""
    observed = run.observed(estimand)
    found = {name: ExtremeValues(number(own), None, None) for name, own in zip(estimand.names, observed, strict=True)}
    known = np.flatnonzero(~np.isnan(reached.values[0]))
    if not known.size:
        return found
    shares = ranges.shares(np.concatenate(reached.points[:, known]))
    (limits,) = run.estimates([estimand], run.shares(shares, in_all=in_all))
    for index, place in enumerate(known.tolist()):
        worst, best = index, known.size + index
        found[estimand.names[place]] = ExtremeValues(
            number(observed[place]),
            Lowest(number(reached.values[0, place]), number(limits[worst][place].low), run.by_label(shares[worst])),
            Highest(number(reached.values[1, place]), number(limits[best][place].high), run.by_label(shares[best])),
        )
    return found
