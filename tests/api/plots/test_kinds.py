"""Figures of clusterings, rankings, sets and labels: what they show is what is stored."""

from typing import Any

import httpx
import numpy as np
import pytest

from app.domain.wording import number
from tests.api.answers import Json, check_problem, create, evaluation
from tests.api.plots.world import HOSTILE, check_specification, layer

CLUSTERS: Json = {
    "kind": "clustering",
    "contingency": [[30, 0, 10, 0], [0, 25, 5, 0], [4, 0, 3, 0]],
    "classes": ["barolo", HOSTILE[0], "barbera"],
    "clusters": ["a", "b", "c", HOSTILE[1]],
}
QUERIES = 40


def rankings() -> Json:
    """Queries of five items, of which the first has no relevant one."""
    random = np.random.default_rng(0)
    relevance = random.integers(0, 3, (QUERIES, 5))
    relevance[0] = 0
    relevance[1:, 0] = 1
    scores = relevance + random.normal(0.0, 1.5, relevance.shape)
    return {
        "kind": "ranking",
        "query_ids": np.repeat(np.arange(QUERIES), 5).tolist(),
        "relevance": relevance.ravel().tolist(),
        "scores": scores.ravel().tolist(),
    }


SETS: Json = {"kind": "sets", "n_true": [4, 10, 6, 5], "n_predicted": [4, 8, 6, 5], "n_common": [4, 6, 0, 2]}
LABELS: Json = {
    "kind": "multilabel",
    "y_true": [["cat"], ["cat", "dog"], [], ["dog"], ["cat"]] * 4,
    "y_pred": [["cat"], ["dog"], ["cat"], ["dog"], ["cat"]] * 4,
}


def keep(client: httpx.Client, source: Json, **options: Any) -> str:
    return str(create(client, evaluation(input=source) | ({"options": options} if options else {}))["id"])


def read(client: httpx.Client, identifier: str, name: str, **parameters: Any) -> Json:
    return check_specification(client.get(f"/v1/evaluations/{identifier}/plots/{name}.json", params=parameters))


@pytest.mark.parametrize("name", ["roc", "det", "decision"])
def test_every_label_has_its_curve(client: httpx.Client, name: str) -> None:
    random = np.random.default_rng(3)
    truth = np.stack([random.random(60) < share for share in (0.2, 0.6, 0.4, 1.0, 0.0)], axis=1).astype(int)
    given = np.round(0.5 * random.random(truth.shape) + 0.4 * truth, 2)
    given[:, 1] /= 2
    labels = ["cat", "dog", "eel", "all", "none"]
    source = {"kind": "multilabel", "labels": labels, "y_true": truth.tolist(), "probabilities": given.tolist()}
    run = keep(client, source)
    words = " ".join(read(client, run, name)["title"]["subtitle"])
    assert "each label against the rest; dog, of the lowest recall" in words
    drawn = read(client, run, name, **{"class": "eel"})
    curve = client.get(f"/v1/evaluations/{run}/curves/{name}", params={"class": "eel"}).json()
    if name == "roc":
        assert number(curve["area"]) in " ".join(drawn["title"]["subtitle"])
        assert f"of {truth[:, 2].sum()} found" in str(drawn["title"]["text"])
    assert len(read(client, run, name, **{"with": keep(client, source)})["layer"]) > 0


def test_labels_that_all_or_no_samples_have_are_no_curves(client: httpx.Client) -> None:
    source = {"kind": "multilabel", "labels": ["a", "b"], "y_true": [[1, 0]] * 3, "probabilities": [[0.5, 0.2]] * 3}
    problem = client.get(f"/v1/evaluations/{keep(client, source)}/plots/roc.svg")
    assert (problem.status_code, problem.json()["code"]) == (422, "no_figure")


@pytest.fixture(scope="module")
def ranked(client: httpx.Client) -> str:
    return keep(client, rankings())


def test_the_table_of_a_clustering_has_its_counts(client: httpx.Client) -> None:
    figure = read(client, keep(client, CLUSTERS), "contingency", theme="dark")
    rows = {(row["class"], row["cluster"]): (row["count"], row["share"]) for row in figure["data"]["values"]}
    assert rows["barolo", "a"] == (30, 30 / 34)
    assert rows["barbera", "c"] == (3, 3 / 18)
    # An empty cluster has no shares.
    assert all(row["share"] is None for row in figure["data"]["values"] if row["cluster"].startswith("'>"))
    # Clusters stand by their leading class, the purest first, and the empty one at the end.
    assert [name[0] for name in figure["encoding"]["x"]["scale"]["domain"]] == ["a", "c", "b", "'"]
    words = figure["description"]
    assert "3 classes in rows, 4 clusters in columns" in words
    assert "The least pure cluster is c: 56 % of its 18 samples are of class barolo" in words
    alone = create(client, evaluation(input={"kind": "clustering", "y_true": ["a"], "y_pred": ["b"]}))["id"]
    assert read(client, alone, "contingency")["description"].startswith("1 class in rows, 1 cluster in columns.")
    # That a class is not found is a finding, and said once on a page.
    assert "not found" not in words
    page = client.get(f"/v1/evaluations/{keep(client, CLUSTERS)}/report").text
    assert page.count("No cluster has more samples of class barbera") == 1


