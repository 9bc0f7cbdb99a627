"""Comparisons of cross-validated runs: tests over the folds, and over repetitions."""

from typing import Any

import httpx
import numpy as np
import pytest
from scipy.stats import f

from tests.api.answers import check_problem, create, evaluation, matrix_input
from tests.api.decisions import compare, only


def test_runs_on_the_same_folds(client: httpx.Client) -> None:
    """The corrected t test over the folds stands beside the tests over the samples."""

    def cross_validated(rights: list[int], labels: str = "ab") -> str:
        folds = [matrix_input([[right, 50 - right], [50 - right, right]], labels=[*labels]) for right in rights]
        body = evaluation(input={"kind": "folds", "folds": folds}, dataset="folded")
        return str(create(client, body)["id"])

    first, second = cross_validated([45, 44, 46, 45, 47]), cross_validated([43, 43, 44, 44, 44])
    found = only(compare(client, first, second, metrics=["accuracy", "error_rate"], rope=0.01), "accuracy")["folds"]
    gaps = [0.04, 0.02, 0.04, 0.02, 0.06]
    assert found["mean_difference"] == pytest.approx(sum(gaps) / 5)
    variance = sum((gap - 0.036) ** 2 for gap in gaps) / 4
    assert found["statistic"] == pytest.approx(0.036 / ((1 / 5 + 0.2 / 0.8) * variance) ** 0.5)
    assert found["df"] == 4
    assert found["low"] < found["mean_difference"] < found["high"]
    assert found["probability_a_better"] > 0.9
    answer = compare(client, first, second, metrics=["error_rate"])
    assert only(answer, "error_rate")["folds"]["probability_a_better"] > 0.9
    turned = cross_validated([43, 43, 44, 44, 44], "ba")
    assert only(compare(client, first, turned, metrics=["accuracy"]), "accuracy")["folds"] == found
    other = cross_validated([45, 44, 46])
    assert "folds" not in only(compare(client, first, other, metrics=["accuracy"]), "accuracy")
    # One fold does not say how folds vary.
    single = [cross_validated([right]) for right in (45, 43)]
    assert "folds" not in only(compare(client, *single, metrics=["accuracy"]), "accuracy")


# Repeated cross-validation.


def repeated(client: httpx.Client, seed: int, *, ids: bool, mixed: bool = False, **members: Any) -> str:
    """Id of five times two folds of sixty samples, of a run that is right in two of three."""
    random, folds = np.random.default_rng(seed), []
    for repeat in range(5):
        order = np.random.default_rng(repeat).permutation(60)
        for half in (order[:30], order[30:]):
            truth = half % 2
            said = np.where(random.random(30) < 0.6 + 0.05 * seed, truth, 1 - truth)
            known = {"sample_ids": half.tolist()} if ids else {}
            folds.append({"kind": "predictions", "y_true": truth.tolist(), "y_pred": said.tolist(), **known})
    if mixed:
        folds = folds[::2] + folds[1::2]
    body = evaluation(input={"kind": "folds", "folds": folds, **members}, dataset="repeated")
    return str(create(client, body)["id"])


def test_repetitions_of_a_cross_validation_are_known(client: httpx.Client) -> None:
    """Given, or seen from samples that come again: either way a half of the samples is tested on each time."""
    ways: list[dict[str, Any]] = [{"ids": False, "repeats": 5}, {"ids": True}, {"ids": False}]
    answers = [
        compare(client, *(repeated(client, seed, **way) for seed in (1, 2)), metrics=["accuracy"]) for way in ways
    ]
    given, seen, unknown = (only(answer, "accuracy")["folds"] for answer in answers)
    assert {name: given[name] for name in seen} == seen
    assert (given["repeats"], unknown["repeats"]) == (5, None)
    widths = [one["high"] - one["low"] for one in (given, unknown)]
    assert widths[0] / widths[1] == pytest.approx(((1 / 10 + 1 / 1) / (1 / 10 + 1 / 9)) ** 0.5)
    assert given["p_value"] > unknown["p_value"]
    codes = [[finding["code"] for finding in answer.get("findings", [])] for answer in answers]
    assert codes == [[], [], ["fold_repeats_unknown"]]


