"""`proportion_interval`: limits of rates by the method that is asked for, in reports, gates and leaderboards."""

import httpx
import pytest

from tests.api.answers import Json, check_problem, compute, create, evaluation, matrix_input

ELSEWHERE = {"wilson": "wilson", "clopper_pearson": "beta", "jeffreys": "jeffreys", "wald": "normal"}
MATRIX = [[17, 2, 1], [4, 40, 6], [0, 0, 9]]
INPUT = matrix_input(MATRIX, labels=["A", "B", "C"])
# Right and all: of the samples, of the class B, of what was called B.
RATES = {"accuracy": (66, 79), "recall@B": (40, 50), "precision@B": (40, 42)}


@pytest.mark.parametrize("method", ELSEWHERE)
@pytest.mark.parametrize("intervals", ["headline", "all"])
def test_rates_have_the_limits_that_are_asked_for(client: httpx.Client, method: str, intervals: str) -> None:
    from statsmodels.stats.proportion import proportion_confint

    found = compute(client, INPUT, proportion_interval=method, intervals=intervals, draws=200)["intervals"]
    for name, (x, n) in RATES.items():
        low, high = proportion_confint(x, n, method=ELSEWHERE[method])
        assert found[name]["method"] == method
        assert (found[name]["low"], found[name]["high"]) == pytest.approx((low, high), rel=1e-12)
    low, high = proportion_confint(13, 79, method=ELSEWHERE[method])
    if intervals == "all":
        assert (found["error_rate"]["low"], found["error_rate"]["high"]) == pytest.approx((low, high), rel=1e-12)
    assert found["balanced_accuracy"]["method"] == ("mover" if intervals == "headline" else "posterior")


def test_what_is_no_proportion_stays_and_wilson_is_the_default(client: httpx.Client) -> None:
    usual = compute(client, INPUT)["intervals"]
    assert compute(client, INPUT, proportion_interval="wilson")["intervals"] == usual
    others = compute(client, INPUT, proportion_interval="jeffreys")["intervals"]
    assert others.keys() == usual.keys()
    changed = {name for name in usual if others[name] != usual[name]}
    assert changed == {name for name in usual if usual[name]["method"] == "wilson"}
    assert {"accuracy", "recall@C"} <= changed


@pytest.mark.parametrize(("method", "low"), [("clopper_pearson", True), ("jeffreys", True), ("wald", False)])
def test_a_perfect_class(client: httpx.Client, method: str, low: bool) -> None:
    """Nine of nine: limits of Wald have no width, which says nothing."""
    from statsmodels.stats.proportion import proportion_confint

    found = compute(client, INPUT, proportion_interval=method)["intervals"]["recall@C"]
    assert found["method"] == method
    assert (found["low"] is not None) is low
    assert ("reason" in found) is not low
    if low:
        expected, _ = proportion_confint(9, 9, method=ELSEWHERE[method])
        assert (found["low"], found["high"]) == pytest.approx((expected, 1.0), rel=1e-12)


def test_shares_of_samples_by_their_probabilities(client: httpx.Client) -> None:
    from statsmodels.stats.proportion import proportion_confint

    truth = [0, 1, 2] * 8
    rows = [[0.5, 0.3, 0.2] if index % 3 else [0.2, 0.3, 0.5] for index in range(24)]
    source = {"kind": "probabilities", "y_true": truth, "probabilities": rows, "labels": ["0", "1", "2"]}
    name = "top_k_accuracy(k=2)"
    report = compute(client, source, intervals="all", metrics=[name], proportion_interval="clopper_pearson", draws=200)
    right = round(report["requested"][name] * 24)
    low, high = proportion_confint(right, 24, method="beta")
    found = report["intervals"][name]
    assert (found["low"], found["high"], found["method"]) == (
        pytest.approx(low, rel=1e-12),
        pytest.approx(high, rel=1e-12),
        "clopper_pearson",
    )


def test_stored_evaluations_keep_it(client: httpx.Client) -> None:
    made = create(client, evaluation(input=INPUT, options={"proportion_interval": "jeffreys"}))
    read = client.get(f"/v1/evaluations/{made['id']}").json()
    assert read["intervals"] == made["intervals"]
    assert read["intervals"]["accuracy"]["method"] == "jeffreys"


