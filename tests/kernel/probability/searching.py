"""Searches for decision rules, with what is wanted in one call."""

from typing import Any

from app.kernel.decide.class_weights import WeightRule, search_weights
from app.kernel.decide.rules import Correction, Placed, Wanted
from app.kernel.decide.thresholds import ThresholdRule, search_threshold
from app.kernel.metrics.expression import Expression
from app.kernel.samples.scores import Scores


def by_threshold(
    scores: Scores, objective: Expression, *, positive: int = 1, guarantee: float | None = None, **facts: Any
) -> ThresholdRule:
    facts = {"correction": Correction.OPTIMISM, "resamples": 100, **facts}
    return search_threshold(
        scores, Wanted(objective=Placed(objective), **facts), positive=positive, guarantee=guarantee
    )


def by_weights(scores: Scores, objective: Expression, *, starts: int = 8, sweeps: int = 20, **facts: Any) -> WeightRule:
    return search_weights(scores, Wanted(objective=Placed(objective), **facts), starts=starts, sweeps=sweeps)
