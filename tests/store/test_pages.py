import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any
from uuid import UUID

import pytest

from app.domain.evaluation import (
    Bound,
    DatasetRef,
    EvaluationQuery,
    EvaluationRecord,
    ModelRef,
    SummarisedInput,
    ValueCondition,
)
from app.domain.identifiers import first_id_from
from app.domain.inputs.content import Content
from app.store.evaluations import PostgresEvaluationStore
from tests.store.conftest import MakeRecord

pytestmark = pytest.mark.anyio

MODELS = [ModelRef("m", "1"), ModelRef("m", "2"), ModelRef("m"), ModelRef("n", "1")]
DATASETS = [DatasetRef("d", "1", "test"), DatasetRef("d", "1", "train"), DatasetRef("d"), DatasetRef("e", "1")]
START = first_id_from(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
async def records(store: PostgresEvaluationStore, project: str, make_record: MakeRecord) -> list[EvaluationRecord]:
    """Sixty of everything mixed: few distinct values, undefined ones, absent ones, several in one millisecond."""
    chance = random.Random(7)  # noqa: S311 - a sample, not a secret
    records = []
    for i in range(60):
        values: dict[str, float | None] = {"plain": chance.choice([None, 0.0, 0.5, float("-inf"), float("inf")])}
        if chance.random() < 0.8:
            values["accuracy"] = chance.choice([None, 0.1, 0.5, 0.9])
        records.append(
            make_record(
                id=UUID(int=START.int + ((i // 3) << 80) + i),
                model=chance.choice(MODELS),
                dataset=chance.choice(DATASETS),
                tags={"stage": chance.choice(["x", "y"]), "git": str(i % 7)},
                values=values,
            )
        )
    for record in chance.sample(records, 60):
        await store.add(project, record)
    return records


def satisfies(value: float | None, condition: ValueCondition) -> bool:
    if value is None:
        return False
    below, above, equal = value < condition.number, value > condition.number, value == condition.number
    return {"<": below, "<=": below or equal, ">": above, ">=": above or equal}[condition.bound]


def expected_order(records: list[EvaluationRecord], query: EvaluationQuery) -> list[UUID]:
    """The specification: filter, sort by id, then by value with the undefined last."""

    def passes(record: EvaluationRecord) -> bool:
        pairs: list[tuple[Any, Any]] = [
            (query.model, record.model.name),
            (query.model_version, record.model.version),
            (query.dataset, record.dataset.name),
            (query.dataset_version, record.dataset.version),
            (query.split, record.dataset.split),
        ]
        return (
            all(wanted is None or wanted == had for wanted, had in pairs)
            and all(record.tags.get(key) == value for key, value in query.tags)
            and all(satisfies(record.values.get(one.metric), one) for one in query.where)
            and (query.created_after is None or record.created_at >= query.created_after)
            and (query.created_before is None or record.created_at < query.created_before)
        )

    found = sorted(filter(passes, records), key=lambda record: record.id, reverse=query.descending)
    if (metric := query.sort_metric) is not None:
        defined = [record for record in found if record.values.get(metric) is not None]
        value: Callable[[EvaluationRecord], float] = lambda record: record.values[metric] or 0.0  # noqa: E731
        rest = [record for record in found if record.values.get(metric) is None]
        found = sorted(defined, key=value, reverse=query.descending) + rest
    return [record.id for record in found]


async def walk(store: PostgresEvaluationStore, project: str, query: EvaluationQuery) -> list[UUID]:
    found: list[UUID] = []
    while True:
        page = await store.page(project, query)
        assert len(page.items) <= query.limit
        found.extend(item.id for item in page.items)
        if page.next_position is None:
            return found
        assert len(page.items) == query.limit
        query = replace(query, after=page.next_position)


WHERE = [
    (ValueCondition("accuracy", Bound.AT_LEAST, 0.5),),
    (ValueCondition("plain", Bound.BELOW, 0.5), ValueCondition("accuracy", Bound.ABOVE, 0.1)),
    (ValueCondition("plain", Bound.ABOVE, 1e308),),
    (ValueCondition("never_seen", Bound.AT_MOST, 1.0),),
]
FILTERS: list[dict[str, Any]] = [
    {},
    {"model": "m"},
    {"model": "m", "model_version": "2"},
    {"model_version": "1"},
    {"dataset": "d"},
    {"dataset": "d", "dataset_version": "1"},
    {"dataset": "d", "split": "test"},
    {"dataset": "e", "model": "n"},
    {"dataset": "d", "model": "m"},
    {"tags": (("stage", "x"),)},
    {"tags": (("stage", "x"), ("git", "3"))},
    {"tags": (("stage", "x"), ("stage", "y"))},
    {"tags": (("stage", "x"),), "dataset": "d", "model": "m"},
    {"model": "unknown"},
    {"dataset": "d", "split": "unknown"},
    *({"where": conditions} for conditions in WHERE),
    {"where": WHERE[0], "dataset": "d", "tags": (("stage", "x"),)},
]


@pytest.mark.slow
async def test_pages_together_are_the_whole_in_order(
    store: PostgresEvaluationStore, project: str, records: list[EvaluationRecord]
) -> None:
    """Exact under ties and undefined values: nothing twice, nothing left out, for every filter, size and direction."""
    middle = records[31].created_at
    spans: list[dict[str, Any]] = [{}, {"created_after": middle}, {"created_before": middle}]
    spans.append(
        {"created_after": middle - timedelta(milliseconds=4), "created_before": middle + timedelta(milliseconds=3)}
    )
    metrics = (None, "accuracy", "plain", "never_seen")
    for (place, metric), (number, filters) in product(enumerate(metrics), enumerate(FILTERS)):
        # Every filter and every metric in both directions, by turns.
        descending = (place + number) % 2 == 0
        # Ties are cut by pages of one; those of the rest are less than all, and all.
        limits = (1,) if filters == {"dataset": "d", "split": "test"} else (13,) if filters else (7, 60)
        for limit in limits:
            query = EvaluationQuery(**filters, sort_metric=metric, descending=descending, limit=limit)
            assert await walk(store, project, query) == expected_order(records, query), query
    for metric, span, filters in product((None, "accuracy"), spans, FILTERS[:5:2]):
        query = EvaluationQuery(**(span | filters), sort_metric=metric, limit=5)
        assert await walk(store, project, query) == expected_order(records, query), query


async def test_a_summary_says_what_the_record_says(
    store: PostgresEvaluationStore, project: str, records: list[EvaluationRecord]
) -> None:
    by_id = {record.id: record for record in records}
    page = await store.page(project, EvaluationQuery(limit=60))
    assert len(page.items) == 60
    for item in page.items:
        record = by_id[item.id]
        for name in ("created_at", "model", "dataset", "tags"):
            assert getattr(item, name) == getattr(record, name), name
        assert item.metrics == record.values
        assert item.input == SummarisedInput(
            kind=record.kind,
            content=record.content,
            n_samples=None if record.content is Content.rates else record.counts.sum().item(),
            n_classes=len(record.labels),
            labels=list(record.labels),
            positive=None if record.positive is None else record.labels[record.positive],
        )


async def test_a_page_goes_on_where_the_last_item_was_deleted(
    store: PostgresEvaluationStore, project: str, records: list[EvaluationRecord]
) -> None:
    query = EvaluationQuery(sort_metric="accuracy", limit=10)
    expected = expected_order(records, query)
    first = await store.page(project, query)
    await store.delete(project, first.items[-1].id)
    rest = await walk(store, project, replace(query, after=first.next_position))
    assert rest == expected[10:]


async def test_names_are_listed_page_by_page(
    store: PostgresEvaluationStore, project: str, records: list[EvaluationRecord]
) -> None:
    last = "\uffff"  # what has no version comes after every version
    models = sorted(set(MODELS), key=lambda ref: (ref.name, ref.version or last))
    datasets = sorted(set(DATASETS), key=lambda ref: (ref.name, ref.version or last, ref.split or last))
    for limit in (1, 2, 4, 5):
        found_models: list[ModelRef] = []
        after_model: ModelRef | None = None
        while not found_models or after_model is not None:
            models_page = await store.models(project, limit, after_model)
            found_models.extend(models_page.items)
            after_model = models_page.next_position
        assert found_models == models
        found_datasets: list[DatasetRef] = []
        after_dataset: DatasetRef | None = None
        while not found_datasets or after_dataset is not None:
            datasets_page = await store.datasets(project, limit, after_dataset)
            found_datasets.extend(datasets_page.items)
            after_dataset = datasets_page.next_position
        assert found_datasets == datasets


async def test_leaderboard_leaves_out_what_does_not_satisfy_the_conditions(
    store: PostgresEvaluationStore, project: str, records: list[EvaluationRecord]
) -> None:
    for dataset in (*DATASETS, DatasetRef("d", "1")):
        board = await store.leaderboard(project, dataset, "accuracy", limit=100, higher_is_better=True)
        for number in (0.2, 0.5, 0.8):
            one = (ValueCondition("accuracy", Bound.AT_LEAST, number),)
            for where in (one, (*one, ValueCondition("plain", Bound.BELOW, 0.9))):
                found = await store.leaderboard(
                    project, dataset, "accuracy", limit=100, higher_is_better=True, where=where
                )
                expected = [
                    standing.evaluation.id
                    for standing in board
                    if all(satisfies(standing.evaluation.metrics.get(one.metric), one) for one in where)
                ]
                assert [standing.evaluation.id for standing in found] == expected
    unknown = (ValueCondition("never_seen", Bound.AT_LEAST, 0.2),)
    assert not await store.leaderboard(project, DATASETS[0], "accuracy", limit=9, higher_is_better=True, where=unknown)


async def test_leaderboard_has_the_latest_of_each_model_version_in_order(
    store: PostgresEvaluationStore, project: str, records: list[EvaluationRecord]
) -> None:
    datasets = [*DATASETS, DatasetRef("d", "1"), DatasetRef("unknown")]
    for dataset, metric, higher in product(datasets, ("accuracy", "plain", "never_seen"), (True, False)):
        expected = standings(records, dataset, metric, higher)
        for limit in (2, 20):
            board = await store.leaderboard(project, dataset, metric, limit=limit, higher_is_better=higher)
            found = [(one.evaluation.id, one.value, one.evaluation.metrics.get(metric)) for one in board]
            assert found == [(one.id, value, value) for one, value in expected[:limit]], (dataset, metric)


def standings(
    records: list[EvaluationRecord], dataset: DatasetRef, metric: str, higher: bool
) -> list[tuple[EvaluationRecord, float | None]]:
    """The specification of a leaderboard: evaluation and value of the latest of each version of a model."""
    latest: dict[ModelRef, EvaluationRecord] = {}
    for record in records:
        if all(getattr(dataset, name) in (None, getattr(record.dataset, name)) for name in DatasetRef.__slots__):
            latest[record.model] = record
    sign = -1 if higher else 1

    def place(record: EvaluationRecord) -> tuple[bool, float, int]:
        value = record.values.get(metric)
        return (value is None, 0.0 if value is None else sign * value, -record.id.int)

    return [(record, record.values.get(metric)) for record in sorted(latest.values(), key=place)]
