"""Points of curves that are kept while an order goes by: as many as it takes that no other lies far from them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from app.kernel.folds.entries import Counts
from app.kernel.folds.not_folded import NotFolded
from app.kernel.folds.sums.bins import FoldedBins
from app.kernel.numerics.arrays import Array
from app.kernel.samples.rankings.ranking import Ranking
from app.kernel.samples.scores import Codes, Scores

_MOST_STEPS, _FEWEST_STEPS = 500, 20
# Steps over all classes together, about.
_STEPS = 1000
# How many steps of the rates a step of the number predicted is wide, as a share of that number.
_WIDTH = 10
# Standard errors between two kept ranks next to a median, and how far out these go.
_STEP, _REACH = 0.125, 5.0


class Points(NamedTuple):
    """Some cuts of a ranking from the highest score down, and how many there are in all."""

    thresholds: Sequence[float]
    tp: Sequence[float]
    fp: Sequence[float]
    n_cuts: int


# Numbers of members, of others and of both together, or what these weigh; each rising.
Levels = Sequence[Counts | Array]


def levels_of_curves(positives: int, negatives: int, n_classes: int) -> Levels:
    """Members and others have equal steps, 500 of them for two classes; of both together a step is 1 in 50 of their
    number. Between two cuts at these levels neither rate changes by more than a step, unless it does so in one cut, nor
    does the number predicted.

    Args:
        positives: Members of all samples.
        negatives: Others.
        n_classes: K, which share the points: each class has steps of 1 in 1000 / K, from 20 to 500.
    """
    steps = _steps(n_classes)
    rates = [[-(-size * step // steps) for step in range(1, steps + 1)] for size in (positives, negatives)]
    predicted = _growing(positives + negatives, steps)
    return [np.unique(np.array(levels, dtype=np.int64)) for levels in (*rates, predicted)]


def levels_of_weights(positives: float, negatives: float, n_samples: int, n_classes: int) -> Levels:
    """The same of what members and others weigh, where so many samples of the mean weight are as much together."""
    steps = _steps(n_classes)
    rates = [np.arange(1, steps + 1) * size / steps for size in (positives, negatives)]
    for levels, size in zip(rates, (positives, negatives), strict=True):
        levels[-1] = size
    predicted = np.array(_growing(n_samples, steps)) * ((positives + negatives) / n_samples)
    return [np.unique(levels) for levels in (*rates, predicted)]


def _steps(n_classes: int) -> int:
    return min(max(_STEPS // n_classes, _FEWEST_STEPS), _MOST_STEPS)


def _growing(size: int, steps: int) -> list[int]:
    found = [1]
    while found[-1] < size:
        found.append(found[-1] + max(found[-1] * _WIDTH // steps, 1))
    return found


def levels_near_median(positives: int) -> Levels:
    """Members by steps of a part of the standard error of their median, in ranks, as far as resamples go."""
    error = 0.5 * positives**0.5
    ranks = np.ceil(0.5 * positives + error * np.arange(-_REACH, _REACH + _STEP, _STEP))
    ranks = np.append(ranks.clip(min(positives, 1), positives), positives)
    none = np.zeros(0, dtype=np.int64)
    return [np.unique(ranks.astype(np.int64)), none, none]


class KeptPoints:
    """The first cut at which the members, the others or both together reach the next of some numbers. Which cuts are
    kept depends on these counts only.
    """

    def __init__(self, levels: Levels, above: tuple[float, float] = (0, 0)) -> None:
        """Begin above all cuts, or below some.

        Args:
            levels: The numbers.
            above: Members and others of higher cuts, at which others look.
        """
        passed = (*above, sum(above))
        self._levels = [one[np.searchsorted(one, low, "right") :] for one, low in zip(levels, passed, strict=True)]
        self._thresholds: list[float] = []
        self._counts: tuple[list[float], list[float]] = [], []
        self._n_cuts = 0

    def add(self, scores: Array, tp: Counts | Array, fp: Counts | Array) -> None:
        """Go on with the next lower scores (c), falling, and how many members and others have at least each."""
        self._n_cuts += scores.size
        kept = np.unique(np.concatenate([self._reached(0, tp), self._reached(1, fp), self._reached(2, tp + fp)]))
        self._thresholds += scores.take(kept).tolist()
        for side, counts in zip(self._counts, (tp, fp), strict=True):
            side += counts.take(kept).tolist()

    def _reached(self, which: int, counts: Counts | Array) -> Counts:
        levels = self._levels[which]
        there = int(np.searchsorted(levels, counts[-1], side="right"))
        self._levels[which] = levels[there:]
        return np.searchsorted(counts, levels[:there], side="left").astype(np.int64)

    def merge(self, other: Self) -> None:
        """Go on with the next lower scores, at which another has looked."""
        self._n_cuts += other._n_cuts
        self._thresholds += other._thresholds
        for own, more in zip(self._counts, other._counts, strict=True):
            own += more
        self._levels = other._levels

    def read(self) -> Points:
        """What there is so far."""
        return Points(self._thresholds, *self._counts, self._n_cuts)


class KeptRanking(Ranking):
    """A ranking of which some cuts are known, and what curves say of all of them.

    Args:
        points: The cuts.
        auc: Area under the ROC curve, NaN where there is none.
        precision_sum: Trapezoid under precision over the members.
        bins: Of equal width, of probabilities.
    """

    def __init__(self, points: Points, auc: float, precision_sum: float, bins: FoldedBins | None) -> None:
        self.weights = None
        self._points, self._bins = points, bins
        self.__dict__.update(auc=np.asarray(auc), precision_sum=np.asarray(precision_sum))

    @property
    def left_out(self) -> int:
        """Cuts that are not known."""
        return self._points.n_cuts - len(self._points.thresholds)

    def cuts(self) -> tuple[Array, Array, Array]:
        """Those that are known, with the empty one in front."""
        points = self._points
        first, rest = ([np.nan], [0.0], [0.0]), (points.thresholds, points.tp, points.fp)
        thresholds, tp, fp = (
            np.concatenate([one, np.array(more, float)]) for one, more in zip(first, rest, strict=True)
        )
        return thresholds, tp, fp

    def between(self, limits: Array) -> tuple[Array, Array, Array]:
        """Weight, sum of scores and weight of members in bins of equal width."""
        if self._bins is None:
            raise NotFolded("scores that are no probabilities have no bins")
        return self._bins.between(limits)

    def __getattr__(self, name: str) -> Any:
        raise NotFolded(f"{name} needs the samples of a ranking, which were folded")


class KeptScores(Scores):
    """Scores of which curves are kept, and nothing else."""

    def __init__(self, rankings: Sequence[KeptRanking], top_label: FoldedBins | None) -> None:
        self.weights = None
        self.are_probabilities = top_label is not None
        self.n_classes = len(rankings)
        self._kept = rankings
        self.__dict__["top_label"] = KeptRanking(Points((), (), (), 0), np.nan, np.nan, top_label)

    def ranking(self, code: int) -> KeptRanking:
        """That of a class."""
        return self._kept[code]

    def falling(self, code: int | None) -> tuple[Ranking, Codes]:
        """That of a class, or of the top label; the order of the samples is not known."""
        return self.top_label if code is None else self._kept[code], np.empty(0, dtype=np.intp)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """From what `curves_as_json` made."""
        made = []
        for one in stored["classes"]:
            auc, area = (np.nan if one[name] is None else one[name] for name in ("auc", "precision_sum"))
            points = Points(*(one[name] for name in Points._fields))
            made.append(KeptRanking(points, auc, area, _bins(one["bins"])))
        return cls(made, _bins(stored["top_label"]))

    def __getattr__(self, name: str) -> Any:
        raise NotFolded(f"{name} needs the samples, which were folded")


def _bins(stored: Sequence[Sequence[float]] | None) -> FoldedBins | None:
    if stored is None:
        return None
    weight, scores, members = map(np.array, stored)
    return FoldedBins(weight, scores, members)
