"""``intervals: all``: an interval for every matrix metric and every expression, or a reason why there is none."""

import math
from typing import Any

import httpx
import pytest

from tests.api.answers import FOUR_CLASSES, Json, check_json, check_problem, compute, create, evaluation, matrix_input

FOUR = matrix_input(FOUR_CLASSES, labels=["A", "B", "C", "D"])
EXPRESSIONS = ["gps(recall@*, precision@D)", "f_beta(beta=2)@*", "sensitivity@D", "min(recall@*)"]


@pytest.fixture(scope="module")
def report(client: httpx.Client) -> Json:
    return compute(client, FOUR, intervals="all", metrics=EXPRESSIONS, seed=1)


def values_of(report: Json) -> dict[str, float]:
    """Every defined value of the matrix as it is, by the name that its interval has."""
    groups = ("prevalence_insensitive", "prevalence_sensitive")
    found = {key: value for group in groups for key, value in report["metrics"][group].items()}
    for label, grouped in report["per_class"].items():
        found |= {f"{key}@{label}": value for group in groups for key, value in grouped[group].items()}
    return {key: value for key, value in found.items() if value is not None}


def test_everything_with_a_value_has_an_interval_that_holds_it_or_a_reason(report: Json) -> None:
    intervals = report["intervals"]
    values = values_of(report)
    assert len(values) > 300
    for name, value in values.items():
        interval = intervals[name]
        if interval["low"] is None:
            assert interval["high"] is None
            assert interval["reason"]
        else:
            assert interval["low"] <= value + 1e-12, name
            assert interval["high"] >= value - 1e-12, name
            assert interval["level"] == 0.95
    without = {name for name in values if intervals[name]["low"] is None}
    assert {name.partition("@")[0] for name in without} == {
        "accuracy_standard_error", "accuracy_p_value", "kappa_standard_error", "chi_squared", "chi_squared_df",
        "support", "n_negative", "imbalance_ratio", "global_performance_index", "reference_entropy",
        "normalized_reference_entropy", "no_information_rate",
    }  # fmt: skip


def test_known_posterior_limits(report: Json) -> None:
    """Row-wise posterior with the edge prior: H of 0.4324 in [0.297, 0.555] to simulation error."""
    found = report["intervals"]["h_mean"]
    assert (found["method"], found["given"], found["prior"]) == ("posterior", "actual_counts", "edge")
    assert (found["seed"], found["draws"]) == (1, 4000)
    assert 0 < found["monte_carlo_error"] < 0.005
    assert math.isclose(found["low"], 0.297, abs_tol=4 * found["monte_carlo_error"])
    assert math.isclose(found["high"], 0.555, abs_tol=4 * found["monte_carlo_error"])


def test_plain_rates_are_wilsons(report: Json, client: httpx.Client) -> None:
    headline = compute(client, FOUR)["intervals"]
    wilson = {name for name, interval in report["intervals"].items() if interval["method"] == "wilson"}
    assert {"accuracy", "error_rate", "bennett_s", "recall@D", "precision@D", "sensitivity@D"} <= wilson
    assert {"accuracy", "recall@D", "precision@D"} <= wilson & headline.keys()
    for name in wilson & headline.keys():
        assert report["intervals"][name] == headline[name]
    assert report["intervals"]["sensitivity@D"] == headline["recall@D"]
    assert "seed" not in report["intervals"]["accuracy"]


def test_expressions_have_intervals_under_the_text_they_were_asked_with(report: Json) -> None:
    intervals, requested = report["intervals"], report["requested"]
    for text in ("gps(recall@*, precision@D)", "min(recall@*)", "sensitivity@D"):
        assert intervals[text]["low"] < requested[text] < intervals[text]["high"]
    for label, value in requested["f_beta(beta=2)@*"].items():
        found = intervals[f"f_beta(beta=2)@{label}"]
        assert found["low"] <= value <= found["high"]


