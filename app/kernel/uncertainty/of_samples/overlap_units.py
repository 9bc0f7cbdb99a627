"""Items with the sizes of two sets, as they are resampled."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.losses import Codes
from app.kernel.uncertainty.of_samples.units import Units
from app.kernel.units.overlaps import Overlaps


@dataclass(frozen=True, slots=True, eq=False)
class OverlapUnits(Units):
    """Items: regions, answers.

    Attributes:
        sizes: (n, 3): how much there is, how much was predicted, how much belongs to both.
        exact: (n), is what was predicted exactly what is there?
        codes: (n) class of each; None where there are none.
        n_classes: How many there are.
    """

    sizes: Array
    exact: Mask
    codes: Codes | None = None
    n_classes: int = 0
    _known: dict[str, Overlaps] = field(default_factory=dict, init=False, repr=False)

    @property
    def n_units(self) -> int:
        """How many items."""
        return len(self.sizes)

    @property
    def width(self) -> int:
        """Sizes are added up; nothing is sorted."""
        return 1

    @property
    def truth(self) -> NDArray[Any]:
        """How much there is of each, and its class."""
        codes = np.zeros(self.n_units) if self.codes is None else self.codes
        return np.stack([self.sizes[:, 0], codes], axis=1)

    def subject(self, weights: Array | None = None) -> Subject:
        """The items in weights (..., n)."""
        if "items" not in self._known:
            self._known["items"] = Overlaps(*self.sizes.T, exact=self.exact, codes=self.codes, n_classes=self.n_classes)
        items = self._known["items"]
        items = items if weights is None else items.with_weights(weights)
        parts: dict[Inputs, Any] = {Inputs.LABELS: items, Inputs.OVERLAPS: items}
        return Subject(parts if self.codes is None else {**parts, Inputs.CLASS_OVERLAPS: items})

    def part(self, chosen: Codes) -> "OverlapUnits":
        """Some of the items."""
        codes = None if self.codes is None else self.codes.take(chosen)
        return OverlapUnits(self.sizes.take(chosen, axis=0), self.exact.take(chosen), codes, self.n_classes)

    def beside(self, other: "OverlapUnits") -> "OverlapUnits":
        """The items of both."""
        codes = None
        if self.codes is not None and other.codes is not None:
            codes = np.concatenate([self.codes, other.codes])
        sizes, exact = np.concatenate([self.sizes, other.sizes]), np.concatenate([self.exact, other.exact])
        return OverlapUnits(sizes, exact, codes, self.n_classes)
