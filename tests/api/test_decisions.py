"""Matrices whose columns are decisions and no classes: costs and rates, at any prevalence; what is refused, and why."""

from fractions import Fraction
from typing import Any

import httpx
import pytest

from tests.api.answers import Json, check_problem, compute, create, evaluation, refused
from tests.api.decisions import compare
from tests.bank import each

SICK, DECISIONS = ["healthy", "sick"], ["wait", "test", "treat"]
MATRIX = [[700, 180, 20], [10, 30, 60]]
PRICES = [[0, 2, 10], [50, 7, 1]]
SOURCE: Json = {"kind": "confusion_matrix", "matrix": MATRIX, "labels": SICK, "decisions": DECISIONS}
COST = 'expected_cost(costs="0,2,10;50,7,1")'
KEYS = ("expected_cost", "normalized_cost", "cost_savings")


def exact(matrix: list[list[int]], shares: tuple[Fraction, Fraction] | None = None) -> dict[str, Fraction]:
    """Costs in rational numbers, at the shares of the classes or at others."""
    sizes = [sum(row) for row in matrix]
    mix = shares or tuple(Fraction(size, sum(sizes)) for size in sizes)
    paid = sum(
        (mix[k] * Fraction(matrix[k][d], sizes[k]) * PRICES[k][d] for k in range(2) for d in range(3)), Fraction(0)
    )
    constant = min(sum((mix[k] * PRICES[k][d] for k in range(2)), Fraction(0)) for d in range(3))
    return dict(zip(KEYS, (paid, paid / constant, 1 - paid / constant), strict=True))


def keep(client: httpx.Client, matrix: list[list[int]], model: str, **members: Any) -> Json:
    return create(
        client,
        evaluation(model=model, dataset="decisions", input=SOURCE | {"matrix": matrix} | members, options={"seed": 1}),
    )


def test_costs_and_rates_with_their_limits(client: httpx.Client) -> None:
    from statsmodels.stats.proportion import proportion_confint

    answer = compute(client, SOURCE, costs={"matrix": PRICES}, intervals="all", seed=1)
    given = answer["input"]
    assert (given["kind"], given["decisions"], given["decision_matrix"]) == ("confusion_matrix", DECISIONS, MATRIX)
    assert (given["n_samples"], given["prevalence"]) == (1000, {"healthy": 0.9, "sick": 0.1})
    assert "confusion_matrix" not in given
    for key, value in exact(MATRIX).items():
        assert answer["requested"][key] == pytest.approx(float(value), rel=1e-12)
        limits = answer["intervals"][COST.replace("expected_cost", key)]
        assert limits["low"] < float(value) < limits["high"]
        assert (limits["method"], limits["given"]) == ("bootstrap", "actual_counts")
    found = answer["decisions"]
    assert found["costs"] == {
        **{key: answer["requested"][key] for key in KEYS},
        # 0.1 x 50 of waiting, 0.9 x 2 + 0.1 x 7 of testing, 0.9 x 10 + 0.1 x 1 of treating.
        "best_constant": {"decision": "test", "expected_cost": pytest.approx(2.5, rel=1e-12)},
    }
    low, high = proportion_confint(60, 100, method="wilson")
    expected = {"value": 0.6, "low": pytest.approx(low, rel=1e-12), "high": pytest.approx(high, rel=1e-12)}
    assert found["share_of_class"]["sick"]["treat"] == expected
    assert found["share_of_decision"]["treat"]["sick"]["value"] == pytest.approx(60 / 80, rel=1e-12)
    assert found["share"]["test"]["value"] == pytest.approx(210 / 1000, rel=1e-12)


