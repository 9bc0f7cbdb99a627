"""The example of every kind of input, against scikit-learn on the same data."""

from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from examples import kinds
from tests.witnesses import sk


@pytest.fixture(scope="module")
def client(base_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=base_url, timeout=60) as client:
        yield client


def expected_of_labels() -> dict[str, float]:
    source = kinds.labels()
    truth, scores = np.array(source["y_true"]), np.array(source["probabilities"])
    recalls = sk.recall_score(truth, scores >= 0.5, average=None)
    return {
        "h_mean": 5 / (1 / recalls).sum(),
        "macro_f1": sk.f1_score(truth, scores >= 0.5, average="macro"),
        "label_ranking_average_precision": sk.label_ranking_average_precision_score(truth, scores),
    }


def expected_of_clusters() -> dict[str, float]:
    source = kinds.clusters()
    both = source["y_true"], source["y_pred"]
    return {
        "adjusted_rand": sk.adjusted_rand_score(*both),
        "v_measure": sk.v_measure_score(*both),
        "silhouette": sk.silhouette_score(np.array(source["features"]), source["y_pred"]),
    }


def expected_of_rankings() -> dict[str, float]:
    source = kinds.ranking()
    shape = kinds.QUERIES, kinds.ITEMS
    relevant, scores = (np.array(source[name]).reshape(shape) for name in ("relevance", "scores"))
    order = np.argsort(-scores, axis=1)
    first = np.take_along_axis(relevant, order, axis=1).argmax(axis=1)
    return {
        "ndcg_at_k(k=10)": sk.ndcg_score(relevant, scores, k=10),
        "mean_reciprocal_rank": float(np.mean(1 / (1 + first))),
        "query_auc": float(np.mean([sk.roc_auc_score(*pair) for pair in zip(relevant, scores, strict=True)])),
    }


def expected_of_regions() -> dict[str, float]:
    there, found, digits = kinds.ink()
    of_classes = [sk.jaccard_score(there[digits == one].ravel(), found[digits == one].ravel()) for one in range(10)]
    return {
        "samples_jaccard": sk.jaccard_score(there, found, average="samples"),
        "pooled_jaccard": sk.jaccard_score(there.ravel(), found.ravel()),
        "mean_class_jaccard": float(np.mean(of_classes)),
    }


EXPECTED = {
    "multilabel": expected_of_labels,
    "clustering": expected_of_clusters,
    "ranking": expected_of_rankings,
    "sets": expected_of_regions,
}


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_values_are_those_of_scikit_learn_and_within_their_limits(client: httpx.Client, kind: str) -> None:
    made = kinds.post(client, kind)
    expected = EXPECTED[kind]()
    assert made["requested"].keys() == expected.keys()
    for metric, value in expected.items():
        # Among 24,000 distances some are equal, and their order is one of several.
        assert made["requested"][metric] == pytest.approx(value, rel=1e-4 if kind == "ranking" else 1e-12)
        limits = made["intervals"][metric]
        assert limits["low"] < made["requested"][metric] < limits["high"]


def test_the_script_says_them(base_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    kinds.main(["--url", base_url])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [kind for kind, (*_, names) in kinds.KINDS.items() for _ in names]
