"""Patients whose diabetes progresses, judged by sex, age and weight, on data that come with scikit-learn.

    python examples/slices.py [--url http://127.0.0.1:8000]

Needs scikit-learn and httpx, and a running service (`make run`).
"""

import argparse
from collections.abc import Sequence
from typing import Any

import httpx
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

# From this measure of progression a year later on, a patient counts as one whose disease progresses.
HIGH = 200
FOLDS = 10


def source() -> dict[str, Any]:
    """The 442 patients of Efron et al. (2004): predictions of ten folds, and who they are about."""
    data = load_diabetes(scaled=False)
    truth = np.where(data.target > HIGH, "high", "low")
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, class_weight="balanced"))
    predicted = cross_val_predict(model, data.data, truth, cv=FOLDS)
    columns = dict(zip(data.feature_names, data.data.T, strict=True))
    return {
        "kind": "predictions",
        "labels": ["low", "high"],
        "positive": "high",
        "y_true": truth.tolist(),
        "y_pred": predicted.tolist(),
        # The data do not say which sex has which number.
        "attributes": {
            "sex": [f"{value:.0f}" for value in columns["sex"]],
            "age": columns["age"].tolist(),
            "bmi": columns["bmi"].tolist(),
        },
    }


def question() -> dict[str, Any]:
    """The slices that are looked at."""
    return {
        "by": ["sex", "age", "bmi"],
        "bins": {"age": [40, 55], "bmi": [25, 30]},
        "metrics": ["recall@high", "precision@high"],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what is found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    url = parser.parse_args(arguments).url
    with httpx.Client(base_url=url, timeout=60, headers={"Accept": "text/plain"}) as client:
        body = {"input": source(), **question()}
        print(client.post("/v1/slices", params={"width": 90}, json=body).raise_for_status().text)


if __name__ == "__main__":
    main()
