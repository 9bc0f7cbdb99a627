"""Comparisons of runs on metrics that need the probabilities or scores of the samples."""

from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest
from scipy import stats

from app.api.answers import answer_model
from app.kernel.compare.paired.tests import mcnemar_mid_p
from app.services.compare.answers import RunComparison
from tests.api.answers import Json, check_problem, create, evaluation
from tests.api.decisions import compare, keep, keep_labels, keep_probabilities, probabilities
from tests.kernel.compare.tango import tango_interval
from tests.kernel.delong import area_difference, delong, equal_areas
from tests.witnesses import sk

TRUTH = np.arange(240) % 2
CLASSES = np.arange(300) % 3


def only(answer: Json, metric: str) -> Json:
    (difference,) = answer["metrics"][metric]["differences"]
    found: Json = difference
    return found


def two(client: httpx.Client, truth: Any = TRUTH, **members: Any) -> tuple[Any, Any, str, str]:
    """Two runs on the same samples: their probabilities and ids; the second knows more."""
    first, second = probabilities(truth, 1, 0.7), probabilities(truth, 2, 0.9)
    ids = [
        keep_probabilities(client, truth, one, f"m{number}", **members) for number, one in enumerate((first, second))
    ]
    return first, second, ids[0], ids[1]


def test_areas_have_delongs_test(client: httpx.Client) -> None:
    first, second, *ids = two(client)
    answer = compare(client, *ids, metrics=["roc_auc"])
    answer_model(RunComparison).model_validate(answer)
    metric, found = answer["metrics"]["roc_auc"], only(answer, "roc_auc")
    expected = delong(TRUTH == 1, np.stack([first[:, 1], second[:, 1]]))
    theirs = area_difference(expected, 0, 1)
    assert metric["values"] == pytest.approx([sk.roc_auc_score(TRUTH, one[:, 1]) for one in (first, second)])
    assert (found["low"], found["difference"], found["high"]) == pytest.approx(
        (theirs.low, theirs.difference, theirs.high)
    )
    assert found["p_value"] == pytest.approx(theirs.p)
    assert found["method"] == "delong, delong"
    assert metric["best"] == ids[1]
    assert metric["better"] == "higher"
    # Posterior and test tell the same story.
    exact = compare(client, *ids, metrics=["roc_auc"], rope=0, draws=20_000)
    assert only(exact, "roc_auc")["probability_a_better"] == pytest.approx(theirs.p / 2, abs=0.005)


def test_losses_have_the_paired_t_test_and_lower_is_better(client: httpx.Client) -> None:
    first, second, *ids = two(client)
    answer = compare(client, *ids, metrics=["log_loss", "brier_score"], rope=0)
    metric, found = answer["metrics"]["log_loss"], only(answer, "log_loss")
    losses = [-np.log(one[np.arange(len(TRUTH)), TRUTH]) for one in (first, second)]
    theirs = stats.ttest_rel(*losses)
    ends = theirs.confidence_interval(0.95)
    assert (found["low"], found["high"], found["p_value"]) == pytest.approx((ends.low, ends.high, theirs.pvalue))
    assert found["difference"] > 0
    assert metric["better"] == "lower"
    assert metric["best"] == ids[1]
    assert metric["ranks"] == [2, 1]
    assert found["probability_a_better"] == pytest.approx(theirs.pvalue / 2, abs=0.01)
    assert metric["probability_best"][1] > 0.9


def test_a_class_without_samples_is_none_of_few(client: httpx.Client) -> None:
    known = [probabilities(TRUTH, 1, 0.7), probabilities(TRUTH, 2, 0.9)]
    found = []
    for labels in (["0", "1"], ["0", "1", "2"]):
        wide = [np.pad(one, ((0, 0), (0, len(labels) - 2))) for one in known]
        ids = [keep_probabilities(client, TRUTH, one, f"m{place}", labels=labels) for place, one in enumerate(wide)]
        found.append(only(compare(client, *ids, metrics=["pr_auc_trapezoid@1"]), "pr_auc_trapezoid@1"))
    assert found[1]["p_value"] is not None
    assert (found[1]["low"], found[1]["high"]) == pytest.approx((found[0]["low"], found[0]["high"]))


def test_losses_of_other_samples_have_welchs_test(client: httpx.Client) -> None:
    first, second, *ids = two(client)
    found = only(compare(client, *ids, metrics=["log_loss"], paired=False), "log_loss")
    losses = [-np.log(one[np.arange(len(TRUTH)), TRUTH]) for one in (first, second)]
    theirs = stats.ttest_ind(*losses, equal_var=False)
    assert found["p_value"] == pytest.approx(theirs.pvalue)
    assert found["method"] == "welch_t, welch_t"


