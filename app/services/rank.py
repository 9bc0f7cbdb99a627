"""Leaderboards of a dataset: order, intervals, groups that cannot be separated, and the luck of the winner."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from functools import partial
from math import nan
from uuid import UUID

import numpy as np

from app.domain.errors import InvalidExpression, NotComparable, OutOfReach
from app.domain.evaluation import DatasetRef, EvaluationQuery, EvaluationRecord, ModelRef, Standing, ValueCondition
from app.domain.expressions.expressions import parse_for_any_classes, refuse_about_sample, refuse_unless_proportion
from app.domain.inputs.kinds import KINDS
from app.domain.members import LEFT_OUT, number
from app.domain.named_metrics import HEADLINE, RANKED
from app.kernel.compare.rankings import confidence_set, separable_groups, winner_optimism
from app.kernel.metrics.card import Inputs, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import is_improper, of_probabilities
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import Alternative, seed_of
from app.kernel.uncertainty.intervals import ProportionInterval
from app.services.estimands import Better, Estimand, Preference, make_estimand, preference, ranked_by, stored_key
from app.services.estimates.estimate import Estimate, LimitSettings, NoLimits
from app.services.estimates.estimates import estimate, work_of
from app.services.estimates.methods.of_matrix import affordable_draws
from app.services.estimates.run_data import RunData, run_data
from app.services.ports import EvaluationStore, PairedLabels
from app.services.processes.compute import ComputePool
from app.services.runs.aligned import Runs
from app.services.runs.comparison import Comparison, proper_scores
from app.services.runs.draws.matrices import CommonPrevalence, InferenceSettings
from app.services.runs.pairing import (
    MOST_ENTRIES,
    KeptSamples,
    PairingMode,
    entries_of,
    is_scored,
    missing_outputs,
    read_labels,
)
from app.services.seeds import chosen_seed
from app.services.stored import inputs_of_all, stored_input

# Judged by matrices with classes as rows, so that class shares can be compared.
_OF_CLASSES = (None, Task.DECISIONS)
# With a smaller share of draws in which every run has a value, nothing is said about who can be told apart.
_FEWEST_DEFINED = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardQuery:
    """What is to be ranked. A version or split of the dataset that is None stands for all of them.

    Attributes:
        where: What stored values of an evaluation have to satisfy, or else it is left out.
    """

    dataset: DatasetRef
    metric: str
    where: tuple[ValueCondition, ...] = ()
    limit: int = 20
    level: float = 0.95
    proportion_interval: ProportionInterval = ProportionInterval.WILSON
    alternative: Alternative = Alternative.TWO_SIDED
    seed: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """The latest evaluation of a model version, with its stored value where the metric is stored."""

    record: EvaluationRecord
    value: float | None
    stored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardLine:
    """The latest evaluation of one model version.

    Attributes:
        rank: 1 is best; equal values share a rank; `null` without a value.
        low: End of the interval; both are `null` where there is none.
        method: How the interval was made.
        separable_from_best: Is it worse than the first beyond doubt, all runs considered together? `null`: cannot be
            said.
        group: Runs of one group cannot be told apart from the best of it; 1 is the first.
        reason: Why there is no value or no interval.
    """

    rank: int | None
    evaluation: UUID
    model: ModelRef
    dataset: DatasetRef
    created_at: datetime
    n_samples: float
    value: float | None
    low: float | None = None
    high: float | None = None
    method: str | None = None
    separable_from_best: bool | None = None
    group: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardWinner:
    """The winner's curse: the best of many is partly the luckiest."""

    value: float
    expected_optimism: float
    corrected_value: float
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardDesign:
    """How the intervals and groups were made; empty where nothing was drawn.

    Attributes:
        paired: Were the runs drawn sample by sample together?
        draws: Simulated matrices of all runs; 0 where they are too large.
        alternative: Where limits are one-sided; groups are always formed by two-sided ones.
    """

    paired: bool | None = field(default=None, metadata=LEFT_OUT)
    draws: int | None = field(default=None, metadata=LEFT_OUT)
    seed: int | None = field(default=None, metadata=LEFT_OUT)
    level: float | None = field(default=None, metadata=LEFT_OUT)
    alternative: Alternative | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderboard:
    """Model versions in order, and what a reader should know about them."""

    dataset: DatasetRef
    metric: str
    better: Better
    level: float
    items: tuple[LeaderboardLine, ...]
    winner: LeaderboardWinner | None = None
    design: LeaderboardDesign = LeaderboardDesign()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Entrant:
    """A line that takes part in the simulation, with the metric for its classes."""

    place: int
    record: EvaluationRecord
    estimand: Estimand
    run: RunData


