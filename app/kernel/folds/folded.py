"""What is left of folded samples, in the form that metrics take."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.losses import LossSums
from app.kernel.folds.ranking import FoldedRanking, NotFolded
from app.kernel.folds.runs import Run, merged
from app.kernel.metrics.families.probabilities.ranking import partial_roc_auc
from app.kernel.numerics.arrays import Array, lazy
from app.kernel.samples.rankings.ranking import Ranking
from app.kernel.samples.scores import Scores

_MAX_FPR = float(partial_roc_auc.card.defaults["max_fpr"])
# The box plots of phi.
_QUARTILES = 0.25, 0.5, 0.75


class Order(NamedTuple):
    """Runs of one class, and runs of the other one of two that are read the other way round."""

    direct: Sequence[Run]
    mirrored: Sequence[Run]


class FoldedScores(Scores):
    """What a model said about samples of K classes, without the samples: metrics that need none of them again take it
    as they take ``Scores``, and the others raise ``NotFolded``.

    Attributes:
        confusion: Counts (K, K), actual classes as rows; predicted is the most probable class, the first of equals.
        ties: Rows with equals at the top.
        clipped: Samples with a probability of the actual class so small that log loss takes another.

    Args:
        confusion: See above.
        ties: See above.
        sums: What was added up.
        orders: Of each class.
        budget: Bytes of memory for reading them.
    """

    def __init__(
        self, confusion: NDArray[np.int64], ties: int, sums: LossSums, orders: Sequence[Order], budget: int
    ) -> None:
        counts = confusion.sum(axis=1)
        self.confusion, self.ties, self.sums = confusion.copy(), ties, sums
        self.n_classes, self.n_samples = len(confusion), int(counts.sum())
        self.clipped = int(sums.counts[-1].sum())
        self.weights = None
        self._folded: dict[int, FoldedRanking] = {}
        self._orders, self._budget, self._counts = orders, budget, counts
        self.__dict__.update(losses=sums.losses(), phi_sums=sums.phi(), actual=counts.astype(np.float64))

    @property
    def rankings(self) -> list[Ranking]:
        """Those of all classes."""
        return [self.ranking(code) for code in range(self.n_classes)]

    def ranking(self, code: int) -> FoldedRanking:
        """The samples by falling probability of a class; they go by once."""
        made = self._folded.get(code)
        if made is None:
            positives = int(self._counts[code])
            blocks = merged(*self._orders[code], self._budget)
            made = FoldedRanking(blocks, positives, self.n_samples - positives, _MAX_FPR, _QUARTILES)
            self._folded[code] = made
        return made

    @lazy
    def pair_losses(self) -> Array:
        """Of two classes."""
        if self.n_classes > 2:
            raise NotFolded("pairs of more than two classes need the samples, which were folded")
        return np.diag([float(ranking.losses) for ranking in self.rankings])[:, ::-1]

    def __getattr__(self, name: str) -> Any:
        raise NotFolded(f"{name} needs the samples, which were folded")
