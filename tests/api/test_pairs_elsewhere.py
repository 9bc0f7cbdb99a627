"""Runs whose samples lie elsewhere, paired by what is read again: the answer of the same rows sent whole."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from secrets import token_hex
from typing import Any

import httpx
import numpy as np
import prevail
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pydantic import SecretStr

from app.api.v1.reread import DataAgain
from app.domain.errors import DataNotAllowed, TooLarge
from app.domain.inputs.confusion import BinaryCounts
from app.domain.inputs.matrices import MatrixInput
from app.domain.operations import DEFAULT_PROJECT
from app.outbound.data import DataPlaces
from app.services.compare.elsewhere import Rereading
from app.services.stored import unkept_record
from app.settings import Authentication, Settings
from tests.api.answers import Json, check_problem, create, evaluation
from tests.api.jobs import ended, result
from tests.api.keys import bearer, make_key
from tests.api.referenced import settings_for
from tests.engine import ENGINE
from tests.services.paired_models import check_close
from tests.serving import Served

# Large data; what answers small data the same way is held against it by tests/services/test_either_way.py in every run.
pytestmark = pytest.mark.slow

ROWS = 240
RANDOM = np.random.default_rng(1507)
TRUTH = RANDOM.integers(0, 2, ROWS)
GUESSES = [np.where(RANDOM.random(ROWS) < skill, TRUTH, 1 - TRUTH) for skill in (0.75, 0.9)]
SHARES = [np.clip(TRUTH * 0.3 + RANDOM.beta(2, 3, ROWS), 0.01, 0.99) for _ in "ab"]
ORDERS = [np.arange(ROWS), RANDOM.permutation(ROWS)]
NAMES = np.array(["yes", "no"])
TABLES = [
    pa.table(
        {
            "truth": NAMES[TRUTH][order],
            "guess": NAMES[guess][order],
            "seen": np.where(np.arange(ROWS) % 9 == 0, "void", NAMES[TRUTH])[order],
            "sick": TRUTH[order],
            "p": share[order],
            "q": 1.0 - share[order],
            "off": (1.0 - share[order]) * (1.0 + 0.05 * (order % 2)),
            "risk": share[order] * 3.0 - 1.0,
            "id": order,
            "text": pa.array(order).cast(pa.string()),
            "group": order // 4,
            "w": 1.0 + order % 3,
            "old": (np.arange(ROWS) % 2)[order],
            "query": order // 8,
            "grade": np.where(TRUTH, 2.0, np.arange(TRUTH.size) % 2.0)[order],
        }
    )
    for guess, share, order in zip(GUESSES, SHARES, ORDERS, strict=True)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pairs")
    for name, table in zip("ab", TABLES, strict=True):
        pq.write_table(table, place / f"{name}.parquet", row_group_size=50)
        pyarrow.csv.write_csv(table, place / f"{name}.csv")
    return place


@pytest.fixture(scope="module")
def settings(database_url: str, folder: Path) -> Settings:
    return settings_for(database_url, str(folder))


PREDICTIONS = {"y_true": "truth", "y_pred": "guess", "sample_id": "id"}
ARRAYS = {
    "y_true": "y_true",
    "y_pred": "y_pred",
    "score": "scores",
    "probabilities": "probabilities",
    "sample_id": "sample_ids",
    "group_id": "group_ids",
    "sample_weight": "sample_weight",
    "query_id": "query_ids",
    "relevance": "relevance",
}
SETS: dict[str, tuple[Json, dict[str, Any], list[str]]] = {
    "predictions": ({}, PREDICTIONS, ["accuracy", "h_mean", "mcc", "min(recall@*)"]),
    "with texts as ids": ({"positive": "no"}, {**PREDICTIONS, "sample_id": "text"}, ["precision@no"]),
    "with groups": ({}, {**PREDICTIONS, "group_id": "group"}, ["accuracy", "macro_f1"]),
    "with weights": ({}, {**PREDICTIONS, "sample_weight": "w"}, ["accuracy", "mcc"]),
    "with weights in groups": (
        {},
        {**PREDICTIONS, "sample_weight": "w", "group_id": "group"},
        ["accuracy", "recall@yes"],
    ),
    "with weights and an ignored class": (
        {"ignore": ["void"]},
        {**PREDICTIONS, "y_true": "seen", "sample_weight": "w"},
        ["accuracy", "mcc"],
    ),
    "probabilities": (
        {"kind": "probabilities", "labels": [1, 0], "threshold": 0.4, "positive": 1},
        {"y_true": "sick", "probabilities": ["p", "q"], "sample_id": "id"},
        ["roc_auc@1", "log_loss", "accuracy", "average_precision@1"],
    ),
    "with an ignored class": ({"ignore": ["void"]}, {**PREDICTIONS, "y_true": "seen"}, ["accuracy", "recall@yes"]),
    "probabilities that do not sum to 1": (
        {"kind": "probabilities", "labels": [1, 0], "renormalize": True, "sum_tolerance": 0.02},
        {"y_true": "sick", "probabilities": ["p", "off"], "sample_id": "id"},
        ["log_loss"],
    ),
    "multilabel": (
        {"kind": "multilabel", "labels": ["sick", "old"], "thresholds": [0.4, 0.6]},
        {"y_true": ["sick", "old"], "probabilities": ["p", "q"], "sample_id": "text"},
        ["macro_f1", "hamming_loss", "label_ranking_loss"],
    ),
    "ranking": (
        {"kind": "ranking", "cutoffs": [3], "relevant_from": 2},
        {"query_id": "query", "relevance": "grade", "score": "risk"},
        ["ndcg_at_k(k=3)", "mean_average_precision", "bpref", "expected_reciprocal_rank"],
    ),
    "scores": (
        {"kind": "scores"},
        {"y_true": "sick", "score": "risk", "sample_id": "id"},
        ["roc_auc@1", "balanced_accuracy"],
    ),
}


def sent(table: pa.Table, columns: dict[str, Any], members: Json) -> Json:
    """The same rows as arrays."""
    found = {
        ARRAYS[ours]: np.column_stack([table[one] for one in theirs]).tolist()
        if isinstance(theirs, list)
        else table[theirs].to_pylist()
        for ours, theirs in columns.items()
    }
    return {"kind": "predictions", **members, **found}


def by_reference(client: httpx.Client, place: Path, columns: dict[str, Any], members: Json) -> str:
    """Id of a saved evaluation of a file."""
    source = {"kind": "predictions", **members, "data": {"uri": str(place), "columns": columns}}
    body = evaluation(model=token_hex(4), dataset="elsewhere", input=source)
    return str(result(client, client.post("/v1/evaluations", json=body).json()).json()["id"])


def whole(client: httpx.Client, table: pa.Table, columns: dict[str, Any], members: Json) -> str:
    """Id of a saved evaluation of the same rows."""
    source, options = sent(table, columns, members), {"retain": "full"}
    body = evaluation(model=token_hex(4), dataset="elsewhere", input=source, options=options)
    return str(create(client, body)["id"])


def asked(client: httpx.Client, *runs: str, **members: Any) -> httpx.Response:
    return client.post("/v1/comparisons", json={"evaluations": list(runs), "paired": "true", **members})


def later(client: httpx.Client, *runs: str, **members: Any) -> Json:
    """A comparison that is a job."""
    reply = asked(client, *runs, **members)
    assert reply.status_code == 202, reply.text
    answer: Json = result(client, reply.json()).json()
    return answer


def too_many(*_: Any) -> MatrixInput:
    """What reading all rows at once comes to."""
    raise TooLarge("more than memory holds")


def unnamed(answer: Json, *runs: str) -> Json:
    """Without what tells evaluations apart that are of the same rows."""
    text = json.dumps({name: value for name, value in answer.items() if name != "id"})
    for number, run in enumerate(runs):
        model = answer["evaluations"][number]["model"]["name"]
        text = text.replace(run, f"run {number}").replace(model, f"model {number}")
    found: Json = json.loads(text)
    return found


@pytest.mark.usefixtures("computed_here")
@pytest.mark.parametrize("name", SETS)
def test_the_comparison_is_that_of_the_same_rows_sent_whole(client: httpx.Client, folder: Path, name: str) -> None:
    members, columns, metrics = SETS[name]
    runs = [
        by_reference(client, folder / file, columns, members)
        for file in ("a.parquet", "b.csv" if name == "predictions" else "b.parquet")
    ]
    answer = later(client, *runs, metrics=metrics)
    kept = [whole(client, table, columns, members) for table in TABLES]
    reply = asked(client, *kept, metrics=metrics)
    assert reply.status_code == 201, reply.text
    assert answer["design"]["paired"]
    assert unnamed(answer, *runs) == unnamed(reply.json(), *kept)
    assert client.get(f"/v1/comparisons/{answer['id']}").json() == answer
    if name == "predictions":
        mixed = later(client, runs[0], kept[1], metrics=metrics)
        assert unnamed(mixed, runs[0], kept[1]) == unnamed(answer, *runs)


@pytest.mark.usefixtures("computed_here")
def test_more_samples_than_memory_holds_are_joined_in_parts(
    client: httpx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, list[str]] = {}
    for name in ("predictions", "with texts as ids", "probabilities"):
        members, columns, _ = SETS[name]
        made[name] = [by_reference(client, folder / f"{file}.parquet", columns, members) for file in "ab"]
    mixed = [made["predictions"][0], made["with texts as ids"][1]]
    reply = client.post("/v1/comparisons", json={"evaluations": made["probabilities"], "metrics": ["log_loss"]})
    assert "`paired: true`" in check_problem(reply, 422, "incomparable_runs")["detail"]
    kept = [made["predictions"][0], whole(client, TABLES[1].slice(0, 200), *SETS["predictions"][1::-1])]
    metrics = ["accuracy", "h_mean", "mcc", "recall@*"]
    pairs = [(made["predictions"], 1.0), (mixed, 1.0), (kept, 0.8)]
    asking = [{"metrics": metrics, "minimum_matched": least} for _, least in pairs]
    at_once = [later(client, *pair, **one) for (pair, _), one in zip(pairs, asking, strict=True)]
    monkeypatch.setattr("app.api.v1.reread.Rereading", lambda source, _, *others: Rereading(source, 3000, *others))
    for (pair, _), one, answer in zip(pairs, asking, at_once, strict=True):
        in_parts = later(client, *pair, **one)
        assert unnamed(in_parts, *pair) == unnamed(answer, *pair)
    assert any("in common" in note for note in at_once[2]["notes"])
    decided = later(client, *made["probabilities"], metrics=["accuracy"])
    assert decided["design"]["reason"] == "same 240 sample ids"
    job = ended(client, asked(client, *kept).json())
    assert "only 200 of 240 sample ids are common" in job["problem"]["detail"]


@pytest.mark.slow
@pytest.mark.usefixtures("computed_here")
@pytest.mark.parametrize("name", ["probabilities", "scores", "probabilities with weights"])
def test_probabilities_of_more_samples_than_memory_holds_are_compared(
    client: httpx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    members, columns, _ = SETS[name.removesuffix(" with weights")]
    members, weighted = {"labels": [1, 0], **members}, name.endswith("weights")
    columns = {**columns, **({"sample_weight": "w"} if weighted else {})}
    runs = [by_reference(client, folder / f"{file}.parquet", columns, members) for file in "ab"]
    runs.append(whole(client, TABLES[1], columns, members))
    closed = ["roc_auc@1", "roc_auc@0", "roc_gini@1", "accuracy"]
    closed += [] if name == "scores" else ["log_loss", "au_imcp", "brier_score"]
    asking: Json = {"metrics": [*closed, "pr_auc_trapezoid@1"]}
    pairs = [(runs[0], runs[1]), (runs[0], runs[2])]
    at_once = [later(client, *pair, **asking) for pair in pairs]
    # What differs by its weight is held in a quarter.
    memory = 30_000 if weighted else 3000
    monkeypatch.setattr("app.api.v1.reread.Rereading", lambda source, _, *others: Rereading(source, memory, *others))
    monkeypatch.setattr(DataAgain, "whole", too_many)
    in_parts = [later(client, *pair, **asking) for pair in pairs]
    # Kept or read again, in this order or that: the very bits.
    assert unnamed(in_parts[0], *pairs[0]) == unnamed(in_parts[1], *pairs[1])
    for metric in closed:
        found, expected = (answer["metrics"][metric]["differences"][0] for answer in (in_parts[0], at_once[0]))
        assert found["method"] == expected["method"]
        for number in ("difference", "low", "high", "p_value", "p_adjusted", "probability_a_better"):
            assert found[number] == pytest.approx(expected[number], rel=1e-9, abs=1e-12), (metric, number)
    assert in_parts[0]["metrics"]["pr_auc_trapezoid@1"]["values"] == [None, None]
    assert "(not_folded)" in in_parts[0]["metrics"]["pr_auc_trapezoid@1"]["differences"][0]["reason"]
    assert any("Not compared: pr_auc_trapezoid@1: " in note for note in in_parts[0]["notes"])


@pytest.mark.usefixtures("computed_here")
@pytest.mark.parametrize("name", [name for name in SETS if name.startswith("with ") and "texts" not in name])
def test_rows_that_are_more_than_labels_are_compared_beyond_memory_too(
    client: httpx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    members, columns, metrics = SETS[name]
    (folder / (token := token_hex(4))).mkdir()
    # Of one file all rows are ignored.
    void = np.array(TABLES[0]["seen"]) == "void"
    for file, rows in (("0", void), ("1", ~void)):
        pq.write_table(TABLES[0].filter(pa.array(rows)), folder / token / f"{file}.parquet")
    runs = [
        by_reference(client, place, columns, members) for place in (folder / token / "*.parquet", folder / "b.parquet")
    ]
    at_once = later(client, *runs, metrics=metrics)
    monkeypatch.setattr(DataAgain, "whole", too_many)
    in_parts = later(client, *runs, metrics=metrics)
    assert unnamed(in_parts, *runs) == unnamed(at_once, *runs)
    assert ("n_groups" in in_parts["design"]) is name.endswith("groups")


@pytest.mark.usefixtures("computed_here")
@pytest.mark.parametrize("name", SETS)
def test_what_was_merged_is_compared_as_its_rows_at_once(
    client: httpx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    members, columns, metrics = SETS[name]
    whole_a, b = (by_reference(client, folder / f"{file}.parquet", columns, members) for file in "ab")
    (folder / (token := token_hex(4))).mkdir()
    ends, parts = [0, 80, 160, ROWS], []
    for start, end in pairwise(ends):
        pq.write_table(TABLES[0].slice(start, end - start), folder / token / f"{start}.parquet")
        parts.append(by_reference(client, folder / token / f"{start}.parquet", columns, members))
    first = one_of(client, *parts[:2])
    merged = one_of(client, first, parts[2])
    expected = unnamed(later(client, whole_a, b, metrics=metrics), whole_a, b)
    assert unnamed(later(client, merged, b, metrics=metrics), merged, b) == expected
    if name == "multilabel":
        return
    monkeypatch.setattr(DataAgain, "whole", too_many)
    in_parts = unnamed(later(client, merged, b, metrics=metrics), merged, b)
    # Groups stand in the order of their names, so sums over them end in other digits.
    check_close(in_parts, unnamed(later(client, whole_a, b, metrics=metrics), whole_a, b))


def one_of(client: httpx.Client, *parts: str) -> str:
    """Id of the merge of evaluations."""
    body = {"evaluations": parts, "model": {"name": token_hex(4)}}
    reply = client.post("/v1/evaluations/merge", json=body)
    return str((result(client, reply.json()) if reply.status_code == 202 else reply).json()["id"])


@pytest.mark.usefixtures("computed_here")
def test_rankings_beyond_memory_are_compared_query_by_query(
    client: httpx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members, columns, metrics = SETS["ranking"]
    runs = [by_reference(client, folder / f"{file}.parquet", columns, members) for file in "ab"]
    runs.append(whole(client, TABLES[1], columns, members))
    at_once = later(client, *runs, metrics=metrics)
    monkeypatch.setattr(DataAgain, "whole", too_many)
    in_parts = later(client, *runs, metrics=metrics)
    assert unnamed(in_parts, *runs) == unnamed(at_once, *runs)
    assert in_parts["design"]["reason"] == "same 30 queries"


@pytest.mark.usefixtures("computed_here")
def test_evaluations_beyond_memory_are_paired_unless_an_id_comes_again(client: httpx.Client, folder: Path) -> None:
    many = 45_000
    truth = RANDOM.integers(0, 2, many)
    guesses = [np.where(RANDOM.random(many) < skill, truth, 1 - truth) for skill in (0.8, 0.81)]
    orders = [np.arange(many), RANDOM.permutation(many)]
    again = orders[1].copy()
    again[-1] = again[0]
    runs = []
    for number, (place, ids) in enumerate(zip([0, 1, 1], [*orders, again], strict=True)):
        order = orders[place]
        table = pa.table({"sick": truth[order], "guess": guesses[place][order], "id": ids})
        pq.write_table(table, folder / f"many-{number}.parquet", row_group_size=10_000)
        runs.append(by_reference(client, folder / f"many-{number}.parquet", PREDICTIONS | {"y_true": "sick"}, {}))
    body: Json = {"evaluations": runs[:2], "paired": "true", "metrics": ["accuracy"]}
    key = {"Idempotency-Key": token_hex(8)}
    jobs = [client.post("/v1/comparisons", json=body, headers=key) for _ in "ab"]
    assert [job.status_code for job in jobs] == [202, 202]
    assert jobs[0].json()["id"] == jobs[1].json()["id"]
    (difference,) = result(client, jobs[0].json()).json()["metrics"]["accuracy"]["differences"]
    right = [guess == truth for guess in guesses]
    assert difference["discordant"] == int((right[0] != right[1]).sum())
    assert difference["difference"] == pytest.approx(float(right[0].mean() - right[1].mean()), rel=1e-9)
    assert difference["method"] == "tango, mcnemar_mid_p"
    # An evaluation beyond memory does not look at ids; what pairs by them does.
    problem = ended(client, asked(client, runs[0], runs[2]).json())["problem"]
    assert [(one["pointer"], one["code"]) for one in problem["errors"]] == [("/evaluations/1", "duplicate_sample_id")]
    assert repr(str(again[0])) in problem["errors"][0]["detail"]


def test_the_client_waits_for_the_job(client: httpx.Client, folder: Path) -> None:
    runs = [by_reference(client, folder / f"{name}.parquet", PREDICTIONS, {}) for name in "ab"]
    with prevail.Client(str(client.base_url)) as own:
        answer = own.compare(*runs, metrics=["accuracy"], paired=True)
        assert answer.data["design"]["bond"] == "sample_ids"
        assert own.comparison(answer.id).data == answer.data


def test_auto_reads_nothing_and_says_what_could_be_done(client: httpx.Client, folder: Path) -> None:
    runs = [by_reference(client, folder / f"{name}.parquet", PREDICTIONS, {}) for name in "ab"]
    without = {name: column for name, column in PREDICTIONS.items() if name != "sample_id"}
    unknown = by_reference(client, folder / "a.parquet", without, {})
    for second, hint in ((runs[1], True), (unknown, False)):
        reply = client.post("/v1/comparisons", json={"evaluations": [runs[0], second]})
        assert reply.status_code == 201, reply.text
        assert reply.json()["design"]["bond"] == "same_test_set"
        assert any("`paired: true`" in note for note in reply.json()["notes"]) is hint
    # Without ids there is nothing to pair by, and reading would not help: the job says so.
    job = ended(client, asked(client, runs[0], unknown).json())
    assert (job["problem"]["status"], job["problem"]["code"]) == (422, "incomparable_runs")
    assert "1 of 2 runs came without sample ids" in job["problem"]["detail"]
    check_problem(asked(client, unknown, runs[0], metrics=["nothing"]), 422, "unknown_metric")


@pytest.mark.usefixtures("computed_here")
def test_data_that_has_changed_is_not_compared(client: httpx.Client, folder: Path) -> None:
    place = folder / f"{token_hex(4)}.parquet"
    pq.write_table(TABLES[1], place)
    runs = [by_reference(client, one, PREDICTIONS, {}) for one in (folder / "a.parquet", place)]
    pq.write_table(TABLES[1].slice(0, 200), place)
    problem = ended(client, asked(client, *runs).json())["problem"]
    assert problem["status"] == 422
    assert [(one["pointer"], one["code"]) for one in problem["errors"]] == [("/evaluations/1", "data_changed")]
    place.unlink()
    problem = ended(client, asked(client, *runs).json())["problem"]
    assert [(one["pointer"], one["code"]) for one in problem["errors"]] == [("/evaluations/1", "no_such_data")]


def test_data_is_read_for_its_project_and_below_the_prefixes_of_now(
    client: httpx.Client, database_url: str, folder: Path
) -> None:
    runs = [by_reference(client, folder / f"{name}.parquet", PREDICTIONS, {}) for name in "ab"]
    settings = Settings(
        database_url=SecretStr(database_url),
        authentication=Authentication.keys,
        data_prefixes=("/srv/elsewhere",),
        job_concurrency=0,
    )
    body = {"evaluations": runs, "paired": "true"}
    with Served(settings) as url, httpx.Client(base_url=url, timeout=60) as strict:
        for project, scopes, status, code in (
            (DEFAULT_PROJECT, ("read", "write"), 403, "data_not_allowed"),
            (DEFAULT_PROJECT, ("read",), 403, "forbidden"),
            ("others", ("read", "write"), 404, "not_found"),
        ):
            headers = bearer(make_key(database_url, project, *scopes))
            reply = strict.post("/v1/comparisons", json=body, headers=headers)
            assert str(folder) not in json.dumps(check_problem(reply, status, code))
    # Whoever carries the job out looks again.
    source = BinaryCounts(tp=1, fn=1, fp=1, tn=1, negative="n", positive="p").read("")
    facts = {"uri": str(folder / "a.parquet"), "format": "parquet", "rows": 4, "files": 1, "bytes": 1, "digest": "x"}
    record = unkept_record(replace(source, kind="predictions", facts={"data": facts}))
    with pytest.raises(DataNotAllowed):
        DataAgain(DataPlaces(("/srv/elsewhere",)), ENGINE, folder).whole(record, 1 << 20)
