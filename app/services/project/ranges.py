"""The worst and the best over all class shares within ranges."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from app.kernel.matrix.share_ranges import Extremes, extremes
from app.kernel.numerics.arrays import Array
from app.services.estimands import Estimand
from app.services.json_values import number
from app.services.project.answers import ExtremeValues, Highest, Lowest, Projection
from app.services.project.projection import ProjectedRun, in_order
from app.services.project.scenarios import Projectable
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
    parts = run.parts(2 * sum(len(estimand.names) for estimand in run.estimands))
    found: dict[str, ExtremeValues] = {}
    settled = True
    for part in parts:
        observed = part.run.observed(part.estimands)
        values = part.run.values(part.estimands, ranges.shares(points))
        most = (part.run.most_points - len(points)) // len(part.estimands)
        for estimand, own, at in zip(part.estimands, observed, values, strict=True):
            reached = extremes(ranges.bounds, partial(_values, part.run, estimand, ranges), points, at, most=most)
            settled &= reached.settled
            found |= _answered(run, part.run, estimand, own, ranges, reached)
    note = (
        f"Searched on {_POINTS} shares per named class and in all corners of what the ranges allow, then from the best "
    )
    note += "of these on" + (" until nothing was gained" if settled else ", as far as so many samples let it")
    note += "; the ends of the intervals are those at the worst and at the best shares."
    return Projection(
        evaluation=run.identifier,
        prevalence_range={label: list(ends) for label, ends in named.items()},
        metrics=in_order(run.estimands, found),
        design=run.design(parts, "range"),
        notes=[note, *run.notes(parts)],
    )


def _values(run: Projectable, estimand: Estimand, ranges: NamedRanges, points: Array) -> Array:
    """Values (G, V) of one estimand at points (G, d) of the ranges."""
    return run.values([estimand], ranges.shares(points))[0]


def _answered(
    run: ProjectedRun, source: Projectable, estimand: Estimand, observed: Array, ranges: NamedRanges, reached: Extremes
) -> dict[str, ExtremeValues]:
    """Both ends of every value of an estimand, with the limits there."""
    found = {name: ExtremeValues(number(own), None, None) for name, own in zip(estimand.names, observed, strict=True)}
    known = np.flatnonzero(~np.isnan(reached.values[0]))
    if not known.size:
        return found
    shares = ranges.shares(np.concatenate(reached.points[:, known]))
    limits = source.limits([estimand], shares)
    for index, place in enumerate(known.tolist()):
        low = None if limits is None else number(limits[0].low[index, place])
        high = None if limits is None else number(limits[0].high[known.size + index, place])
        least, most = (run.by_label(shares[at]) for at in (index, known.size + index))
        found[estimand.names[place]] = ExtremeValues(
            number(observed[place]),
            Lowest(number(reached.values[0, place]), low, least),
            Highest(number(reached.values[1, place]), high, most),
        )
    return found
