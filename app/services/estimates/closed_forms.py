"""Closed forms of metrics of samples as intervals, of samples that are independent or come in groups."""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from app.domain.findings import Finding
from app.domain.inputs.labels import listed
from app.domain.report import Interval
from app.domain.wording import rounded
from app.kernel.samples.influence import Method, Strata
from app.kernel.uncertainty.clusters import Grouping
from app.kernel.uncertainty.group_influence import by_groups, group_limits, group_method
from app.kernel.uncertainty.headline import Given
from app.kernel.uncertainty.influence import Linearisation, effective_samples, limits
from app.services.estimates.headline_intervals import ONE_GROUP

# With fewer samples behind the variance of a mean its t interval misses its level.
FEW_EFFECTIVE = 10
# That many of all samples would carry it if none stood out: a third for values with a normal distribution.
_USUAL_SHARE = 0.2
NO_VALUE = {
    "undefined": "the metric is undefined for these samples",
    "degenerate": "the value does not vary around what was found, which says nothing about its uncertainty",
}


@dataclass(frozen=True, slots=True)
class ClosedForms:
    """How closed forms become intervals: by samples, or by groups of them."""

    level: float
    grouping: Grouping | None

    @property
    def unit(self) -> str:
        """What is independent."""
        return "sample" if self.grouping is None else "group"

    def summed(self, linear: Linearisation) -> Linearisation:
        """With the influences of what is independent."""
        return linear if self.grouping is None else by_groups(linear, self.grouping)

    def interval(self, linear: Linearisation) -> Interval:
        """The interval, or why there is none."""
        ends: tuple[float, float] | None = None
        if self.grouping is not None:
            summed = self.summed(linear)
            ends = group_limits(summed, linear.influence.size, self.level)
            method, given = group_method(linear), Given.GROUPS.value
        else:
            summed, found = linear, limits(linear, self.level)
            method, given = linear.method.value, "actual_counts" if linear.strata is Strata.BY_CLASS else "n"
            if found is not None:
                ends, method = (found.low, found.high), found.method.value
        if ends is not None:
            return {"low": ends[0], "high": ends[1], "level": self.level, "method": method, "given": given}
        reason = NO_VALUE["degenerate" if isfinite(linear.value) else "undefined"]
        if isfinite(linear.value) and not np.isfinite(summed.influence).all():
            reason = ONE_GROUP
        return {"low": None, "high": None, "level": self.level, "method": method, "given": given, "reason": reason}


class Thin:
    """Means whose variance comes from a few samples or groups, such as the log loss of one confident mistake."""

    def __init__(self, unit: str) -> None:
        self._found: dict[str, float] = {}
        self._unit = unit

    def note(self, name: str, linear: Linearisation) -> None:
        """Remember a value if so."""
        if linear.method in (Method.T, Method.INFLUENCE):
            carrying = effective_samples(linear)
            if carrying < min(FEW_EFFECTIVE, _USUAL_SHARE * np.count_nonzero(linear.influence)):
                self._found[name] = carrying

    def findings(self) -> list[Finding]:
        """What there is to say."""
        if not self._found:
            return []
        names = list(self._found)
        fewest = min(self._found.values())
        return [
            Finding.warning(
                "intervals_rest_on_few_samples",
                f"The spread of {listed(names)} comes from few {self._unit}s, as if there were only "
                f"{rounded(fewest, 0)}: another {self._unit} may look quite different, and the "
                "intervals are too narrow on the side of the "
                "large values.",
                metrics=names[:20],
                effective_samples=fewest,
            )
        ]