def test_shares_are_compared_by_their_discordant_samples(client: httpx.Client) -> None:
    first, second, *ids = two(client, CLASSES)
    found = only(compare(client, *ids, metrics=["top_k_accuracy"]), "top_k_accuracy")
    hits = [np.argsort(-one, axis=1)[:, :2] == CLASSES[:, None] for one in (first, second)]
    mine, theirs = (one.any(axis=1) for one in hits)
    b, c = int((mine & ~theirs).sum()), int((theirs & ~mine).sum())
    low, high = tango_interval(b, c, len(CLASSES))
    assert found["discordant"] == b + c
    assert (found["low"], found["high"]) == pytest.approx((float(low), float(high)))
    assert found["p_value"] == pytest.approx(float(mcnemar_mid_p(b, c)))
    assert found["method"] == "tango, mcnemar_mid_p"
    # Of two classes the more probable one is what was decided for: the accuracy.
    _, _, *binary = two(client)
    answer = compare(client, *binary, metrics=["top_k_accuracy(k=1)", "accuracy"], draws=20_000)
    share, accuracy = only(answer, "top_k_accuracy(k=1)"), only(answer, "accuracy")
    for member in ("difference", "low", "high", "p_value", "discordant"):
        assert share[member] == pytest.approx(accuracy[member])
    assert share["probability_a_better"] == pytest.approx(accuracy["probability_a_better"], abs=0.01)


@pytest.mark.slow
def test_everything_else_has_derivatives(client: httpx.Client) -> None:
    first, second, *ids = two(client)
    metrics = ["average_precision", "pr_auc_trapezoid", "mean(h_mean, roc_auc)", "expected_calibration_error", "h_mean"]
    answer = compare(client, *ids, metrics=metrics, seed=5)
    assert list(answer["metrics"]) == metrics
    values = answer["metrics"]["average_precision"]["values"]
    assert values == pytest.approx([sk.average_precision_score(TRUTH, one[:, 1]) for one in (first, second)])
    h, area = answer["metrics"]["h_mean"]["values"][0], sk.roc_auc_score(TRUTH, first[:, 1])
    assert answer["metrics"]["mean(h_mean, roc_auc)"]["values"][0] == pytest.approx((h + area) / 2)
    assert only(answer, "average_precision")["method"] == "influence, influence"
    for metric in metrics[1:4]:
        assert only(answer, metric)["method"] == "jackknife_t, jackknife_t"
    assert only(answer, "h_mean")["method"] == "score, permutation_mid_p"
    # The same limits by hand, up to chance.
    random, gaps, swapped = np.random.default_rng(0), [], []
    places = [np.flatnonzero(code == TRUTH) for code in (0, 1)]
    for _ in range(600):
        rows = np.concatenate([random.choice(place, len(place)) for place in places])
        gaps.append(np.subtract(*(sk.average_precision_score(TRUTH[rows], one[rows, 1]) for one in (first, second))))
        kept = random.random(len(TRUTH)) < 0.5
        sides = (np.where(kept, first[:, 1], second[:, 1]), np.where(kept, second[:, 1], first[:, 1]))
        swapped.append(abs(np.subtract(*(sk.average_precision_score(TRUTH, side) for side in sides))))
    found = only(answer, "average_precision")
    low, high = np.quantile(gaps, [0.025, 0.975])
    width = high - low
    assert found["low"] == pytest.approx(low, abs=0.15 * width)
    assert found["high"] == pytest.approx(high, abs=0.15 * width)
    share = np.mean(np.array(swapped) >= abs(found["difference"]))
    assert found["p_value"] == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 600) + 0.005)
    assert compare(client, *ids, metrics=metrics, seed=5)["metrics"] == answer["metrics"]


