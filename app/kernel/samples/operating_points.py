"""What one rate is at the threshold where another has a given value, read off the cuts of a ranking.

Samples of one score are never split and nothing is interpolated: some threshold reaches the value on these samples.
Members and non-members only grow along the cuts, so most of them are never looked at.
"""

from bisect import bisect_right
from math import ceil

import numpy as np

from app.kernel.numerics.arrays import Array, ratio, silently
from app.kernel.samples.rankings.counts import Positions
from app.kernel.samples.rankings.ranking import Ranking

# Relative width within which a sum of weights reaches a limit: 0.9 of 10 samples are 9 of them.
_SLACK = 1e-12


def recall_at_specificity(ranking: Ranking, specificity: float) -> Array:
    """Highest recall (...) of the thresholds with at least this specificity; NaN without members or non-members."""
    within = _cuts_within(ranking, (1.0 - specificity + _SLACK) * ranking.negatives)
    members = np.where(within > 0, _counts(ranking, within - 1)[0], 0.0)
    return _where_both(ranking, ratio(members, ranking.positives))


def specificity_at_recall(ranking: Ranking, recall: float) -> Array:
    """Highest specificity (...) of the thresholds with at least this recall; NaN without members or non-members."""
    others = 0.0 if recall <= 0.0 else _counts(ranking, _cuts_short(ranking, recall))[1]
    return _where_both(ranking, ratio(ranking.negatives - others, ranking.negatives))


def precision_at_recall(ranking: Ranking, recall: float) -> Array:
    """Highest precision (...) of the thresholds with at least this recall, which is above 0; NaN without members."""
    needed = _needed(ranking, recall)[..., None]
    found = np.zeros(ranking.positives.shape)
    if ranking.at.size:
        block = ranking.part(int(_cuts_short(ranking, recall).min()), ranking.at.size)
        with silently():
            heights = np.where(block.tp >= needed, block.tp / (block.tp + block.fp), 0.0)
        found = np.maximum.reduce(heights, axis=-1)
    return np.where(ranking.positives > 0, found, np.nan)


def _needed(ranking: Ranking, recall: float) -> Array:
    return np.asarray((recall - _SLACK) * ranking.positives)


def _cuts_within(ranking: Ranking, allowed: Array) -> Positions:
    """How many cuts (...) have at most so many non-members."""
    if ranking.plain:
        at = ranking.at
        return np.asarray(bisect_right(range(at.size), float(allowed), key=lambda cut: at[cut] - cut))
    return np.asarray(np.count_nonzero(ranking.fp <= allowed[..., None], axis=-1))


def _cuts_short(ranking: Ranking, recall: float) -> Positions:
    """How many cuts (...) have fewer members than this recall takes."""
    needed = _needed(ranking, recall)
    if ranking.plain:
        return np.asarray(max(ceil(float(needed)) - 1, 0))
    return np.asarray(np.count_nonzero(ranking.tp < needed[..., None], axis=-1))


def _counts(ranking: Ranking, cuts: Positions) -> tuple[Array, Array]:
    """Members and non-members (...) at cuts (...); something where there is no such cut."""
    if not ranking.at.size:
        return np.zeros(cuts.shape), np.zeros(cuts.shape)
    place = np.clip(cuts, 0, ranking.at.size - 1)
    if ranking.plain:
        block = ranking.part(int(place), int(place) + 1)
        return block.tp[0], block.fp[0]
    found = [np.take_along_axis(values, place[..., None], axis=-1)[..., 0] for values in (ranking.tp, ranking.fp)]
    return found[0], found[1]


def _where_both(ranking: Ranking, values: Array) -> Array:
    return np.where((ranking.positives > 0) & (ranking.negatives > 0), values, np.nan)
