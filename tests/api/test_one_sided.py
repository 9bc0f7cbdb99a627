"""`alternative`: limits and tests on one side, in reports, comparisons and gates."""

from typing import Any

import httpx
import numpy as np
import pytest
from scipy.stats import binom, binomtest, norm, ttest_rel

from tests.api.answers import Json, check_problem, compute, create, evaluation, matrix_input

SIDES = {"greater": "larger", "less": "smaller"}
# Limits of statsmodels are named after the hypothesis that they leave open, those of scipy after the one they show.
ENDS = {"greater": "smaller", "less": "larger"}
ELSEWHERE = {"wilson": "wilson", "clopper_pearson": "beta", "jeffreys": "jeffreys"}
INPUT = matrix_input([[17, 2, 1], [4, 40, 6], [0, 0, 9]], labels=["A", "B", "C"])


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("method", ELSEWHERE)
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_limits_of_rates(client: httpx.Client, side: str, method: str, level: float) -> None:
    from statsmodels.stats.proportion import proportion_confint

    report = compute(client, INPUT, alternative=side, proportion_interval=method, level=level)
    for name, (x, n) in {"accuracy": (66, 79), "recall@B": (40, 50), "recall@C": (9, 9)}.items():
        found = report["intervals"][name]
        expected = list(proportion_confint(x, n, alpha=1 - level, method=ELSEWHERE[method], alternative=ENDS[side]))
        if method == "jeffreys" and x == n:
            expected[1] = 1.0
        assert (found["low"], found["high"]) == pytest.approx(tuple(expected), rel=1e-12)
        assert (found["alternative"], found["level"], found["method"]) == (side, level, method)


def test_scipy_has_the_same(client: httpx.Client) -> None:
    for side in SIDES:
        found = compute(client, INPUT, alternative=side)["intervals"]["accuracy"]
        expected = binomtest(66, 79, alternative=side).proportion_ci(0.95, method="wilson")
        assert (found["low"], found["high"]) == pytest.approx((expected.low, expected.high), rel=1e-12)


@pytest.mark.parametrize("intervals", ["headline", "all"])
def test_the_limit_is_that_of_two_sides_with_as_much_beyond(client: httpx.Client, intervals: str) -> None:
    """Of every metric, whatever its method; the other end is that of the range, or none where there is none."""
    options: dict[str, Any] = {"intervals": intervals, "seed": 3, "draws": 400}
    both = compute(client, INPUT, level=0.9, **options)["intervals"]
    lower = compute(client, INPUT, level=0.95, alternative="greater", **options)["intervals"]
    upper = compute(client, INPUT, level=0.95, alternative="less", **options)["intervals"]
    assert both.keys() == lower.keys() == upper.keys()
    for name, one in both.items():
        if "reason" in one:
            assert lower[name]["low"] is None
            continue
        assert lower[name]["low"] == pytest.approx(one["low"], rel=1e-9, abs=1e-12)
        assert upper[name]["high"] == pytest.approx(one["high"], rel=1e-9, abs=1e-12)
    assert (lower["mcc"]["high"], upper["mcc"]["low"]) == (1.0, -1.0)
    if intervals == "all":
        assert lower["likelihood_ratio_positive@B"]["high"] is None
        assert "reason" not in lower["likelihood_ratio_positive@B"]
        assert upper["likelihood_ratio_positive@B"]["low"] == 0.0