def rank_candidates(
    query: LeaderboardQuery,
    better: Preference,
    candidates: Sequence[Candidate],
    kept: KeptSamples,
) -> Leaderboard:
    """Order candidates by value, best first, and say how sure the order is.

    Args:
        query: What is asked.
        better: Which values are better.
        candidates: The runs.
        kept: What is known of their samples.
    """
    estimands = [_estimand(query.metric, candidate.record) for candidate in candidates]
    runs = [run_data(candidate.record, kept.samples(candidate.record.id)) for candidate in candidates]
    found = [_value(*each) for each in zip(candidates, estimands, runs, strict=True)]
    order = _best_first([value for value, _ in found], better)[: query.limit]
    values = [found[place][0] for place in order]
    records = [candidates[place].record for place in order]
    lines = [
        LeaderboardLine(
            rank=None if found[place][0] is None else values.index(found[place][0]) + 1,
            evaluation=record.id,
            model=record.model,
            dataset=record.dataset,
            created_at=record.created_at,
            n_samples=record.n_samples,
            value=found[place][0],
            reason=found[place][1] or _no_interval(record, estimands[place], runs[place], kept),
        )
        for place, record in zip(order, records, strict=True)
    ]
    entrants = [
        _Entrant(line, candidates[place].record, estimand, runs[place])
        for line, (place, estimand) in enumerate((place, estimands[place]) for place in order)
        if isinstance(estimand, Estimand) and lines[line].value is not None
        if candidates[place].record.samples_independent and not runs[place].lacks_weights
        if (not estimand.scored or runs[place].has_outputs)
    ]
    board = Leaderboard(
        dataset=query.dataset,
        metric=query.metric,
        better=better.better,
        level=query.level,
        items=tuple(lines),
        notes=(*_notes(entrants, records), *_chosen_by(query, lines)),
    )
    return _judged(board, better, entrants, kept, query) if entrants else board


def _estimand(metric: str, record: EvaluationRecord) -> Estimand | str:
    """The metric for the classes of a run, or why it has none."""
    try:
        estimand = make_estimand(metric, record.labels, record.positive, inputs_of_all([record]), *record.judged)
    except InvalidExpression as error:
        return error.detail
    return "a list over the classes has no order" if estimand.is_list else estimand


def _value(candidate: Candidate, estimand: Estimand | str, run: RunData) -> tuple[float | None, str | None]:
    if isinstance(estimand, str):
        return None, estimand
    value = candidate.value
    if not candidate.stored:
        if estimand.scored and not run.has_outputs:
            return None, f"{estimand.text} {missing_outputs(candidate.record)}"
        computed = float(run.values(estimand)[0])
        value = computed if np.isfinite(computed) else None
    if value is not None:
        return value, None
    if estimand.scored and not is_scored(candidate.record):
        return None, f"{estimand.text} {missing_outputs(candidate.record)}"
    return None, f"the metric is undefined for {'these samples' if estimand.scored else 'this matrix'}"


def _no_interval(
    record: EvaluationRecord,
    estimand: Estimand | str,
    run: RunData,
    kept: KeptSamples,
) -> str | None:
    """Why a run with a value takes no part in the simulation."""
    if record.is_grouped:
        return "no interval: its samples come in groups, and a ranking treats samples as independent"
    if run.lacks_weights:
        return f"no interval: {NoLimits.NO_WEIGHTS}"
    if isinstance(estimand, str) or not estimand.scored or run.has_outputs:
        return None
    if kept.outputs is None:
        return "no interval: the runs have more samples than can be used together"
    return f"no interval: it {missing_outputs(record)}"


