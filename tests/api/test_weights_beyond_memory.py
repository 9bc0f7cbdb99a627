"""Weights of probabilities and scores beyond memory: the answer of the same rows sent whole."""

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.settings import Settings
from tests.api.answers import Json, check_problem, compute, evaluation
from tests.api.jobs import ended, result
from tests.api.referenced import settings_for

# Large data; what answers small data the same way is held against it by tests/services/test_either_way.py in every run.
pytestmark = pytest.mark.slow

MANY = 80_000
RANDOM = np.random.default_rng(31)
SURE = RANDOM.uniform(size=MANY).round(4)
ILL = SURE + RANDOM.normal(scale=0.5, size=MANY) > 0.5
WEIGHTS = np.exp(RANDOM.normal(size=MANY)) * (RANDOM.uniform(size=MANY) > 0.1)
# The first pieces hold nothing that counts.
WEIGHTS[:15_000] = 0.0
KIND = RANDOM.integers(0, 3, MANY)
SHARES = RANDOM.dirichlet([1.0, 1.0, 1.0], MANY) + 0.3 * np.eye(3)[KIND]
SHARES /= SHARES.sum(axis=1, keepdims=True)
LABELS = ["false", "true"]
CLASSES = ["0", "1", "2"]
TABLE = pa.table(
    {
        "ill": ILL,
        "p0": 1.0 - SURE,
        "p1": SURE,
        "score": np.log(SURE + 0.001),
        "w": WEIGHTS,
        "kind": KIND,
        **{f"q{code}": SHARES[:, code] for code in range(3)},
        "house": np.arange(MANY) // 200,
        "nothing": np.zeros(MANY),
        "alone": (np.arange(MANY) == MANY - 2) * 0.25,
        "tiny": np.full(MANY, 1e-21),
    }
)
TWO = {"y_true": "ill", "probabilities": ["p0", "p1"], "sample_weight": "w"}
ILL_TEXTS = np.where(ILL, "true", "false").tolist()
SENT: dict[str, tuple[Json, Json, Json]] = {
    "two classes": (
        {"kind": "probabilities", "labels": LABELS},
        TWO,
        {"y_true": ILL_TEXTS, "probabilities": np.column_stack([1.0 - SURE, SURE]).tolist()},
    ),
    "three classes": (
        {"kind": "probabilities", "labels": CLASSES},
        {"y_true": "kind", "probabilities": ["q0", "q1", "q2"], "sample_weight": "w"},
        {"y_true": KIND.tolist(), "probabilities": SHARES.tolist()},
    ),
    "scores": (
        {"kind": "scores", "labels": LABELS, "positive": "false"},
        {"y_true": "ill", "score": "score", "sample_weight": "w"},
        {"y_true": ILL_TEXTS, "scores": TABLE["score"].to_pylist()},
    ),
    "scores of three classes": (
        {"kind": "scores", "labels": CLASSES},
        {"y_true": "kind", "scores": ["q0", "q1", "q2"], "sample_weight": "w"},
        {"y_true": KIND.tolist(), "scores": SHARES.tolist()},
    ),
}
# What is simulated of all samples at hand, and what is said of them one by one.
_OF_SAMPLES = ("brier_decomposition", "spiegelhalter")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Row groups that are pieces of their own."""
    place = tmp_path_factory.mktemp("weights") / "many.parquet"
    pq.write_table(TABLE, place, row_group_size=10_000)
    return place


@pytest.fixture(scope="module")
def settings(database_url: str, file: Path) -> Settings:
    """So little memory that rows are folded."""
    return settings_for(database_url, str(file.parent))


def named(file: Path, form: Json, columns: Json) -> Json:
    return {**form, "data": {"uri": str(file), "columns": columns}}


def close(found: Any, own: Any, where: str) -> None:
    """Numbers are the same but for rounding, of what both have."""
    if isinstance(own, dict):
        for name in own:
            if name not in _OF_SAMPLES:
                close(found[name], own[name], f"{where}/{name}")
    elif isinstance(own, float) and found is not None:
        assert found == pytest.approx(own, rel=1e-11, abs=1e-13), where
    elif found is not None:
        assert found == own, where


@pytest.mark.parametrize("name", SENT)
def test_the_answer_is_that_of_the_same_rows_sent_whole(client: httpx.Client, file: Path, name: str) -> None:
    form, columns, sent = SENT[name]
    whole = compute(client, {**form, **sent, "sample_weight": WEIGHTS.tolist()})
    reply = client.post("/v1/evaluations", json=evaluation(input=named(file, form, columns), model=name))
    kept = result(client, reply.json()).json()
    assert client.get(f"/v1/evaluations/{kept['id']}").json() == kept
    for part in ("metrics", "per_class", "weights", "headline", "metrics_at_balanced_prevalence"):
        if part in whole:
            close(kept[part], whole[part], part)
    assert "samples_folded" in {finding["code"] for finding in kept["findings"]}
    assert kept["input"]["n_samples"] == pytest.approx(WEIGHTS.sum(), rel=1e-12)
    assert kept["input"]["effective_samples"] == pytest.approx(whole["input"]["effective_samples"], rel=1e-12)
    missing = {gap["metric"] for gap in kept["undefined"]} - {gap["metric"] for gap in whole["undefined"]}
    assert {gap["code"] for gap in kept["undefined"] if gap["metric"] in missing} <= {"not_folded"}
    assert "roc_auc" not in missing
    assert "average_precision" not in missing
    assert kept["intervals"].keys() == whole["intervals"].keys()
    for estimand, own in whole["intervals"].items():
        found = kept["intervals"][estimand]
        assert (found["method"], found["given"]) == (own["method"], own["given"]), estimand
        # As everywhere beyond memory, limits of an average of areas are held to a part of their width.
        near = {"abs": 1e-4 * (own["high"] - own["low"])} if estimand == "roc_auc_ovr_macro" else {"rel": 1e-9}
        assert (found["low"], found["high"]) == pytest.approx((own["low"], own["high"]), **near), estimand
    place = f"/v1/evaluations/{kept['id']}"
    banded = client.get(f"{place}/curves/calibration", params={"band": "pointwise"})
    assert "or with weights" in check_problem(banded, 409, "no_samples_kept")["detail"]
    curve = client.get(f"/v1/evaluations/{kept['id']}/curves/roc", params={"class": form["labels"][1]}).json()
    assert curve["x"][0] == curve["y"][0] == 0.0
    assert curve["x"][-1] == curve["y"][-1] == 1.0
    areas = [found["roc_auc"] for found in kept["per_class"][form["labels"][1]].values() if "roc_auc" in found]
    assert [curve["area"]] == areas
    assert curve["area"] == pytest.approx(np.trapezoid(curve["y"], curve["x"]), abs=1e-4)


@pytest.mark.parametrize(
    ("columns", "status", "code", "said"),
    [
        ({**TWO, "sample_weight": "nothing"}, 422, "no_samples", "sample_weight: expected at least one sample"),
        ({**TWO, "sample_weight": "tiny"}, 422, "entry_too_small", "sample_weight: expected 0 or at least"),
        ({**TWO, "sample_weight": "score"}, 422, "bad_weight", "sample_weight, row 0 of those read"),
    ],
)
def test_what_does_not_fold_is_refused(
    client: httpx.Client, file: Path, columns: Json, status: int, code: str, said: str
) -> None:
    source = named(file, SENT["two classes"][0], columns)
    job = ended(client, client.post("/v1/metrics/compute", json={"input": source}).json())
    problem = job["problem"]
    found = (problem["status"], problem["code"])
    if status == 422:
        found = (problem["status"], problem["errors"][0]["code"])
    assert found == (status, code), problem
    assert said in str(problem)


def test_one_sample_that_counts_is_all_there_is(client: httpx.Client, file: Path) -> None:
    form, columns, sent = SENT["two classes"]
    source = named(file, form, {**columns, "sample_weight": "alone"})
    found = result(client, client.post("/v1/metrics/compute", json={"input": source}).json()).json()
    whole = compute(client, {**form, **sent, "sample_weight": TABLE["alone"].to_pylist()})
    close(found["metrics"], whole["metrics"], "metrics")
    assert found["input"]["n_samples"] == 0.25
    assert found.get("weights") == whole.get("weights")
    assert found["intervals"] == whole["intervals"]
    gaps = {gap["metric"]: gap["code"] for gap in found["undefined"] if gap["code"] != "not_folded"}
    own = {gap["metric"]: gap["code"] for gap in whole["undefined"]}
    assert gaps.items() <= own.items()


def test_ignored_classes_are_left_out_with_their_weights(client: httpx.Client, file: Path) -> None:
    form = {"kind": "scores", "labels": ["0", "1", "2"], "ignore": ["0"]}
    _, columns, sent = SENT["scores of three classes"]
    reply = client.post("/v1/metrics/compute", json={"input": named(file, form, columns)})
    found = result(client, reply.json()).json()
    whole = compute(client, {**form, **sent, "sample_weight": WEIGHTS.tolist()})
    close(found["per_class"], whole["per_class"], "per_class")
    assert found["input"]["ignored"] == whole["input"]["ignored"]
