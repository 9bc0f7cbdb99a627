"""States of streamed samples: they take batches, merge in any order, and end in the form that metrics take."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.along import (
    Along,
    AlongWeights,
    CutByCut,
    FoldedRanking,
    Weighed,
    WeightedSide,
    along_stretch,
    along_weighed,
    parts_of,
    top_label_stretches,
    weighted_parts_of,
)
from app.kernel.folds.entries import Groups, NotFolded, WeightTotals
from app.kernel.folds.groups import GroupedLosses
from app.kernel.folds.joint import MOST_CLASSES, KnownArea, Rows, Together, together, worth_of_rows
from app.kernel.folds.logistic import Fit, fitted
from app.kernel.folds.runs import InOrder, Looked, Run, SortedRuns, Stretch, placed, readers_of, stretches
from app.kernel.folds.sums import FoldedBins, FoldedTopLabel, LossSums
from app.kernel.metrics.families.score_ranking import partial_roc_auc
from app.kernel.numerics.arrays import Array, Mask, lazy
from app.kernel.samples.losses import CLIP, Codes
from app.kernel.samples.rankings import Ranking
from app.kernel.samples.scores import Scores

# What a sample with a weight takes where the order is read, in so many times what a key takes, and how many digits of
# its weight and of its square take as much as that.
_WEIGHED, _DIGITS = 2, 4
# Products of squares of weights below the first with squares of their sums are added up exactly; of a class that weighs
# at least the second those that matter are no subnormal numbers.
_HEAVIEST, _LIGHTEST_CLASS = 2.0**100, 2.0**-100


class Fold(ABC):
    """Samples of K classes that go by in batches, of which the order is kept in sorted runs.

    States of parts are merged in any order and give the same answers, bit for bit. A state can be pickled; its files go
    with it by their paths, and belong to whom it is merged into. It deletes its files at the end of a ``with``.

    Attributes:
        classes: K.
        budget: Bytes of memory, about, that the order may take; more goes into files.
        grouped: Do samples have groups?
        weighted: Do they have weights?

    Raises:
        ValueError: there are fewer than two classes, or samples have groups and weights.
    """

    def __init__(self, classes: int, budget: int, *, grouped: bool = False, weighted: bool = False) -> None:
        if classes < 2:
            raise ValueError(f"expected at least two classes, got {classes}")
        if grouped and weighted:
            raise ValueError("samples in groups do not fold with weights")
        self.classes, self.budget, self.grouped = classes, budget, grouped
        self._totals = WeightTotals(classes) if weighted else None

    @property
    def weighted(self) -> bool:
        """Do samples have weights?"""
        return self._totals is not None

    @property
    @abstractmethod
    def rows(self) -> int:
        """Samples so far."""

    @property
    def bytes_of_groups(self) -> int:
        """Bytes in memory for sums within groups, as of when they were looked at last."""
        return 0

    @property
    @abstractmethod
    def _stores(self) -> Sequence[SortedRuns]:
        """All that hold runs."""

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """Take in another state of the same classes, which is not to be used any more.

        Raises:
            ValueError: it has another number of classes.
        """

    def close(self) -> None:
        """Delete the files."""
        for store in self._stores:
            store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _reading_budget(self) -> int:
        """Bytes of memory for reading the order, as if keys were alone."""
        if self._totals is not None:
            digits = sum(grid.size for grid in self._totals.grids())
            return self.budget // (_WEIGHED + digits // _DIGITS)
        return self.budget // 2 if self.grouped else self.budget

    def _check_mergeable(self, other: "Fold") -> None:
        """Raises ValueError: another state has another number of classes, or one of them alone has groups."""
        if other.classes != self.classes:
            raise ValueError(f"states of {self.classes} and of {other.classes} classes cannot be merged")
        if other.grouped != self.grouped:
            raise ValueError("states with groups and without cannot be merged")
        if other.weighted != self.weighted:
            raise ValueError("states with weights and without cannot be merged")

    def _merge_weights(self, other: "Fold") -> None:
        if self._totals is not None and other._totals is not None:
            self._totals.merge(other._totals)

    def _weigh(self, codes: Codes, weights: Array | None) -> None:
        if self._totals is not None and weights is not None:
            self._totals.add(weights, codes)

    def _release(self) -> None:
        """Sort what came in last, and give back the memory of what comes in.

        Raises:
            ValueError: there is no sample, or those of a class weigh too little.
        """
        if not self.rows:
            raise ValueError("expected at least one sample")
        if self._totals is not None and any(0 < weight < _LIGHTEST_CLASS for weight in self._totals.by_class()[0]):
            raise ValueError("the weights of a class must add up to 0, or to at least 2^-100")
        for store in self._stores:
            store.release()

    def _check_groups(self, groups: Groups | None, size: int) -> None:
        """Raises ValueError: there are groups where there are to be none, or the other way round, or too few."""
        if (groups is not None) != self.grouped or (groups is not None and groups.shape != (size,)):
            expected = f"the groups of {size} samples" if self.grouped else "samples without groups"
            raise ValueError(f"expected {expected}")

    def _weights(self, weights: Array | None, size: int) -> Array | None:
        """Weights (n) of samples.

        Raises:
            ValueError: there are some where there are to be none, or the other way round, or too few, or one is no
                number of 0 or more, below 2^100.
        """
        if (weights is not None) != self.weighted or (weights is not None and weights.shape != (size,)):
            expected = f"the weights of {size} samples" if self.weighted else "samples without weights"
            raise ValueError(f"expected {expected}")
        if weights is None:
            return None
        given = np.asarray(weights, dtype=np.float64)
        if size and not (given.min() >= 0.0 and given.max() < _HEAVIEST):
            raise ValueError("weights must be numbers of 0 or more, below 2^100")
        # Adding 0 makes 0 of -0.
        return given + 0.0

    def _codes(self, actual: NDArray[Any]) -> Codes:
        """Codes (n) of classes as indices.

        Raises:
            ValueError: they are no whole numbers in 0..K-1.
        """
        if actual.dtype.kind not in "biu":
            raise ValueError(f"class codes must be whole numbers, got {actual.dtype}")
        codes = actual.astype(np.intp, copy=False)
        if codes.size and not (codes.min() >= 0 and codes.max() < self.classes):
            raise ValueError(f"class codes must lie in 0..{self.classes - 1}")
        return codes


_MAX_FPR = float(partial_roc_auc.card.defaults["max_fpr"])
# The box plots of phi.
_QUARTILES = 0.25, 0.5, 0.75
# Weights that are not at hand: whoever asks whether there are some is told that there are.
_AWAY = np.zeros(0)


class Order(NamedTuple):
    """Runs of one class, and runs of the other one of two that are read the other way round."""

    direct: Sequence[Run]
    mirrored: Sequence[Run]


class FoldedSamples(Scores):
    """What is left of folded samples of K classes: their numbers, and the orders, which go by once.

    Attributes:
        grouped: Do samples have groups?
        sums_of_groups: What these hold, of probabilities.
        top_label_bins: Of the highest probability, of probabilities.
    """

    _binned = True
    sums_of_groups: GroupedLosses | None = None
    top_label_bins: FoldedTopLabel | None = None

    def __init__(
        self,
        counts: Sequence[int],
        stretches: Callable[[int], Iterable[Stretch]],
        in_order: InOrder = map,
        *,
        grouped: bool = False,
        totals: WeightTotals | None = None,
    ) -> None:
        self.grouped = grouped
        self.n_classes, self.n_samples = len(counts), int(sum(counts))
        self.weights = None if totals is None else _AWAY
        self._folded: dict[int, FoldedRanking] = {}
        self._fits: dict[tuple[int, float, bool], Fit] = {}
        self._stretches, self._counts, self._in_order, self._totals = stretches, counts, in_order, totals
        sizes = counts if totals is None else [*map(float, totals.by_class()[0])]
        self.__dict__["actual"] = np.array(sizes, dtype=np.float64)

    @property
    def worth(self) -> tuple[int, float] | None:
        """Of weighted samples, how many count and how many of one weight are worth as much."""
        return None if self._totals is None else (int(self._totals.used.sum()), self.effective_samples)

    @lazy
    def effective_samples(self) -> float:
        """How many samples there are, or the effective number of weighted ones."""
        return float(self.n_samples) if self._totals is None else self._totals.effective(range(self.n_classes))

    @lazy
    def effective_members(self) -> Array:
        """The same (K) of each class."""
        totals = self._totals
        if totals is None:
            return self.actual
        return np.array([totals.effective([code]) for code in range(self.n_classes)])

    def effective_sides(self, code: int) -> tuple[float, float]:
        """The same of the members of a class, and of all others."""
        others = [other for other in range(self.n_classes) if other != code]
        if self._totals is None:
            return float(self._counts[code]), float(self.n_samples - self._counts[code])
        return self._totals.effective([code]), self._totals.effective(others)

    @property
    def rankings(self) -> list[Ranking]:
        """Those of all classes."""
        return [self.ranking(code) for code in range(self.n_classes)]

    def ranking(self, code: int) -> FoldedRanking:
        """The samples by falling score of a class; they go by once."""
        made = self._folded.get(code)
        if made is None:
            whole = self._counted(code) if self._totals is None else self._weighed(code, self._totals)
            self._folded[code] = made = FoldedRanking(whole, _MAX_FPR)
        return made

    def _counted(self, code: int) -> CutByCut:
        positives = int(self._counts[code])
        sizes = positives, self.n_samples - positives
        begun = partial(Along, *sizes, _MAX_FPR, _QUARTILES, self.n_classes, binned=self._binned, grouped=self.grouped)
        whole = begun()
        for along in self._in_order(partial(along_stretch, begun), placed(self._stretches(code))):
            whole.merge(along)
        return whole

    def _weighed(self, code: int, totals: WeightTotals) -> CutByCut:
        grids, used = totals.grids(), totals.used
        units = [grids[0].whole(weight) for weight in totals.by_class()[0]]
        members = WeightedSide(units[code], int(used[code]))
        others = WeightedSide(sum(units) - units[code], int(used.sum()) - members.used)
        begun = partial(
            AlongWeights,
            grids[0],
            (members, others),
            _MAX_FPR,
            _QUARTILES,
            self.n_classes,
            self.n_samples,
            binned=self._binned,
        )
        whole = begun()
        stretches = (Weighed(stretch, grids) for stretch in self._stretches(code))
        for along in self._in_order(partial(along_weighed, begun), placed(stretches)):
            whole.merge(along)
        return whole

    def curves_as_json(self) -> dict[str, Any]:
        """What is kept of the curves of all classes, for `KeptScores`."""
        classes = [self.ranking(code).curves_as_json() for code in range(self.n_classes)]
        return {
            "classes": classes,
            "top_label": None if self.top_label_bins is None else self.top_label_bins.as_lists(),
        }

    def fit(self, code: int, clip: float, *, sloped: bool) -> Fit:
        """Logistic recalibration of a class; its order goes by again, some times."""
        if self.weights is not None:
            raise NotFolded("lines are fitted to folded samples of one weight")
        asked = code, clip, sloped
        if asked not in self._fits:
            sizes = int(self._counts[code]), self.n_samples - int(self._counts[code])
            points = self.ranking(code).points
            look = partial(self._look, code)
            self._fits[asked] = fitted(look, points, sizes, clip, sloped=sloped)
        return self._fits[asked]

    @property
    def unfitted(self) -> Mask:
        """As of ``Scores``; of the lines that were asked for."""
        found = np.zeros(self.n_classes, dtype=np.bool_)
        for (code, *_), one in self._fits.items():
            found[code] |= not one.ended
        return found

    def recalibrated(self, code: int, clip: float, *, sloped: bool) -> Array:
        """As of ``Scores``."""
        found = self.fit(code, clip, sloped=sloped)
        return np.array([found.a, found.b])

    @lazy
    def ends(self) -> Array:
        """As of ``Scores``."""
        return np.stack([self.fit(code, CLIP, sloped=False).ends for code in range(self.n_classes)])

    def _look(self, code: int, of: Callable[[Stretch], Looked]) -> Iterable[Looked]:
        """What comes of each stretch of a class, in turn."""
        return self._in_order(of, self._stretches(code))

    @lazy
    def pair_losses(self) -> Array:
        """Of two classes."""
        if self.n_classes > 2:
            raise NotFolded("pairs of more than two classes need the samples, which were folded")
        return np.diag([float(ranking.losses) for ranking in self.rankings])[:, ::-1]

    def __getattr__(self, name: str) -> Any:
        raise NotFolded(f"{name} needs the samples, which were folded")


class FoldedOrder(FoldedSamples):
    """Any real scores, without the samples: metrics of the order take it as they take ``Scores``.

    Args:
        counts: Samples of each class.
        stretches: All samples by falling score of a class.
        in_order: Has stretches looked at, here or elsewhere, and gives what comes of them in turn.
        grouped: Do samples have groups?
        totals: What the samples weigh, if they have weights.
    """

    are_probabilities = False
    _binned = False


class FoldedScores(FoldedSamples):
    """What a model said about samples of K classes, without the samples: metrics that need none of them again take it
    as they take ``Scores``, and the others raise ``NotFolded``.

    Attributes:
        confusion: Counts (K, K), actual classes as rows; predicted is the most probable class, the first of equals.
        ties: Rows with equals at the top.
        clipped: Samples with a probability of the actual class so small that log loss takes another.
        kept_rows: Some rows, of which the places are known.

    Args:
        confusion: See above.
        ties: See above.
        sums: What was added up.
        bins: Of the highest probability of each sample; members are the correctly classified ones.
        orders: Of each class.
        order_of_top_label: Runs of highest probabilities, and of class 1 of two, which say both.
        budget: Bytes of memory for reading them.
        in_order: Has stretches of them looked at, here or elsewhere, and gives what comes of them in turn.
        totals: What the samples weigh, if they have weights.
        rows: Some of those of more than two classes; None where samples have groups or weights.
    """

    def __init__(
        self,
        confusion: NDArray[np.int64],
        ties: int,
        sums: LossSums,
        bins: FoldedBins,
        orders: Sequence[Order],
        order_of_top_label: Order,
        budget: int,
        in_order: InOrder = map,
        totals: WeightTotals | None = None,
        *,
        rows: Rows | None = None,
    ) -> None:
        of_groups = sums.by_group()
        super().__init__(
            confusion.sum(axis=1).tolist(),
            lambda code: stretches(*orders[code], budget),
            in_order,
            grouped=of_groups is not None,
            totals=totals,
        )
        self.sums_of_groups = of_groups
        self.confusion, self.ties, self.sums = confusion.copy(), ties, sums
        self.clipped = int(sums.counts[-1].sum())
        self.__dict__.update(losses=sums.losses(), phi_sums=sums.phi())

        def parts() -> FoldedBins:
            found = top_label_stretches(*order_of_top_label, budget)
            if totals is None:
                return parts_of(found, self.n_samples, in_order)
            return weighted_parts_of(found, totals, in_order)

        self.__dict__["top_label"] = self.top_label_bins = FoldedTopLabel(bins, parts)
        self.kept_rows = None if rows is None or not rows.codes.size else rows
        self._look_together = partial(_looked_together, orders, self.n_samples, budget, in_order, self.kept_rows)

    @lazy
    def together(self) -> Together:
        """What one threshold for all classes says; all orders go by once more.

        Raises:
            NotFolded: there are too many classes.
        """
        if self.n_classes > MOST_CLASSES:
            raise NotFolded(f"the orders of more than {MOST_CLASSES} classes are not read side by side")
        if self.weights is not None:
            raise NotFolded("one threshold for all classes is looked at where samples weigh the same")
        return self._look_together()

    @lazy
    def worth_of_rows(self) -> Array | None:
        """For how many samples each of the kept rows stands; None where there are none, or that is not known."""
        placed = self.together.placed
        if placed is None:
            return None
        known = [
            None if one.area_variances is None else KnownArea(float(one.auc), *one.area_variances)
            for one in map(self.ranking, range(self.n_classes))
        ]
        return worth_of_rows(placed, [int(size) for size in self.actual], known)

    @lazy
    def common_threshold(self) -> tuple[Array, Array]:
        """As of ``Scores``."""
        # Twice the pairs are a whole number, and so are those of actual classes, half of which count.
        return np.asarray((self.together.twice_lost + self.n_samples**2) / 2), self.together.precision


def _looked_together(
    orders: Sequence[Order], n_samples: int, budget: int, in_order: InOrder, rows: Rows | None
) -> Together:
    return together([readers_of(*order) for order in orders], n_samples, budget, in_order, rows)
