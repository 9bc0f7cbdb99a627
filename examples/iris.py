"""Iris with a random forest, as in table 2 of Aguilar-Ruiz (2025): probabilities in, everything else by the service.

    python examples/iris.py [--url http://127.0.0.1:8000]

Needs scikit-learn and httpx, and a running service (`make run`). Stratified 10-fold cross-validation, shuffled, seed 0,
the folds pooled: accuracy 0.940, A 0.940, G 0.939, H 0.938, and the MCP of the authors' package 0.905.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import httpx
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold

FOLDS = 10
SEED = 0
METRICS = ("accuracy", "balanced_accuracy", "g_mean", "h_mean", "au_mcp_trapezoid")


def predict() -> dict[str, Any]:
    """The input of an evaluation: folds of probabilities, every sample with its row in the dataset as id."""
    features, truth = load_iris(return_X_y=True)
    names = [str(name) for name in load_iris().target_names]
    folds = []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(features, truth):
        model = RandomForestClassifier(random_state=SEED).fit(features[train], truth[train])
        folds.append(
            {
                "kind": "probabilities",
                "labels": names,
                "y_true": [names[code] for code in truth[test]],
                "probabilities": model.predict_proba(features[test]).tolist(),
                "sample_ids": test.tolist(),
            }
        )
    return {"kind": "folds", "folds": folds}


def post(client: httpx.Client) -> dict[str, Any]:
    """Keep the evaluation and return it."""
    reply = client.post(
        "/v1/evaluations",
        json={
            "model": {"name": "random_forest"},
            "dataset": {"name": "iris", "split": f"{FOLDS}-fold"},
            "input": predict(),
            "options": {"metrics": list(METRICS)},
        },
    )
    reply.raise_for_status()
    answer: dict[str, Any] = reply.json()
    return answer


def find_rule(client: httpx.Client, identifier: str) -> dict[str, Any]:
    """The class weights that are best for the weakest class."""
    reply = client.post(f"/v1/evaluations/{identifier}/thresholds", json={"objective": "min(recall@*)"})
    reply.raise_for_status()
    answer: dict[str, Any] = reply.json()
    return answer


def main(arguments: Sequence[str] | None = None) -> None:
    """Post, and print the line of the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    url = parser.parse_args(arguments).url
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        made = post(client)
        print("  ".join(f"{name} {made['requested'][name]:.3f}" for name in METRICS))
        curve = client.get(f"/v1/evaluations/{made['id']}/curves/imcp", params={"max_points": 20}).json()
        print(f"imcp area {curve['area']:.3f}, {len(curve['x'])} of {curve['n_points']} points")
        rule = find_rule(client, made["id"])
        weights = ", ".join(f"{label} {weight:.2f}" for label, weight in rule["weights"].items())
        print(f"best for the weakest class: {weights}\n{rule['note']}")


if __name__ == "__main__":
    main()