def test_the_mean_of_costs_has_limits_near_those_of_a_mean(client: httpx.Client) -> None:
    """Drawn within the classes, its deviation is that of a stratified mean."""
    limits = compute(client, SOURCE, metrics=[COST], intervals="all", seed=1)["intervals"][COST]
    variance = 0.0
    for row, prices in zip(MATRIX, PRICES, strict=True):
        size = sum(row)
        mean = sum(n * price for n, price in zip(row, prices, strict=True)) / size
        spread = sum(n * (price - mean) ** 2 for n, price in zip(row, prices, strict=True)) / size
        variance += (size / 1000) ** 2 * spread / size
    assert limits["high"] - limits["low"] == pytest.approx(2 * 1.96 * variance**0.5, rel=0.06)


@pytest.mark.parametrize("share", [Fraction(1, 50), Fraction(1, 2)])
def test_costs_at_another_prevalence(client: httpx.Client, share: Fraction) -> None:
    asked = {"prevalence": {"sick": float(share)}, "metrics": [COST.replace("expected_cost", key) for key in KEYS]}
    made = keep(client, MATRIX, "elsewhere")
    kept = client.post(f"/v1/evaluations/{made['id']}/projections", json=asked | {"seed": 1}).json()
    alone = client.post("/v1/projections", json=asked | {"seed": 1, "input": SOURCE}).json()
    assert kept["metrics"] == alone["metrics"]
    for key, value in exact(MATRIX, (1 - share, share)).items():
        found = kept["metrics"][COST.replace("expected_cost", key)]
        assert found["value"] == pytest.approx(float(value), rel=1e-12)
        assert found["observed"] == pytest.approx(float(exact(MATRIX)[key]), rel=1e-12)
        assert found["low"] < found["value"] < found["high"]
    swept = {"sweep": {"class": "sick", "from": 0.1, "to": 0.5, "steps": 3}, "metrics": [COST]}
    grid = client.post(f"/v1/evaluations/{made['id']}/projections", json=swept).json()["metrics"][COST]["value"]
    assert grid == pytest.approx(
        [float(exact(MATRIX, (1 - at, at))["expected_cost"]) for at in map(Fraction, (0.1, 0.3, 0.5))]
    )


def test_what_is_read_is_what_was_answered(client: httpx.Client) -> None:
    options = {
        "costs": {"matrix": [row[::-1] for row in PRICES], "decisions": DECISIONS[::-1]},
        "metrics": ["min(expected_cost)"],
    }
    made = create(client, evaluation(input=SOURCE, options=options))
    assert made["requested"]["expected_cost"] == pytest.approx(float(exact(MATRIX)["expected_cost"]), rel=1e-12)
    read = client.get(f"/v1/evaluations/{made['id']}").json()
    assert read == made
    for kind in ("text/plain", "text/markdown", "text/csv"):
        reply = client.get(f"/v1/evaluations/{made['id']}", headers={"Accept": kind})
        assert reply.status_code == 200, reply.text
        assert "expected_cost" in reply.text
        assert "treat" in reply.text
    turned = SOURCE | {"matrix": [list(row) for row in zip(*MATRIX, strict=True)], "orientation": "predicted_rows"}
    assert compute(client, turned)["input"]["decision_matrix"] == MATRIX


def test_runs_are_compared_and_gated_and_ranked(client: httpx.Client) -> None:
    better = [[850, 45, 5], [2, 18, 80]]
    runs = [keep(client, matrix, model)["id"] for matrix, model in ((better, "new"), (MATRIX, "old"))]
    answer = compare(client, *runs, metrics=[COST], seed=1)
    assert answer["metrics"][COST]["best"] == runs[0]
    (found,) = answer["metrics"][COST]["differences"]
    expected = exact(better)["expected_cost"] - exact(MATRIX)["expected_cost"]
    assert found["difference"] == pytest.approx(float(expected), rel=1e-12)
    assert found["low"] < float(expected) < found["high"] < 0
    rule = {"metric": COST, "max": 0.9}
    assert client.put("/v1/gates/cheap", json={"rules": [rule]}).status_code in (200, 201)
    verdicts = [client.post("/v1/gates/cheap/checks", json={"evaluation": run}).json()["verdict"] for run in runs]
    assert verdicts == ["pass", "fail"]
    board = client.get("/v1/leaderboard", params={"dataset": "decisions", "metric": COST}).json()
    assert [line["model"]["name"] for line in board["items"] if line["model"]["name"] in ("new", "old")] == [
        "new",
        "old",
    ]


