"""Merges of evaluations of data by reference: the values are those of one reading of everything."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.api.v1.reread import DataAgain
from app.domain.errors import TooLarge
from app.domain.inputs.matrices import MatrixInput
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
        "id": day * 100_000 + np.arange(rows),
        # Not all of them are there every day.
        "seen": np.where(risk > 0.3, "yes", "no" if day == 1 else "maybe"),
        "said": np.where(truth > 0, "yes", "no" if day == 1 else "maybe"),
        "query": day * 100_000 + np.arange(rows) // 10,
        "relevance": RANDOM.integers(0, 3, rows),
    }
    pq.write_table(pa.table(columns), path)


def days(client: httpx.Client, folder: Path, kind: str, rows: int, n: int = 2) -> Iterator[Json]:
    """Evaluations of some days, and of all read at once, each made when it is asked for."""
    place = folder / f"{kind}-{rows}-{n}"
    place.mkdir()
    for day in range(1, n + 1):
        write(place / f"day-{day}.parquet", day, rows)
    for files in (*(f"day-{day}.parquet" for day in range(1, n + 1)), "*.parquet"):
        source = named(place / files, COLUMNS[kind], kind, **LABELS.get(kind, {}))
        reply = keep(client, source, model=f"{kind}-{rows}-{files[:5]}", dataset=f"{kind}-{rows}")
        assert reply.status_code == 202, reply.text
        yield result(client, reply.json()).json()


def merge(client: httpx.Client, parts: list[str], **members: Any) -> httpx.Response:
    return client.post("/v1/evaluations/merge", json={"evaluations": parts, "model": {"name": "merged"}, **members})


def merged(client: httpx.Client, parts: list[str], **members: Any) -> Json:
    reply = merge(client, parts, **members)
    found: Json = (result(client, reply.json()) if reply.status_code == 202 else reply).json()
    return found


def values(answer: Json) -> Json:
    own = ("id", "created_at", "model", "input", "findings", "instance", "detail")
    return {name: value for name, value in answer.items() if name not in own}


# Above 100,000 rows together they are streamed.
FEW, MANY = 1_000, 51_000
FAST = (("predictions", FEW), ("scores", MANY))
SLOW = (*((kind, FEW) for kind in COLUMNS), *((kind, MANY) for kind in COLUMNS if kind != "predictions"))


def cases(*fast: tuple[str, int]) -> list[Any]:
    return [*fast, *(pytest.param(*one, marks=pytest.mark.slow) for one in SLOW if one not in fast)]


@pytest.mark.parametrize(("kind", "rows"), cases(*FAST))
def test_the_values_are_those_of_one_reading(client: httpx.Client, folder: Path, kind: str, rows: int) -> None:
    *of_days, whole = days(client, folder, kind, rows)
    parts = [one["id"] for one in of_days]
    answer = merged(client, parts)
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


@pytest.mark.parametrize(("kind", "rows"), cases(("scores", FEW)))
def test_what_was_merged_can_be_merged_again(client: httpx.Client, folder: Path, kind: str, rows: int) -> None:
    *of_days, whole = days(client, folder, kind, rows, 3)
    parts = [one["id"] for one in of_days]
    names = {"dataset": {"name": "all"}}
    first = merged(client, parts[:2], **names)["id"]
    again = merged(client, [parts[2], first], **names)
    at_once = merged(client, [parts[2], *parts[:2]], **names)
    same_numbers(values(again), values(at_once))
    assert again["input"] == {**at_once["input"], "merged_from": [parts[2], first]}
    assert again["input"]["n_samples"] == whole["input"]["n_samples"]
    # A part of a part would count twice.
    for twice in ([again["id"], parts[0]], [first, again["id"]], [parts[0], first]):
        found = check_problem(merge(client, twice, **names), 422, "invalid_input")["errors"][0]
        assert (found["code"], found["pointer"]) == ("duplicate_data", "/evaluations/1")
    client.delete(f"/v1/evaluations/{parts[0]}")
    if kind != "predictions":
        found = check_problem(merge(client, [first, parts[2]], **names), 409, "no_samples_kept")
        assert "it was merged of others" in found["detail"]
        assert "no part was deleted" in found["detail"]


def test_a_threshold_that_was_assumed_of_labels_is_assumed_again(client: httpx.Client, folder: Path) -> None:
    for day in (1, 2):
        write(folder / f"labels-{day}.parquet", day, 500)
    columns = {"y_true": ["truth", "guess"], "score": ["score", "yes"]}
    found: list[Json] = []
    for files in ("labels-1.parquet", "labels-2.parquet", "labels-*.parquet"):
        reply = keep(client, named(folder / files, columns, "multilabel", labels=["a", "b"]), dataset="labels")
        found.append(result(client, reply.json()).json())
    answer = merged(client, [one["id"] for one in found[:2]])
    same_numbers(values(answer), values(found[2]))


@pytest.mark.usefixtures("computed_here")
@pytest.mark.parametrize("kind", ["scores", "predictions"])
def test_what_was_merged_is_compared_as_its_rows_at_once(
    client: httpx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The threshold is that of all days, though one alone has another one; and so are the labels."""
    (place := folder / f"pairs-{kind}").mkdir()
    for day in (1, 2):
        write(place / f"{day}.parquet", day, 400)
    columns = {"y_true": "truth", "score": "score"} if kind == "scores" else {"y_true": "seen", "y_pred": "said"}
    other = {**columns, "score": "weight"} if kind == "scores" else {**columns, "y_pred": "seen"}
    found: list[str] = []
    for files, own in (("1", columns), ("2", columns), ("*", columns), ("*", other)):
        source = named(place / f"{files}.parquet", {**own, "sample_id": "id"}, kind, **LABELS.get(kind, {}))
        reply = keep(client, source, model=f"pairs-{kind}-{len(found)}", dataset=f"pairs-{kind}")
        found.append(result(client, reply.json()).json()["id"])
    *days, whole, against = found
    month = merged(client, days)["id"]
    metrics = ["accuracy", "h_mean"] + ["roc_auc@1"] * (kind == "scores")
    body = {"metrics": metrics, "paired": "true"}

    def compared(run: str) -> Json:
        reply = client.post("/v1/comparisons", json={"evaluations": [run, against], **body})
        assert reply.status_code == 202, reply.text
        answer: Json = json.loads(result(client, reply.json()).text.replace(run, "run"))
        assert answer["design"]["paired"]
        return {name: answer[name] for name in ("design", "metrics")}

    same_numbers(compared(month), compared(whole))
    if kind == "scores":
        alone = client.post("/v1/comparisons", json={"evaluations": [month, against], **body, "paired": "auto"})
        detail = check_problem(alone, 422, "incomparable_runs")["detail"]
        assert "it was merged of others" in detail
        assert "`paired: true`" in detail
        detail = check_problem(client.get(f"/v1/evaluations/{month}/curves/roc"), 409, "no_samples_kept")["detail"]
        assert "it was merged of others" in detail
        assert "retain=none" not in detail
    monkeypatch.setattr(DataAgain, "whole", too_many)
    same_numbers(compared(month), compared(whole))


