"""The history of a model on a dataset: its values over time, and where they changed beyond what chance does."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from itertools import pairwise
from math import isnan
from typing import Any, Self
from uuid import UUID, uuid5

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import IncomparableRuns, InvalidExpression, NotFound, OutOfReach
from app.domain.evaluation import AlikeEvaluations, DatasetRef, EvaluationName, EvaluationQuery, EvaluationRecord
from app.domain.expressions.expressions import parse_for_any_classes, refuse_about_sample, refuse_list
from app.domain.identifiers import id_at, new_id
from app.domain.inputs.columns import designed
from app.domain.inputs.content import MERGED_FACT, WEIGHT_FACT
from app.domain.inputs.kinds import KINDS
from app.domain.inputs.samples import Samples, in_order, joined
from app.domain.members import HIDDEN, LEFT_OUT, as_json, named, number
from app.domain.operations import Event, WebhookEvent
from app.domain.slices import refuse_unknown_slices, restricted
from app.domain.wording import number as worded
from app.domain.wording import run_title, written_day
from app.kernel.history import Change, History
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Sliced, grows, is_smooth
from app.kernel.numerics.arrays import Array, kept, silently
from app.kernel.uncertainty.closed_forms import cell_influences
from app.kernel.uncertainty.draws import within
from app.kernel.uncertainty.intervals import two_sided_z
from app.services.estimands import Better, Estimand, part_of, ranked_by
from app.services.estimates.estimate import LimitSettings
from app.services.estimates.estimates import estimate, limits_of_many, work_of
from app.services.estimates.run_data import RunData, run_data, single_value
from app.services.ports import EvaluationStore
from app.services.processes.compute import ComputePool
from app.services.runs.aligned import Runs
from app.services.runs.causes import NOISE, Causes, causes_of, kind_of_causes, said_causes
from app.services.runs.differences import OF_SIZES, gap_bounds
from app.services.runs.pairing import KeptSamples, PairingMode, read_labels, read_outputs
from app.services.stored import of_part

# Evaluations of one series, and of such whose limits are made one by one, within seconds.
MOST_POINTS, _MOST_ALONE = 10_000, 1000
LEVEL = 0.95
_UNKNOWN = "Which evaluations share samples is not known without sample_ids: they are taken as independent."
_MERGED = "What was merged of evaluations of the series is left out: no sample counts twice."
_SAME_SAMPLES = "The evaluations share their samples: what these add to all of them is taken into account."
_OTHER_TASKS = (
    "the evaluations are of several tasks, and {} is not the same in each: take a later created_after, and for each "
    "task a dataset of its own"
)
_NOT_KNOWN = "the evaluations share samples, and by how much these move all values of the metric is not known"
# Samples times evaluations that are looked at together.
_MOST_SHARED = 1 << 25
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
        reason: Why there is no value, no interval, or nothing that is expected.
    """

    value: float | None
    low: float | None
    high: float | None
    expected: Expected | None
    reason: str | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryItem:
    """One evaluation of a series.

    Attributes:
        n_samples: `null` of a matrix of rates, or of weights without their samples.
    """

    evaluation: UUID
    version: str | None
    created_at: datetime
    n_samples: float | None
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
        causes: Of a metric of matrices that prevalence moves, or of a loss: all before it against all up to the claim.
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
class HistoryPage:
    """A page of a series, and the changes of all of it; `next_cursor` is null on the last page.

    Attributes:
        notes: What is known of samples that evaluations share.
        next_position: The last evaluation of the page, if there are more.
    """

    model: str
    dataset: DatasetRef
    items: Sequence[HistoryItem]
    changes: Sequence[HistoryChange]
    notes: Sequence[str]
    next_cursor: str | None = None
    next_position: UUID | None = field(default=None, metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class Watched:
    """A verdict on an evaluation by the series before it, and the change that is claimed at it."""

    value: HistoryValue
    change: HistoryChange | None


@dataclass(frozen=True, slots=True)
class HistoryService:
    """Reads the evaluations of a model on a dataset as one series."""

    store: EvaluationStore
    _: KW_ONLY
    compute: ComputePool

    async def read(self, project: str, query: HistoryQuery) -> HistoryPage:
        """Return a page of the series, the oldest first, with the changes of all of it.

        Raises:
            NotFound: the model has no evaluation on the dataset.
            InvalidExpression: a metric is none, or is a list.
            OutOfReach: the series has too many evaluations, or samples.
            IncomparableRuns: neighbours share a part of their samples, so that nothing is known of chance.
        """
        for metric in query.metrics:
            _check(metric)
        everything = await self._series(project, query)
        whole = everything.once()
        metrics = query.metrics or (ranked_by(whole.record(-1)),)
        kept = await self._samples(project, whole, metrics)
        answer = await self.compute.run(partial(series, replace(query, metrics=metrics), whole, kept))
        return answer if whole is everything else replace(answer, notes=[*answer.notes, _MERGED])

    async def held(
        self, project: str, record: EvaluationRecord, levels: Sequence[tuple[str, float]]
    ) -> Sequence[Watched]:
        """Hold an evaluation against those of its model before it on the same split: did it change since the last
        change? ``levels`` are metrics with one value, each with the level of its claims; all of them share the error.

        Raises:
            OutOfReach: the series has too many evaluations, or samples.
            IncomparableRuns: neighbours share a part of their samples, so that nothing is known of chance.
        """
        query = HistoryQuery(
            model=record.model.name, dataset=DatasetRef(record.dataset.name, None, record.dataset.split)
        )
        whole = (await self._series(project, query)).up_to(record).once(record)
        kept = await self._samples(project, whole, [metric for metric, _ in levels])
        return await self.compute.run(partial(_held, levels, whole, kept))

    async def _series(self, project: str, query: HistoryQuery) -> "Series":
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
        found = Series.of(await self.store.series(project, wanted))
        if not len(found):
            raise NotFound(f"model {query.model!r} has no such evaluation on dataset {query.dataset.name!r}")
        if len(found) > MOST_POINTS:
            raise _too_many(MOST_POINTS, "evaluations, which is what one series may have")
        return found

    async def _samples(self, project: str, whole: "Series", metrics: Sequence[str]) -> KeptSamples:
        needs = [list[tuple[bool, str]]() for _ in whole.parts]
        for metric in metrics:
            tasks = set()
            for place in np.unique(whole.part).tolist():
                first = whole.parts[place].first
                if isinstance(one := single_value(metric, first), Estimand):
                    tasks.add(first.task)
                    needs[place] += [(one.scored, one.text)] if one.scored or one.is_of_slices else []
            if len(tasks) > 1:
                raise IncomparableRuns(_OTHER_TASKS.format(metric), pointer="metric")
        parts = [(bool(own), part.first) for own, part in zip(needs, whole.parts, strict=True)]
        judged = whole.places_of([some for some, _ in parts])
        others = whole.places_of([not some and (one.came_weighed or not one.counts_independent) for some, one in parts])
        if len(judged) + len(others) > _MOST_ALONE:
            raise _too_many(_MOST_ALONE, "evaluations whose samples are looked at one by one")
        # Whether others share samples is seen as long as these are few.
        named = whole.places_of([not some and any(KINDS[one.kind].all_columns()) for some, one in parts])
        if len(judged) + len(named) <= _MOST_ALONE:
            others = named
        kept = await read_labels(self.store, project, [whole.record(place) for place in others])
        if not judged:
            return kept
        scored, metric = max(one for own in needs for one in own)
        records = [whole.record(place) for place in judged]
        pointers = ["metric"] * len(records)
        read = await read_outputs(self.store, project, records, metric, scored=scored, pointers=pointers)
        return KeptSamples({**kept.samples, **read.samples})


def _too_many(most: int, what: str) -> OutOfReach:
    return OutOfReach(f"there are more than {most:,} {what}; take a later created_after", pointer="created_after")


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Evaluations, the oldest first.

    Attributes:
        parts: Those that are alike together.
        ids: (n, 2) halves of their ids.
        part: (n) of each the part that it is in.
        place: (n) its place there.
    """

    parts: Sequence[AlikeEvaluations]
    ids: NDArray[np.uint64]
    part: NDArray[np.intp]
    place: NDArray[np.intp]

    @classmethod
    def of(cls, parts: Sequence[AlikeEvaluations]) -> Self:
        """Bring them into order."""
        part = np.repeat(np.arange(len(parts)), [len(one.ids) for one in parts])
        place = np.concatenate([np.arange(0), *(np.arange(len(one.ids)) for one in parts)])
        ids = np.concatenate([np.empty((0, 2), np.uint64), *(one.ids for one in parts)])
        order = np.lexsort(ids.T[::-1])
        return cls(parts, ids[order], part[order], place[order])

    def __len__(self) -> int:
        return len(self.part)

    def record(self, place: int) -> EvaluationRecord:
        """Return one of them."""
        own: EvaluationRecord = self.parts[int(self.part[place])].record(int(self.place[place]))
        return own

    def places_of(self, parts: Sequence[bool]) -> list[int]:
        """Return where those are that are in some of the parts."""
        places: list[int] = np.flatnonzero(np.array(parts, dtype=np.bool_)[self.part]).tolist()
        return places

    def made_until(self, identifier: UUID) -> NDArray[np.bool_]:
        """Return which (n) are one of them, that may be gone, or were made before it."""
        upper, lower = divmod(identifier.int, 1 << 64)
        found: NDArray[np.bool_] = (self.ids[:, 0] < upper) | ((self.ids[:, 0] == upper) & (self.ids[:, 1] <= lower))
        return found

    def up_to(self, record: EvaluationRecord) -> Self:
        """Return those up to one of them that are of the same split."""
        same = [part for part, one in enumerate(self.parts) if one.first.dataset.split == record.dataset.split]
        return self._only(self.made_until(record.id) & np.isin(self.part, same))

    def once(self, looked_at: EvaluationRecord | None = None) -> Self:
        """Return those of which no sample counts twice: without merges of others, or the parts of one looked at."""
        merges = [one.first.facts.get(MERGED_FACT, ()) for one in self.parts]
        known = [str(UUID(int=(upper << 64) | lower)) for upper, lower in self.ids.tolist()] if any(merges) else []
        twice = np.array([not {*others}.isdisjoint(known) for others in merges])
        if not twice.any():
            return self
        kept, gone = ("", ()) if looked_at is None else (str(looked_at.id), looked_at.facts.get(MERGED_FACT, ()))
        return self._only((~twice[self.part] & ~np.isin(known, gone)) | np.isin(known, kept))

    def _only(self, some: NDArray[np.bool_]) -> Self:
        return replace(self, ids=self.ids[some], part=self.part[some], place=self.place[some])


def _check(metric: str) -> None:
    expression = parse_for_any_classes(metric, inputs=frozenset(Inputs))
    refuse_about_sample(expression, metric)
    refuse_list(expression, metric)


def series(query: HistoryQuery, whole: Series, kept: KeptSamples) -> HistoryPage:
    """Return a page of a series."""
    before = 0 if query.after is None else int(whole.made_until(query.after).sum())
    start = max(0, len(whole) - query.limit) if query.newest else before
    shown = range(start, min(start + query.limit, len(whole)))
    known, alpha = _Known(whole, kept, shown), (1.0 - LEVEL) / len(set(query.metrics))
    values: dict[str, list[HistoryValue]] = {}
    changes: list[tuple[int, HistoryChange]] = []
    for metric in dict.fromkeys(query.metrics):
        values[metric], claimed = known.judged(metric, alpha)
        changes += claimed
    items = [
        HistoryItem(
            evaluation=record.id,
            version=record.model.version,
            created_at=record.created_at,
            n_samples=record.n_counted,
            metrics={metric: of_metric[place] for metric, of_metric in values.items()},
        )
        for place, record in enumerate(map(whole.record, shown))
    ]
    return HistoryPage(
        model=query.model,
        dataset=query.dataset,
        items=items,
        changes=[change for _, change in sorted(changes, key=lambda one: one[0])],
        notes=known.notes,
        next_position=items[-1].evaluation if items and shown.stop < len(whole) else None,
    )


async def look_for_change(
    history: HistoryService, tell: Callable[[str, WebhookEvent], Awaitable[None]], project: str, identifier: UUID
) -> None:
    """Tell the webhooks of a project of a change of a model, by the metric of leaderboards, that is claimed at an
    evaluation, if there is one.
    """
    record = (await history.store.get_many(project, [identifier])).get(identifier)
    if record is None:
        # It was removed meanwhile.
        return
    metric = ranked_by(record)
    try:
        (held,) = await history.held(project, record, [(metric, LEVEL)])
    except (IncomparableRuns, OutOfReach):
        # The evaluations are no series in which a change could be told; who asks for its history is told why.
        return
    if held.change is None:
        return
    name = EvaluationName.of(record)
    happening = WebhookEvent(
        event=Event.MODEL_CHANGED,
        # The id of the evaluation is taken: the same webhook may have been told that it was made.
        id=id_at(record.created_at, uuid5(record.id, Event.MODEL_CHANGED)),
        at=record.created_at,
        text=f"{run_title(as_json(name))}: {held.change.message}",
        data={"project": project, "evaluation": name, "change": held.change},
    )
    await tell(project, happening)


def _held(levels: Sequence[tuple[str, float]], whole: Series, kept: KeptSamples) -> Sequence[Watched]:
    """Return what each metric says of the last evaluation of a series."""
    known, identifier, found = _Known(whole, kept, range(len(whole))[-1:]), whole.record(-1).id, list[Watched]()
    for metric, level in levels:
        (value,), changes = known.judged(metric, (1.0 - level) / len(levels))
        found.append(Watched(value, next((one for _, one in changes if one.claimed_at == identifier), None)))
    return found


@dataclass(frozen=True, eq=False)
class _Known:
    """A series with the samples of its evaluations, as far as they are known, of which some are shown."""

    whole: Series
    samples: KeptSamples
    shown: range

    def sampled(self, place: int) -> RunData:
        """One of the evaluations with its samples, made anew."""
        record = self.whole.record(place)
        return run_data(record, self.samples.samples.get(record.id))

    @kept
    def run(self, place: int) -> RunData:
        """One of the evaluations with its samples, made once for all metrics."""
        return self.sampled(place)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Notes on what samples evaluations share.

        Raises:
            IncomparableRuns: neighbours share a part of their samples: what is claimed of them is often false.
        """
        whole, samples = self.whole, self.samples.samples
        if not samples:
            return (_UNKNOWN,) if len(whole) > 1 else ()
        notes = dict[str, None]()
        for one, other in pairwise(whole.record(place).id for place in range(len(whole))):
            mine, next_ones = (None if each not in samples else samples[each].ids for each in (one, other))
            if mine is None or next_ones is None:
                notes[_UNKNOWN] = None
                continue
            if mine.dtype.kind != next_ones.dtype.kind:
                # The integer 3 and the text "3" are the same id.
                mine, next_ones = mine.astype(np.str_), next_ones.astype(np.str_)
            shared = np.isin(mine, next_ones).sum() / min(mine.size, next_ones.size)
            if _SHARED < shared < _SAME:
                raise IncomparableRuns(
                    f"evaluations {one} and {other} share a part of their samples: changes of windows that overlap "
                    "cannot be told from chance; evaluate each sample once, or always the same samples",
                    pointer="dataset",
                )
            if shared > _SHARED:
                notes[_SAME_SAMPLES] = None
        return tuple(notes)

    def judged(self, metric: str, alpha: float) -> tuple[list[HistoryValue], list[tuple[int, HistoryChange]]]:
        """Return the shown values of a metric, and its changes, each with the place of the first evaluation after it.
        What has no limits is not looked at.
        """
        shared = _SAME_SAMPLES in self.notes
        found, shown = _measured(metric, self), self.shown
        with silently():
            looked_at = np.flatnonzero(found.high > found.low)
        covariances = _covariances(found, looked_at) if shared else None
        # A metric that moves with the number of samples, of which some evaluations have more than others.
        moved = any(isinstance(one, Estimand) and grows(one.expression) for one in found.estimands)
        moved &= bool((found.sizes[looked_at] != found.sizes[looked_at[:1]]).any())
        # Claims as of independent evaluations, or of such of one size, would be too bold.
        why = _NOT_KNOWN if covariances is None and shared else OF_SIZES if moved else None
        if why is not None:
            found.reasons.update(dict.fromkeys(looked_at.tolist(), why))
            looked_at = looked_at[:0]
        errors = (found.high - found.low)[looked_at] / 2.0 / two_sided_z(LEVEL)
        history = History(found.values[looked_at], errors, found.sizes[looked_at], alpha=alpha, covariances=covariances)
        bands, among = np.full((len(shown), 2), np.nan), np.flatnonzero(np.isin(looked_at, shown))
        if among.size:
            bands[looked_at[among] - shown.start] = history.bands(among)
        values = [found.shown(place, *band) for place, band in zip(shown, bands.tolist(), strict=True)]
        changes = history.changes if looked_at.size else ()
        return values, [(int(looked_at[one.after + 1]), _change(found, looked_at, one)) for one in changes]


@dataclass(frozen=True, slots=True, eq=False)
class _MetricSeries:
    """A metric of the evaluations (n) of a series.

    Attributes:
        values: NaN where there is none.
        low: Of the limits; NaN where there are none, and so is `high`.
        sizes: Samples behind each value.
        estimands: Of each part; why it has none.
        reasons: Why one that is shown has no value or no limits.
    """

    metric: str
    known: _Known
    values: Array
    low: Array
    high: Array
    sizes: Array
    estimands: Sequence[Estimand | str]
    reasons: dict[int, str]

    def estimand(self, place: int) -> Estimand | str:
        """The metric for the classes of an evaluation; why it has none."""
        return self.estimands[int(self.known.whole.part[place])]

    def shown(self, place: int, low: float, high: float) -> HistoryValue:
        """The value of one evaluation, with the ends of what is expected."""
        expected, estimand = None, self.estimand(place)
        if isinstance(estimand, Estimand) and not isnan(low):
            # A value keeps to its range.
            bottom, top = within(low, high, estimand.bounds)
            expected = Expected(low=bottom, high=top)
        return HistoryValue(
            value=number(self.values[place]),
            low=number(self.low[place]),
            high=number(self.high[place]),
            expected=expected,
            reason=self.reasons.get(place),
        )


def _measured(metric: str, known: _Known) -> _MetricSeries:
    """Measure a metric: of matrices of independent samples all at once where its limits have a closed form, of others
    one by one; what several metrics need of these is computed once. Raises OutOfReach: too many are measured one by
    one, or it takes too long.
    """
    whole, shown = known.whole, known.shown
    values, low, high, sizes = np.full((4, len(whole)), np.nan)
    estimands, reasons, alone = list[Estimand | str](), dict[int, str](), list[int]()
    for own, part in enumerate(whole.parts):
        here = np.flatnonzero(whole.part == own)
        estimands.append(estimand := single_value(metric, part.first))
        if isinstance(estimand, str):
            reasons |= dict.fromkeys(here.tolist(), estimand)
            continue
        counts, found = part.counts[whole.place[here]].astype(np.float64), None
        if not estimand.scored and part.first.counts_independent and not part.first.is_weighted:
            found = limits_of_many(estimand, counts, part.first.labels, LimitSettings(level=LEVEL))
        if found is None:
            alone += here.tolist()
        else:
            values[here], low[here], high[here] = found
            rates = estimand.rates
            sizes[here] = counts.sum(axis=(1, 2)) if rates is None else rates[0].counts(Table(counts))[1]
    if len(alone) > _MOST_ALONE:
        raise _too_many(_MOST_ALONE, f"evaluations, and limits of {metric} are made one by one")
    # Those that have no limits are asked why.
    unknown = [place for place in shown if np.isnan(low[place]) and place not in reasons and place not in alone]
    work, asked = 0.0, list[tuple[int, Estimand, RunData]]()
    for place in (*alone, *unknown):
        estimand, run = estimands[whole.part[place]], known.run(place)
        try:
            if isinstance(estimand, Estimand):
                refuse_unknown_slices(estimand.expression, run.source)
                work += work_of(estimand, run, LimitSettings(level=LEVEL))
                asked.append((place, estimand, run))
        except InvalidExpression as error:
            reasons[place] = error.detail
    if work > 1.0:
        raise OutOfReach(
            f"limits of {metric} of {len(alone)} evaluations take too long; take a later created_after, or another "
            "metric",
            pointer="metric",
        )
    for place, estimand, run in asked:
        one = estimate([estimand], run, LimitSettings(level=LEVEL))[0][0]
        values[place], low[place], high[place] = one.value, one.low, one.high
        sizes[place] = _size(estimand, run) or whole.record(place).n_rows
        if one.reason is not None:
            reasons[place] = str(one.reason)
    return _MetricSeries(metric, known, values, low, high, sizes, estimands, reasons)


def _covariances(found: _MetricSeries, places: NDArray[np.intp]) -> Array | None:
    """Covariances (n, n) of values, by what each sample or group adds to all of them; None where that is not known of
    one, or they are too many.
    """
    known = [own for place in places.tolist() if (own := _influence(found, place)) is not None]
    if len(known) < places.size or not known:
        return None
    names, codes = np.unique(np.concatenate([units for units, _ in known]), return_inverse=True)
    if names.size * places.size > _MOST_SHARED:
        return None
    added, rows = np.zeros((places.size, names.size)), np.repeat(np.arange(places.size), [own.size for own, _ in known])
    np.add.at(added, (rows, codes), np.concatenate([influence for _, influence in known]))
    covariances: Array = added @ added.T
    return covariances


def _influence(found: _MetricSeries, place: int) -> tuple[NDArray[Any], Array] | None:
    """Return names of samples or groups (n), and what each adds to a value; None where that is not known."""
    estimand, whole = found.estimand(place), found.known.sampled(place)
    run: RunData | None = whole
    if isinstance(estimand, Estimand) and isinstance(estimand.expression, Sliced):
        run = whole.slice(estimand.expression.where)
        estimand = part_of(estimand, estimand.expression, whole.source.labels)
    samples = None if run is None else run.source.samples
    if isinstance(estimand, str) or run is None or samples is None or samples.ids is None:
        return None
    units = samples.ids if run.source.groups is None else run.source.groups
    if estimand.scored or run.source.task is not None:
        parts = run.linear(estimand)
        return None if parts is None else (units, parts[0].influence)
    if not is_smooth(estimand.expression):
        return None
    (of_cells,) = cell_influences(run.counts, lambda table: estimand.values(estimand.functional(table)))
    weights = np.ones(1) if samples.masses is None else samples.masses
    return units, of_cells[samples.truth, samples.predicted] * weights


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


def _change(found: _MetricSeries, looked_at: NDArray[np.intp], change: Change) -> HistoryChange:
    whole = found.known.whole
    before, since = looked_at[change.start : change.after + 1], looked_at[change.after + 1 : change.claimed + 1]
    first, last, estimand = whole.record(since[0]), whole.record(before[-1]), found.estimand(before[-1])
    if isinstance(estimand, str):
        raise TypeError("expected values, and what has none has no change")
    gap, at = change.since - change.before, _moment(first, last)
    # Where the variance of one sample is large for the values, an error may reach beyond what differences can be.
    low, high = within(change.low, change.high, gap_bounds(estimand.bounds))
    moved = f"{'rose' if gap > 0 else 'fell'} from {worded(change.before)} to {worded(change.since)}"
    message = f"From {at} on {_itself(estimand, gap)}{found.metric} {moved}."
    causes = None
    if kind_of_causes(estimand) is not None:
        causes, said = _causes(found, (since, before), estimand)
        message = message if said is None else f"From {at} on {said}"
    return HistoryChange(
        metric=found.metric,
        first=last.id,
        to=first.id,
        claimed_at=whole.record(since[-1]).id,
        before=change.before,
        after=change.since,
        difference=LevelDifference(value=gap, low=low, high=high, p_adjusted=change.p),
        causes=causes,
        message=message,
    )


def _moment(first: EvaluationRecord, last: EvaluationRecord) -> str:
    """Say when a change was: the day, or the version where the evaluation before it is of the same day."""
    day, version = first.created_at.date(), first.model.version
    if day == last.created_at.date() and version is not None and version != last.model.version:
        return f"version {version}"
    return written_day(day)


def _itself(estimand: Estimand, gap: float) -> str:
    """Say that it is the model, where the metric does not move with prevalence."""
    better = estimand.preference.better if estimand.insensitive and estimand.preference is not None else Better.NEAREST
    if better is Better.NEAREST:
        return ""
    return f"the model itself got {'better' if (gap > 0) is (better is Better.HIGHER) else 'worse'}: "


def _causes(
    found: _MetricSeries, sides: Sequence[NDArray[np.intp]], estimand: Estimand
) -> tuple[Causes | None, str | None]:
    """Return the causes of a change between all after and all before it, and the sentence on them; None where these are
    neither samples that are at hand nor numbers of independent ones, or have not the same classes.
    """
    labels = found.known.whole.record(sides[1][-1]).labels
    known = [one for side in sides if (one := _together(found.known, side, labels, scored=estimand.scored)) is not None]
    if len(known) < len(sides):
        return None, None
    samples = KeptSamples({record.id: own for record, own in known if own is not None})
    runs = Runs.align([record for record, _ in known]).pair(samples, PairingMode.FALSE)
    try:
        causes = causes_of(runs, (0, 1), estimand, 0, LEVEL)
    except IncomparableRuns as error:
        # All samples of one side are one group.
        return Causes(difference=None, items=None, reason=error.detail), None
    if causes.items and not any(abs(one.value) > NOISE for one in causes.items[1:]):
        # Of a class share there is no more to say than that it moved.
        return causes, None
    return causes, said_causes(causes, found.metric, "")


def _together(
    known: _Known, places: NDArray[np.intp], labels: tuple[str, ...], *, scored: bool
) -> tuple[EvaluationRecord, Samples | None] | None:
    """Return evaluations as one, with the samples where these are at hand: one that comes again is a group."""
    whole, kept = known.whole, known.samples.samples
    numbers = np.unique(whole.part[places]).tolist()
    parts = [whole.parts[part].first for part in numbers]
    if any(set(one.labels) != set(labels) for one in parts):
        return None
    orders = {one.labels: np.array([labels.index(label) for label in one.labels]) for one in parts}
    sum_of = replace(parts[0], id=new_id(), labels=labels, positive=None)
    records = [whole.record(place) for place in places.tolist()] if kept else []
    samples = [kept.get(one.id) for one in records]
    present = [replace(run, samples=one) for one, run in zip(samples, records, strict=True) if one is not None]
    if present and len(present) == len(samples):
        each = [in_order(one.weighed_samples, orders[one.labels]) for one in present]
        together, beside = designed(replace(joined(each), fold_sizes=None))
        facts = {name: fact for name, fact in sum_of.facts.items() if name != WEIGHT_FACT} | beside
        made = restricted(replace(sum_of, facts=facts, samples=together), np.arange(together.size))
        return of_part(sum_of, replace(made, samples=None)), made.samples
    if scored or not all(one.counts_independent and not one.came_weighed for one in parts):
        return None
    counts = np.zeros((len(labels), len(labels)), np.int64)
    for part in numbers:
        own, order = whole.parts[part], orders[whole.parts[part].first.labels]
        counts[np.ix_(order, order)] += own.counts[whole.place[places[whole.part[places] == part]]].sum(axis=0)
    return replace(sum_of, counts=counts), None
