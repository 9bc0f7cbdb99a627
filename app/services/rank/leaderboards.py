"""Who is best on a dataset, how sure that is, and who cannot be told apart from the best."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from difflib import get_close_matches
from functools import partial
from uuid import UUID

from app.domain.errors import NotComparable, OutOfReach
from app.domain.evaluation import DatasetRef, EvaluationQuery, EvaluationRecord, Standing
from app.domain.expressions.check import parse_for_any_classes, refuse_about_sample, refuse_unless_proportion
from app.domain.inputs.kinds import KINDS
from app.domain.named_metrics import HEADLINE, RANKED
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import of_probabilities
from app.kernel.uncertainty.intervals import ProportionInterval
from app.services.estimands import Better, preference, stored_key
from app.services.kinds import ranked_by
from app.services.ports.evaluations import EvaluationStore, PairedLabels
from app.services.processes.compute import ComputePool
from app.services.rank.ranking import Candidate, Leaderboard, LeaderboardQuery, rank_candidates
from app.services.runs.reading import MOST_ENTRIES, KeptSamples, entries_of, is_scored, read_labels
from app.services.stored import stored_input

# Model versions of a dataset up to which anything but a stored metric is computed for all of them.
MOST_COMPUTED = 300
# Datasets that an unknown name is held against, and how alike the nearest has to be.
_MOST_LOOKED_AT, _NEAR = 1000, 0.7
# Any stored overall metric: asked for when the order is not that of a stored one.
_ANY_METRIC = HEADLINE[0]


@dataclass(frozen=True, slots=True)
class LeaderboardService:
    """Ranks the latest evaluation of each model version."""

    store: EvaluationStore
    _: KW_ONLY
    labels: PairedLabels
    compute: ComputePool

    async def rank(self, project: str, query: LeaderboardQuery) -> Leaderboard:
        """The best ``limit`` of a dataset.

        Raises:
            InvalidExpression: the metric is none, or cannot say what is better.
            OutOfReach: it is not stored, and there are too many model versions to compute it for all.
        """
        expression = parse_for_any_classes(query.metric, inputs=frozenset(Inputs))
        refuse_about_sample(expression, query.metric)
        if query.proportion_interval is not ProportionInterval.WILSON:
            refuse_unless_proportion(expression, query.metric)
        better = preference(expression)
        if better is None:
            raise NotComparable(f"{query.metric} only describes, or mixes opposite directions: it cannot rank runs")
        # A name that means one thing for classes and another elsewhere is stored under several keys.
        stored = better.better is not Better.NEAREST and query.metric not in catalogue().shadowed
        key = stored_key(expression) if stored else None
        standings = await self.store.leaderboard(
            project,
            query.dataset,
            key or _ANY_METRIC,
            limit=query.limit if key else MOST_COMPUTED + 1,
            higher_is_better=better.better is not Better.LOWER,
            where=query.where,
        )
        if key is None and len(standings) > MOST_COMPUTED:
            raise OutOfReach(
                f"{query.metric} is not stored with the evaluations, and computing it is for datasets of at most "
                f"{MOST_COMPUTED} model versions; rank by an overall metric"
            )
        identifiers = [standing.evaluation.id for standing in standings]
        records = await self.store.get_many(project, identifiers)
        candidates = _candidates(standings, records, stored=key is not None)
        kept = KeptSamples()
        if of_probabilities(expression) or any(record.task is not None for record in records.values()):
            kept = await self._outputs(project, query.metric, candidates, needed=key is None)
        elif key or any(record.is_weighted for record in records.values()):
            kept = await read_labels(self.labels, project, list(records.values()))
        board = await self.compute.run(partial(rank_candidates, query, better, candidates, kept))
        return board if candidates else replace(board, notes=(await self._of_nothing(project, query),))

    async def usual_metric(self, project: str, dataset: DatasetRef) -> str:
        """What a dataset is ranked by where no metric is named: it follows from the kind of its latest run."""
        query = EvaluationQuery(dataset=dataset.name, dataset_version=dataset.version, split=dataset.split, limit=1)
        latest = await self.store.page(project, query)
        of_units = [one.id for one in latest.items if KINDS[one.input.kind].units is not None]
        records = await self.store.get_many(project, of_units) if of_units else {}
        return next((ranked_by(stored_input(record)) for record in records.values()), RANKED)

    async def _of_nothing(self, project: str, query: LeaderboardQuery) -> str:
        """Why there is nothing to rank: conditions that nothing satisfies, a name that nobody used, or a version or
        split of a dataset that has none.
        """
        dataset = query.dataset
        if query.where and await self.store.leaderboard(project, dataset, _ANY_METRIC, limit=1, higher_is_better=True):
            return f"no latest evaluation of a model version has {' and '.join(map(str, query.where))}"
        page = await self.store.datasets(project, _MOST_LOOKED_AT, None)
        same = [one for one in page.items if one.name == dataset.name]
        if same:
            known = ", ".join(sorted({" ".join(filter(None, (one.version, one.split))) or "none" for one in same}))
            return f"no evaluation is of this version and split of {dataset.name!r}; known are {known}"
        near = get_close_matches(dataset.name, sorted({one.name for one in page.items}), n=1, cutoff=_NEAR)
        return f"there is no dataset {dataset.name!r}" + (f"; did you mean {near[0]!r}?" if near else "")

    async def _outputs(
        self, project: str, metric: str, candidates: Sequence[Candidate], *, needed: bool
    ) -> KeptSamples:
        """Probabilities of the runs that have some; without them when there are too many to look at."""
        records = [candidate.record for candidate in candidates if is_scored(candidate.record)]
        entries = entries_of(records)
        if entries <= MOST_ENTRIES:
            return KeptSamples.of(await self.labels.read_outputs(project, [record.id for record in records]))
        if needed:
            raise OutOfReach(
                f"{metric} is not stored with the evaluations, and computing it takes the probabilities of all their "
                f"samples: {entries} (samples times classes) are more than the {MOST_ENTRIES} that are used "
                "together; rank by an overall metric"
            )
        return KeptSamples(outputs=None)


def _candidates(
    standings: Sequence[Standing], records: Mapping[UUID, EvaluationRecord], *, stored: bool
) -> list[Candidate]:
    """Those that were not deleted since the order was asked for."""
    return [
        Candidate(records[standing.evaluation.id], standing.value if stored else None, stored)
        for standing in standings
        if standing.evaluation.id in records
    ]
