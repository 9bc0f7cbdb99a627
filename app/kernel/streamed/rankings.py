"""Rankings of streamed samples, of which values, bins and points of the curve are known and the samples are not."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from app.kernel.numerics.arrays import Array
from app.kernel.samples.rankings import Bins, DistinctCuts, Ranking, Row
from app.kernel.samples.scores import Scores
from app.kernel.streamed.along import MAX_FPR, QUANTILES, Along
from app.kernel.streamed.bins import BINS, FALLING
from app.kernel.streamed.rows import NotStreamed


class KnownRanking(Ranking):
    """A ranking as metrics read it, at their default parameters. What needs its samples is ``NotStreamed``.

    Args:
        known: Values of its attributes.
        bins: Weight, weighted sum of scores and weight of members (3, b) in bins of equal width, from the lowest up;
            None of scores that are no probabilities.
        parts: The same in bins of equal weight, where these were made.
    """

    def __init__(self, known: Mapping[str, float], bins: Array | None, parts: Array | None = None) -> None:
        self.weights, self.bins, self._parts = None, bins, parts
        # Attributes that are computed at first use are there already.
        self.__dict__.update({name: np.asarray(float(value)) for name, value in known.items()})

    def between(self, limits: Array) -> Bins:
        """The bins of equal width, as ``Ranking.between``; only those that were made."""
        if self.bins is None:
            raise NotStreamed("scores that are no probabilities have no bins")
        if not np.array_equal(limits, FALLING):
            raise NotStreamed(f"{BINS} bins of equal width were made, and no others")
        return Bins(*self.bins[:, ::-1])

    def in_parts(self, parts: int) -> Bins:
        """The bins of equal weight, as ``Ranking.in_parts``; only those that were made."""
        if self._parts is None or parts != BINS:
            raise NotStreamed(f"{BINS} bins of equally many samples were made, and no others")
        return Bins(*self._parts[:, ::-1])

    def __getattr__(self, name: str) -> Any:
        raise NotStreamed(f"{name} needs the samples of a ranking, which were streamed")


class StreamedRanking(KnownRanking):
    """A ranking whose samples went by in their order.

    Attributes:
        curve: What was found along it.
    """

    def __init__(self, curve: Along, bins: Array | None) -> None:
        self.curve = curve
        members, both = curve.members.weight, curve.has_both
        known = {
            "positives": members,
            "negatives": curve.others.weight,
            "losses": curve.lost,
            "auc": curve.area,
            "average_precision": curve.precision / members if members else np.nan,
            "precision_sum": curve.precision_trapezoid,
            "ks": curve.gap if both else np.nan,
            "resolution": curve.resolution,
        }
        super().__init__(known, bins)
        # What is looked up at one cut is so among the cuts that were marked.
        names = "thresholds", "tp", "fp", "tp_before", "fp_before", "lost"
        self._marked = KnownRanking({name: known[name] for name in ("positives", "negatives")}, None)
        self._marked.__dict__ |= dict(zip(names, curve.marks, strict=True))
        self.__dict__["equal_error_rate"] = self._marked.equal_error_rate
        self.__dict__["hulls"] = [curve.hull]

    @property
    def area_variance(self) -> float:
        """DeLong's variance of the area; NaN without members or others."""
        return sum(self.curve.variances)

    def area_between(self, low: float, high: float) -> Array:
        """Area under recall up to the false positive rate that was looked at."""
        if (low, high) != (0.0, MAX_FPR):
            raise NotStreamed(f"the area was summed up to {MAX_FPR} from 0, not to {high} from {low}")

        def within(row: Row) -> float:
            edge = int(np.searchsorted(row.fp / row.negatives, high, side="right"))
            tpr_before, tpr = (float(side[edge]) / row.positives for side in (row.tp_before, row.tp))
            fpr_before, fpr = (float(side[edge]) / row.negatives for side in (row.fp_before, row.fp))
            inside = high * tpr_before - float(self._marked.lost[edge]) / row.positives
            return inside + 0.5 * (high - fpr_before) ** 2 / (fpr - fpr_before) * (tpr - tpr_before)

        return self._marked.each_row(within)

    def member_quantile(self, quantile: float) -> tuple[Array, Array]:
        """Scores of the members at one of the quantiles that were looked at."""
        if quantile not in QUANTILES:
            raise NotStreamed(f"a quantile of {quantile} was not looked at")
        return self._marked.member_quantile(quantile)

    def as_json(self) -> dict[str, Any]:
        """The points of its curves that are kept, for ``KeptRanking``."""
        areas = {name: float(getattr(self, name)) for name in _AREAS}
        return {
            **{name: getattr(self.curve.points, name).tolist() for name in _POINTS},
            "n_cuts": self.curve.n_cuts,
            **{name: None if np.isnan(area) else area for name, area in areas.items()},
            "bins": None if self.bins is None else self.bins.tolist(),
        }


# Areas that curves are shown with.
_AREAS = ("auc", "precision_sum")
# Columns of the cuts that are kept, and what is in front of them.
_POINTS = {"thresholds": np.nan, "tp": 0.0, "fp": 0.0}


class KeptRanking(KnownRanking):
    """A ranking that was kept with an evaluation: some cuts, and what curves say of all of them.

    Attributes:
        left_out: Cuts that are not known.
    """

    def __init__(self, stored: Mapping[str, Any]) -> None:
        known = {name: np.nan if stored[name] is None else stored[name] for name in _AREAS}
        super().__init__(known, _array(stored["bins"]))
        self._cuts = DistinctCuts(*(np.array([first, *stored[name]]) for name, first in _POINTS.items()))
        self.left_out = int(stored["n_cuts"]) - len(stored["tp"])

    def cuts(self) -> DistinctCuts:
        """The stored cuts, with the empty one in front."""
        return self._cuts


class KeptScores(Scores):
    """Scores of which curves are kept, and nothing else."""

    def __init__(self, rankings: Sequence[KeptRanking], top_label: Array | None) -> None:
        self.weights = None
        self.are_probabilities = top_label is not None
        self.n_classes, self._kept = len(rankings), rankings
        self.__dict__["top_label"] = KnownRanking({}, top_label)

    def ranking(self, code: int | None) -> KeptRanking:
        """The ranking of a class."""
        if code is None:
            raise NotStreamed("of all scores in one order nothing is kept")
        return self._kept[code]

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """From what ``StreamedScores.curves_as_json`` made."""
        return cls([*map(KeptRanking, stored["classes"])], _array(stored["top_label"]))

    def __getattr__(self, name: str) -> Any:
        raise NotStreamed(f"{name} needs the samples, which were streamed")


def _array(stored: Sequence[Sequence[float]] | None) -> Array | None:
    return None if stored is None else np.array(stored)