def test_clusters_of_points_without_classes_have_no_figure(client: httpx.Client) -> None:
    points = {"kind": "clustering", "y_pred": [0, 0, 1, 1], "features": [[0.0], [1.0], [5.0], [7.0]]}
    page = client.get(f"/v1/evaluations/{keep(client, points)}/report").text
    assert "Silhouette" in page
    assert "Contingency" not in page


def test_a_table_of_many_cells_shows_what_is_there(client: httpx.Client) -> None:
    table = np.eye(70, dtype=int) * 5
    table[0, 1:] = 1
    figure = read(client, keep(client, {"kind": "clustering", "contingency": table.tolist()}), "contingency")
    assert len(figure["data"]["values"]) == np.count_nonzero(table)
    assert "layer" in figure


def test_queries_are_spread_as_the_report_says(client: httpx.Client, ranked: str) -> None:
    figure = read(client, ranked, "per_query")
    spread = client.get(f"/v1/evaluations/{ranked}").json()["queries"]["spread"]["ndcg_at_k(k=10)"]
    (panel,) = figure["vconcat"]
    (middle,), (median,) = (layer(panel, name)["data"]["values"] for name in ("middle_half", "median"))
    assert (middle["from"], middle["to"]) == pytest.approx((spread["quartile_1"], spread["quartile_3"]))
    assert median["from"] == pytest.approx(spread["median"])
    assert sum(row["count"] for row in layer(panel, "counts")["data"]["values"]) == QUERIES - 1
    assert (
        f"Normalised discounted cumulative gain at 10 of {QUERIES - 1} queries: the median is" in figure["description"]
    )
    assert "1 query has no value" in figure["description"]


def test_items_have_both_measures(client: httpx.Client) -> None:
    figure = read(client, keep(client, SETS), "per_item")
    jaccard, f1 = figure["vconcat"]
    assert [row["count"] for row in layer(jaccard, "counts")["data"]["values"]] == [1, 1, 1, 1]
    assert layer(f1, "median")["data"]["values"][0]["from"] == pytest.approx((0.4 + 2 * 6 / 18) / 2)
    assert "it is 0 for 1 of them and 1 for 1." in figure["description"]


def test_labels_are_called_labels(client: httpx.Client) -> None:
    identifier = keep(client, LABELS)
    figure = read(client, identifier, "per_class")
    assert figure["title"]["text"] == "Recall and precision by label"
    assert figure["description"].startswith("Label cat has the lowest recall")
    # Titles of panels are no wider than these: what the marks mean stands above.
    assert "'● recall' : '○ precision'" in figure["facet"]["column"]["header"]["labelExpr"]
    assert figure["title"]["subtitle"][-1] == "● does not move with prevalence, ○ moves with it"
    page = client.get(f"/v1/evaluations/{identifier}/report").text
    assert "Recall and precision by label" in page
    assert "Labels. Lowest recall first" in page
    assert "Classes. " not in page


@pytest.mark.parametrize(
    ("source", "title"), [(CLUSTERS, "Classes by clusters"), (SETS, "Jaccard index and F1 of each item")]
)
def test_figures_stand_on_the_page(client: httpx.Client, source: Json, title: str) -> None:
    assert title in client.get(f"/v1/evaluations/{keep(client, source)}/report").text


def test_what_is_not_kept_is_not_drawn_and_said(client: httpx.Client, ranked: str) -> None:
    unkept = keep(client, rankings(), retain="none")
    fault = check_problem(client.get(f"/v1/evaluations/{unkept}/plots/per_query.json"), 409, "no_samples_kept")
    assert "retain=none" in fault["detail"]
    assert "retain=none" in client.get(f"/v1/evaluations/{unkept}/report").text
    for name, message in (("per_item", "expected an evaluation of sets"), ("contingency", "expected a clustering")):
        fault = check_problem(client.get(f"/v1/evaluations/{ranked}/plots/{name}.json"), 422, "no_figure")
        assert message in fault["detail"]
    counted = client.get(f"/v1/evaluations/{keep(client, CLUSTERS)}/plots/per_query.json")
    assert "its counts say all of it" in check_problem(counted, 409, "no_samples_kept")["detail"]
    assert "cumulative gain at 10 of each query" in client.get(f"/v1/evaluations/{ranked}/report").text
