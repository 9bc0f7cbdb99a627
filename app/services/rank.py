"""Leaderboards of a dataset: order, intervals, groups that cannot be separated, and the luck of the winner."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from functools import partial
from itertools import combinations
from math import isfinite, isnan, nan
from typing import Any
from uuid import UUID

import numpy as np

from app.domain.errors import IncomparableRuns, InvalidExpression, NotComparable, OutOfReach
from app.domain.evaluation import (
    DatasetRef,
    EvaluationName,
    EvaluationQuery,
    EvaluationRecord,
    ModelRef,
    Standing,
    ValueCondition,
)
from app.domain.expressions.expressions import parse_for_any_classes, refuse_about_sample, refuse_unless_proportion
from app.domain.inputs.kinds import KINDS
from app.domain.members import LEFT_OUT, number
from app.domain.named_metrics import HEADLINE, RANKED
from app.domain.slices import refuse_unknown_slices
from app.domain.wording import did_you_mean
from app.domain.wording import number as worded
from app.kernel.compare.rankings import fresh_limits, level_of_largest, may_be_best, winner_optimism, with_others
from app.kernel.metrics.card import Inputs, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Expression, grows, is_improper, is_list, is_of_slices, of_probabilities
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import Alternative, chosen_seed
from app.kernel.uncertainty.intervals import ProportionInterval
from app.services.estimands import Better, Estimand, Preference, preference, ranked_by, stored_key
from app.services.estimates.estimate import Estimate, LimitSettings, NoLimits
from app.services.estimates.estimates import estimate, work_of
from app.services.estimates.run_data import RunData, run_data, single_value
from app.services.ports import EvaluationStore
from app.services.processes.compute import ComputePool
from app.services.runs.aligned import Runs
from app.services.runs.comparison import Comparison, joint_adjustment, proper_scores, ranks_of
from app.services.runs.differences import OF_SIZES
from app.services.runs.matrix_draws import CommonPrevalence, InferenceSettings
from app.services.runs.pairing import KeptSamples, is_scored, missing_outputs, read_labels, read_outputs

# Judged by matrices with classes as rows, so that class shares can be compared.
_OF_CLASSES = (None, Task.DECISIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardQuery:
    """A request for a leaderboard. A version or split of the dataset that is None stands for all of them.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardLine:
    """The latest evaluation of one model version.

    Attributes:
        rank: 1 is best; equal values share a rank; `null` without a value.
        low: End of the interval; both are `null` where there is none.
        method: How the interval was made.
        separable_from_best: Is it worse than the first? With the level of the board no such claim about any two of its
            runs is false. `null`: cannot be said.
        may_be_best: Is it one of those among which the best of the runs that are shown is, with the level of the board?
        n_samples: `null` of a matrix of rates, or of weights without their samples.
        group: Runs of one group cannot be told apart from the best of it, by the same claims; 1 is the first.
        reason: Why there is no value or no interval.
    """

    rank: int | None
    evaluation: EvaluationName
    model: ModelRef
    created_at: datetime
    n_samples: float | None
    value: float | None
    low: float | None = None
    high: float | None = None
    method: str | None = None
    separable_from_best: bool | None = None
    may_be_best: bool | None = None
    group: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardWinner:
    """The winner's curse: the best of many is partly the luckiest.

    Attributes:
        among: How many runs it is the best of; those that are not shown count.
        low: Lower limit that allows for the run having been picked as the best; of a loss that is `high`.
        high: Upper limit.
        expected_optimism: By how much the value is expected to overstate the run.
        corrected_value: What to expect on new samples.
        fresh_low: Lower limit of the value on a fresh test set of as many samples.
        fresh_high: Upper limit.
    """

    value: float
    among: int
    low: float | None
    high: float | None
    expected_optimism: float
    corrected_value: float
    fresh_low: float | None
    fresh_high: float | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardDesign:
    """Design of the intervals and groups; empty where nothing was drawn.

    Attributes:
        paired: Is it known which predictions of the runs are of the same sample?
        draws: Draws of all runs; 0 where they are too large.
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
    """A line whose value has a sampling error, with the metric for its classes, and what is said of it by the names of
    fields of its line.
    """

    place: int
    value: float
    record: EvaluationRecord
    estimand: Estimand
    run: RunData
    said: dict[str, Any] = field(default_factory=dict)


def rank_candidates(
    query: LeaderboardQuery,
    better: Preference,
    records: Sequence[EvaluationRecord],
    kept: KeptSamples,
    stored: Mapping[UUID, float | None] | None = None,
    beyond: Sequence[float | None] = (),
) -> Leaderboard:
    """Order runs by value, best first, and say how sure the order is.

    Values of a metric that is ``stored`` are known by the id of the run. The best was chosen among further runs too,
    whose values are ``beyond``; None of those that were removed.
    """
    estimands = [single_value(query.metric, record) for record in records]
    runs = [run_data(record, kept.samples.get(record.id)) for record in records]
    found = [value_of(*each, kept, stored) for each in zip(records, estimands, runs, strict=True)]
    scores = better.score(np.array([value for value, _ in found], dtype=np.float64))
    # Those without a value last; equal ones stay as they came, latest first.
    order: list[int] = np.lexsort((-scores, np.isnan(scores))).tolist()
    beyond = [*(value for place in order[query.limit :] if (value := found[place][0]) is not None), *beyond]
    order = order[: query.limit]
    ranks = ranks_of(scores[order])
    lines, entrants = list[LeaderboardLine](), list[_Entrant]()
    for line, place in enumerate(order):
        record, estimand, (value, reason) = records[place], estimands[place], found[place]
        if isinstance(estimand, Estimand) and value is not None and reason is None:
            entrants.append(_Entrant(line, value, record, estimand, runs[place]))
        lines.append(
            LeaderboardLine(
                rank=ranks[line],
                evaluation=EvaluationName.of(record),
                model=record.model,
                created_at=record.created_at,
                n_samples=record.n_counted,
                value=value,
                reason=reason,
            )
        )
    board = Leaderboard(
        dataset=query.dataset,
        metric=query.metric,
        better=better.better,
        level=query.level,
        items=(),
        notes=_notes(query, entrants, [records[place] for place in order]),
    )
    if entrants:
        board = _judged(board, better, entrants, kept, query, beyond)
    for entrant in entrants:
        lines[entrant.place] = replace(lines[entrant.place], **entrant.said)
    return replace(board, items=tuple(lines))


def value_of(
    record: EvaluationRecord,
    estimand: Estimand | str,
    run: RunData,
    kept: KeptSamples,
    stored: Mapping[UUID, float | None] | None,
) -> tuple[float | None, str | None]:
    """Return the value of a run, as it is ``stored`` by the id of the run, or computed where values are not; and why it
    has none, or takes no part in what is said of all together.
    """
    if isinstance(estimand, str):
        return None, estimand
    at_hand = not estimand.scored or run.has_outputs
    value = None if stored is None else stored[record.id]
    if stored is None and at_hand:
        try:
            refuse_unknown_slices(estimand.expression, run.source)
        except InvalidExpression as error:
            return None, error.detail
        value = number(run.values(estimand)[0])
    if value is None:
        if not (at_hand if stored is None else not estimand.scored or is_scored(record)):
            return None, f"{estimand.text} {missing_outputs(record)}"
        return None, (NoLimits.UNDEFINED_FOR_SAMPLES if estimand.scored else NoLimits.UNDEFINED).value
    reason: str | None = run.uncounted
    if reason is None and not at_hand:
        too_many = "the runs have more samples than can be used together"
        reason = too_many if kept.too_many else f"it {missing_outputs(record)}"
    return value, None if reason is None else f"no interval: {reason}"


def _notes(
    query: LeaderboardQuery, entrants: Sequence[_Entrant], records: Sequence[EvaluationRecord]
) -> tuple[str, ...]:
    notes = []
    if len({frozenset(record.labels) for record in records}) > 1:
        notes.append("the runs do not all have the same classes: their values may not mean the same")
    elif len(entrants) > 1 and not entrants[0].estimand.insensitive and entrants[0].record.task in _OF_CLASSES:
        runs = [entrant.record for entrant in entrants]
        shares = [run.counts.sum(axis=1)[np.argsort(run.labels)] / run.n_samples for run in runs]
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
    if query.where and records:
        notes.append(
            f"only model versions whose latest evaluation has {' and '.join(map(str, query.where))} are ranked; limits "
            "and groups do not take into account that they were chosen by their values"
        )
    return tuple(notes)


def _judged(
    board: Leaderboard,
    better: Preference,
    entrants: Sequence[_Entrant],
    kept: KeptSamples,
    query: LeaderboardQuery,
    beyond: Sequence[float | None],
) -> Leaderboard:
    """Return the board with what can be said of all together, and put the limits of each run to it."""
    settings = LimitSettings(level=query.level, proportions=query.proportion_interval, alternative=query.alternative)
    for entrant, own in zip(entrants, _estimates(entrants, settings), strict=True):
        limits = {"low": number(own.low), "high": number(own.high), "method": own.method}
        entrant.said.update(limits if own.reason is None else {"reason": f"no interval: {own.reason}"})
    side = None if query.alternative is Alternative.TWO_SIDED else query.alternative
    board = replace(board, design=LeaderboardDesign(level=query.level, alternative=side))
    if len(entrants) < 2:
        return board
    seed = chosen_seed(query.seed, *(entrant.record.counts for entrant in entrants))
    try:
        comparison = _compared(entrants, better, kept, InferenceSettings(level=query.level, seed=seed))
    except (IncomparableRuns, NotComparable) as error:
        return replace(board, notes=(*board.notes, f"which runs may be the best is not known: {error.detail}"))
    drawn, paired = comparison.drawn(0), comparison.runs.pairing.paired
    design = replace(board.design, paired=paired, draws=0 if drawn is None else len(drawn), seed=seed)
    notes = [] if paired else [_INDEPENDENT]
    board = replace(board, design=design, notes=(*board.notes, *notes))
    _separate(entrants, comparison, board.level)
    scores = comparison.drawn_scores(0, 0)
    if scores is None:
        why = "of too many samples or classes to be resampled" if drawn is None else "undefined in too many draws"
        if drawn is None and entrants[0].estimand.is_of_slices:
            why = "picked from several slices, of which nothing is drawn"
        return replace(board, notes=(*board.notes, f"which runs may be the best is not known: the metric is {why}"))
    return replace(board, winner=_winner(better, entrants, scores, settings, beyond, seed))


_INDEPENDENT = (
    "runs are compared as if they were independent; on one test set this is cautious: with sample ids fewer may be the "
    "best"
)


def _compared(
    entrants: Sequence[_Entrant], better: Preference, kept: KeptSamples, settings: InferenceSettings
) -> Comparison:
    """Return all differences of the runs as they are.

    Raises:
        IncomparableRuns: they have different classes, or groups that do not fit, or the first is none of them.
        NotComparable: the metric is best somewhere in its range.
    """
    if better.better is Better.NEAREST:
        raise NotComparable("runs on both sides of the ideal can be equally good")
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
    if len(meant) > 1:
        raise IncomparableRuns("they do not have the same classes")
    if entrants[0].place > 0:
        # Of the others none is ahead of a run of which nobody knows how far off it is.
        raise IncomparableRuns("the first has no interval")
    runs = Runs.align(records).pair(kept)
    if not runs.of_one_size and grows(entrants[0].estimand.expression):
        raise IncomparableRuns(OF_SIZES)
    estimands = [entrants[0].estimand]
    pairs = [*combinations(range(len(entrants)), 2)]
    # Groups that do not fit are refused here.
    _ = runs.groupings
    return Comparison(runs, estimands, settings, pairs=pairs, prevalence=CommonPrevalence())


def _separate(entrants: Sequence[_Entrant], comparison: Comparison, level: float) -> None:
    """Say who is worse, by claims that are adjusted as those of a comparison of all pairs."""
    adjusted = joint_adjustment(comparison, [comparison.differences(0)])[0][0]
    p_of = dict(zip(comparison.pairs, adjusted.tolist(), strict=True))
    leader, group = 0, 1
    for place, entrant in enumerate(entrants):
        if p_of.get((leader, place), 1.0) < 1.0 - level:
            leader, group = place, group + 1
        p = p_of.get((0, place), nan if np.isnan(adjusted).all() else 1.0)
        if not isnan(p):
            entrant.said.update(separable_from_best=p < 1.0 - level, group=group)


def _winner(
    better: Preference,
    entrants: Sequence[_Entrant],
    scores: Array,
    settings: LimitSettings,
    beyond: Sequence[float | None],
    seed: int,
) -> LeaderboardWinner:
    """Return the luck of the first from draws (D, R), and say which runs may be the best."""
    estimates = better.score(np.array([entrant.value for entrant in entrants]))
    for entrant, possible in zip(entrants, may_be_best(scores, estimates, settings.level).tolist(), strict=True):
        entrant.said["may_be_best"] = possible
    first, value = entrants[0], entrants[0].value
    if beyond:
        scores = with_others(scores, len(beyond), seed)
        # Of what was removed nothing is known: it counts as one like the others.
        others = better.score(np.array(beyond, dtype=np.float64))
        estimates = np.concatenate([estimates, np.where(np.isnan(others), estimates.mean(), others)])
    luck = winner_optimism(scores, estimates)
    optimism = luck if better.better is Better.HIGHER else -luck
    # The end of the luck has limits that hold for the largest of all deviations, the other one those of the run alone.
    far = replace(settings, level=level_of_largest(scores, settings.level), alternative=Alternative.TWO_SIDED)
    near = replace(settings, alternative=Alternative.TWO_SIDED)
    lucky, own = (estimate([first.estimand], first.run, one)[0][0] for one in (far, near))
    low, high = (lucky.low, own.high) if better.better is Better.HIGHER else (own.low, lucky.high)
    fresh = fresh_limits(value - optimism, (low, high), (value - own.low, own.high - value))
    # A value keeps to its range.
    bottom, top = (end if bound is None else bound for bound, end in zip(first.estimand.bounds, fresh, strict=True))
    fresh = max(fresh[0], bottom), min(fresh[1], top)
    return LeaderboardWinner(
        value=value,
        among=estimates.size,
        low=number(low),
        high=number(high),
        expected_optimism=optimism,
        corrected_value=value - optimism,
        fresh_low=number(fresh[0]),
        fresh_high=number(fresh[1]),
        message=_luck(estimates.size, value, value - optimism, fresh),
    )


def _estimates(entrants: Sequence[_Entrant], settings: LimitSettings) -> list[Estimate]:
    """Return each run with its own limits."""
    if sum(work_of(entrant.estimand, entrant.run, settings) for entrant in entrants) > 1.0:
        return [Estimate(value=nan, level=settings.level, reason=NoLimits.TOO_MANY_RUNS)] * len(entrants)
    return [estimate([entrant.estimand], entrant.run, settings)[0][0] for entrant in entrants]


def _luck(runs: int, value: float, corrected: float, fresh: tuple[float, float]) -> str:
    """Return how much of the value of the best run is luck, and what new samples would show, in words."""
    found, expected = worded(value), worded(corrected)
    if isfinite(fresh[0]) and isfinite(fresh[1]):
        between = f"; as many as here would show {worded(fresh[0])} to {worded(fresh[1])}"
    else:
        between = ""
    if found == expected:
        return f"Being the best of {runs} runs has hardly raised its value: expect {expected} on new samples{between}."
    return f"The best of {runs} runs was partly lucky: expect {expected} on new samples, not {found}{between}."


# Model versions of a dataset up to which anything but a stored metric is computed for all of them.
MOST_COMPUTED = 300
# Datasets that an unknown name is held against, and how alike the nearest has to be.
_MOST_LOOKED_AT, _NEAR = 1000, 0.7
# Any stored overall metric: asked for when the order is not that of a stored one.
_ANY_METRIC = HEADLINE[0]


def _ranked_by(query: LeaderboardQuery) -> tuple[Expression, Preference, str | None]:
    """Return the metric, what is better, and the key that it is stored under, if it is. Raises InvalidExpression: the
    metric is none, or cannot say what is better.
    """
    expression = parse_for_any_classes(query.metric, inputs=frozenset(Inputs))
    refuse_about_sample(expression, query.metric)
    if query.proportion_interval is not ProportionInterval.WILSON:
        refuse_unless_proportion(expression, query.metric)
    better = preference(expression)
    if better is None:
        raise NotComparable(f"{query.metric} only describes, or mixes opposite directions: it cannot rank runs")
    if is_list(expression):
        raise NotComparable(
            f"{query.metric} is one value for each class, which has no order: name a class, or take "
            f"min({query.metric}) or mean({query.metric})"
        )
    # A name that means one thing for classes and another elsewhere is stored under several keys.
    stored = better.better is not Better.NEAREST and query.metric not in catalogue().shadowed
    return expression, better, stored_key(expression) if stored else None


@dataclass(frozen=True, slots=True)
class LeaderboardService:
    """Ranks the latest evaluation of each model version."""

    store: EvaluationStore
    _: KW_ONLY
    compute: ComputePool

    async def rank(self, project: str, query: LeaderboardQuery) -> Leaderboard:
        """The best ``limit`` of a dataset.

        Raises:
            InvalidExpression: the metric is none, or cannot say what is better.
            OutOfReach: it is not stored, and there are too many model versions to compute it for all.
        """
        expression, better, key = _ranked_by(query)
        standings = await self._standings(project, query, better, key, MOST_COMPUTED + 1)
        are_more = len(standings) > MOST_COMPUTED
        if key is None and are_more:
            raise OutOfReach(
                f"{query.metric} is not stored with the evaluations, and computing it is for datasets of at most "
                f"{MOST_COMPUTED} model versions; rank by an overall metric"
            )
        standings = standings[:MOST_COMPUTED]
        if not are_more and all(one.value is None for one in standings):
            # With some kinds of input it is not stored.
            key = None
        known = f"{'more than ' if are_more else ''}{len(standings)}"
        is_cut = len(standings) > query.limit
        beyond: list[float | None] = [one.value for one in standings[query.limit :] if key and one.value is not None]
        if not query.where:
            beyond += [None] * await self.store.former_models(project, query.dataset)
        standings = standings[: query.limit] if key else standings
        found = await self.store.get_many(project, [one.evaluation.id for one in standings])
        # Some may have been deleted since.
        records = [found[one.evaluation.id] for one in standings if one.evaluation.id in found]
        stored = {one.evaluation.id: one.value for one in standings} if key else None
        sliced = is_of_slices(expression)
        if of_probabilities(expression) or sliced or any(record.task is not None for record in records):
            whole = [one for one in records if sliced or is_scored(one)]
            try:
                kept = await read_outputs(
                    self.store, project, whole, query.metric, scored=False, advice="rank by an overall metric"
                )
            except OutOfReach:
                if key is None:
                    raise
                kept = KeptSamples(too_many=True)
        else:
            kept = await read_labels(self.store, project, records)
        board = await self.compute.run(partial(rank_candidates, query, better, records, kept, stored, beyond))
        if is_cut:
            note = (
                f"of {known} model versions the first {query.limit} are shown: which may be the best is said of these"
            )
            board = replace(board, notes=(*board.notes, note))
        if board.winner is not None and are_more:
            more = f"{board.winner.message} There are more model versions: the best {MOST_COMPUTED} are counted."
            return replace(board, winner=replace(board.winner, message=more))
        return board if records else replace(board, notes=(await self._of_nothing(project, query),))

    async def leader(self, project: str, query: LeaderboardQuery) -> UUID | None:
        """Return the best of several runs by a metric that is stored with them; None where it is not, or there is one.

        Raises:
            InvalidExpression: as `rank`.
        """
        _, better, key = _ranked_by(query)
        first = await self._standings(project, query, better, key, 2) if key else ()
        return first[0].evaluation.id if len(first) > 1 and first[0].value is not None else None

    async def _standings(
        self, project: str, query: LeaderboardQuery, better: Preference, key: str | None, limit: int
    ) -> tuple[Standing, ...]:
        return await self.store.leaderboard(
            project,
            query.dataset,
            key or _ANY_METRIC,
            limit=limit,
            higher_is_better=better.better is not Better.LOWER,
            where=query.where,
        )

    async def usual_metric(self, project: str, dataset: DatasetRef) -> str:
        """Return the metric that a dataset is ranked by where none is named, from the kind of its latest run."""
        query = EvaluationQuery(dataset=dataset.name, dataset_version=dataset.version, split=dataset.split, limit=1)
        latest = await self.store.page(project, query)
        of_units = [one.id for one in latest.items if KINDS[one.input.kind].units is not None]
        records = await self.store.get_many(project, of_units) if of_units else {}
        return next((ranked_by(record) for record in records.values()), RANKED)

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
        return f"there is no dataset {dataset.name!r}" + did_you_mean([*map(repr, near)])
