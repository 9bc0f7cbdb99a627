"""Metrics of probabilities at other class shares, and probabilities fitted to them; witness: scikit-learn's weights."""

from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.api.answers import Json, check_problem, create, evaluation
from tests.api.decisions import keep
from tests.api.test_probabilities import make
from tests.api.test_projections import project
from tests.witnesses import sk

LABELS = ["a", "b", "c"]


class Run:
    """Samples of three classes whose probabilities are calibrated at equal shares."""

    def __init__(self, sizes: tuple[int, ...], seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.y = np.repeat(np.arange(len(sizes)), sizes)
        points = np.eye(len(sizes))[self.y] * 1.5 + random.normal(size=(self.y.size, len(sizes)))
        # x of class c is normal around 1.5 e_c: log p(c|x) = 1.5 x_c + constant.
        rows = np.exp(1.5 * points)
        self.rows = rows / rows.sum(axis=1, keepdims=True)

    def source(self, **members: Any) -> Json:
        labels = LABELS[: self.rows.shape[1]]
        return {
            "kind": "probabilities",
            "labels": labels,
            "y_true": [labels[code] for code in self.y],
            "probabilities": self.rows.tolist(),
            **members,
        }

    def weights(self, shares: list[float]) -> NDArray[np.float64]:
        return (np.array(shares) / np.bincount(self.y))[self.y]

    def keep(self, client: httpx.Client, **members: Any) -> str:
        body = evaluation(model="m", dataset=uuid4().hex, input=self.source(**members))
        return str(create(client, body)["id"])


THREE = Run((60, 90, 50))
TWO = Run((150, 100), seed=1)
SHARES = [0.7, 0.1, 0.2]
NAMED = dict(zip(LABELS, SHARES, strict=True))


@pytest.fixture(scope="module")
def three(client: httpx.Client) -> str:
    return THREE.keep(client)


@pytest.fixture(scope="module")
def two(client: httpx.Client) -> str:
    return TWO.keep(client, positive="b")


def test_metrics_of_probabilities_are_those_of_weighted_samples(client: httpx.Client, three: str) -> None:
    keys = ["log_loss", "average_precision@b", "accuracy", "roc_auc@a", "mean(brier_score, error_rate)"]
    found = project(client, three, prevalence=NAMED, metrics=keys)["metrics"]
    weights = THREE.weights(SHARES)
    truth = np.eye(3)[THREE.y]
    expected = [
        sk.log_loss(THREE.y, THREE.rows, sample_weight=weights),
        sk.average_precision_score(THREE.y == 1, THREE.rows[:, 1], sample_weight=weights),
        sk.accuracy_score(THREE.y, THREE.rows.argmax(axis=1), sample_weight=weights),
        sk.roc_auc_score(THREE.y == 0, THREE.rows[:, 0], sample_weight=weights),
        (
            np.average(((THREE.rows - truth) ** 2).sum(axis=1), weights=weights)
            + sk.zero_one_loss(THREE.y, THREE.rows.argmax(axis=1), sample_weight=weights)
        )
        / 2,
    ]
    assert list(found) == keys
    assert [entry["value"] for entry in found.values()] == pytest.approx(expected, rel=1e-10)
    assert found["log_loss"]["observed"] == pytest.approx(sk.log_loss(THREE.y, THREE.rows))
    for entry in found.values():
        assert entry["low"] < entry["value"] < entry["high"]


def test_the_interval_is_that_of_a_stratified_mean(client: httpx.Client, three: str) -> None:
    answer = project(client, three, prevalence=NAMED, metrics=["log_loss"], seed=3)
    entry, design = answer["metrics"]["log_loss"], answer["design"]
    losses = -np.log(THREE.rows[np.arange(THREE.y.size), THREE.y])
    variance = sum(
        share**2 * losses[THREE.y == code].var() / (THREE.y == code).sum() for code, share in enumerate(SHARES)
    )
    half = stats.norm.ppf(0.975) * variance**0.5
    # The mean of skewed losses is a little skewed itself.
    assert entry["high"] - entry["low"] == pytest.approx(2 * half, rel=0.12)
    assert entry["low"] == pytest.approx(entry["value"] - half, abs=0.3 * half)
    assert entry["method"] == "hall_t"
    # Nothing has to be drawn for it.
    assert design == {"level": 0.95, "draws": 0, "prevalence": "given"}


def test_uncertain_shares_widen_what_they_move(client: httpx.Client, three: str) -> None:
    metrics = ["log_loss", "average_precision@b", "balanced_log_loss"]
    exact = project(client, three, prevalence=NAMED, metrics=metrics, seed=1)["metrics"]
    loose = project(client, three, prevalence=NAMED, prevalence_samples=15, metrics=metrics, seed=1)["metrics"]
    width = [{key: one[key]["high"] - one[key]["low"] for key in metrics} for one in (exact, loose)]
    assert width[1]["average_precision@b"] > 1.1 * width[0]["average_precision@b"]
    assert loose["balanced_log_loss"] == exact["balanced_log_loss"]
    assert loose["log_loss"]["value"] == exact["log_loss"]["value"]


def test_a_sweep_of_an_average_precision(client: httpx.Client, two: str) -> None:
    sweep = {"class": "b", "from": 0.05, "to": 0.95, "steps": 7}
    answer = project(client, two, sweep=sweep, metrics=["average_precision", "mcc", "roc_auc", "median_phi"])
    expected = [
        sk.average_precision_score(TWO.y, TWO.rows[:, 1], sample_weight=TWO.weights([1 - share, share]))
        for share in answer["grid"]
    ]
    entry = answer["metrics"]["average_precision"]
    assert entry["value"] == pytest.approx(expected, rel=1e-10)
    assert all(
        low < value < high for low, value, high in zip(*(entry[k] for k in ("low", "value", "high")), strict=True)
    )
    assert answer["metrics"]["roc_auc"]["value"] == [answer["metrics"]["roc_auc"]["observed"]] * 7
    assert (answer["design"]["method"], answer["design"]["samples"]["method"]) == ("posterior", "bootstrap")
    assert answer["design"]["draws"] > answer["design"]["samples"]["draws"] >= 200


def test_a_range(client: httpx.Client, two: str) -> None:
    answer = project(client, two, prevalence_range={"b": [0.1, 0.3]}, metrics=["log_loss", "average_precision"])
    entry = answer["metrics"]["average_precision"]
    assert entry["lowest"]["prevalence"]["b"] == pytest.approx(0.1)
    assert entry["highest"]["prevalence"]["b"] == pytest.approx(0.3)
    single = project(client, two, prevalence={"b": 0.1}, metrics=["average_precision"])["metrics"]["average_precision"]
    assert entry["lowest"]["value"] == pytest.approx(single["value"])
    assert entry["lowest"]["low"] == pytest.approx(single["low"], abs=0.02)


def test_probabilities_fitted_to_the_shares(client: httpx.Client, three: str) -> None:
    """Calibrated at equal shares, they lose at others until they are fitted to them."""
    metrics = ["log_loss", "accuracy", "h_mean", "roc_auc_ovr_macro"]
    asked: Json = {"prevalence": NAMED, "metrics": metrics}
    equal = dict.fromkeys(LABELS, 1 / 3)
    plain = project(client, three, **asked)["metrics"]
    answer = project(client, three, **asked, recalibrate=True, old_prevalence=equal)
    rows = THREE.rows * np.array(SHARES)
    rows /= rows.sum(axis=1, keepdims=True)
    weights, decided = THREE.weights(SHARES), rows.argmax(axis=1)
    recalls = sk.recall_score(THREE.y, decided, average=None)
    expected = [
        sk.log_loss(THREE.y, rows, sample_weight=weights),
        sk.accuracy_score(THREE.y, decided, sample_weight=weights),
        stats.hmean(recalls),
        np.mean([sk.roc_auc_score(THREE.y == code, rows[:, code], sample_weight=weights) for code in range(3)]),
    ]
    found = answer["metrics"]
    assert [entry["value"] for entry in found.values()] == pytest.approx(expected, rel=1e-10)
    assert found["log_loss"]["value"] < plain["log_loss"]["value"]
    assert found["accuracy"]["value"] > plain["accuracy"]["value"]
    # Decisions follow the frequent class, and even what prevalence does not move by itself changes.
    assert found["h_mean"]["value"] < found["h_mean"]["observed"] == plain["h_mean"]["value"]
    assert any("Elkan" in note or "fitted to the shares" in note for note in answer["notes"])
    assert not any("does not move" in note for note in answer["notes"])
    for entry in found.values():
        assert entry["low"] <= entry["value"] <= entry["high"]


def test_a_threshold_is_kept_when_probabilities_are_fitted(client: httpx.Client) -> None:
    run = TWO.keep(client, positive="b", threshold=0.3)
    sweep = {"class": "b", "from": 0.0, "to": 0.5, "steps": 3}
    answer = project(client, run, sweep=sweep, recalibrate=True, metrics=["recall@*", "log_loss"])
    old = np.array([0.6, 0.4])
    for place, share in enumerate(answer["grid"]):
        rows = TWO.rows * np.array([1 - share, share]) / old
        rows /= rows.sum(axis=1, keepdims=True)
        recalls = sk.recall_score(TWO.y, rows[:, 1] >= 0.3, average=None)
        assert [answer["metrics"][f"recall@{name}"]["value"][place] for name in "ab"] == pytest.approx(recalls), share


def test_where_two_runs_change_places(client: httpx.Client) -> None:
    """A run that is better at one class and one that is better at the other; the other names its classes in reverse."""
    bold, shy = TWO.rows.copy(), TWO.rows.copy()
    bold[:, 1] = bold[:, 1] ** 0.5
    shy[:, 1] = shy[:, 1] ** 2
    bold[:, 0], shy[:, 0] = 1 - bold[:, 1], 1 - shy[:, 1]
    first, second = Run((150, 100), seed=1), Run((150, 100), seed=1)
    first.rows, second.rows = bold, shy
    turned = {"labels": ["b", "a"], "probabilities": shy[:, ::-1].tolist()}
    ids = [first.keep(client), second.keep(client, **turned)]
    sweep = {"class": "b", "from": 0.02, "to": 0.98, "steps": 5}
    answer = project(client, ids[0], sweep=sweep, against=ids[1], metrics=["log_loss", "brier_score", "roc_auc@b"])
    losses = [-np.log(rows[np.arange(250), TWO.y]) for rows in (bold, shy)]
    gap = [(losses[0] - losses[1])[TWO.y == code].mean() for code in (0, 1)]
    assert answer["crossings"]["log_loss"] == pytest.approx([gap[0] / (gap[0] - gap[1])])
    assert len(answer["crossings"]["brier_score"]) == 1
    assert answer["crossings"]["roc_auc@b"] == []


def test_what_noise_moves_to_one_side_has_no_interval(client: httpx.Client, two: str) -> None:
    answer = project(client, two, prevalence={"b": 0.1}, metrics=["expected_calibration_error", "brier_score"])
    entry = answer["metrics"]["expected_calibration_error"]
    assert entry["value"] > 0
    assert (entry["low"], entry["high"]) == (None, None)
    assert answer["metrics"]["brier_score"]["low"] is not None
    assert any(note.startswith("No intervals of expected_calibration_error") for note in answer["notes"])


def test_weights_stay_with_their_samples_at_other_shares(client: httpx.Client) -> None:
    given = np.linspace(0.5, 2.0, TWO.y.size)
    run = TWO.keep(client, positive="b", sample_weight=given.tolist())
    answer = project(client, run, prevalence={"b": 0.1}, metrics=["log_loss"])
    mass = np.bincount(TWO.y, weights=given)
    weights = given * (np.array([0.9, 0.1]) / mass)[TWO.y]
    entry = answer["metrics"]["log_loss"]
    assert entry["value"] == pytest.approx(sk.log_loss(TWO.y, TWO.rows, sample_weight=weights))
    assert entry["low"] < entry["value"] < entry["high"]
    assert entry["method"] == "weighted_hall_t"
    kept = {"input": {**TWO.source(positive="b"), "sample_weight": given.tolist()}, "prevalence": {"b": 0.1}}
    again = client.post("/v1/projections", json={**kept, "metrics": ["log_loss", "accuracy"]}).json()["metrics"]
    assert again["log_loss"]["low"] == entry["low"]
    assert again["accuracy"]["method"] == "weighted_mover"


def test_scores_are_projected_but_not_fitted(client: httpx.Client) -> None:
    scores = np.log(TWO.rows[:, 1] / TWO.rows[:, 0])
    source = {"kind": "scores", "labels": ["a", "b"], "positive": "b", "scores": scores.tolist()}
    source["y_true"] = [LABELS[code] for code in TWO.y]
    run = str(create(client, evaluation(model="m", dataset=uuid4().hex, input=source))["id"])
    answer = project(client, run, prevalence={"b": 0.1}, metrics=["average_precision", "log_loss"])
    expected = sk.average_precision_score(TWO.y, scores, sample_weight=TWO.weights([0.9, 0.1]))
    assert answer["metrics"]["average_precision"]["value"] == pytest.approx(expected)
    assert answer["metrics"]["log_loss"]["value"] is None
    body = {"prevalence": {"b": 0.1}, "recalibrate": True}
    problem = check_problem(client.post(f"/v1/evaluations/{run}/projections", json=body), 422, "invalid_input")
    assert problem["errors"][0]["pointer"] == "/recalibrate"


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"prevalence": {"b": 0.1}, "old_prevalence": {"b": 0.5}}, "invalid_request", ""),
        ({"prevalence_range": {"b": [0.1, 0.2]}, "recalibrate": True}, "invalid_request", ""),
        (
            {"prevalence": {"b": 0.1}, "recalibrate": True, "old_prevalence": {"b": 1.0}},
            "invalid_input",
            "/old_prevalence",
        ),
        (
            {"prevalence": {"b": 0.1}, "recalibrate": True, "old_prevalence": {"x": 1.0}},
            "invalid_input",
            "/old_prevalence/x",
        ),
        ({"prevalence": {"b": 0.1}, "metrics": ["log_los"]}, "unknown_metric", "/metrics/0"),
    ],
)
def test_what_is_refused(client: httpx.Client, two: str, body: Json, code: str, pointer: str) -> None:
    problem = check_problem(client.post(f"/v1/evaluations/{two}/projections", json=body), 422, code)
    assert problem["errors"][0]["pointer"] == pointer


