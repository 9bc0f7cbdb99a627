"""Lines of a leaderboard by a metric of probabilities: their values, intervals and joint draws, from the samples."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.domain.evaluation import EvaluationRecord
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.design import seed_of
from app.services.estimands import Estimand
from app.services.runs.contest import Terms
from app.services.runs.pairing import Bond, Pairing
from app.services.runs.scored_contest import OwnInterval, ScoredContest
from app.services.runs.scored_runs import ScoredRun


def judge_lines(
    runs: Sequence[tuple[EvaluationRecord, ScoredRun, Estimand]],
    pairing: Pairing | None,
    *,
    level: float,
    seed: int,
) -> tuple[Array | None, list[OwnInterval]]:
    """Draws (D, R) of the metric, joint where the runs are paired, and the interval of each run.

    Args:
        runs: Counts, not weights, each with the metric for its classes. Of paired runs the classes are in one order.
        pairing: How they belong together; None when their classes differ.
        level: Of the intervals.
        seed: Of the draws.
    """
    terms = Terms(level=level, seed=seed)
    if pairing is not None and pairing.paired:
        records, scored, estimands = zip(*runs, strict=True)
        counts = np.stack([record.counts for record in records]).astype(np.float64)
        contest = ScoredContest(scored, counts, estimands[:1], pairing, terms, records)
        drawn = contest.drawn[0]
        return None if drawn is None else drawn[:, :, 0], contest.intervals(0)[0]
    alone = []
    for number, (record, run, estimand) in enumerate(runs):
        own = replace(terms, seed=seed_of(seed, number))
        counts = record.counts[None].astype(np.float64)
        alone.append(
            ScoredContest([run], counts, [estimand], Pairing(Bond.NOTHING, "alone"), own, [record], among=len(runs))
        )
    intervals = [contest.intervals(0)[0][0] for contest in alone]
    drawn_apart = [drawn[:, 0, 0] for contest in alone if (drawn := contest.drawn[0]) is not None]
    if len(drawn_apart) < len(alone):
        return None, intervals
    fewest = min(len(drawn) for drawn in drawn_apart)
    return np.stack([drawn[:fewest] for drawn in drawn_apart], axis=1), intervals