def test_probabilities_and_samples_in_groups(client: httpx.Client) -> None:
    random = np.random.default_rng(5)
    truth = random.integers(0, 2, 120)
    scores = np.clip(0.3 * truth + random.random(120) * 0.7, 0, 1)
    source = {"kind": "probabilities", "y_true": truth.tolist(), "labels": ["0", "1"]}
    source["probabilities"] = np.column_stack([1 - scores, scores]).tolist()
    for more in ({}, {"group_ids": (np.arange(120) // 4).tolist()}):
        both = compute(client, {**source, **more}, level=0.9)["intervals"]
        lower = compute(client, {**source, **more}, level=0.95, alternative="greater")["intervals"]
        for name in ("roc_auc@1", "log_loss", "accuracy"):
            assert lower[name]["low"] == pytest.approx(both[name]["low"], rel=1e-9)
        assert lower["roc_auc@1"]["high"] == 1.0
        assert lower["log_loss"]["high"] is None


@pytest.mark.parametrize(
    "options",
    [{"alternative": "greater", "level": 0.5}, {"alternative": "less", "intervals": "none"}, {"alternative": "larger"}],
)
def test_refused(client: httpx.Client, options: Json) -> None:
    answer = client.post("/v1/metrics/compute", json={"input": INPUT, "options": options})
    check_problem(answer, 422, answer.json()["code"])


def _compared(client: httpx.Client, bodies: list[Json], **asked: Any) -> Json:
    ids = [create(client, body)["id"] for body in bodies]
    answer = client.post("/v1/comparisons", json={"evaluations": ids, **asked})
    assert answer.status_code == 201, answer.text
    found: Json = answer.json()
    return found


def _pair(answer: Json, metric: str) -> Json:
    found: Json = answer["metrics"][metric]["differences"][0]
    return found


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("turned", [False, True])
def test_independent_rates(client: httpx.Client, side: str, turned: bool) -> None:
    """56 of 70 and 48 of 80: Newcombe's limits, and p where they reach 0, near that of the score test."""
    from scipy.optimize import brentq
    from statsmodels.stats import proportion
    from statsmodels.stats.proportion import confint_proportions_2indep

    runs = [((56, 70), [[56, 14], [10, 60]]), ((48, 80), [[48, 32], [10, 60]])]
    runs = runs[::-1] if turned else runs
    bodies = [evaluation(model=f"m{i}", input=matrix_input(matrix)) for i, (_, matrix) in enumerate(runs)]
    answer = _compared(client, bodies, metrics=["recall@0"], alternative=side, paired=False)
    found, ((x1, n1), (x2, n2)) = _pair(answer, "recall@0"), (run for run, _ in runs)
    score = proportion.test_proportions_2indep(
        x1, n1, x2, n2, method="score", alternative=SIDES[side], correction=False
    )
    low, high = confint_proportions_2indep(x1, n1, x2, n2, method="newcomb", alpha=0.1)
    worse = 1 if turned else 0  # The limit that reaches 0: the upper one where the first rate is the smaller.
    tail = brentq(
        lambda tail: confint_proportions_2indep(x1, n1, x2, n2, method="newcomb", alpha=2.0 * tail)[worse], 1e-6, 0.4
    )
    against = (side == "less") != turned
    assert found["p_value"] == pytest.approx(1.0 - tail if against else tail, abs=1e-5)
    assert found["p_value"] == pytest.approx(score.pvalue, abs=2e-4)
    expected = (low, 1.0) if side == "greater" else (-1.0, high)
    assert (found["low"], found["high"]) == pytest.approx(expected, rel=1e-12)
    assert answer["design"]["alternative"] == side


@pytest.mark.parametrize("side", SIDES)
def test_paired_accuracy(client: httpx.Client, side: str) -> None:
    """7 right in the first only and 2 in the second only: half of the exact point is taken off (mid-p)."""
    truth = [0] * 40 + [1] * 40
    first, second = truth.copy(), truth.copy()
    for place in range(7):
        second[place] = 1
    for place in (50, 51):
        first[place] = 0
    bodies = [
        evaluation(
            model=name,
            input={"kind": "predictions", "y_true": truth, "y_pred": called, "sample_ids": list(range(80))},
        )
        for name, called in (("a", first), ("b", second))
    ]
    found = _pair(_compared(client, bodies, metrics=["accuracy"], alternative=side), "accuracy")
    exact = binomtest(7, 9, alternative=side).pvalue
    assert found["p_value"] == pytest.approx(exact - binom.pmf(7, 9, 0.5) / 2, rel=1e-9)
    two_sided = _pair(_compared(client, bodies, metrics=["accuracy"], level=0.9), "accuracy")
    if side == "greater":
        assert (found["low"], found["high"]) == (pytest.approx(two_sided["low"], rel=1e-9), 1.0)
    else:
        assert (found["low"], found["high"]) == (-1.0, pytest.approx(two_sided["high"], rel=1e-9))


@pytest.mark.parametrize("side", SIDES)
def test_paired_scores(client: httpx.Client, side: str) -> None:
    random = np.random.default_rng(11)
    truth = random.integers(0, 2, 60)
    rows = [np.clip(0.5 + (truth - 0.5) * gain + random.normal(0, 0.2, 60), 0.01, 0.99) for gain in (0.5, 0.3)]
    bodies = [
        evaluation(
            model=name,
            input={
                "kind": "probabilities",
                "y_true": truth.tolist(),
                "probabilities": np.column_stack([1 - row, row]).tolist(),
                "labels": ["0", "1"],
                "sample_ids": list(range(60)),
            },
        )
        for name, row in zip("ab", rows, strict=True)
    ]
    answer = _compared(client, bodies, metrics=["log_loss", "roc_auc@1"], alternative=side)
    losses = [-np.log(np.where(truth == 1, row, 1 - row)) for row in rows]
    expected = ttest_rel(*losses, alternative=side)
    loss = _pair(answer, "log_loss")
    assert loss["p_value"] == pytest.approx(expected.pvalue, rel=1e-9)
    interval = expected.confidence_interval(0.95)
    assert loss["low"] == (None if side == "less" else pytest.approx(interval.low, rel=1e-9))
    assert loss["high"] == (None if side == "greater" else pytest.approx(interval.high, rel=1e-9))
    area, both = (_pair(one, "roc_auc@1") for one in (answer, _compared(client, bodies, metrics=["roc_auc@1"])))
    z = -norm.ppf(both["p_value"] / 2) * np.sign(area["difference"])
    assert area["p_value"] == pytest.approx(norm.sf(z) if side == "greater" else norm.cdf(z), rel=1e-9)


def test_simulated_differences_and_ranges_of_p(client: httpx.Client) -> None:
    """One test set of unknown pairing: p of the other side is what is missing to 1."""
    bodies = [
        evaluation(model=name, input=matrix_input(matrix))
        for name, matrix in (("a", [[45, 5], [6, 44]]), ("b", [[40, 10], [5, 45]]))
    ]
    asked: dict[str, Any] = {"metrics": ["accuracy", "range(recall@*)"], "multiplicity": "none", "seed": 1}
    both = _compared(client, bodies, level=0.9, **asked)
    above, below = (_compared(client, bodies, alternative=side, **asked) for side in SIDES)
    for metric in asked["metrics"]:
        one, more, less = (_pair(answer, metric) for answer in (both, above, below))
        sign = np.sign(one["difference"])
        along, against = (more, less) if sign > 0 else (less, more)
        assert along["p_value"] == pytest.approx(one["p_value"] / 2, rel=1e-12)
        smallest = one["p_range"][0] if "p_range" in one else one["p_value"]
        assert against["p_value"] == pytest.approx(1 - smallest / 2, rel=1e-12)
        assert (more["low"], less["high"]) == pytest.approx((one["low"], one["high"]), rel=1e-9)
        assert more["p_adjusted"] == more["p_value"]
        if "p_range" in more:
            assert more["p_range"][0] <= more["p_range"][1] == more["p_value"]


def test_comparisons_refuse_what_has_no_sides(client: httpx.Client) -> None:
    ids = [create(client, evaluation(model=name))["id"] for name in "ab"]
    for more in ({"multiplicity": "max_t"}, {"level": 0.4}):
        answer = client.post("/v1/comparisons", json={"evaluations": ids, "alternative": "greater", **more})
        check_problem(answer, 422, answer.json()["code"])


def _checked(client: httpx.Client, rule: Json, identifier: str, **more: str) -> Json:
    reply = client.put("/v1/gates/sides", json={"rules": [rule]})
    assert reply.status_code in (200, 201), reply.text
    answer = client.post("/v1/gates/sides/checks", json={"evaluation": identifier, **more})
    assert answer.status_code == 201, answer.text
    found: Json = answer.json()["results"][0]
    return found


def test_gates(client: httpx.Client) -> None:
    """54 of 60: .82 lies between the lower limits at 95 % on one side and on two."""
    from statsmodels.stats.proportion import proportion_confint

    made = create(client, evaluation(input=matrix_input([[54, 6], [9, 51]], labels=["0", "1"])))["id"]
    rule: Json = {"metric": "recall@0", "min": 0.815}
    low, _ = proportion_confint(54, 60, alpha=0.1, method="wilson")
    two_sided, one_sided = (_checked(client, {**rule, **more}, made) for more in ({}, {"alternative": "greater"}))
    assert (two_sided["verdict"], one_sided["verdict"]) == ("inconclusive", "pass")
    assert (one_sided["low"], one_sided["high"]) == pytest.approx((low, 1.0), rel=1e-12)
    assert "lower 95 % limit" in one_sided["message"]
    ceiling = {"metric": "recall@0", "max": 0.815, "alternative": "greater"}
    assert _checked(client, ceiling, made)["verdict"] == "fail"
    never = _checked(client, {"metric": "recall@0", "min": 0.95, "alternative": "greater"}, made)
    assert (never["verdict"], never["needed_samples"]) == ("inconclusive", None)
    assert _checked(client, {"metric": "recall@0", "min": 0.985, "alternative": "less"}, made)["verdict"] == "fail"


def test_gates_with_a_baseline(client: httpx.Client) -> None:
    bodies = [
        evaluation(model=name, input=matrix_input(m))
        for name, m in (("a", [[90, 10], [10, 90]]), ("b", [[80, 20], [20, 80]]))
    ]
    first, second = (create(client, body)["id"] for body in bodies)
    rule: Json = {"metric": "recall@0", "better_than": "baseline", "alternative": "greater"}
    found = _checked(client, rule, first, baseline=second)
    assert found["high"] == 1.0
    other = _checked(client, {**rule, "alternative": "less"}, first, baseline=second)
    assert (other["low"], other["verdict"]) == (-1.0, "inconclusive")


@pytest.mark.parametrize(("side", "verdict"), [("greater", "pass"), ("less", "inconclusive")])
def test_gates_say_the_limit_of_what_has_no_end_on_the_other_side(
    client: httpx.Client, side: str, verdict: str
) -> None:
    matrices = ("a", [[90, 10], [10, 90]]), ("b", [[80, 20], [20, 80]])
    first, second = (create(client, evaluation(model=name, input=matrix_input(m)))["id"] for name, m in matrices)
    rule = {"metric": "lr_positive@0", "better_than": "baseline", "alternative": side}
    found = _checked(client, rule, first, baseline=second)
    known, open_ = ("low", "high") if side == "greater" else ("high", "low")
    assert (found["verdict"], found[open_]) == (verdict, None)
    said = f"{'a lower' if side == 'greater' else 'an upper'} 95 % limit of {found[known]:+.3f}"
    assert found["message"].startswith(
        f"The difference in lr_positive@0, candidate less baseline, is +5.000 with {said}"
    ), found["message"]
    check = client.get("/v1/gates/sides/checks").json()["items"][0]["id"]
    figure = client.get(f"/v1/gates/sides/checks/{check}/plots/verdict.json").json()
    end = f"at {'least' if side == 'greater' else 'most'} {found[known]:+.3f}"
    assert f"value +5.000, interval {end}, {verdict}." in figure["description"]
    text = client.get(f"/v1/gates/sides/checks/{check}", headers={"Accept": "text/plain"}).text
    assert f"+5.000  {end}" in text


@pytest.mark.parametrize(
    "more",
    [{"bound": "upper", "min": 0.5}, {"bound": "value", "min": 0.5}, {"equivalent_to": "baseline", "margin": 0.1}],
)
def test_gates_refuse_a_side_that_decides_nothing(client: httpx.Client, more: Json) -> None:
    answer = client.put("/v1/gates/refused", json={"rules": [{"metric": "recall@0", "alternative": "less", **more}]})
    check_problem(answer, 422, answer.json()["code"])


def test_kappas_of_independent_runs(client: httpx.Client) -> None:
    """The test that both are equal, where the samples are not the same and the shares of the classes are."""
    from statsmodels.stats.inter_rater import cohens_kappa

    matrices = {"a": [[90, 10], [10, 90]], "b": [[80, 20], [20, 80]]}
    bodies = [evaluation(model=name, dataset=name, input=matrix_input(matrix)) for name, matrix in matrices.items()]
    asked: dict[str, Any] = {"metrics": ["cohen_kappa", "mcc"], "paired": False}
    found = _compared(client, bodies, **asked)["metrics"]
    (first, of_first), (second, of_second) = (
        (one.kappa, one.var_kappa) for one in (cohens_kappa(np.array(matrix)) for matrix in matrices.values())
    )
    omnibus = found["cohen_kappa"]["omnibus"]
    assert (omnibus["of"], omnibus["df"]) == ("equal kappas", 1)
    assert omnibus["statistic"] == pytest.approx((first - second) ** 2 / (of_first + of_second), rel=1e-11)
    assert "omnibus" not in found["mcc"]


@pytest.mark.parametrize(("row", "weights"), [([40, 160], None), ([20, 80], np.linspace(0.5, 1.5, 200).tolist())])
def test_kappas_at_other_shares_or_of_weights_have_no_such_test(
    client: httpx.Client, row: list[int], weights: list[float] | None
) -> None:
    """The variance of kappa is that of counts, as they are."""
    truth, bodies = np.repeat([0, 1], [100, sum(row)]).tolist(), []
    for name, hits in (("a", row), ("b", [20, 80])):
        size = sum(hits)
        source = {
            "kind": "predictions",
            "y_true": truth[: 100 + size],
            "y_pred": np.repeat([0, 1, 0, 1], [90, 10, *hits]).tolist(),
            **({} if weights is None else {"sample_weight": weights}),
        }
        bodies.append(evaluation(model=name, dataset=name, input=source))
    found = _compared(client, bodies, metrics=["cohen_kappa"], paired=False)["metrics"]["cohen_kappa"]
    assert found["differences"][0]["p_value"] is not None
    assert "omnibus" not in found


@pytest.mark.parametrize("side", SIDES)
def test_predictive_values(client: httpx.Client, side: str) -> None:
    """Statistics with one degree of freedom are squares: the sign of the difference tells the side."""
    random = np.random.default_rng(4)
    truth = (np.arange(160) % 2).tolist()
    bodies = [
        evaluation(
            model=name,
            input={
                "kind": "predictions",
                "y_true": truth,
                "y_pred": np.where(random.random(160) < skill, truth, 1 - np.array(truth)).tolist(),
                "sample_ids": list(range(160)),
            },
        )
        for name, skill in (("a", 0.85), ("b", 0.7))
    ]
    answers = [
        _compared(client, bodies, metrics=["accuracy"], alternative=side),
        _compared(client, bodies, metrics=["accuracy"], level=0.9),
    ]
    found, both = (answer["paired_tests"][0]["predictive_values"]["1"]["ppv"] for answer in answers)
    for one, other in zip(found["tests"], both["tests"], strict=True):
        assert one["statistic"] == other["statistic"]
        z = np.sqrt(one["statistic"]) * np.sign(found["difference"])
        assert one["p_value"] == pytest.approx(norm.sf(z) if side == "greater" else norm.cdf(z), rel=1e-9)
    end, other = ("ratio_low", "ratio_high") if side == "greater" else ("ratio_high", "ratio_low")
    assert found[end] == pytest.approx(both[end], rel=1e-12)
    assert found[other] == (None if side == "greater" else 0.0)


@pytest.mark.parametrize("side", SIDES)
def test_projections(client: httpx.Client, side: str) -> None:
    """At given shares, over a sweep, of samples too: the limit is that of two sides with as much beyond."""
    scored = {
        "kind": "probabilities",
        "y_true": [0, 1] * 40,
        "probabilities": [[1 - p, p] for p in np.linspace(0.05, 0.95, 80).round(4).tolist()],
        "labels": ["0", "1"],
    }
    questions: list[Json] = [
        {
            "input": INPUT,
            "prevalence": {"C": 0.5},
            "metrics": ["accuracy", "mcc", "recall@B", "min(recall@*)", "cost_savings"],
        },
        {
            "input": INPUT,
            "sweep": {"class": "C", "from": 0.1, "to": 0.6, "steps": 3},
            "metrics": ["accuracy", "macro_f1"],
        },
        {"input": scored, "prevalence": {"1": 0.2}, "metrics": ["log_loss", "average_precision@1"]},
    ]
    end, bounds = (
        ("low", {"accuracy": 1.0, "mcc": 1.0}) if side == "greater" else ("high", {"accuracy": 0.0, "mcc": -1.0})
    )
    for asked in questions:
        one = client.post("/v1/projections", json={**asked, "seed": 1, "alternative": side}).json()
        both = client.post("/v1/projections", json={**asked, "seed": 1, "level": 0.9}).json()
        assert one["design"]["alternative"] == side
        assert "alternative" not in both["design"]
        for name, found in one["metrics"].items():
            assert found[end] == pytest.approx(both["metrics"][name][end], rel=1e-9, abs=1e-12), name
            other = found["high" if end == "low" else "low"]
            if name in bounds:
                expected = bounds[name]
                assert other == ([expected] * 3 if isinstance(other, list) else expected)
            if name == "log_loss":
                assert other == (None if side == "greater" else 0.0)


@pytest.mark.parametrize("side", SIDES)
def test_leaderboards(client: httpx.Client, side: str) -> None:
    dataset = f"one-sided {side}"
    for name, matrix in (("a", [[40, 5], [5, 40]]), ("b", [[35, 10], [8, 37]])):
        create(client, evaluation(model=name, dataset=dataset, input=matrix_input(matrix)))
    for metric in ("accuracy", "f1@1"):
        asked = {"dataset": dataset, "metric": metric}
        one = client.get("/v1/leaderboard", params={**asked, "alternative": side}).json()
        both = client.get("/v1/leaderboard", params={**asked, "level": 0.9}).json()
        assert one["design"]["alternative"] == side
        for found, usual in zip(one["items"], both["items"], strict=True):
            expected = (usual["low"], 1.0) if side == "greater" else (0.0, usual["high"])
            assert (found["low"], found["high"]) == pytest.approx(expected, rel=1e-9)
    reply = client.get("/v1/leaderboard", params={**asked, "alternative": side, "level": 0.4})
    check_problem(reply, 422, reply.json()["code"])
    assert "above 0.5" in reply.text
    reply = client.post(
        "/v1/projections", json={"input": INPUT, "prevalence": {"C": 0.5}, "alternative": side, "level": 0.5}
    )
    assert "above 0.5" in check_problem(reply, 422, reply.json()["code"])["detail"] or "above 0.5" in reply.text
