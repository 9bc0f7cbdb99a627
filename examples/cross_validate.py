"""Cross-validate two models on three datasets of scikit-learn, post them, and see where accuracy and H disagree.

    python examples/cross_validate.py [--url http://127.0.0.1:8000]

Needs scikit-learn and httpx, and a running service (`make run`). Breast cancer comes a second time with most malignant
cases taken out: a screening population, in which accuracy hides what happens to the few.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

FOLDS = 5
SEED = 7
SCREENED_CASES = 12


@dataclass(frozen=True)
class Dataset:
    """Features, and the classes by name."""

    name: str
    features: NDArray[np.float64]
    classes: NDArray[np.str_]


@dataclass(frozen=True)
class Line:
    """What the service knows of one cross-validation."""

    dataset: str
    model: str
    accuracy: float
    h_mean: float
    spread: float
    weakest: str
    recall: float
    findings: tuple[str, ...]


def datasets() -> Iterator[Dataset]:
    """Digits, wine, breast cancer, and breast cancer as a screening would meet it."""
    for name, load in (("digits", load_digits), ("wine", load_wine), ("breast_cancer", load_breast_cancer)):
        bunch = load()
        yield Dataset(name, bunch.data, np.array([str(label) for label in bunch.target_names])[bunch.target])
    cancer = load_breast_cancer()
    malignant = np.flatnonzero(cancer.target == 0)[:SCREENED_CASES]
    chosen = np.concatenate([malignant, np.flatnonzero(cancer.target == 1)])
    yield Dataset("breast_cancer_screening", cancer.data[chosen], cancer.target_names[cancer.target[chosen]])


def models() -> dict[str, ClassifierMixin]:
    """Two small models."""
    return {
        "logistic_regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)),
        "random_forest": RandomForestClassifier(n_estimators=20, max_depth=6, random_state=SEED),
    }


def predicted_folds(model: Any, dataset: Dataset) -> list[dict[str, Any]]:
    """Actual and predicted classes of every fold, as the service takes them. All folds name all classes."""
    labels = sorted(set(dataset.classes.tolist()))
    folds = []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(dataset.features, dataset.classes):
        model.fit(dataset.features[train], dataset.classes[train])
        folds.append(
            {
                "kind": "predictions",
                "labels": labels,
                "y_true": dataset.classes[test].tolist(),
                "y_pred": model.predict(dataset.features[test]).tolist(),
            }
        )
    return folds


def post(service: httpx.Client, dataset: Dataset, model: str, folds: list[dict[str, Any]]) -> str:
    """Keep one cross-validation; the address of the evaluation."""
    answer = service.post(
        "/v1/evaluations",
        json={
            "model": {"name": model, "version": "1"},
            "dataset": {"name": dataset.name, "split": f"{FOLDS}-fold"},
            "tags": {"example": "cross_validate"},
            "input": {"kind": "folds", "folds": folds},
        },
    )
    answer.raise_for_status()
    return answer.headers["Location"]


def read(service: httpx.Client, location: str) -> Line:
    """Read one evaluation back."""
    answer = service.get(location)
    answer.raise_for_status()
    evaluation = answer.json()
    overall = {
        key: value
        for group in ("prevalence_sensitive", "prevalence_insensitive")
        for key, value in evaluation["metrics"][group].items()
    }
    recalls = {label: groups["prevalence_insensitive"]["recall"] for label, groups in evaluation["per_class"].items()}
    weakest = min(recalls, key=recalls.__getitem__)
    return Line(
        dataset=evaluation["dataset"]["name"],
        model=evaluation["model"]["name"],
        accuracy=overall["accuracy"],
        h_mean=overall["h_mean"],
        spread=evaluation["folds"]["h_mean"]["sd"],
        weakest=weakest,
        recall=recalls[weakest],
        findings=tuple(finding["code"] for finding in evaluation["findings"]),
    )


def ranked(service: httpx.Client, metric: str) -> list[tuple[str, str]]:
    """Dataset and model of this example's evaluations, the highest by a metric first."""
    answer = service.get("/v1/evaluations", params={"sort": f"-{metric}", "tag": "example:cross_validate"})
    answer.raise_for_status()
    return [(item["dataset"]["name"], item["model"]["name"]) for item in answer.json()["items"]]


def main(arguments: Sequence[str] | None = None) -> list[Line]:
    """Post, list and read back; prints a table."""
    parser = argparse.ArgumentParser(description="Cross-validate two models on scikit-learn's datasets.")
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="where the service runs")
    url = parser.parse_args(arguments).url
    lines = []
    with httpx.Client(base_url=url, timeout=60) as service:
        print(f"{'dataset':24}{'model':20}{'accuracy':>9}{'H':>7}{'sd H':>7}{'gap':>7}  weakest class")
        for dataset in datasets():
            for name, model in models().items():
                line = read(service, post(service, dataset, name, predicted_folds(model, dataset)))
                lines.append(line)
                print(
                    f"{line.dataset:24}{line.model:20}{line.accuracy:9.3f}{line.h_mean:7.3f}{line.spread:7.3f}"
                    f"{line.accuracy - line.h_mean:7.3f}  {line.weakest}, recall {line.recall:.3f}"
                    f"{'  <- ' + ', '.join(line.findings) if line.findings else ''}"
                )
        for metric in ("accuracy", "h_mean"):
            first, *_, last = ranked(service, metric)
            print(f"by {metric:8}  best: {' / '.join(first)}, worst: {' / '.join(last)}")
    return lines


if __name__ == "__main__":
    main()
