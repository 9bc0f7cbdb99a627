"""Data that requests name and that memory does not hold: counted, folded or divided while it goes by."""

import time
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from scipy.stats import t

from app.settings import Settings
from tests.api.answers import Json, check_problem, compute
from tests.api.jobs import ended, read, result, running
from tests.api.referenced import keep, later, lists, named, settings_for
from tests.witnesses import sk

RANDOM = np.random.default_rng(15)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def settings(database_url: str, folder: Path) -> Settings:
    return settings_for(database_url, str(folder), spill_dir=folder / "spilled")


def files_of_jobs(folder: Path) -> list[Path]:
    return [*folder.glob("spilled/prevail-*/job-*")]


def long_request(folder: Path, many: int) -> Json:
    """Rows that take some seconds."""
    random = np.random.default_rng(31)
    risk = random.normal(size=many)
    table = pa.table({"ill": risk + random.normal(size=many) > 0.0, "risk": risk})
    pq.write_table(table, folder / "long.parquet", row_group_size=many // 40)
    return {
        "input": named(folder / "long.parquet", {"y_true": "ill", "score": "risk"}, "scores", labels=["false", "true"])
    }


def test_a_job_that_is_cancelled_ends_and_leaves_no_files(client: httpx.Client, folder: Path) -> None:
    job = client.post("/v1/metrics/compute", json=long_request(folder, 1_000_000)).json()
    running(client, job)
    deadline = time.monotonic() + 60
    while not any(one for place in files_of_jobs(folder) for one in place.iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert client.delete(f"/v1/jobs/{job['id']}").status_code == 202
    assert ended(client, job)["status"] == "cancelled"
    while files_of_jobs(folder):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_job_is_not_done_before_its_end(client: httpx.Client, folder: Path) -> None:
    job = client.post("/v1/metrics/compute", json=long_request(folder, 200_000)).json()
    told = []
    while (found := read(client, job))["status"] in ("queued", "running"):
        told.append(found["progress"] or 0.0)
        time.sleep(0.02)
    assert (found["status"], found["progress"]) == ("succeeded", 1.0)
    assert told == sorted(told)
    assert max(told) < 1.0


def test_sets_of_labels_beyond_memory_are_folded(client: httpx.Client, folder: Path) -> None:
    from statsmodels.stats.proportion import proportion_confint

    many = 80_000
    truth = RANDOM.normal(size=(many, 3)) + RANDOM.normal(size=(many, 1)) > 1.0
    guess = truth ^ (RANDOM.random((many, 3)) < 0.2)
    names = {"y_true": ["t0", "t1", "t2"], "y_pred": ["g0", "g1", "g2"]}
    filled = {
        one: column
        for kind, of in zip(names, (truth, guess), strict=True)
        for one, column in zip(names[kind], of.T, strict=True)
    }
    table = pa.table({**filled, "wide": RANDOM.random(many)})
    pq.write_table(table, folder / "sets.parquet", row_group_size=10_000)
    source = named(folder / "sets.parquet", names, "multilabel", labels=["a", "b", "c"])
    kept = result(client, keep(client, source, model="sets").json()).json()
    assert client.get(f"/v1/evaluations/{kept['id']}").json() == kept
    assert kept["input"]["data"]["rows"] == kept["input"]["n_samples"] == many
    found = kept["metrics"]["prevalence_sensitive"]
    assert found["samples_jaccard"] == pytest.approx(sk.jaccard_score(truth, guess, average="samples", zero_division=1))
    assert found["hamming_loss"] == pytest.approx(sk.hamming_loss(truth, guess))
    exact = (truth == guess).all(axis=1)
    limits = kept["intervals"]["subset_accuracy"]
    assert [limits["low"], limits["high"]] == pytest.approx(proportion_confint(exact.sum(), many, method="wilson"))


@pytest.mark.slow
def test_probabilities_of_labels_beyond_memory_are_folded(client: httpx.Client, folder: Path) -> None:
    many = 80_000
    random = np.random.default_rng(23)
    truth = random.normal(size=(many, 3)) + random.normal(size=(many, 1)) > 1.0
    scores = np.round(1.0 / (1.0 + np.exp(1.0 - random.normal(size=(many, 3)) - 2.0 * truth)), 3)
    names = {"y_true": ["t0", "t1", "t2"], "probabilities": ["p0", "p1", "p2"]}
    filled = {
        one: column
        for kind, of in zip(names, (truth, scores), strict=True)
        for one, column in zip(names[kind], of.T, strict=True)
    }
    pq.write_table(pa.table(filled), folder / "labels.parquet", row_group_size=10_000)
    source = named(folder / "labels.parquet", names, "multilabel", labels=["a", "b", "c"], thresholds=0.4)
    kept = result(client, keep(client, source, model="labels").json()).json()
    assert client.get(f"/v1/evaluations/{kept['id']}").json() == kept
    assert kept["input"]["rows"] == kept["input"]["n_samples"] == many
    for place, label in enumerate("abc"):
        found = kept["per_class"][label]
        area = sk.roc_auc_score(truth[:, place], scores[:, place])
        assert found["prevalence_insensitive"]["roc_auc"] == pytest.approx(area, rel=1e-12)
        precision = sk.average_precision_score(truth[:, place], scores[:, place])
        assert found["prevalence_sensitive"]["average_precision"] == pytest.approx(precision, rel=1e-11)
    found = kept["metrics"]["prevalence_sensitive"]
    assert found["coverage_error"] == pytest.approx(sk.coverage_error(truth, scores), rel=1e-12)
    ranked = sk.label_ranking_average_precision_score(truth, scores)
    assert found["label_ranking_average_precision"] == pytest.approx(ranked, rel=1e-12)
    assert found["label_ranking_loss"] == pytest.approx(sk.label_ranking_loss(truth, scores), rel=1e-12)
    assert found["hamming_loss"] == pytest.approx(sk.hamming_loss(truth, scores >= 0.4))


def test_rankings_beyond_memory_are_divided_by_their_queries(client: httpx.Client, folder: Path) -> None:
    many = 80_000
    query, grade = RANDOM.integers(0, 900, many), RANDOM.integers(0, 3, many).astype(float)
    score = RANDOM.normal(size=many) + grade
    table = pa.table({"user": [f"u{one}" for one in query], "grade": grade, "score": score})
    pq.write_table(table, folder / "rankings.parquet", row_group_size=10_000)
    source = named(folder / "rankings.parquet", {"query_id": "user", "relevance": "grade", "score": "score"}, "ranking")
    kept = result(client, keep(client, source, model="ranked").json()).json()
    assert client.get(f"/v1/evaluations/{kept['id']}").json() == kept
    assert (kept["input"]["data"]["rows"], kept["input"]["n_samples"]) == (many, 900)
    assert kept["undefined"] == []
    of_each = []
    for one in range(900):
        own = query == one
        of_each.append(sk.ndcg_score([grade[own]], [score[own]], k=10))
    found = kept["metrics"]["prevalence_sensitive"]["ndcg_at_k(k=10)"]
    assert found == pytest.approx(np.mean(of_each), rel=1e-12)
    limits = kept["intervals"]["ndcg_at_k(k=10)"]
    error = np.std(of_each, ddof=1) / np.sqrt(900)
    assert limits["high"] - limits["low"] == pytest.approx(2 * t.ppf(0.975, 899) * error, rel=0.02)
    worst = kept["queries"]["lowest"][0]
    assert worst["value"] == pytest.approx(min(of_each), rel=1e-12)
    assert worst["query_id"] == f"u{np.argmin(of_each)}"


@pytest.mark.slow
def test_groups_of_probabilities_beyond_memory_count_in_their_limits(client: httpx.Client, folder: Path) -> None:
    many = 80_000
    random = np.random.default_rng(19)
    house = random.integers(0, 400, many)
    sure = random.uniform(size=many)
    ill = sure + random.normal(scale=0.4, size=many) + random.normal(scale=0.3, size=400)[house] > 0.5
    names = [f"house {one}" for one in house]
    table = pa.table({"ill": ill, "p0": 1.0 - sure, "p1": sure, "house": names, "id": np.arange(many)})
    pq.write_table(table, folder / "houses.parquet", row_group_size=10_000)
    labels = ["false", "true"]
    columns = {"y_true": "ill", "probabilities": ["p0", "p1"], "group_id": "house", "sample_id": "id"}
    source = named(folder / "houses.parquet", columns, "probabilities", labels=labels)
    kept = result(client, keep(client, source, model="houses").json()).json()
    assert client.get(f"/v1/evaluations/{kept['id']}").json() == kept
    assert kept["input"]["data"]["sample_ids_unchecked"] is True
    sent = {"y_true": np.where(ill, "true", "false").tolist(), "probabilities": lists(table, "p0", "p1")}
    whole = compute(client, {"kind": "probabilities", "labels": labels, **sent, "group_ids": names})
    assert kept["input"]["n_groups"] == whole["input"]["n_groups"] == 400
    effects = kept["groups"].pop("design_effects")
    assert effects == pytest.approx(whole["groups"].pop("design_effects"), rel=1e-11)
    assert effects["accuracy"] > 1.5
    assert kept["groups"] == whole["groups"]
    assert kept["intervals"].keys() == whole["intervals"].keys()
    for name, own in whole["intervals"].items():
        found = kept["intervals"][name]
        assert (found["method"], found["given"]) == (own["method"], own["given"])
        assert (found["low"], found["high"]) == pytest.approx((own["low"], own["high"]), rel=1e-6), name
    assert kept["intervals"]["roc_auc@true"]["method"] == "cluster_delong_logit"
    place = f"/v1/evaluations/{kept['id']}"
    banded = client.get(f"{place}/curves/calibration", params={"band": "pointwise"})
    assert "bands of samples in groups" in check_problem(banded, 409, "no_samples_kept")["detail"]
    assert client.get(f"{place}/plots/calibration.svg").status_code == 200
    assert {gap["code"] for gap in kept["undefined"]} == {"not_folded"}


@pytest.mark.slow
def test_probabilities_beyond_memory_are_streamed(client: httpx.Client, folder: Path) -> None:
    many = 80_000
    sure = RANDOM.uniform(size=many)
    table = pa.table({"ill": sure + RANDOM.normal(scale=0.5, size=many) > 0.5, "p0": 1.0 - sure, "p1": sure})
    pq.write_table(table, folder / "many.parquet", row_group_size=10_000)
    labels = ["false", "true"]
    source = named(folder / "many.parquet", {"y_true": "ill", "probabilities": ["p0", "p1"]}, "probabilities")
    kept = result(client, keep(client, source | {"labels": labels}, model="many").json()).json()
    assert client.get(f"/v1/evaluations/{kept['id']}").json() == kept
    assert kept["input"]["data"]["rows"] == kept["input"]["n_samples"] == many
    whole = np.column_stack([1.0 - sure, sure])
    assert kept["metrics"]["prevalence_insensitive"]["roc_auc"] == pytest.approx(
        sk.roc_auc_score(table["ill"].to_numpy(), sure), rel=1e-12
    )
    assert kept["metrics"]["prevalence_sensitive"]["log_loss"] == pytest.approx(
        sk.log_loss(table["ill"].to_numpy(), whole), rel=1e-12
    )
    assert {gap["code"] for gap in kept["undefined"]} == {"not_folded"}
    curve = client.get(f"/v1/evaluations/{kept['id']}/curves/roc", params={"max_points": 200}).json()
    assert (len(curve["x"]), curve["n_points"]) == (200, many + 1)
    assert curve["area"] == kept["metrics"]["prevalence_insensitive"]["roc_auc"]
    assert client.get(f"/v1/evaluations/{kept['id']}/curves/calibration").json()["class"] == "true"
    imcp = client.get(f"/v1/evaluations/{kept['id']}/curves/imcp")
    assert "were streamed" in check_problem(imcp, 409, "no_samples_kept")["detail"]
    for name in ("roc", "calibration"):
        drawn = client.get(f"/v1/evaluations/{kept['id']}/plots/{name}.json")
        assert drawn.status_code == 200, drawn.text
    check_problem(client.get(f"/v1/evaluations/{kept['id']}/plots/scores.json"), 409, "no_samples_kept")
    for accept in ("text/plain", "text/markdown", "text/csv"):
        assert client.get(f"/v1/evaluations/{kept['id']}", headers={"Accept": accept}).status_code == 200
    assert "IMCP curve" in client.get(f"/v1/evaluations/{kept['id']}", headers={"Accept": "text/html"}).text
    assert later(client, source | {"labels": labels, "ignore": ["x"]})["input"]["ignored"] == {"x": 0}
