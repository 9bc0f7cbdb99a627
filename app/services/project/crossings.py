"""Where two runs change places as one class becomes more frequent."""

from collections.abc import Callable

from app.kernel.matrix.prevalence import crossings, sweep_shares
from app.kernel.numerics.arrays import Array
from app.services.estimands import Estimand
from app.services.project.projection import ProjectedRun
from app.services.project.scenarios import Sweep
from app.services.project.shares import refused

# Shares at which two runs are looked at; fewer where all samples are passed over at each.
_POINTS, _FEWEST_POINTS = 2001, 51


def changes_of_place(run: ProjectedRun, sweep: Sweep, against: ProjectedRun) -> dict[str, list[float]]:
    """Shares of the swept class at which another run changes places with this one, by the name of each value.

    Raises:
        InvalidInput: a class has samples in one run only.
        OutOfReach: too many samples.
    """
    shares = run.classes.actual
    if ((shares > 0) != (against.classes.actual > 0)).any():
        raise refused("/against", "no_samples", "expected a run that has samples of the same classes")
    index = run.classes.index(sweep.label, "/sweep/class")
    found: dict[str, list[float]] = {}
    for estimand in run.estimands:
        points = _points(run, against, estimand)
        still = estimand.insensitive and not run.scenario.recalibrate
        for place, name in enumerate(estimand.names):
            gap = _gap(run, against, estimand, place, lambda grid: sweep_shares(shares, index, grid))
            found[name] = [] if still else crossings(gap, low=sweep.start, high=sweep.end, points=points)
    return found


def _gap(
    mine: ProjectedRun, theirs: ProjectedRun, estimand: Estimand, place: int, shares_at: Callable[[Array], Array]
) -> Callable[[Array], Array]:
    """From shares (G) of the swept class to by how much the first run is better."""

    def gap(grid: Array) -> Array:
        first, second = (run.values(estimand, shares_at(grid))[:, place] for run in (mine, theirs))
        if estimand.preference is not None:
            first, second = estimand.preference.score(first), estimand.preference.score(second)
        difference: Array = first - second
        return difference

    return gap


def _points(mine: ProjectedRun, theirs: ProjectedRun, estimand: Estimand) -> int:
    """At how many shares both runs are looked at."""
    values = sum(len(one.names) for one in mine.sharing_time_with(estimand))
    affordable = min(run.most_points(estimand) for run in (mine, theirs)) // (2 * values)
    return max(_FEWEST_POINTS, min(_POINTS, affordable))
