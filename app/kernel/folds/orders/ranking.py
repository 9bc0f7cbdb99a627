"""A ranking of samples that nobody holds: what is read off the cuts while they go by, from the highest score down."""

from fractions import Fraction
from typing import Any

import numpy as np

from app.kernel.folds.groups.influence import GroupArea, area_of_groups
from app.kernel.folds.not_folded import NotFolded
from app.kernel.folds.orders.along import Along
from app.kernel.folds.orders.cut_by_cut import CutByCut
from app.kernel.numerics.arrays import Array
from app.kernel.samples.rankings.cuts import Row, equal_error_rate, standardised_partial_area
from app.kernel.samples.rankings.ranking import Ranking


class FoldedRanking(Ranking):
    """What metrics read off a ranking, at their default parameters. What needs the samples again is ``NotFolded``.

    Attributes:
        area_variance: DeLong's variance of the area.
        area_variances: What members and others add to it; None of samples with weights, and without members or others.
        bins: Of equal width, of probabilities.
        points: The cuts that are kept.
        medians: Those at which the median member is likely to lie.

    Args:
        along: What all of them came to.
        max_fpr: Where the partial area ends.
    """

    def __init__(self, along: CutByCut, max_fpr: float) -> None:
        positives, negatives = along.positives, along.negatives
        pairs, lost = positives * negatives, along.twice_lost
        self.weights = None
        self.area_variance = along.area_variance()
        self.area_variances = along.area_variances() if pairs and isinstance(along, Along) else None
        self._along, self._max_fpr = along, max_fpr
        self.bins = along.binned()
        self.points, self.medians = along.points.read(), along.medians.read()
        # Where they stand takes several times as much memory as what comes of it.
        placed, along.placed = along.placed, None
        self._groups: GroupArea | None = None
        if placed is not None and isinstance(along, Along) and pairs:
            self._groups = area_of_groups(placed, along.varied)
        precision, trapezoid = along.precision()
        # Whole numbers of any size are divided once.
        self._read(
            positives=float(positives),
            negatives=float(negatives),
            losses=lost / 2,
            wins=(2 * pairs - lost) / 2,
            auc=(2 * pairs - lost) / (2 * pairs) if pairs else np.nan,
            average_precision=precision / positives if positives else np.nan,
            precision_sum=trapezoid,
            ks=along.gap if pairs else np.nan,
            equal_error_rate=self._equal_error_rate() if pairs else np.nan,
        )
        self.__dict__.update(hulls=[along.hull])

    @property
    def area_of_groups(self) -> GroupArea:
        """What groups add to the sampling error of the area."""
        if self._groups is None:
            raise ValueError("expected samples in groups, with members and others")
        return self._groups

    def _read(self, **attributes: float | Fraction) -> None:
        """Attributes that are computed at first use are there already."""
        self.__dict__.update({name: np.asarray(float(value)) for name, value in attributes.items()})

    def curves_as_json(self) -> dict[str, Any]:
        """What is kept of its curves."""
        known = {name: float(getattr(self, name)) for name in ("auc", "precision_sum")}
        areas = {name: None if np.isnan(area) else area for name, area in known.items()}
        return {
            **self.points._asdict(),
            **areas,
            "bins": None if self.bins is None else self.bins.as_lists(),
        }

    def between(self, limits: Array) -> tuple[Array, Array, Array]:
        """Weight, sum of scores and weight of members in bins of equal width."""
        if self.bins is None:
            raise NotFolded("scores that are no probabilities have no bins")
        return self.bins.between(limits)

    def partial_auc(self, max_fpr: float) -> Array:
        """Standardised area up to the false positive rate that was looked at."""
        along = self._along
        if max_fpr != self._max_fpr:
            raise NotFolded(f"the area was folded up to {self._max_fpr}, not {max_fpr}")
        if not along.positives or not along.negatives:
            return np.asarray(np.nan)
        edge = None if along.edge is None else along.edge[:4]
        sizes = float(along.positives), float(along.negatives)
        return np.asarray(standardised_partial_area(along.area_inside, edge, *sizes, max_fpr))

    def member_quantile(self, quantile: float) -> tuple[Array, Array]:
        """Scores of the members at one of the quantiles that were looked at."""
        if quantile not in self._along.quantiles:
            raise NotFolded(f"a quantile of {quantile} was not folded")
        lower, upper = self._along.quantiles[quantile]
        return np.asarray(lower), np.asarray(upper)

    def _equal_error_rate(self) -> float:
        """The one cut at which the rates meet is all that is looked at."""
        along = self._along
        sizes = {"positives": float(along.positives), "negatives": float(along.negatives)}
        return equal_error_rate(Row(lambda *_: along.crossing, 1, (), **sizes))

    def __getattr__(self, name: str) -> Any:
        raise NotFolded(f"{name} needs the samples of a ranking, which were folded")
