"""Who is best on a dataset, how sure that is, and who cannot be told apart from the best."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from app.domain.errors import InvalidExpression, NotComparable, OutOfReach
from app.domain.evaluation import EvaluationRecord, Standing
from app.domain.expression_check import parse_for_any_classes
from app.kernel.card import Inputs, Scope
from app.kernel.expression import Expression, Measure, of_probabilities
from app.services.compute import ComputePool
from app.services.pairing import read_samples
from app.services.ports import EvaluationStore, PairedLabels
from app.services.ranking import Candidate, Leaderboard, LeaderboardQuery, rank_candidates
from app.services.targets import Better, Preference, preference

# Model versions of a dataset up to which anything but a stored metric is computed for all of them.
MOST_COMPUTED = 300
# Any stored overall metric: asked for when the order is not that of a stored one.
_ANY_METRIC = "accuracy"


class LeaderboardService:
    """Ranks the latest evaluation of each model version."""

    def __init__(self, store: EvaluationStore, *, labels: PairedLabels, compute: ComputePool) -> None:
        self._store = store
        self._labels = labels
        self._compute = compute

    async def rank(self, project: str, query: LeaderboardQuery) -> Leaderboard:
        """The best ``limit`` of a dataset.

        Raises:
            InvalidExpression: the metric is none, or cannot say what is better.
            OutOfReach: it is not stored, and there are too many model versions to compute it for all.
        """
        expression = parse_for_any_classes(query.metric, inputs=frozenset(Inputs))
        better = preference(expression)
        if better is None:
            raise NotComparable(f"{query.metric} only describes, or mixes opposite directions: nothing is better by it")
        key = _stored_key(expression, better)
        if key is None and of_probabilities(expression):
            raise InvalidExpression(
                f"{query.metric} is not stored with the evaluations: of the metrics of probabilities the overall ones "
                "with their default parameters can be ranked by"
            )
        standings = await self._store.leaderboard(
            project,
            query.dataset,
            key or _ANY_METRIC,
            limit=query.limit if key else MOST_COMPUTED + 1,
            higher_is_better=better.better is not Better.LOWER,
        )
        if key is None and len(standings) > MOST_COMPUTED:
            raise OutOfReach(
                f"{query.metric} is not stored with the evaluations, and computing it is for datasets of at most "
                f"{MOST_COMPUTED} model versions; rank by an overall metric"
            )
        identifiers = [standing.evaluation.id for standing in standings]
        records = await self._store.get_many(project, identifiers)
        samples = await read_samples(self._labels, project, list(records.values())) if key else {}
        candidates = _candidates(standings, records, stored=key is not None)
        return await self._compute.run(
            lambda: rank_candidates(query, better, candidates, samples), heavy=len(candidates) > 0
        )


def _stored_key(expression: Expression, better: Preference) -> str | None:
    """Key of the overall metric whose stored values give the order, if there is one."""
    if not isinstance(expression, Measure) or better.better is Better.NEAREST:
        return None
    card = expression.metric.card
    stored = card.scope is Scope.OVERALL and dict(expression.parameters) == card.defaults
    return card.key if stored else None


def _candidates(
    standings: Sequence[Standing], records: Mapping[UUID, EvaluationRecord], *, stored: bool
) -> list[Candidate]:
    """Those that were not deleted since the order was asked for."""
    return [
        Candidate(records[standing.evaluation.id], standing.value if stored else None, stored)
        for standing in standings
        if standing.evaluation.id in records
    ]
