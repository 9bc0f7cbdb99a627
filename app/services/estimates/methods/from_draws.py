"""From simulated values to limits."""

from dataclasses import dataclass, replace
from math import isfinite, isnan

from app.domain.options import DRAWS, FEWEST_DRAWS
from app.kernel.uncertainty.draws import MOST_UNDEFINED, Summary
from app.services.estimates.estimate import Estimate, Estimates, NoLimits

# Relative to the value, a deviation below this is rounding.
_NO_VARIANCE = 1e-12
# Cells of all simulated matrices together: a second or two.
MOST_CELLS = 20_000_000


def affordable_draws(cells: int, wanted: int = DRAWS, *, most_cells: int = MOST_CELLS) -> int:
    """Draws of so many cells each that can be afforded; 0 where they are fewer than ``FEWEST_DRAWS``."""
    most = most_cells // max(cells, 1)
    return min(wanted, most) if most >= FEWEST_DRAWS else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingLimits:
    """Why a simulation of this kind may give no limits; where `constant` is None what does not vary is certain."""

    undefined: NoLimits
    undefined_draws: NoLimits
    constant: NoLimits | None


MISSING_OF_RESAMPLES = MissingLimits(
    undefined=NoLimits.UNDEFINED_FOR_SAMPLES,
    undefined_draws=NoLimits.UNDEFINED_RESAMPLES,
    constant=NoLimits.DEGENERATE,
)


def estimates_from(found: Summary, form: Estimate, missing: MissingLimits) -> Estimates:
    """The values (V) of one estimand.

    Args:
        found: Of its draws.
        form: How all that was simulated was made.
        missing: Why there may be no limits.
    """
    columns = (found.estimate, found.low, found.high, found.deviation, found.monte_carlo_error)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    estimates = []
    for (value, low, high, deviation, error), lost, stretched in zip(
        rows, found.undefined.tolist(), found.extended.tolist(), strict=True
    ):
        one = replace(form, value=value, low=low, high=high, undefined_draws=int(lost), stretched=stretched)
        if form.draws is not None:
            one = replace(one, monte_carlo_error=error)
        reason = _reason(one, deviation, missing)
        estimates.append(one if reason is None else one.without_limits(reason))
    return tuple(estimates)


def _reason(one: Estimate, deviation: float, missing: MissingLimits) -> NoLimits | None:
    if not isfinite(one.value):
        return missing.undefined
    if one.draws is not None and one.undefined_draws > MOST_UNDEFINED * one.draws:
        return missing.undefined_draws
    if one.draws is None and isnan(one.high - one.low):
        return NoLimits.DEGENERATE
    if missing.constant is not None and deviation <= _NO_VARIANCE * max(abs(one.value), _NO_VARIANCE):
        return missing.constant
    return None if isfinite(one.high - one.low) else NoLimits.UNBOUNDED
