"""Merges of evaluations of data by reference: the values are those of one reading of everything."""

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.settings import Settings
from tests.api.answers import Json, check_problem, evaluation, same_numbers
from tests.api.jobs import ended, result
from tests.api.referenced import keep, named, settings_for

RANDOM = np.random.default_rng(21)
COLUMNS: dict[str, Any] = {
    "scores": {"y_true": "truth", "score": "score"},
    "probabilities": {"y_true": "truth", "probabilities": ["no", "yes"], "sample_weight": "weight"},
    "predictions": {"y_true": "truth", "y_pred": "guess", "group_id": "site"},
    "ranking": {"query_id": "query", "relevance": "relevance", "score": "score"},
    "multilabel": {"y_true": ["truth", "guess"], "probabilities": ["yes", "no"]},
}
LABELS: dict[str, Json] = {
    "scores": {"labels": [0, 1]},
    "probabilities": {"labels": [0, 1], "positive": 1},
    "multilabel": {"labels": ["a", "b"]},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def settings(database_url: str, folder: Path) -> Settings:
    return settings_for(database_url, str(folder), spill_dir=folder / "spilled")


def write(path: Path, day: int, rows: int) -> None:
    risk = RANDOM.normal(size=rows)
    # Scores of the first day alone are looked at as shares, and those of both are not.
    share = 1.0 / (1.0 + np.exp(-risk))
    truth = (risk + RANDOM.normal(size=rows) > 0.0).astype(int)
    columns = {
        "truth": truth,
        "guess": (risk > 0.3).astype(int),
        "score": share + (day - 1),
        "yes": share,
        "no": 1.0 - share,
        "weight": RANDOM.integers(1, 4, rows).astype(float),
        "site": RANDOM.integers(0, 40, rows),
        "query": day * 100_000 + np.arange(rows) // 10,
        "relevance": RANDOM.integers(0, 3, rows),
    }
    pq.write_table(pa.table(columns), path)


def days(client: httpx.Client, folder: Path, kind: str, rows: int) -> tuple[list[str], Json]:
    """Ids of two days, and the evaluation of both read at once."""
    place = folder / f"{kind}-{rows}"
    place.mkdir()
    for day in (1, 2):
        write(place / f"day-{day}.parquet", day, rows)
    found = []
    for files in ("day-1.parquet", "day-2.parquet", "*.parquet"):
        source = named(place / files, COLUMNS[kind], kind, **LABELS.get(kind, {}))
        reply = keep(client, source, model=f"{kind}-{rows}-{files[:5]}", dataset=f"{kind}-{rows}")
        assert reply.status_code == 202, reply.text
        found.append(result(client, reply.json()).json())
    return [one["id"] for one in found[:2]], found[2]


def merge(client: httpx.Client, parts: list[str], **members: Any) -> httpx.Response:
    return client.post("/v1/evaluations/merge", json={"evaluations": parts, "model": {"name": "merged"}, **members})


def values(answer: Json) -> Json:
    own = ("id", "created_at", "model", "input", "findings", "instance", "detail")
    return {name: value for name, value in answer.items() if name not in own}


# Above 100,000 rows together they are streamed.
FEW, MANY = 1_000, 51_000
FAST = (("predictions", FEW), ("scores", MANY))
SLOW = (*((kind, FEW) for kind in COLUMNS), *((kind, MANY) for kind in COLUMNS if kind != "predictions"))


@pytest.mark.parametrize(
    ("kind", "rows"),
    [*FAST, *(pytest.param(*one, marks=pytest.mark.slow) for one in SLOW if one not in FAST)],
)
def test_the_values_are_those_of_one_reading(client: httpx.Client, folder: Path, kind: str, rows: int) -> None:
    parts, whole = days(client, folder, kind, rows)
    reply = merge(client, parts)
    assert reply.status_code == 202, reply.text
    answer = result(client, reply.json()).json()
    same_numbers(values(answer), values(whole))
    assert answer["input"]["merged_from"] == parts
    assert client.get(f"/v1/evaluations/{answer['id']}").json() == answer
    told = {name: fact for name, fact in answer["input"].items() if name != "merged_from"}
    same_numbers(told, {name: fact for name, fact in whole["input"].items() if name != "data"})
    if kind == "scores":
        # The curves of what was streamed are saved.
        found, known = (client.get(f"/v1/evaluations/{one['id']}/curves/roc") for one in (answer, whole))
        assert found.status_code == known.status_code
        same_numbers(values(found.json()), values(known.json()))


def test_what_cannot_be_one_is_refused(client: httpx.Client, folder: Path) -> None:
    (first, second), _ = days(client, folder, "scores", 1_100)
    other = days(client, folder, "probabilities", 1_100)[0][0]
    sent = client.post(
        "/v1/evaluations",
        json=evaluation(input={"kind": "scores", "y_true": [0, 1], "scores": [0.1, 0.7], "labels": [0, 1]}),
    ).json()["id"]
    again = keep(
        client, named(folder / "scores-1100" / "day-1.parquet", COLUMNS["scores"], "scores", **LABELS["scores"])
    )
    twice = result(client, again.json()).json()["id"]
    merged = result(client, merge(client, [first, second]).json()).json()["id"]
    for parts in ([first, sent], [sent, first], [first, merged]):
        check_problem(merge(client, parts, dataset={"name": "both"}), 409, "no_samples_kept")
    for parts, code, pointer in (
        ([first, other], "incomparable_runs", "/evaluations/1"),
        ([first, twice], "duplicate_data", "/evaluations/1"),
    ):
        problem = ended(client, merge(client, parts, dataset={"name": "both"}).json())["problem"]
        assert [(one["code"], one["pointer"]) for one in problem.get("errors") or [problem]] == [(code, pointer)]
    write(folder / "scores-1100" / "day-2.parquet", 3, 900)
    problem = ended(client, merge(client, [first, second]).json())["problem"]
    assert [(one["code"], one["pointer"]) for one in problem["errors"]] == [("data_changed", "/evaluations/1")]
