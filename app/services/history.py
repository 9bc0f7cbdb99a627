"""The history of a model on a dataset: its values over time, and where they changed beyond what chance does."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import pairwise
from math import isfinite
from typing import NamedTuple
from uuid import UUID, uuid5

import numpy as np

from app.domain.errors import IncomparableRuns, InvalidExpression, NotFound, OutOfReach
from app.domain.evaluation import DatasetRef, EvaluationName, EvaluationQuery, EvaluationRecord
from app.domain.expressions.expressions import parse_for_any_classes, refuse_about_sample, refuse_list
from app.domain.inputs.content import Content
from app.domain.members import LEFT_OUT, as_json, named
from app.domain.operations import Event, WebhookEvent
from app.domain.slices import refuse_unknown_slices
from app.domain.wording import number, run_title
from app.kernel.history import Change, History
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Sliced
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.intervals import two_sided_z
from app.services.estimands import Better, Estimand, make_estimand, part_of, ranked_by
from app.services.estimates.estimate import Estimate, LimitSettings
from app.services.estimates.estimates import estimate, work_of
from app.services.estimates.run_data import RunData, run_data
from app.services.ports import Announcer, EvaluationStore, PairedLabels
from app.services.processes.compute import ComputePool
from app.services.runs.aligned import Runs
from app.services.runs.causes import NOISE, Causes, causes_of, has_causes, said_causes
from app.services.runs.pairing import KeptSamples, read_labels, read_outputs
from app.services.stored import inputs_of_all, stored_input

# Evaluations of one series: their limits are made within seconds.
MOST_POINTS = 1000
LEVEL = 0.95
# Neighbours that share more of their samples than the first and less than the second are windows that overlap.
_SHARED, _SAME = 0.0, 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuery:
    """A request for the history of a model on a dataset.

    Attributes:
        metrics: None are those that such runs are ranked by.
        after: The last evaluation of the page before.
        newest: The last evaluations are shown, and not those from the first on.
    """

    model: str
    dataset: DatasetRef
    metrics: tuple[str, ...] = ()
    created_after: datetime | None = None
    limit: int = 50
    after: UUID | None = None
    newest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Range of a value of so many samples if nothing has changed since the last change, held over the series."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryValue:
    """A value with its limits.

    Attributes:
        expected: `null` of the first value after a change, and of a value without limits.
        reason: Why there is no value, or no interval.
    """

    value: float | None
    low: float | None
    high: float | None
    expected: Expected | None
    reason: str | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryItem:
    """One evaluation of a series."""

    evaluation: UUID
    version: str | None
    created_at: datetime
    n_samples: float
    metrics: Mapping[str, HistoryValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelDifference:
    """Size of a change, with limits that hold for all changes of the series together."""

    value: float
    low: float
    high: float
    p_adjusted: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChange:
    """A change of the level of a metric.

    Attributes:
        first: The last evaluation before it.
        to: The first evaluation after it.
        claimed_at: The evaluation at which it was claimed.
        before: Mean from the change before on.
        after: Mean up to the claim.
        causes: Of a metric of matrices that prevalence moves, between all samples before and those up to the claim.
    """

    metric: str
    first: UUID = field(metadata=named("from"))
    to: UUID
    claimed_at: UUID
    before: float
    after: float
    difference: LevelDifference
    causes: Causes | None = field(default=None, metadata=LEFT_OUT)
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryAnswer:
    """A page of a series, and the changes of all of it.

    Attributes:
        next_position: The last evaluation of the page, if there are more.
    """

    items: Sequence[HistoryItem]
    changes: Sequence[HistoryChange]
    next_position: UUID | None


@dataclass(frozen=True, slots=True)
class Held:
    """A verdict on an evaluation by the series before it.

    Attributes:
        change: That is claimed at it.
    """

    value: HistoryValue
    change: HistoryChange | None


@dataclass(frozen=True, slots=True)
class HistoryService:
    """Reads the evaluations of a model on a dataset as one series."""

    store: EvaluationStore
    _: KW_ONLY
    labels: PairedLabels
    compute: ComputePool

    async def read(self, project: str, query: HistoryQuery) -> HistoryAnswer:
        """Return a page of the series, the oldest first, with the changes of all of it.

        Raises:
            NotFound: the model has no evaluation on the dataset.
            InvalidExpression: a metric is none, or is a list.
            OutOfReach: the series has too many evaluations, or samples.
            IncomparableRuns: neighbours share a part of their samples, so that nothing is known of chance.
        """
        for metric in query.metrics:
            _check(metric)
        records = await self._records(project, query)
        metrics = query.metrics or (ranked_by(stored_input(records[-1])),)
        kept = await self._samples(project, records, metrics)
        return await self.compute.run(partial(series, replace(query, metrics=metrics), records, kept))

    async def held(self, project: str, record: EvaluationRecord, levels: Sequence[tuple[str, float]]) -> Sequence[Held]:
        """Hold an evaluation against those before it: did it change since the last change?

        Args:
            project: Whose evaluations these are.
            record: The evaluation. Its series are those of its model on the same split of its dataset.
            levels: Metrics with one value, each with the level of its claims. All of them share the error.

        Raises:
            OutOfReach: the series has too many evaluations, or samples.
            IncomparableRuns: neighbours share a part of their samples, so that nothing is known of chance.
        """
        query = HistoryQuery(
            model=record.model.name, dataset=DatasetRef(record.dataset.name, None, record.dataset.split)
        )
        records = [one for one in await self._records(project, query) if one.dataset.split == record.dataset.split]
        records = [one for one in records if one.id <= record.id]
        kept = await self._samples(project, records, [metric for metric, _ in levels])
        return await self.compute.run(partial(_held, levels, records, kept))

    async def _records(self, project: str, query: HistoryQuery) -> list[EvaluationRecord]:
        """Return the evaluations of a series, the oldest first.

        Raises:
            NotFound: there is none.
            OutOfReach: there are too many.
        """
        wanted = EvaluationQuery(
            model=query.model,
            dataset=query.dataset.name,
            dataset_version=query.dataset.version,
            split=query.dataset.split,
            created_after=query.created_after,
            descending=False,
            limit=MOST_POINTS + 1,
        )
        page = await self.store.page(project, wanted)
        if not page.items:
            raise NotFound(f"model {query.model!r} has no such evaluation on dataset {query.dataset.name!r}")
        if len(page.items) > MOST_POINTS:
            raise OutOfReach(
                f"there are more than {MOST_POINTS} evaluations, which is what one series may have; take a later "
                "created_after"
            )
        found = await self.store.get_many(project, [one.id for one in page.items])
        return [found[one.id] for one in page.items if one.id in found]

    async def _samples(self, project: str, records: Sequence[EvaluationRecord], metrics: Sequence[str]) -> KeptSamples:
        known = [(metric, _estimand(metric, record)) for metric in metrics for record in records]
        estimands = [(metric, one) for metric, one in known if isinstance(one, Estimand)]
        needing = [(one.scored, metric) for metric, one in estimands if one.scored or one.is_of_slices]
        if needing:
            scored, metric = max(needing)
            pointers = ["metric"] * len(records)
            return await read_outputs(self.labels, project, records, metric, scored=scored, pointers=pointers)
        return await read_labels(self.labels, project, records)


def _check(metric: str) -> None:
    expression = parse_for_any_classes(metric, inputs=frozenset(Inputs))
    refuse_about_sample(expression, metric)
    refuse_list(expression, metric)


def _estimand(metric: str, record: EvaluationRecord) -> Estimand | str:
    try:
        return make_estimand(
            metric, record.labels, record.positive, inputs_of_all([record]), *record.judged, sliceable=True
        )
    except InvalidExpression as error:
        return error.detail


def series(query: HistoryQuery, records: Sequence[EvaluationRecord], kept: KeptSamples) -> HistoryAnswer:
    """Return a page of a series.

    Args:
        query: What is asked, with its metrics.
        records: The series, the oldest first.
        kept: What is known of the samples.
    """
    _refuse_windows(records, kept)
    alpha = (1.0 - LEVEL) / len(set(query.metrics))
    values: dict[str, list[HistoryValue]] = {}
    changes: list[HistoryChange] = []
    start = next((place + 1 for place, one in enumerate(records) if one.id == query.after), 0)
    if query.newest:
        start = max(0, len(records) - query.limit)
    shown = range(start, min(start + query.limit, len(records)))
    runs = _runs(records, kept)
    for metric in dict.fromkeys(query.metrics):
        known = _estimates(metric, records, runs)
        values[metric], claimed = _judged(metric, records, known, alpha, shown)
        changes += claimed
    items = [
        HistoryItem(
            evaluation=records[place].id,
            version=records[place].model.version,
            created_at=records[place].created_at,
            n_samples=records[place].n_rows,
            metrics={metric: of_metric[place - start] for metric, of_metric in values.items()},
        )
        for place in shown
    ]
    more = bool(items) and shown.stop < len(records)
    places = {record.id: place for place, record in enumerate(records)}
    changes.sort(key=lambda one: places[one.to])
    return HistoryAnswer(items=items, changes=changes, next_position=items[-1].evaluation if more else None)


@dataclass(frozen=True, slots=True)
class ChangeWatch:
    """Looks at evaluations after they were stored, and tells of a change of their model that is claimed at them."""

    history: HistoryService
    announcer: Announcer

    async def look(self, project: str, identifier: UUID) -> None:
        """Tell of a change of the metric of leaderboards that is claimed at an evaluation, if there is one."""
        record = (await self.history.store.get_many(project, [identifier])).get(identifier)
        if record is None:
            # It was removed meanwhile.
            return
        metric = ranked_by(stored_input(record))
        try:
            (held,) = await self.history.held(project, record, [(metric, LEVEL)])
        except (IncomparableRuns, OutOfReach):
            # The evaluations are no series in which a change could be told; who asks for its history is told why.
            return
        if held.change is None:
            return
        name = EvaluationName.of(record)
        happening = WebhookEvent(
            event=Event.MODEL_CHANGED,
            # Not that of the evaluation, by which the same webhook may have been told that it was made.
            id=uuid5(record.id, Event.MODEL_CHANGED),
            at=record.created_at,
            text=f"{run_title(as_json(name))}: {held.change.message}",
            data={"project": project, "evaluation": name, "change": held.change},
        )
        await self.announcer.tell(project, happening)


def _held(
    levels: Sequence[tuple[str, float]], records: Sequence[EvaluationRecord], kept: KeptSamples
) -> Sequence[Held]:
    """Return what each metric says of the last evaluation of a series."""
    _refuse_windows(records, kept)
    runs = _runs(records, kept)
    found, last = list[Held](), len(records) - 1
    for metric, level in levels:
        known, alpha = _estimates(metric, records, runs), (1.0 - level) / len(levels)
        (value,), changes = _judged(metric, records, known, alpha, range(last, last + 1))
        found.append(Held(value, next((one for one in changes if one.claimed_at == records[last].id), None)))
    return found


def _refuse_windows(records: Sequence[EvaluationRecord], kept: KeptSamples) -> None:
    """Raises IncomparableRuns where neighbours share some of their samples: what is claimed of them is often false."""
    ids = [kept.labels[record.id].ids if record.id in kept.labels else None for record in records]
    for place, (one, other) in enumerate(pairwise(ids)):
        if one is None or other is None or one.dtype.kind != other.dtype.kind:
            continue
        shared = np.isin(one, other).sum() / min(one.size, other.size)
        if _SHARED < shared < _SAME:
            raise IncomparableRuns(
                f"evaluations {records[place].id} and {records[place + 1].id} share a part of their samples: changes "
                "of windows that overlap cannot be told from chance; evaluate each sample once, or always the same "
                "samples",
                pointer="dataset",
            )


class _Measured(NamedTuple):
    """A value of a run with its limits, and the samples behind it."""

    estimand: Estimand
    found: Estimate
    size: float


def _runs(records: Sequence[EvaluationRecord], kept: KeptSamples) -> list[RunData]:
    """Return the runs of a series: what several metrics need of each is computed once."""
    return [run_data(one, kept.samples(one.id)) for one in records]


def _estimates(metric: str, records: Sequence[EvaluationRecord], runs: Sequence[RunData]) -> list[_Measured | str]:
    """Return the value of each record, or why it has none."""
    settings, found = LimitSettings(level=LEVEL), list[_Measured | str]()
    pairs = [_with_run(metric, one, run) for one, run in zip(records, runs, strict=True)]
    work = sum(work_of(one, run, settings) for one, run in pairs if isinstance(one, Estimand))
    if work > 1.0:
        raise OutOfReach(
            f"limits of {metric} of {len(records)} evaluations take too long; take a later created_after, or another "
            "metric",
            pointer="metric",
        )
    for record, (one, run) in zip(records, pairs, strict=True):
        if isinstance(one, str):
            found.append(one)
        else:
            found.append(_Measured(one, estimate([one], run, settings)[0][0], _size(one, run) or record.n_rows))
    return found


def _with_run(metric: str, record: EvaluationRecord, run: RunData) -> tuple[Estimand | str, RunData]:
    known = _estimand(metric, record)
    try:
        if isinstance(known, Estimand):
            refuse_unknown_slices(known.expression, run.source)
    except InvalidExpression as error:
        return error.detail, run
    return known, run


def _judged(
    metric: str,
    records: Sequence[EvaluationRecord],
    known: Sequence[_Measured | str],
    alpha: float,
    shown: range,
) -> tuple[list[HistoryValue], list[HistoryChange]]:
    """Return the shown values of a metric, and its changes. What has no limits is not looked at."""
    measured = {
        place: one for place, one in enumerate(known) if not isinstance(one, str) and one.found.high > one.found.low
    }
    places = {place: at for at, place in enumerate(measured)}
    estimates = [one.found for one in measured.values()]
    errors = np.array([(one.high - one.low) / 2.0 for one in estimates]) / two_sided_z(LEVEL)
    sizes = np.array([one.size for one in measured.values()])
    history = History(np.array([one.value for one in estimates]), errors, sizes, alpha=alpha)
    changes = history.changes if measured else ()
    said = [
        _change(metric, [records[place] for place in measured], [one.estimand for one in measured.values()], change)
        for change in changes
    ]
    values = [_value(known[place], None if place not in places else history.band(places[place])) for place in shown]
    return values, said


def _size(estimand: Estimand, run: RunData) -> float | None:
    """Return the samples behind a value that are not all of the run: of a rate those of its denominator."""
    if isinstance(estimand.expression, Sliced):
        some = run.slice(estimand.expression.where)
        if some is None:
            return None
        return _size(part_of(estimand, estimand.expression, run.source.labels), some) or some.source.n_samples
    if run.source.task is not None or estimand.rates is None:
        return None
    return float(estimand.rates[0].counts(run.table)[1])


def _value(known: _Measured | str, band: tuple[float, float] | None) -> HistoryValue:
    if isinstance(known, str):
        return HistoryValue(value=None, low=None, high=None, expected=None, reason=known)
    one, expected = known.found, None
    if band is not None:
        # A value keeps to its range.
        bottom, top = (end if bound is None else bound for bound, end in zip(known.estimand.bounds, band, strict=True))
        expected = Expected(low=max(band[0], bottom), high=min(band[1], top))
    return HistoryValue(
        value=_known(one.value),
        low=_known(one.low),
        high=_known(one.high),
        expected=expected,
        reason=None if one.reason is None else str(one.reason),
    )


def _known(value: float) -> float | None:
    return value if isfinite(value) else None


def _change(
    metric: str, records: Sequence[EvaluationRecord], estimands: Sequence[Estimand], change: Change
) -> HistoryChange:
    before, since = records[change.start : change.after + 1], records[change.after + 1 : change.claimed + 1]
    gap = change.since - change.before
    day = since[0].created_at.date().isoformat()
    moved = f"{'rose' if gap > 0 else 'fell'} from {number(change.before)} to {number(change.since)}"
    message = f"From {day} {_itself(estimands[change.after], gap)}{metric} {moved}."
    causes = None
    if has_causes(estimands[change.after]):
        causes, said = _causes(metric, before, since, estimands[change.after])
        message = message if said is None else f"From {day} {said}"
    return HistoryChange(
        metric=metric,
        first=before[-1].id,
        to=since[0].id,
        claimed_at=records[change.claimed].id,
        before=change.before,
        after=change.since,
        difference=LevelDifference(value=gap, low=change.low, high=change.high, p_adjusted=change.p),
        causes=causes,
        message=message,
    )


def _itself(estimand: Estimand, gap: float) -> str:
    """Say that it is the model, where the metric does not move with prevalence."""
    better = estimand.preference.better if estimand.insensitive and estimand.preference is not None else Better.NEAREST
    if better is Better.NEAREST:
        return ""
    return f"the model itself got {'better' if (gap > 0) is (better is Better.HIGHER) else 'worse'}: "


def _causes(
    metric: str, before: Sequence[EvaluationRecord], since: Sequence[EvaluationRecord], estimand: Estimand
) -> tuple[Causes | None, str | None]:
    """Return the causes of a change between the sums of both sides, and the sentence on them; None where these are no
    numbers of independent samples of the same classes.
    """
    together = [*before, *since]
    first = together[0]
    plain = all(one.content is Content.counts and not (one.is_weighted or one.is_grouped) for one in together)
    if not plain or any(set(one.labels) != set(first.labels) for one in together):
        return None, None
    aligned = Runs.align(together)
    sums = [_summed(aligned.counts[: len(before)]), _summed(aligned.counts[len(before) :])]
    both = Runs.align([replace(first, counts=one, fold_counts=None) for one in sums])
    causes = causes_of(both, (1, 0), estimand, 0, LEVEL)
    if causes.items and not any(abs(one.value) > NOISE for one in causes.items[1:]):
        # Of a class share there is no more to say than that it moved.
        return causes, None
    return causes, said_causes(causes, both, (1, 0), estimand, metric, between="")


def _summed(counts: Array) -> Array:
    found: Array = counts.sum(axis=0)
    return found
