"""Where limits of folded metrics come from: closed forms and cells."""

from collections.abc import Iterator

import numpy as np

from app.kernel.folds.cells import AT_CUTS, IN_BINS, IN_BINS_OF_TOP_LABEL, IN_PARTS_OF_TOP_LABEL, NEAR_MEDIAN, Draw
from app.kernel.folds.folded import FoldedSamples
from app.kernel.folds.metrics import Folded, folded_metrics, linearised
from app.kernel.metrics.card import Scope
from app.kernel.uncertainty.influence import Linearisation


def codes_of(one: Folded, classes: int) -> list[int | None]:
    return [*range(classes)] if one.metric.card.scope is Scope.CLASS else [None]


def looked_at(classes: int, *, weighted: bool = False) -> list[Folded]:
    """All that fold without another look at the samples."""
    return [one for one in folded_metrics(classes, weighted=weighted) if classes > one.again]


def lines_of(scores: FoldedSamples) -> Iterator[tuple[Folded, int | None, Linearisation]]:
    """All that have a sampling error without another look at the samples."""
    for one in looked_at(scores.n_classes, weighted=scores.worth is not None):
        for code in codes_of(one, scores.n_classes):
            line = linearised(scores, one.metric, code)
            if line is not None and np.isfinite(line.value):
                yield one, code, line


def told_limits(scores: FoldedSamples) -> bytes:
    """All that limits are made of, bit by bit."""
    cells = [draw.cells(scores, code) for draw in draws_of(scores) for code in range(scores.n_classes)]
    drawn = [(one.scores.y.tolist(), one.scores.probabilities.tolist(), one.counts.tolist()) for one in cells]
    lines = [(one.metric.key, code, line) for one, code, line in lines_of(scores)]
    return repr([*lines, *drawn]).encode()


def draws_of(scores: FoldedSamples) -> list[Draw]:
    of_bins = [NEAR_MEDIAN, IN_BINS, IN_BINS_OF_TOP_LABEL, IN_PARTS_OF_TOP_LABEL]
    return [AT_CUTS, *(of_bins if scores.are_probabilities else [])]
