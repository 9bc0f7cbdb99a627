"""Where samples of groups stand in a ranking."""

import numpy as np

from app.kernel.folds.groups.sums import GroupSums
from app.kernel.folds.orders.stretches import Cuts, InGroups


def placements(samples: InGroups, cuts: Cuts, above: tuple[int, int]) -> GroupSums:
    """Of others and members (0 and 1) in each group, twice the samples of the other side above them, ties once.

    Args:
        samples: Of a stretch.
        cuts: All of the stretch.
        above: Members and others with higher scores.
    """
    tp, fp = above[0] + np.cumsum(cuts.members), above[1] + np.cumsum(cuts.others)
    at = cuts.scores.size - 1 - np.searchsorted(cuts.scores[::-1], samples.scores)
    twice = np.where(samples.members, (2 * fp - cuts.others).take(at), (2 * tp - cuts.members).take(at))
    return GroupSums(1).add(samples.groups, samples.members.astype(np.int64), twice[None], samples.times)