def test_three_runs(client: httpx.Client) -> None:
    outputs = [probabilities(TRUTH, seed, skill) for seed, skill in ((1, 0.7), (2, 0.9), (3, 0.7))]
    ids = [keep_probabilities(client, TRUTH, one, f"m{number}") for number, one in enumerate(outputs)]
    answer = compare(client, *ids, metrics=["roc_auc", "log_loss", "top_k_accuracy(k=1)", "pr_auc_trapezoid"])
    expected = equal_areas(delong(TRUTH == 1, np.stack([one[:, 1] for one in outputs])))
    omnibus = answer["metrics"]["roc_auc"]["omnibus"]
    assert (omnibus["statistic"], omnibus["df"], omnibus["p_value"]) == pytest.approx(expected)
    assert omnibus["test"] == "delong"
    assert answer["metrics"]["log_loss"]["omnibus"]["test"] == "wald"
    # Among two classes the most probable one is what was decided for.
    top = answer["metrics"]["top_k_accuracy(k=1)"]["omnibus"]
    assert top == {**answer["omnibus"], "of": "equal values"}
    assert "omnibus" not in answer["metrics"]["pr_auc_trapezoid"]
    for metric in answer["metrics"].values():
        assert sum(metric["probability_best"]) == pytest.approx(1)
        assert len(metric["differences"]) == 3
        assert ids[1] in metric["may_be_best"]


def test_pairing_goes_by_id_and_classes_by_name(client: httpx.Client) -> None:
    _, second, *ids = two(client, CLASSES)
    order = np.random.default_rng(0).permutation(len(CLASSES))
    turned = keep_probabilities(
        client,
        CLASSES[order],
        second[order][:, [2, 0, 1]],
        labels=[2, 0, 1],
        sample_ids=order.tolist(),
    )
    metrics = ["roc_auc@0", "log_loss", "roc_auc_ovo_macro", "mean(recall@1, average_precision@2)"]
    straight = compare(client, *ids, metrics=metrics, seed=1)
    other = compare(client, ids[0], turned, metrics=metrics, seed=1)
    assert other["design"]["paired"]
    for metric in metrics:
        assert other["metrics"][metric]["values"] == pytest.approx(straight["metrics"][metric]["values"])
    for metric in metrics[:3]:
        mine, theirs = only(straight, metric), only(other, metric)
        for member in ("low", "high", "p_value"):
            assert mine[member] == pytest.approx(theirs[member])


def test_runs_of_scores(client: httpx.Client) -> None:
    """Scores have areas, in whichever class is positive, and no losses."""
    random = np.random.default_rng(0)
    scores = TRUTH + random.normal(size=len(TRUTH))
    other = TRUTH + random.normal(size=len(TRUTH))

    def kept(values: Any, positive: int) -> str:
        source = {
            "kind": "scores",
            "y_true": TRUTH.tolist(),
            "scores": values.tolist(),
            "positive": positive,
            "threshold": 0.5 if positive else -0.5,
            "sample_ids": list(range(len(TRUTH))),
        }
        return str(create(client, evaluation(dataset="scores", input=source))["id"])

    plain = compare(client, kept(scores, 1), kept(other, 1), metrics=["roc_auc@1", "log_loss"])
    turned = compare(client, kept(scores, 1), kept(-other, 0), metrics=["roc_auc@1"])
    expected = [sk.roc_auc_score(TRUTH, values) for values in (scores, other)]
    assert plain["metrics"]["roc_auc@1"]["values"] == pytest.approx(expected)
    assert turned["metrics"]["roc_auc@1"]["values"] == pytest.approx(expected)
    assert only(plain, "roc_auc@1")["p_value"] == pytest.approx(only(turned, "roc_auc@1")["p_value"])
    assert plain["metrics"]["log_loss"]["values"] == [None, None]
    assert sum("no probabilities" in note for note in plain["notes"]) == 2


def test_one_test_set_without_ids_gives_the_range_of_p(client: httpx.Client) -> None:
    _, _, *ids = two(client)
    known = compare(client, *ids, metrics=["roc_auc", "log_loss", "average_precision", "top_k_accuracy(k=1)"])
    _, _, *unknown = two(client, sample_ids=None)
    answer = compare(client, *unknown, metrics=["roc_auc", "log_loss", "average_precision", "top_k_accuracy(k=1)"])
    assert answer["design"]["bond"] == "same_test_set"
    for metric in ("roc_auc", "log_loss", "average_precision", "top_k_accuracy(k=1)"):
        found = only(answer, metric)
        smallest, largest = found["p_range"]
        assert smallest <= only(known, metric)["p_value"] + 1e-3
        assert only(known, metric)["p_value"] <= largest == found["p_value"]
        assert found["method"].endswith("_of_any_pairing")