def test_no_metric_of_decisions_is_looked_at_unasked(client: httpx.Client) -> None:
    runs = [keep(client, MATRIX, f"unasked {place}")["id"] for place in range(2)]
    reply = client.post("/v1/comparisons", json={"evaluations": runs})
    assert check_problem(reply, 422, "invalid_input")["errors"][0]["pointer"] == "/metrics"
    assert client.get("/ui/compare", params={"run": runs}).status_code == 422
    home = client.get("/ui", params={"dataset": "decisions"}).text
    assert "binary, multiclass and multilabel" in home
    assert "is –" not in home


TREATED, RIGHTLY = "decision_share_of_class(decision=treat)@sick", "class_share_of_decision(decision=treat)@sick"
WRONGLY = "decision_share_of_class(decision=treat, better=lower)@healthy"


def test_how_often_something_is_decided_is_a_metric(client: httpx.Client) -> None:
    """Its limits are those of the report's `decisions`, and statsmodels'."""
    from statsmodels.stats.proportion import proportion_confint

    asked = ["decision_share(decision=test)", TREATED, RIGHTLY, 'decision_share_of_class(decision="treat")@*']
    answer = compute(client, SOURCE, metrics=asked, intervals="all", seed=1)
    found, shown = answer["requested"], answer["decisions"]
    expected = (
        shown["share"]["test"],
        shown["share_of_class"]["sick"]["treat"],
        shown["share_of_decision"]["treat"]["sick"],
    )
    for text, one, counts in zip(asked, expected, ((210, 1000), (60, 100), (60, 80)), strict=False):
        assert found[text] == one["value"] == pytest.approx(counts[0] / counts[1], rel=1e-12)
        limits = answer["intervals"][text]
        assert (limits["low"], limits["high"]) == pytest.approx((one["low"], one["high"]), rel=1e-12)
        assert (limits["low"], limits["high"]) == pytest.approx(proportion_confint(*counts, method="wilson"), rel=1e-12)
        assert limits["method"] == "wilson"
    assert found[asked[3]] == {"healthy": pytest.approx(20 / 900), "sick": pytest.approx(0.6)}
    never = compute(
        client, SOURCE | {"matrix": [[720, 180, 0], [70, 30, 0]]}, metrics=[TREATED, RIGHTLY], intervals="all"
    )
    assert never["requested"] == {TREATED: 0.0, RIGHTLY: None}
    assert never["intervals"][TREATED]["low"] == 0.0 < never["intervals"][TREATED]["high"]
    assert [one["code"] for one in never["undefined"] if one["metric"] == RIGHTLY] == ["never_decided"]