def test_folds_may_say_which_repetition_they_belong_to(client: httpx.Client) -> None:
    """In any order: a half of the samples is tested on each time, and mixed ones have no test of pairs of folds."""
    told = [repeat for repeat in range(5) for _ in range(2)]
    ways: list[dict[str, Any]] = [
        {"ids": False, "repeats": 5},
        {"ids": False, "repeat_of_fold": told},
        {"ids": True, "repeat_of_fold": told},
        {"ids": False, "mixed": True, "repeat_of_fold": [*range(5), *range(5)]},
    ]
    found = [
        only(compare(client, *(repeated(client, seed, **way) for seed in (1, 2)), metrics=["accuracy"]), "accuracy")
        for way in ways
    ]
    given, listed, checked, mixed = (one["folds"] for one in found)
    assert given == listed == checked
    assert "five_by_two" in given
    assert {name: mixed[name] for name in ("repeats", "statistic", "p_value")} == pytest.approx(
        {name: given[name] for name in ("repeats", "statistic", "p_value")}
    )
    assert "five_by_two" not in mixed


@pytest.mark.parametrize(
    ("repeats", "ids"),
    [([0, 0, 1, 1, 2], False), ([0] * 4 + [1] * 6, False), ([*range(10)], False), ([0, 1] * 5, True)],
)
def test_repetitions_told_by_folds_that_do_not_fit(client: httpx.Client, repeats: list[int], ids: bool) -> None:
    names = [{"sample_ids": [fold % 2, 2 + fold % 2]} if ids else {} for fold in range(10)]
    folds = [{"kind": "predictions", "y_true": [0, 1], "y_pred": [0, 1], **one} for one in names]
    body = evaluation(input={"kind": "folds", "folds": folds, "repeat_of_fold": repeats})
    problem = check_problem(client.post("/v1/evaluations", json=body), 422, "invalid_input")
    assert problem["errors"][0]["pointer"] == "/input/repeat_of_fold"
    assert problem["errors"][0]["code"] == "repeats_do_not_fit"


def test_repetitions_are_told_in_one_way(client: httpx.Client) -> None:
    folds = [{"kind": "predictions", "y_true": [0, 1], "y_pred": [0, 1]}] * 4
    body = evaluation(input={"kind": "folds", "folds": folds, "repeats": 2, "repeat_of_fold": [0, 0, 1, 1]})
    problem = check_problem(client.post("/v1/evaluations", json=body), 422, "invalid_input")
    assert problem["errors"][0]["code"] == "repeats_given_twice"


def test_five_times_two_folds_have_the_combined_f_test(client: httpx.Client) -> None:
    runs = [repeated(client, seed, ids=True) for seed in (1, 2)]
    found = only(compare(client, *runs, metrics=["accuracy"]), "accuracy")["folds"]
    values = [client.get(f"/v1/evaluations/{run}").json()["folds"]["accuracy"]["values"] for run in runs]
    gaps = np.subtract(*values).reshape(5, 2)
    # The variance within a pair of folds is half the square of their difference, and F divides by twice their sum.
    statistic = (gaps**2).sum() / ((gaps[:, 0] - gaps[:, 1]) ** 2).sum()
    assert found["five_by_two"]["statistic"] == pytest.approx(statistic)
    assert found["five_by_two"]["p_value"] == pytest.approx(f.sf(statistic, 10, 5))


@pytest.mark.parametrize("members", [{}, {"repeats": 5}])
def test_folds_of_mixed_repetitions_have_no_f_test(client: httpx.Client, members: dict[str, Any]) -> None:
    """First the one half of every repetition, then the others: the test would pair folds of different repetitions."""
    runs = [repeated(client, seed, ids=True, mixed=True, **members) for seed in (1, 2)]
    found = only(compare(client, *runs, metrics=["accuracy"]), "accuracy")["folds"]
    assert found["repeats"] == 5
    assert "five_by_two" not in found


@pytest.mark.parametrize(("repeats", "ids"), [(3, False), (10, False), (2, True)])
def test_repetitions_that_do_not_fit(client: httpx.Client, repeats: int, ids: bool) -> None:
    names = [{"sample_ids": [fold % 2, 2 + fold % 2]} if ids else {} for fold in range(10)]
    folds = [{"kind": "predictions", "y_true": [0, 1], "y_pred": [0, 1], **one} for one in names]
    body = evaluation(input={"kind": "folds", "folds": folds, "repeats": repeats})
    problem = check_problem(client.post("/v1/evaluations", json=body), 422, "invalid_input")
    assert problem["errors"][0]["pointer"] == "/input/repeats"
    assert problem["errors"][0]["code"] == "repeats_do_not_fit"
