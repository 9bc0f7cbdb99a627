"""Whether all means of the recalls agree on which of two runs is better."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

import numpy as np

from app.kernel.compare.cost_ratios import lorenz_order
from app.kernel.numerics.arrays import ratio, silently
from app.services.runs.comparison import Comparison


class Preferred(StrEnum):
    """The run of a pair that all means prefer, if there is one."""

    A = "a"
    B = "b"
    EQUAL = "equal"
    NEITHER = "neither"


_PREFERRED: Final = {1: Preferred.A, -1: Preferred.B, 0: Preferred.EQUAL, None: Preferred.NEITHER}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOrder:
    """The order of the recalls of two runs, as observed, without limits or tests.

    Attributes:
        preferred: `a` when its k smallest recalls add up to at least as much as those of b for every k: then every mean
            that rises with the recalls and falls with their inequality (arithmetic, geometric, harmonic, the smallest)
            finds a at least as good. `neither`: it depends on the mean.
    """

    a: UUID
    b: UUID
    preferred: Preferred


def recall_orders(comparison: Comparison) -> Sequence[RecallOrder] | None:
    """The order of every pair; None where a run has a class without actual samples, or has no
    classes.
    """
    if comparison.runs.task is not None:
        return None
    counts = comparison.runs.counts
    with silently():
        recalls = ratio(np.diagonal(counts, axis1=-2, axis2=-1), counts.sum(axis=-1))
    if np.isnan(recalls).any():
        return None
    records = comparison.runs.records
    return [
        RecallOrder(a=records[i].id, b=records[j].id, preferred=_PREFERRED[lorenz_order(recalls[i], recalls[j])])
        for i, j in comparison.pairs
    ]