def _best_first(values: Sequence[float | None], better: Preference) -> list[int]:
    """Places in order, those without a value last; equal ones stay as they came, latest first."""

    def key(place: int) -> tuple[bool, float]:
        value = values[place]
        return (True, 0.0) if value is None else (False, -float(better.score(np.array(value))))

    return sorted(range(len(values)), key=key)


def _notes(entrants: Sequence[_Entrant], records: Sequence[EvaluationRecord]) -> tuple[str, ...]:
    notes = []
    if len({record.labels for record in records}) > 1:
        notes.append("the runs do not all have the same classes: their values may not mean the same")
    elif len(entrants) > 1 and not entrants[0].estimand.insensitive and entrants[0].record.task in _OF_CLASSES:
        shares = [entrant.record.counts.sum(axis=1) / entrant.record.n_samples for entrant in entrants]
        if not all(np.allclose(share, shares[0], atol=1e-9) for share in shares):
            notes.append(
                "the classes are not equally frequent in all runs, and prevalence moves this metric: compare the runs "
                "by POST /v1/comparisons, which brings them to one prevalence"
            )
    if entrants and is_improper(entrants[0].estimand.expression):
        notes.append(
            f"{entrants[0].estimand.text} is no proper score: probabilities that are not the true ones can do better "
            f"by it; look at {' or '.join(proper_scores())} too"
        )
    if len({record.dataset for record in records}) > 1:
        notes.append("the runs are of several versions or splits of the dataset")
    return tuple(notes)


def _chosen_by(query: LeaderboardQuery, lines: Sequence[LeaderboardLine]) -> tuple[str, ...]:
    """What follows where only some take part, because of their values."""
    if not (query.where and lines):
        return ()
    conditions = " and ".join(map(str, query.where))
    return (
        f"only model versions whose latest evaluation has {conditions} are ranked; limits and groups do not take into "
        "account that they were chosen by their values",
    )


def _judged(
    board: Leaderboard, better: Preference, entrants: Sequence[_Entrant], kept: KeptSamples, query: LeaderboardQuery
) -> Leaderboard:
    """The board with intervals, and with groups where the runs can be simulated."""
    level = query.level
    settings = LimitSettings(level=level, proportions=query.proportion_interval, alternative=query.alternative)
    seed = chosen_seed(query.seed, *(entrant.record.counts for entrant in entrants))
    comparisons = _comparisons(entrants, kept, InferenceSettings(level=level, seed=seed))
    paired = comparisons[0].runs.pairing.paired
    lines = list(board.items)
    for entrant, own in zip(entrants, _estimates(entrants, settings), strict=True):
        lines[entrant.place] = _with_interval(lines[entrant.place], own)
    drawn = _joined([comparison.drawn(0) for comparison in comparisons])
    draws = 0 if drawn is None else len(drawn)
    side = None if query.alternative is Alternative.TWO_SIDED else query.alternative
    design = LeaderboardDesign(paired=paired, draws=draws, seed=seed, level=level, alternative=side)
    board = replace(board, items=tuple(lines), design=design)
    if drawn is None:
        scored = entrants[0].estimand.scored
        what = "too many samples and classes to resample" if scored else "too many classes for a simulation"
        note = f"{what}: which runs can be told apart is not known"
        return replace(board, notes=(*board.notes, note))
    if not paired and len(entrants) > 1:
        note = (
            "which runs can be told apart is judged as if they were independent; on one test set this is cautious: "
            "with sample ids more could be separated"
        )
        board = replace(board, notes=(*board.notes, note))
    return _grouped(board, better, entrants, drawn) if len(entrants) > 1 else board