def test_only_what_is_in_common_is_compared(client: httpx.Client) -> None:
    first, second = probabilities(TRUTH, 1), probabilities(TRUTH, 2)
    one = keep_probabilities(client, TRUTH, first)
    some = keep_probabilities(client, TRUTH[40:], second[40:], sample_ids=list(range(40, len(TRUTH))))
    answer = compare(client, one, some, metrics=["roc_auc"], minimum_matched=0.5)
    assert answer["design"]["paired"]
    expected = [sk.roc_auc_score(TRUTH[40:], outputs[40:, 1]) for outputs in (first, second)]
    assert answer["metrics"]["roc_auc"]["values"] == pytest.approx(expected)


def test_other_class_mixes_are_brought_to_one_prevalence(client: httpx.Client) -> None:
    rare = np.repeat([0, 1], [200, 50])
    even = np.repeat([0, 1], [100, 100])
    first, second = probabilities(rare, 1, shared=1), probabilities(even, 2, shared=2)
    ids = [keep_probabilities(client, *run, dataset=f"mix{n}") for n, run in enumerate(((rare, first), (even, second)))]
    answer = compare(client, *ids, metrics=["roc_auc", "log_loss", "average_precision", "au_imcp_trapezoid"])
    assert answer["design"]["common_prevalence"] == pytest.approx([0.65, 0.35])
    assert answer["metrics"]["roc_auc"]["prevalence"] == "insensitive"
    assert only(answer, "roc_auc")["method"] == "delong, delong"
    measured: dict[str, Callable[[Any, Any, Any], Any]] = {
        "log_loss": lambda y, p, w: sk.log_loss(y, p, sample_weight=w),
        "average_precision": lambda y, p, w: sk.average_precision_score(y, p[:, 1], sample_weight=w),
    }
    for metric, value in measured.items():
        found = answer["metrics"][metric]
        assert found["prevalence"] == "reprojected"
        weights = [np.where(rare == 1, 0.35 / 50, 0.65 / 200), np.where(even == 1, 0.35, 0.65)]
        expected = [value(y, p, w) for y, p, w in zip((rare, even), (first, second), weights, strict=True)]
        assert found["values"] == pytest.approx(expected)
        assert found["observed_values"] == pytest.approx(
            [value(y, p, None) for y, p in ((rare, first), (even, second))]
        )
        assert only(answer, metric)["low"] < only(answer, metric)["difference"] < only(answer, metric)["high"]
        assert only(answer, metric)["method"] == "jackknife_t, jackknife_t"
    assert answer["metrics"]["au_imcp_trapezoid"]["values"] == [None, None]
    assert any("Not compared: au_imcp_trapezoid." in note for note in answer["notes"])
    assert any("one prevalence" in note for note in answer["notes"])


def test_runs_that_say_the_same(client: httpx.Client) -> None:
    first = probabilities(TRUTH, 1)
    ids = [keep_probabilities(client, TRUTH, first) for _ in range(2)]
    answer = compare(client, *ids, metrics=["roc_auc", "log_loss", "average_precision"])
    found_units = int(np.bincount(TRUTH).min())
    for metric in answer["metrics"]:
        found = only(answer, metric)
        assert found["difference"] == 0
        assert found["p_value"] == 1
        assert found["identical"] is True
        # Of other samples it is known only that the runs differ on few.
        assert metric == "log_loss" or found["low"] == pytest.approx(-3.84 / (found_units + 3.84), rel=1e-3)
        assert answer["metrics"][metric]["ranks"] == [1, 1]


def test_what_does_not_vary_is_no_certainty(client: httpx.Client) -> None:
    truth = np.arange(30) % 2
    perfect, flat = np.where(np.eye(2)[truth] == 1, 0.9, 0.1), np.full((30, 2), 0.5)
    ids = [keep_probabilities(client, truth, one) for one in (perfect, flat, np.where(perfect > 0.5, 0.8, 0.2))]
    answer = compare(client, ids[0], ids[1], metrics=["roc_auc", "log_loss"])
    for metric in answer["metrics"]:
        found = only(answer, metric)
        assert "vary" in found["reason"]
        assert found["p_value"] is found["low"] is found["probability_a_better"] is None
    both = only(compare(client, ids[0], ids[2], metrics=["roc_auc"]), "roc_auc")
    assert both["p_value"] == 1
    assert both["low"] is None
    assert "varies" in both["reason"]


