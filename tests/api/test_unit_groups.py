"""Samples of more than classes that come in groups: compared by groups, which trade places whole."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.api.answers import Json, check_problem
from tests.api.decisions import compare
from tests.api.test_multilabel import keep, problem, source_of

TRUTH, FIRST = problem(1, size=120, wrong=0.12)
SECOND = problem(2, size=120, wrong=0.25)[1]
# What the second run makes of a group goes together.
SECOND = np.where((np.arange(120) // 4 % 3 == 0)[:, None], FIRST, SECOND)
IDS = [f"s{place}" for place in range(120)]
GROUPS = [f"g{place // 4}" for place in range(120)]


def two_runs(client: httpx.Client, **members: Any) -> tuple[str, str]:
    first, second = (keep(client, source_of(TRUTH, said, sample_ids=IDS, **members))["id"] for said in (FIRST, SECOND))
    return first, second


def test_samples_with_labels_are_compared_by_groups(client: httpx.Client) -> None:
    from statsmodels.regression.linear_model import OLS

    runs = two_runs(client, group_ids=GROUPS)
    asked = ["subset_accuracy", "h_mean", "recall@*"]
    answer = compare(client, *runs, metrics=asked, seed=1, draws=1000)
    design = answer["design"]
    assert (design["paired"], design["n_groups"]) == (True, 30)
    assert design["class_counts"] == "random"
    assert any("30 groups" in note for note in answer["notes"])
    (subset,) = answer["metrics"]["subset_accuracy"]["differences"]
    gaps = (TRUTH == FIRST).all(axis=1) * 1.0 - (TRUTH == SECOND).all(axis=1)
    assert subset["difference"] == pytest.approx(gaps.mean())
    assert subset["method"] == "grouped_t, grouped_t"
    # The error of least squares, robust to groups, makes the same interval to first order.
    fit = OLS(gaps, np.ones(120)).fit(cov_type="cluster", cov_kwds={"groups": np.arange(120) // 4})
    half = 2.05 * float(fit.bse[0])
    assert subset["low"] == pytest.approx(gaps.mean() - half, abs=0.25 * half)
    assert subset["high"] == pytest.approx(gaps.mean() + half, abs=0.25 * half)
    assert subset["p_value"] == pytest.approx(float(fit.pvalues[0]), abs=0.02)
    assert compare(client, *runs, metrics=asked, seed=1, draws=1000)["metrics"] == answer["metrics"]


def test_copies_of_samples_with_labels_are_no_evidence(client: httpx.Client) -> None:
    """Each sample four times, in a group: as sure as the samples once, and no surer."""
    once, copied = [], []
    for said in (FIRST[::4], SECOND[::4]):
        once.append(keep(client, source_of(TRUTH[::4], said, sample_ids=IDS[:30]))["id"])
        of_copies = source_of(np.repeat(TRUTH[::4], 4, 0), np.repeat(said, 4, 0), sample_ids=IDS, group_ids=GROUPS)
        copied.append(keep(client, of_copies)["id"])
    plain, grouped = (
        compare(client, *runs, metrics=["samples_f1"], draws=1000)["metrics"]["samples_f1"]["differences"][0]
        for runs in (once, copied)
    )
    assert grouped["difference"] == pytest.approx(plain["difference"])
    assert grouped["high"] - grouped["low"] == pytest.approx(plain["high"] - plain["low"], rel=0.2)
    assert grouped["p_value"] == pytest.approx(plain["p_value"], abs=0.02)


def test_regions_are_compared_by_groups(client: httpx.Client) -> None:
    random, runs = np.random.default_rng(0), []
    sizes = random.integers(5, 20, 40)
    for least in (0.7, 0.4):
        common = np.floor(sizes * random.uniform(least, 1.0, 40)).astype(int)
        source: Json = {"kind": "sets", "n_true": sizes.tolist(), "n_predicted": sizes.tolist()}
        source |= {"n_common": common.tolist(), "sample_ids": IDS[:40], "group_ids": GROUPS[:40]}
        runs.append(keep(client, source)["id"])
    answer = compare(client, *runs, metrics=["samples_jaccard"], draws=1000)
    assert answer["design"]["n_groups"] == 10
    assert any("fewer than 30 groups" in note for note in answer["notes"])
    (difference,) = answer["metrics"]["samples_jaccard"]["differences"]
    assert difference["low"] < difference["difference"] < difference["high"]
    assert difference["p_value"] < 0.05


def test_groups_of_labels_that_do_not_fit_are_refused(client: httpx.Client) -> None:
    first = keep(client, source_of(TRUTH, FIRST, sample_ids=IDS, group_ids=GROUPS))["id"]
    other = keep(client, source_of(TRUTH, SECOND, sample_ids=IDS, group_ids=GROUPS[::-1]))["id"]
    moved = keep(client, source_of(TRUTH, SECOND, sample_ids=IDS, group_ids=["x", *GROUPS[1:]]))["id"]
    assert compare(client, first, other, metrics=["macro_f1"], draws=200)["design"]["n_groups"] == 30
    reply = client.post("/v1/comparisons", json={"evaluations": [first, moved], "metrics": ["macro_f1"]})
    assert "do not group the samples" in check_problem(reply, 422, "incomparable_runs")["detail"]