@pytest.mark.usefixtures("computed_here")
def test_ids_that_are_numbers_in_one_part_and_texts_in_another_are_texts(
    client: httpx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rows there are; the zeros in front of a text are a part of it."""
    (place := folder / "types").mkdir()
    write(place / "whole.parquet", 1, 60)
    whole = pq.read_table(place / "whole.parquet").drop_columns("id")
    columns, found = {"y_true": "truth", "y_pred": "guess", "sample_id": "id"}, {}
    for name, form in (("numbers", int), ("texts", str), ("zeros", "00{}".format)):
        pq.write_table(whole.append_column("id", pa.array([*map(form, range(60))])), place / f"{name}.parquet")
        reply = keep(client, named(place / f"{name}.parquet", columns, "predictions"), dataset="types")
        found[name] = result(client, reply.json()).json()["id"]
    runs = [merged(client, [found[name], found["zeros"]])["id"] for name in ("numbers", "texts")]

    def compared() -> Json:
        body = {"evaluations": runs, "metrics": ["accuracy"], "paired": "true"}
        answer = result(client, client.post("/v1/comparisons", json=body).json()).json()
        assert answer["design"]["reason"] == "same 120 sample ids"
        return {name: answer[name] for name in ("design", "metrics")}

    in_memory = compared()
    monkeypatch.setattr(DataAgain, "whole", too_many)
    same_numbers(compared(), in_memory)


def too_many(*_: Any) -> MatrixInput:
    """What reading all rows at once comes to."""
    raise TooLarge("more than memory holds")


def test_what_cannot_be_one_is_refused(client: httpx.Client, folder: Path) -> None:
    of_scores = days(client, folder, "scores", 1_100)
    first, second = next(of_scores)["id"], next(of_scores)["id"]
    other = next(days(client, folder, "probabilities", 1_100))["id"]
    sent = client.post(
        "/v1/evaluations",
        json=evaluation(input={"kind": "scores", "y_true": [0, 1], "scores": [0.1, 0.7], "labels": [0, 1]}),
    ).json()["id"]
    place = folder / "scores-1100-2" / "day-1.parquet"
    again = [
        keep(client, named(place, COLUMNS["scores"], "scores", **LABELS["scores"], **chosen)).json()
        for chosen in ({}, {"filter": "site = 3"})
    ]
    twice, few = (result(client, job).json()["id"] for job in again)
    both = {"dataset": {"name": "both"}}
    month = merged(client, [first, second])["id"]
    for parts in ([first, sent], [sent, first], [month, sent], [sent, month]):
        check_problem(merge(client, parts, **both), 409, "no_samples_kept")
    check_problem(merge(client, [twice, month], **both, mode="folds"), 409, "no_samples_kept")
    for parts in ([first, twice], [month, twice]):
        found = check_problem(merge(client, parts, **both), 422, "invalid_input")["errors"][0]
        assert (found["code"], found["pointer"]) == ("duplicate_data", "/evaluations/1")
    # Other rows of the same files, as far as that is known.
    assert merged(client, [twice, few], **both)["input"]["n_samples"] > 1_100
    problem = ended(client, merge(client, [first, other], **both).json())["problem"]
    assert [(one["code"], one["pointer"]) for one in problem["errors"]] == [("incomparable_runs", "/evaluations/1")]
    write(folder / "scores-1100-2" / "day-2.parquet", 3, 900)
    problem = ended(client, merge(client, [first, second]).json())["problem"]
    assert [(one["code"], one["pointer"]) for one in problem["errors"]] == [("data_changed", "/evaluations/1")]
