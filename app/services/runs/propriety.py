"""Runs on which a score of probabilities that is not proper and one that is disagree.

The expectation of a proper score is best for the true probabilities. Others can be raised by probabilities that are
surer than is true, so a run that is better by them may be the worse one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from app.domain.findings import Finding
from app.domain.wording import number
from app.kernel.metrics.card import INPUTS_OF_CLASSES, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import is_improper
from app.kernel.numerics.arrays import Array
from app.services.estimands import Estimand, parse_estimands
from app.services.runs.aligned import Runs
from app.services.runs.draws.resampling import CommonPrevalence

# Values that differ by less are equal: other sums round otherwise.
_ROUNDING = 1e-12
_MOST_PAIRS = 50


@dataclass(frozen=True, slots=True, eq=False)
class _Score:
    """What one score says of all runs: values (R), and how good they are."""

    name: str
    values: Array
    goodness: Array

    def prefers(self, one: int, other: int) -> bool:
        """Is one run better than another by it?"""
        return bool(self.goodness[one] > self.goodness[other] + _ROUNDING)


def improper_preferences(
    runs: Runs, estimands: Sequence[Estimand], pairs: Sequence[tuple[int, int]], prevalence: CommonPrevalence
) -> tuple[Finding, ...]:
    """A finding for every improper score that prefers a run which a proper score finds worse.

    Args:
        runs: With the probabilities of their samples where an estimand needs them.
        estimands: What the runs are compared on.
        pairs: Which of them.
        prevalence: Where.
    """
    improper = [estimand for estimand in estimands if is_improper(estimand.expression)]
    if not improper or not pairs:
        return ()
    proper = parse_estimands(proper_scores(), runs.labels, runs.positive, inputs=INPUTS_OF_CLASSES)
    references = [*_scores(runs, proper, prevalence)]
    found = [_finding(score, references, runs, pairs) for score in _scores(runs, improper, prevalence)]
    return tuple(finding for finding in found if finding is not None)


def proper_scores() -> list[str]:
    """Those that a report shows first."""
    cards = (metric.card for metric in catalogue().of_scope(Scope.OVERALL))
    return [card.key for card in cards if card.inference.proper and card.inference.headline]


def _scores(runs: Runs, estimands: Sequence[Estimand], prevalence: CommonPrevalence) -> Iterator[_Score]:
    found = runs.values(estimands, prevalence.shares if prevalence.reachable else None)
    for estimand, values in zip(estimands, found, strict=True):
        if estimand.preference is not None and prevalence.reaches(estimand):
            # Of a metric of every class the mean: what one class gains another may lose.
            means = values.mean(axis=1)
            yield _Score(estimand.text, means, estimand.preference.score(means))


def _finding(
    score: _Score, references: Sequence[_Score], runs: Runs, pairs: Sequence[tuple[int, int]]
) -> Finding | None:
    found = []
    for pair in pairs:
        best, rival = pair if score.prefers(*pair) else pair[::-1]
        against = [one for one in references if one.prefers(rival, best)]
        if score.prefers(best, rival) and against:
            found.append((best, rival, against))
    if not found:
        return None
    best, rival, against = found[0]
    others = " and ".join(f"{one.name} ({_both(one, best, rival)})" for one in against)
    more = f" So it is for {len(found) - 1} more pair{'s' * (len(found) > 2)} of runs." if len(found) > 1 else ""
    return Finding.warning(
        "improper_score_disagrees",
        f"{score.name} prefers {runs.name(best)} to {runs.name(rival)} ({_both(score, best, rival)}), but {others} "
        f"prefer{'s' * (len(against) == 1)} {runs.name(rival)}. {score.name} is no proper score: probabilities that "
        f"are not the true ones can do better by it.{more}",
        metric=score.name,
        pairs=[
            {
                "prefers": runs.records[best].id,
                "rather_than": runs.records[rival].id,
                "values": {
                    each.name: {"prefers": each.values[best], "rather_than": each.values[rival]}
                    for each in (score, *references)
                    if np.isfinite(each.values[[best, rival]]).all()
                },
            }
            for best, rival, _ in found[:_MOST_PAIRS]
        ],
    )


def _both(score: _Score, best: int, rival: int) -> str:
    return " against ".join(number(score.values[run]) for run in (best, rival))