def test_runs_without_probabilities(client: httpx.Client, two: str) -> None:
    matrix = keep(client, [[45, 5], [10, 40]], labels=["a", "b"])
    forgotten = evaluation(model="m", dataset=uuid4().hex, input=TWO.source(), options={"retain": "none"})
    unkept = str(create(client, forgotten)["id"])
    for run, status, code in ((matrix, 422, "needs_scores"), (unkept, 409, "no_samples_kept")):
        for body in ({"metrics": ["log_loss"]}, {"metrics": ["accuracy"], "recalibrate": True}):
            reply = client.post(f"/v1/evaluations/{run}/projections", json={"prevalence": {"b": 0.1}, **body})
            check_problem(reply, status, code)
    sweep = {"class": "b", "from": 0.1, "to": 0.5}
    asked: Json = {"sweep": sweep, "against": matrix, "metrics": ["log_loss"]}
    check_problem(client.post(f"/v1/evaluations/{two}/projections", json=asked), 422, "needs_scores")


@pytest.mark.parametrize(
    ("source", "body"),
    [
        ({"kind": "confusion_matrix", "matrix": [[45, 5], [10, 40]]}, {"prevalence": {"1": 0.01}}),
        (make(n=80), {"prevalence": {"1": 0.5}, "metrics": ["roc_auc@1", "accuracy"]}),
        (make(n=80), {"prevalence": {"1": 0.5}, "metrics": ["accuracy"], "recalibrate": True}),
        (
            make(n=80, group_ids=[str(index // 2) for index in range(80)]),
            {"sweep": {"class": "1", "from": 0.1, "to": 0.5, "steps": 3}, "metrics": ["accuracy"]},
        ),
        (make(n=80), {"prevalence_range": {"1": [0.1, 0.4]}, "metrics": ["mcc", "brier_score"]}),
    ],
)
def test_a_projection_without_keeping_is_the_same(client: httpx.Client, source: Json, body: Json) -> None:
    made = create(client, evaluation(input=source))
    kept = project(client, made["id"], **body, seed=3)
    reply = client.post("/v1/projections", json={"input": source, "seed": 3, **body})
    assert reply.status_code == 200, reply.text
    assert reply.json() == {**kept, "evaluation_id": None}


def test_inputs_that_cannot_be_projected(client: httpx.Client) -> None:
    matrix = {"kind": "confusion_matrix", "matrix": [[45, 5], [10, 40]]}
    for body, code, pointer in (
        ({"metrics": ["roc_auc@1"]}, "needs_scores", "/input/kind"),
        ({"recalibrate": True}, "needs_scores", "/input/kind"),
        ({"against": str(uuid4())}, "invalid_request", "/against"),
        ({"metrics": ["accuracy_p_value"]}, "invalid_input", "/metrics/0"),
    ):
        reply = client.post("/v1/projections", json={"input": matrix, "prevalence": {"1": 0.1}, **body})
        assert check_problem(reply, 422, code)["errors"][0]["pointer"] == pointer
    problem = check_problem(client.post("/v1/projections", json={"prevalence": {"1": 0.1}}), 422, "invalid_request")
    assert problem["errors"][0]["pointer"] == "/input"