def test_gates_leaderboards_comparisons_and_projections_name_it(client: httpx.Client) -> None:
    better, dataset = [[850, 45, 5], [2, 8, 90]], "treated"
    runs = [
        create(client, evaluation(model=model, dataset=dataset, input=SOURCE | {"matrix": matrix}))["id"]
        for matrix, model in ((better, "new"), (MATRIX, "old"))
    ]
    rules = [
        {"metric": TREATED, "min": 0.75},
        {"metric": "decision_share_of_class(decision=treat)@healthy", "max": 0.02},
    ]
    assert client.put("/v1/gates/treats", json={"rules": rules}).status_code in (200, 201)
    checks = [client.post("/v1/gates/treats/checks", json={"evaluation": run}).json() for run in runs]
    assert [one["verdict"] for one in checks] == ["pass", "fail"]
    assert checks[0]["results"][0]["method"] == "wilson"
    for metric, best in ((TREATED, "new"), (WRONGLY, "new"), (WRONGLY.replace(", better=lower", ""), "old")):
        board = client.get("/v1/leaderboard", params={"dataset": dataset, "metric": metric}).json()
        assert board["items"][0]["model"]["name"] == best, metric
        assert board["items"][0]["low"] < board["items"][0]["value"] < board["items"][0]["high"]
    answer = compare(client, *runs, metrics=[TREATED, WRONGLY], seed=1)
    assert [answer["metrics"][one]["better"] for one in (TREATED, WRONGLY)] == ["higher", "lower"]
    (found,) = answer["metrics"][TREATED]["differences"]
    assert found["difference"] == pytest.approx(0.3, rel=1e-12)
    assert 0 < found["low"] < 0.3 < found["high"]
    asked = {"prevalence": {"sick": 0.5}, "metrics": [TREATED, RIGHTLY], "seed": 1}
    moved = client.post(f"/v1/evaluations/{runs[1]}/projections", json=asked).json()["metrics"]
    assert moved[TREATED]["value"] == pytest.approx(0.6)
    assert moved[RIGHTLY]["value"] == pytest.approx(0.6 / (0.6 + 20 / 900), rel=1e-12)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("decision_share", "needs decision: 'wait', 'test', 'treat'"),
        ("decision_share(decision=treta)", "one of 'wait', 'test', 'treat', not 'treta'"),
        ("decision_share(decision=test)@sick", "has no @"),
        ("decision_share(decision=test, better=up)", "higher or lower"),
    ],
)
def test_which_decision_is_meant_has_to_be_known(client: httpx.Client, metric: str, words: str) -> None:
    assert words in refused(client, SOURCE, options={"metrics": [metric]})["detail"].replace('"', "'")


def test_decisions_of_classes_are_rates_of_these(client: httpx.Client) -> None:
    plain = {"kind": "confusion_matrix", "matrix": [[9, 1], [2, 8]], "labels": SICK}
    assert "decisions" in refused(client, plain, options={"metrics": ["decision_share(decision=sick)"]})["detail"]