def test_the_seed_decides_and_comes_from_the_input_when_left_out(client: httpx.Client) -> None:
    first, second = (compute(client, FOUR, intervals="all")["intervals"]["mcc"] for _ in range(2))
    assert first == second
    assert 0 <= first["seed"] < 2**53
    again = compute(client, FOUR, intervals="all", seed=first["seed"])["intervals"]["mcc"]
    assert again == first
    other = compute(client, FOUR, intervals="all", seed=2)["intervals"]["mcc"]
    assert other["low"] != first["low"]
    assert math.isclose(other["low"], first["low"], abs_tol=6 * first["monte_carlo_error"])
    elsewhere = compute(client, matrix_input([[5, 1], [2, 4]]), intervals="all")["intervals"]["mcc"]
    assert elsewhere["seed"] != first["seed"]


@pytest.mark.parametrize("method", ["posterior", "delta", "bootstrap", "bca"])
@pytest.mark.parametrize("design", ["observed", "sampled"])
def test_methods_and_designs_agree_where_samples_are_many(client: httpx.Client, method: str, design: str) -> None:
    source = matrix_input([[4000, 1000], [500, 4500]])
    found = compute(client, source, intervals="all", interval_method=method, prevalence_design=design)["intervals"]
    macro_f1 = found["macro_f1"]
    assert macro_f1["method"] == method
    assert macro_f1["given"] == ("actual_counts" if design == "observed" else "n")
    assert math.isclose(macro_f1["low"], 0.8424, abs_tol=0.001)
    assert math.isclose(macro_f1["high"], 0.8565, abs_tol=0.001)
    assert ("seed" in macro_f1) == (method != "delta")


def test_the_design_decides_what_is_random(client: httpx.Client) -> None:
    source = matrix_input([[40, 10], [5, 45]])
    fixed = compute(client, source, intervals="all")["intervals"]["imbalance_ratio"]
    assert (fixed["low"], fixed["monte_carlo_error"]) == (None, None)
    assert "fixed" in fixed["reason"]
    random = compute(client, source, intervals="all", prevalence_design="sampled")["intervals"]["imbalance_ratio"]
    assert random["low"] <= 1 < random["high"]


def test_priors(client: httpx.Client) -> None:
    """Brodersen's uniform prior and the edge prior on C2 give what was verified."""
    source = matrix_input([[40, 10], [5, 45]])
    for prior, low, high in (("edge", 0.7755, 0.9120), ("uniform", 0.7613, 0.9002)):
        found = compute(client, source, intervals="all", prior=prior, draws=20_000)["intervals"]["balanced_accuracy"]
        assert found["prior"] == prior
        assert math.isclose(found["low"], low, abs_tol=0.003)
        assert math.isclose(found["high"], high, abs_tol=0.003)
    ones = [[1, 1], [1, 1]]
    custom = compute(client, source, intervals="all", prior="custom", pseudo_counts=ones, seed=3)["intervals"]
    uniform = compute(client, source, intervals="all", prior="uniform", seed=3)["intervals"]
    assert custom["mcc"]["low"] == uniform["mcc"]["low"]
    assert custom["mcc"]["prior"] == "custom"


def test_known_weaknesses_are_findings(client: httpx.Client) -> None:
    def codes(matrix: list[list[int]], **options: Any) -> set[str]:
        return {
            finding["code"] for finding in compute(client, matrix_input(matrix), intervals="all", **options)["findings"]
        }

    assert "intervals_of_few_samples" in codes([[3, 1], [2, 40]])
    assert "intervals_without_a_class" in codes([[30, 1, 0], [2, 40, 0], [0, 0, 0]])
    assert "informative_prior" in codes([[30, 1, 2], [2, 40, 1], [3, 3, 30]], prior="uniform")
    many = [[15 if row == column else 1 for column in range(20)] for row in range(20)]
    assert "intervals_of_many_small_classes" in codes(many, draws=200)
    perfect = [[12 if row == column else 0 for column in range(20)] for row in range(20)]
    assert "intervals_of_perfect_small_classes" in codes(perfect, draws=200)
    assert not {code for code in codes([[90, 10], [20, 80]]) if code.startswith("intervals")}


def test_what_is_stored_is_read_back_with_its_intervals(client: httpx.Client) -> None:
    body = evaluation(
        input=FOUR,
        options={"intervals": "all", "metrics": EXPRESSIONS, "prior": "jeffreys_recall", "draws": 500,
                 "prevalence_design": "sampled"},
    )  # fmt: skip
    made = client.post("/v1/evaluations", json=body)
    assert made.status_code == 201
    check_json(made)
    read = client.get(made.headers["location"])
    assert read.content == made.content
    found = read.json()["intervals"]["h_mean"]
    assert (found["prior"], found["draws"], found["given"]) == ("jeffreys_recall", 500, "n")


