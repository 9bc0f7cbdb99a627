"""Curves of streamed samples that are kept with an evaluation."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from app.kernel.numerics.arrays import Array
from app.kernel.samples.losses import Codes
from app.kernel.samples.rankings import Ranking
from app.kernel.samples.scores import Scores
from app.kernel.streamed.along import Points
from app.kernel.streamed.bins import StreamedBins
from app.kernel.streamed.rows import NotStreamed


class KeptRanking(Ranking):
    """A ranking of which some cuts are known, and what curves say of all of them.

    Args:
        points: The cuts.
        auc: Area under the ROC curve, NaN where there is none.
        precision_sum: Trapezoid under precision over the members.
        bins: Of equal width, of probabilities.
    """

    def __init__(self, points: Points, auc: float, precision_sum: float, bins: StreamedBins | None) -> None:
        self.weights = None
        self._points, self._bins = points, bins
        self.__dict__.update(auc=np.asarray(auc), precision_sum=np.asarray(precision_sum))

    @property
    def left_out(self) -> int:
        """Cuts that are not known."""
        return self._points.n_cuts - len(self._points.thresholds)

    def cuts(self) -> tuple[Array, Array, Array]:
        """Return the stored cuts, with the empty one in front."""
        points = self._points
        first, rest = ([np.nan], [0.0], [0.0]), (points.thresholds, points.tp, points.fp)
        thresholds, tp, fp = (
            np.concatenate([one, np.array(more, float)]) for one, more in zip(first, rest, strict=True)
        )
        return thresholds, tp, fp

    def between(self, limits: Array) -> tuple[Array, Array, Array]:
        """Weight, sum of scores and weight of members in bins of equal width."""
        if self._bins is None:
            raise NotStreamed("scores that are no probabilities have no bins")
        return self._bins.between(limits)

    def __getattr__(self, name: str) -> Any:
        raise NotStreamed(f"{name} needs the samples of a ranking, which were streamed")


class KeptScores(Scores):
    """Scores of which curves are kept, and nothing else."""

    def __init__(self, rankings: Sequence[KeptRanking], top_label: StreamedBins | None) -> None:
        self.weights = None
        self.are_probabilities = top_label is not None
        self.n_classes = len(rankings)
        self._kept = rankings
        self.__dict__["top_label"] = KeptRanking(Points((), (), (), 0), np.nan, np.nan, top_label)

    def ranking(self, code: int) -> KeptRanking:
        """Return the ranking of a class."""
        return self._kept[code]

    def falling(self, code: int | None) -> tuple[Ranking, Codes]:
        """Return the ranking of a class, or of the top label; the order of the samples is not known."""
        return self.top_label if code is None else self._kept[code], np.empty(0, dtype=np.intp)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """From what ``StreamedScores.curves_as_json`` made."""
        made = []
        for one in stored["classes"]:
            auc, area = (np.nan if one[name] is None else one[name] for name in ("auc", "precision_sum"))
            points = Points(*(one[name] for name in Points._fields))
            made.append(KeptRanking(points, auc, area, StreamedBins.from_lists(one["bins"])))
        return cls(made, StreamedBins.from_lists(stored["top_label"]))

    def __getattr__(self, name: str) -> Any:
        raise NotStreamed(f"{name} needs the samples, which were streamed")