def test_runs_with_other_class_shares_are_compared_at_common_ones(client: httpx.Client) -> None:
    """Both decide alike about each class, and differ in how many sick ones there are."""
    runs = [keep(client, [[7 * n // 9, n // 9, n // 9], [100, 200, 300]], f"of {n}")["id"] for n in (900, 3600)]
    answer = compare(client, *runs, metrics=[COST], seed=1)
    (found,) = answer["metrics"][COST]["differences"]
    assert found["difference"] == pytest.approx(0, abs=1e-12)
    assert found["low"] < 0 < found["high"]


def test_decisions_that_are_the_classes_make_a_matrix_of_classes(client: httpx.Client) -> None:
    source = {"kind": "confusion_matrix", "matrix": [[1, 9], [8, 2]], "labels": SICK, "decisions": SICK[::-1]}
    plain = {"kind": "confusion_matrix", "matrix": [[9, 1], [2, 8]], "labels": SICK}
    assert compute(client, source) == compute(client, plain)


@each(
    ("members", "options", "pointer", "code"),
    [
        ({"decisions": None}, {}, "/input/matrix/0", "not_square"),
        ({"decisions": DECISIONS[:2]}, {}, "/input/decisions", "wrong_label_count"),
        ({"decisions": ["a", "b", "a"]}, {}, "/input/decisions/2", "duplicate_label"),
        ({"labels": [*SICK, "other"]}, {}, "/input/labels", "wrong_label_count"),
        ({"matrix": [[1, 2, 3], [4, 5]]}, {}, "/input/matrix/1", "ragged_row"),
        ({"matrix": [[1, 2, -3], [4, 5, 6]]}, {}, "/input/matrix/0/2", "negative_entry"),
        ({"positive": "sick"}, {}, "/input/positive", "not_for_decisions"),
        ({"ignore": ["sick"]}, {}, "/input/ignore", "not_for_decisions"),
        ({}, {"costs": {"matrix": [[0, 1], [1, 0]]}}, "/options/costs/matrix/0", "invalid_costs"),
        ({}, {"costs": {"matrix": PRICES, "decisions": ["a", "b", "c"]}}, "/options/costs/decisions", "invalid_costs"),
        ({}, {"metrics": ["expected_cost"]}, "/options/metrics/0", "invalid_parameter"),
        ({}, {"metrics": ['expected_cost(costs="0,1;5,0")']}, "/options/metrics/0", "invalid_parameter"),
        ({}, {"metrics": ["accuracy"]}, "/options/metrics/0", "invalid_expression"),
        ({}, {"intervals": "all", "interval_method": "delta"}, "/options/interval_method", "not_for_this_kind"),
        ({"normalized": True}, {"intervals": "all"}, "/options/intervals", "intervals_need_counts"),
    ],
)
def test_what_makes_no_sense_is_refused(
    client: httpx.Client, members: Json, options: Json, pointer: str, code: str
) -> None:
    source = {name: value for name, value in (SOURCE | members).items() if value is not None}
    fault = refused(client, source, options=options)
    assert (fault["pointer"], fault["code"]) == (pointer, code)


def test_what_has_no_meaning_says_so(client: httpx.Client) -> None:
    made = keep(client, MATRIX, "curved")
    reply = client.get(f"/v1/evaluations/{made['id']}/curves/roc")
    assert "decisions" in check_problem(reply, 422, "not_for_this_kind")["detail"]
    asked = {"prevalence": {"sick": 0.5}, "metrics": [COST], "recalibrate": True}
    reply = client.post(f"/v1/evaluations/{made['id']}/projections", json=asked)
    assert "probabilities" in check_problem(reply, 422, "not_for_this_kind")["detail"]
    other = create(
        client,
        evaluation(model="square", input={"kind": "confusion_matrix", "matrix": [[5, 1], [1, 5]], "labels": SICK}),
    )
    reply = client.post("/v1/comparisons", json={"evaluations": [made["id"], other["id"]], "metrics": [COST]})
    assert reply.status_code == 422, reply.text


def test_weights_and_rates_have_costs_without_limits(client: httpx.Client) -> None:
    rates = SOURCE | {"matrix": [[n / 1000 for n in row] for row in MATRIX], "normalized": True}
    answer = compute(client, rates, costs={"matrix": PRICES})
    assert answer["requested"]["expected_cost"] == pytest.approx(float(exact(MATRIX)["expected_cost"]), rel=1e-12)
    assert answer["intervals"] == {}
    assert answer["decisions"]["share"]["wait"] == {"value": pytest.approx(0.71), "low": None, "high": None}


def test_few_samples_or_items_of_classes_are_told_as_of_all_others(client: httpx.Client) -> None:
    """A class that is a number is called one, and of more than three classes their number comes first."""

    def said(source: Json, code: str) -> str:
        return next(str(one["message"]) for one in compute(client, source)["findings"] if one["code"] == code)

    few = SOURCE | {"labels": ["1", "2"], "matrix": [[1, 0, 1], [40, 30, 20]]}
    assert said(few, "classes_with_few_samples").startswith("There are fewer than 10 samples of class 1: little")
    named = list("abcde")
    of_five = said(SOURCE | {"labels": named, "matrix": [[1, 0, 1]] * 5}, "classes_with_few_samples")
    items = {"n_true": [3] * 5, "n_predicted": [3] * 5, "n_common": [2] * 5, "item_classes": named}
    for message in (of_five, said({"kind": "sets", **items}, "classes_with_few_items")):
        assert "of 5 classes: little is known of" in message
        assert message.endswith(" They are a, b, c, d and e.")