def test_folds_are_judged_by_their_sum(client: httpx.Client) -> None:
    folds = [matrix_input([[20, 5], [3, 22]]), matrix_input([[20, 5], [2, 23]])]
    found = compute(client, {"kind": "folds", "folds": folds}, intervals="all", seed=1)["intervals"]
    assert found == compute(client, matrix_input([[40, 10], [5, 45]]), intervals="all", seed=1)["intervals"]


def test_undefined_values_have_no_interval(client: httpx.Client) -> None:
    answer = compute(client, matrix_input([[30, 0, 1], [2, 0, 5], [0, 0, 40]]), intervals="all")
    assert "precision@1" not in answer["intervals"]
    assert answer["intervals"]["macro_precision"]["reason"] == "the metric is undefined for this matrix"


@pytest.mark.parametrize(
    ("source", "options", "pointer", "code"),
    [
        (matrix_input([[0.9, 0.1], [0.2, 0.8]], normalized=True), {}, "/options/intervals", "intervals_need_counts"),
        (matrix_input([[1.5, 1], [2, 3]]), {}, "/options/intervals", "intervals_need_counts"),
        (FOUR, {"prior": "custom"}, "/options/pseudo_counts", "custom_prior"),
        (FOUR, {"pseudo_counts": [[1, 1], [1, 1]]}, "/options/pseudo_counts", "custom_prior"),
        (FOUR, {"prior": "custom", "pseudo_counts": [[1, 1], [1, 1]]}, "/options/pseudo_counts", "wrong_shape"),
        (FOUR, {"prior": "custom", "pseudo_counts": [[-1]]}, "/options/pseudo_counts/0/0", "out_of_range"),
        (FOUR, {"prior": "haldane"}, "/options/prior", "wrong_value"),
        (FOUR, {"prevalence_design": "given"}, "/options/prevalence_design", "wrong_value"),
        (FOUR, {"draws": 199}, "/options/draws", "out_of_range"),
        (FOUR, {"draws": 100_001}, "/options/draws", "out_of_range"),
        (matrix_input([[1] * 150] * 150), {}, "/options/draws", "too_many_draws"),
        (matrix_input([[1] * 600] * 600), {"draws": 200}, "/options/draws", "too_many_draws"),
    ],
)  # fmt: skip
def test_what_cannot_be_given_is_refused(
    client: httpx.Client, source: Json, options: Json, pointer: str, code: str
) -> None:
    body = evaluation(input=source, options={"intervals": "all", **options})
    reply = client.post("/v1/evaluations", json=body)
    problem = check_problem(reply, 422, reply.json()["code"])
    assert [(fault["pointer"], fault["code"]) for fault in problem["errors"]] == [(pointer, code)]


@pytest.mark.slow
def test_other_requests_are_answered_meanwhile(client: httpx.Client, base_url: str) -> None:
    """A simulation runs in a thread of its own: the service is alive while it does."""
    from concurrent.futures import ThreadPoolExecutor

    heavy = matrix_input([[5 + (row == column) * 50 for column in range(60)] for row in range(60)])
    with ThreadPoolExecutor(1) as pool, httpx.Client(base_url=base_url, timeout=60) as other:
        running = pool.submit(compute, other, heavy, intervals="all")
        answered = 0
        while not running.done():
            assert client.get("/healthz").status_code == 200
            answered += 1
        assert running.result()["intervals"]["h_mean"]["draws"] == 4000
    assert answered > 5


def test_a_batch_takes_them_too(client: httpx.Client) -> None:
    items = [evaluation(options={"intervals": "all", "seed": 1}), evaluation(input=matrix_input([[1.5, 1], [1, 1]]),
             options={"intervals": "all"})]  # fmt: skip
    reply = client.post("/v1/evaluations/batch", json={"evaluations": items})
    first, second = reply.json()["items"]
    assert first["evaluation"]["intervals"]["mcc"]["seed"] == 1
    assert second["problem"]["errors"][0]["pointer"] == "/evaluations/1/options/intervals"
    assert create(client, items[0])["intervals"] == first["evaluation"]["intervals"]