@pytest.mark.parametrize(
    ("source", "options", "code"),
    [
        (matrix_input([[0.9, 0.1], [0.2, 0.8]], normalized=True), {}, "intervals_need_counts"),
        (INPUT, {"intervals": "none"}, "no_intervals"),
        (
            {"kind": "predictions", "y_true": [0, 1, 0, 1], "y_pred": [0, 1, 1, 1], "group_ids": [1, 1, 2, 2]},
            {},
            "not_for_groups",
        ),
    ],
)
def test_refused_where_it_does_not_apply(client: httpx.Client, source: Json, options: Json, code: str) -> None:
    answer = client.post(
        "/v1/metrics/compute", json={"input": source, "options": {"proportion_interval": "jeffreys", **options}}
    )
    problem = check_problem(answer, 422, "invalid_input")
    assert [(one["pointer"], one["code"]) for one in problem["errors"]] == [("/options/proportion_interval", code)]


def _verdict(client: httpx.Client, rule: Json, identifier: str) -> Json:
    client.put("/v1/gates/proportions", json={"rules": [rule]}).raise_for_status()
    answer = client.post("/v1/gates/proportions/checks", json={"evaluation": identifier})
    answer.raise_for_status()
    found: Json = answer.json()["results"][0]
    return found


def test_gates_hold_the_limits_of_the_method_against_the_limit(client: httpx.Client) -> None:
    """29 of 30: the lower limit of Wald is above .87, those of the others are below."""
    from statsmodels.stats.proportion import proportion_confint

    made = create(client, evaluation(input=matrix_input([[29, 1], [3, 27]], labels=["0", "1"])))
    for method, verdict in [("wald", "pass"), ("clopper_pearson", "inconclusive"), (None, "inconclusive")]:
        rule: Json = {"metric": "recall@0", "min": 0.87}
        found = _verdict(client, rule if method is None else {**rule, "proportion_interval": method}, made["id"])
        low, high = proportion_confint(29, 30, method=ELSEWHERE[method or "wilson"])
        assert (found["verdict"], found["method"]) == (verdict, method or "wilson")
        assert (found["low"], found["high"]) == pytest.approx((low, high), rel=1e-12)


@pytest.mark.parametrize(
    "rule",
    [
        {"metric": "h_mean", "min": 0.5},
        {"metric": "mean(recall@*)", "min": 0.5},
        {"metric": "min(recall@0, h_mean)", "min": 0.5},
        {"metric": "recall@0", "not_worse_than": "baseline"},
        {"metric": "recall@0", "min": 0.5, "bound": "value"},
    ],
)
def test_gates_refuse_it_for_what_is_no_proportion(client: httpx.Client, rule: Json) -> None:
    answer = client.put("/v1/gates/refused", json={"rules": [{**rule, "proportion_interval": "jeffreys"}]})
    assert check_problem(answer, 422, answer.json()["code"])["errors"][0]["pointer"].startswith("/rules/0")


@pytest.mark.parametrize("metric", ["min(recall@*)", "min_recall", "recall@0"])
def test_gates_take_it_for_rates_and_what_picks_from_them(client: httpx.Client, metric: str) -> None:
    rule = {"metric": metric, "min": 0.5, "proportion_interval": "jeffreys"}
    assert client.put("/v1/gates/picked", json={"rules": [rule]}).status_code in (200, 201)


def test_leaderboards(client: httpx.Client) -> None:
    from statsmodels.stats.proportion import proportion_confint

    for index, right in enumerate((25, 28)):
        source = matrix_input([[right, 30 - right], [5, 25]], labels=["0", "1"])
        create(client, evaluation(model=f"m{index}", dataset="proportions", input=source))
    asked = {"dataset": "proportions", "metric": "accuracy", "proportion_interval": "clopper_pearson"}
    items = client.get("/v1/leaderboard", params=asked).json()["items"]
    assert [one["method"] for one in items] == ["clopper_pearson"] * 2
    low, high = proportion_confint(53, 60, method="beta")
    assert (items[0]["low"], items[0]["high"]) == pytest.approx((low, high), rel=1e-12)
    refused = client.get("/v1/leaderboard", params={**asked, "metric": "h_mean"})
    assert check_problem(refused, 422, "invalid_query")["errors"][0]["parameter"] == "metric"