def _comparisons(entrants: Sequence[_Entrant], kept: KeptSamples, settings: InferenceSettings) -> list[Comparison]:
    """The runs together where they have the same classes, and else each for itself; all of them as they are."""
    records = [entrant.record for entrant in entrants]
    meant = {
        (
            one.task,
            frozenset(one.labels),
            None if one.positive is None else one.labels[one.positive],
            tuple(one.decisions or ()),
        )
        for one in records
    }
    as_they_are = CommonPrevalence()
    if len(meant) == 1:
        runs = Runs.align(records).pair(kept)
        return [Comparison(runs, [entrants[0].estimand], settings, prevalence=as_they_are)]
    draws = affordable_draws(sum(record.counts.size for record in records), settings.draws)
    return [
        Comparison(
            Runs.align([entrant.record]).pair(kept, PairingMode.FALSE),
            [entrant.estimand],
            replace(settings, seed=seed_of(settings.seed, number), draws=draws),
            prevalence=as_they_are,
        )
        for number, entrant in enumerate(entrants)
    ]


def _joined(drawn: Sequence[Array | None]) -> Array | None:
    """Draws (D, R) of all runs from those (D, R, 1) of some at a time; None where some have none."""
    known = [draws[:, :, 0] for draws in drawn if draws is not None]
    fewest = min((len(draws) for draws in known), default=0)
    return np.concatenate([draws[:fewest] for draws in known], axis=1) if len(known) == len(drawn) else None


def _estimates(entrants: Sequence[_Entrant], settings: LimitSettings) -> list[Estimate]:
    """Each run with its own limits."""
    if sum(work_of(entrant.estimand, entrant.run, settings) for entrant in entrants) > 1.0:
        return [Estimate(value=nan, level=settings.level, reason=NoLimits.TOO_MANY_RUNS)] * len(entrants)
    return [estimate([entrant.estimand], entrant.run, settings)[0][0] for entrant in entrants]


def _with_interval(line: LeaderboardLine, own: Estimate) -> LeaderboardLine:
    if own.reason is None:
        return replace(line, low=number(own.low), high=number(own.high), method=own.method)
    return replace(line, reason=f"no interval: {own.reason}")


def _grouped(board: Leaderboard, better: Preference, entrants: Sequence[_Entrant], drawn: Array) -> Leaderboard:
    """Groups, who can be told from the first, and the winner's luck."""
    level = board.level
    scores = better.score(drawn)
    scores = scores[np.isfinite(scores).all(axis=1)]
    if len(scores) < _FEWEST_DEFINED * len(drawn):
        note = "the metric is undefined in too many simulated matrices: which runs can be told apart is not known"
        return replace(board, notes=(*board.notes, note))
    estimates = better.score(np.array([board.items[entrant.place].value for entrant in entrants], dtype=np.float64))
    may_be_best = confidence_set(scores, estimates, level)
    groups = separable_groups(scores, estimates, level)
    lines = list(board.items)
    for entrant, possible, group in zip(entrants, may_be_best.tolist(), groups.tolist(), strict=True):
        lines[entrant.place] = replace(lines[entrant.place], separable_from_best=not possible, group=group + 1)
    return replace(board, items=tuple(lines), winner=_winner(lines[entrants[0].place], better, scores, estimates))


def _luck(runs: int, value: float, corrected: float) -> str:
    """Return how much of the value of the best run is luck, in words."""
    found, expected = number(value), number(corrected)
    if found == expected:
        return f"Being the best of {runs} runs has hardly raised its value: expect {expected} on new samples too."
    return f"The best of {runs} runs was partly lucky: expect {expected} on new samples, not {found}."


def _winner(line: LeaderboardLine, better: Preference, scores: Array, estimates: Array) -> LeaderboardWinner | None:
    if better.better is Better.NEAREST or line.value is None:
        return None
    luck = winner_optimism(scores, estimates)
    optimism = luck if better.better is Better.HIGHER else -luck
    corrected = line.value - optimism
    return LeaderboardWinner(
        value=line.value,
        expected_optimism=optimism,
        corrected_value=corrected,
        message=_luck(estimates.size, line.value, corrected),
    )


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