def test_lists_over_the_classes(client: httpx.Client) -> None:
    first, second, *ids = two(client, CLASSES)
    answer = compare(client, *ids, metrics=["roc_auc@*"])
    assert list(answer["metrics"]) == ["roc_auc@0", "roc_auc@1", "roc_auc@2"]
    for code in range(3):
        expected = area_difference(delong(np.equal(CLASSES, code), np.stack([first[:, code], second[:, code]])), 0, 1)
        assert only(answer, f"roc_auc@{code}")["p_value"] == pytest.approx(expected.p)
    assert any(only(answer, name)["p_adjusted"] > only(answer, name)["p_value"] for name in answer["metrics"])


def test_runs_on_the_same_folds(client: httpx.Client) -> None:
    def kept(seed: int, skill: float) -> tuple[str, list[float]]:
        outputs = probabilities(TRUTH, seed, skill)
        folds = [
            {
                "kind": "probabilities",
                "y_true": TRUTH[start : start + 60].tolist(),
                "probabilities": outputs[start : start + 60].tolist(),
            }
            for start in range(0, 240, 60)
        ]
        identifier = create(client, evaluation(dataset="folds", input={"kind": "folds", "folds": folds}))["id"]
        areas = [
            sk.roc_auc_score(TRUTH[start : start + 60], outputs[start : start + 60, 1]) for start in range(0, 240, 60)
        ]
        return identifier, areas

    (one, mine), (other, theirs) = kept(1, 0.7), kept(2, 0.9)
    answer = compare(client, one, other, metrics=["roc_auc@1", "h_mean"])
    folds = only(answer, "roc_auc@1")["folds"]
    assert folds["mean_difference"] == pytest.approx(np.mean(np.subtract(mine, theirs)))
    assert only(answer, "h_mean")["folds"]["method"] == folds["method"]


def test_runs_without_probabilities_are_refused(client: httpx.Client) -> None:
    first = probabilities(TRUTH, 1)
    good = keep_probabilities(client, TRUTH, first)
    forgotten = keep_probabilities(client, TRUTH, first, "forgetful", options={"retain": "none"})
    matrix = keep(client, [[100, 20], [10, 110]], "counted")
    labels = keep_labels(client, TRUTH, first.argmax(axis=1), "labelled")
    for other, why in ((forgotten, "retain=none"), (matrix, "confusion matrix"), (labels, "predictions")):
        reply = client.post("/v1/comparisons", json={"evaluations": [good, other], "metrics": ["h_mean", "roc_auc@1"]})
        problem = check_problem(reply, 422, "incomparable_runs")
        assert "roc_auc@1" in problem["detail"]
        assert other in problem["detail"]
        assert why in problem["detail"]
        assert problem["errors"][0]["pointer"] == "/evaluations/1"
        # What matrices have can still be compared.
        compare(client, good, other, metrics=["h_mean"])


@pytest.mark.parametrize(
    ("metric", "code"),
    [("mean(roc_auc@1, log_loss)", "not_comparable"), ("roc_auk@1", "unknown_metric"), ("roc_auc@7", "unknown_label")],
)
def test_expressions_that_are_refused(client: httpx.Client, metric: str, code: str) -> None:
    run = keep_probabilities(client, TRUTH, probabilities(TRUTH, 1))
    other = keep_probabilities(client, TRUTH, probabilities(TRUTH, 2))
    reply = client.post("/v1/comparisons", json={"evaluations": [run, other], "metrics": ["h_mean", metric]})
    assert check_problem(reply, 422, code)["errors"][0]["pointer"] == "/metrics/1"


def test_too_many_samples_are_refused(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, *ids = two(client)
    monkeypatch.setattr("app.services.runs.pairing.MOST_ENTRIES", 900)
    reply = client.post("/v1/comparisons", json={"evaluations": ids, "metrics": ["roc_auc"]})
    problem = check_problem(reply, 422, "out_of_reach")
    assert "960" in problem["detail"]
    assert "900" in problem["detail"]


@pytest.mark.usefixtures("computed_here")
def test_without_the_time_to_resample_values_are_given(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, *ids = two(client)
    monkeypatch.setattr("app.kernel.uncertainty.jackknife._ENTRIES", 1000)
    answer = compare(client, *ids, metrics=["pr_auc_trapezoid", "roc_auc"])
    found = only(answer, "pr_auc_trapezoid")
    assert found["method"] == "none, none"
    assert found["difference"] is not None
    assert found["low"] is None
    assert answer["metrics"]["pr_auc_trapezoid"]["probability_best"] is None
    assert any("pr_auc_trapezoid" in note for note in answer["notes"])
    assert only(answer, "roc_auc")["method"] == "delong, delong"
