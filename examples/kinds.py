"""Labels, clusters, rankings and regions, from data that come with scikit-learn: one evaluation of each kind of input.

    python examples/kinds.py [--url http://127.0.0.1:8000]

Needs scikit-learn and httpx, and a running service (`make run`).
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris, make_multilabel_classification
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier

SEED = 0
QUERIES, ITEMS = 60, 400
# Of 16 shades of grey, from which on a pixel of a digit is ink.
INK = 8
Pixels = NDArray[np.bool_]


def labels() -> dict[str, Any]:
    """Documents of five topics, some of them of several: the topics, and the probability of each."""
    words, topics = make_multilabel_classification(1000, n_classes=5, n_labels=2, random_state=SEED)
    train, test, known, truth = train_test_split(words, topics, random_state=SEED)
    model = OneVsRestClassifier(LogisticRegression(max_iter=1000)).fit(train, known)
    return {
        "kind": "multilabel",
        "labels": [f"topic {code}" for code in range(5)],
        "y_true": truth.tolist(),
        "probabilities": model.predict_proba(test).tolist(),
    }


def clusters() -> dict[str, Any]:
    """Iris by k-means: the species, the clusters, and where every flower lies."""
    features, species = load_iris(return_X_y=True)
    found = KMeans(3, n_init=10, random_state=SEED).fit_predict(features)
    names = load_iris().target_names
    return {
        "kind": "clustering",
        "y_true": [str(names[code]) for code in species],
        "y_pred": found.tolist(),
        "features": features.tolist(),
    }


def ranking() -> dict[str, Any]:
    """Handwritten digits that are looked for by one of their kind: the nearest pictures come first."""
    pictures, digits = load_digits(return_X_y=True)
    items, queries = slice(0, ITEMS), slice(ITEMS, ITEMS + QUERIES)
    distances = np.linalg.norm(pictures[queries, None] - pictures[None, items], axis=-1)
    relevant = digits[queries, None] == digits[None, items]
    return {
        "kind": "ranking",
        "query_ids": np.repeat(np.arange(QUERIES), ITEMS).tolist(),
        "relevance": relevant.astype(int).ravel().tolist(),
        "scores": (-distances).round(6).ravel().tolist(),
    }


def ink() -> tuple[Pixels, Pixels, NDArray[np.int64]]:
    """Pixels of ink of some digits, those found in noisy pictures of them, and the digits."""
    pictures, digits = load_digits(return_X_y=True)
    noisy = pictures + np.random.default_rng(SEED).normal(0.0, 4.0, pictures.shape)
    test = slice(ITEMS, 2 * ITEMS)
    model = PCA(15, random_state=SEED).fit(pictures[:ITEMS])
    cleaned = model.inverse_transform(model.transform(noisy[test]))
    return pictures[test] >= INK, cleaned >= INK, digits[test]


def regions() -> dict[str, Any]:
    """The same by numbers of pixels, with the digit as the class of a picture."""
    there, found, digits = ink()
    return {
        "kind": "sets",
        "n_true": there.sum(axis=1).tolist(),
        "n_predicted": found.sum(axis=1).tolist(),
        "n_common": (there & found).sum(axis=1).tolist(),
        "item_classes": digits.tolist(),
    }


# By kind: the model, the data, and what is looked at.
KINDS: dict[str, tuple[str, str, Callable[[], dict[str, Any]], tuple[str, ...]]] = {
    "multilabel": ("logistic", "documents", labels, ("h_mean", "macro_f1", "label_ranking_average_precision")),
    "clustering": ("k-means", "iris", clusters, ("adjusted_rand", "v_measure", "silhouette")),
    "ranking": ("euclid", "digits", ranking, ("ndcg_at_k(k=10)", "mean_reciprocal_rank", "query_auc")),
    "sets": ("pca", "ink", regions, ("samples_jaccard", "pooled_jaccard", "mean_class_jaccard")),
}


def post(client: httpx.Client, kind: str) -> dict[str, Any]:
    """Keep the evaluation of one kind and return it."""
    model, dataset, make, metrics = KINDS[kind]
    body = {
        "model": {"name": model},
        "dataset": {"name": dataset},
        "input": make(),
        "options": {"metrics": list(metrics), "intervals": "all", "draws": 200},
    }
    reply = client.post("/v1/evaluations", json=body)
    reply.raise_for_status()
    answer: dict[str, Any] = reply.json()
    return answer


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    with httpx.Client(base_url=parser.parse_args(arguments).url, timeout=60) as client:
        for kind in KINDS:
            made = post(client, kind)
            for metric, value in made["requested"].items():
                limits = made["intervals"][metric]
                print(f"{kind:<10}  {metric:<32} {value:.3f}  {limits['low']:.3f} to {limits['high']:.3f}")


if __name__ == "__main__":
    main()
