"""Two tests for cancer, week by week, on data that come with scikit-learn: for one of them the sick became rarer, the
other one really got worse.

    python examples/history.py [--url http://127.0.0.1:8000]

Needs scikit-learn and httpx, and a running service (`make run`).
"""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

WEEKS, CHANGE, PATIENTS = 14, 7, 1000
# Of the patients who come each week so many are sick: those of a hospital, and those of a screening.
HOSPITAL, SCREENING = 0.3, 0.05
# From some week on a microscope shows everything smaller.
SHRUNK = 0.9
METRICS = ("recall@malignant", "precision@malignant", "prevalence@malignant")


def judged(shrunk: float) -> tuple[NDArray[np.str_], NDArray[np.str_]]:
    """The 569 tumours of Street et al. (1993), and what a model says of those that it was not fitted on.

    Args:
        shrunk: What lengths are multiplied with where the model is used, but not where it was fitted.
    """
    data = load_breast_cancer()
    truth = data.target_names[data.target]
    lengths = [place for place, name in enumerate(data.feature_names) if name.split()[1] in ("radius", "perimeter")]
    seen = data.data.copy()
    seen[:, lengths] *= shrunk
    said = np.empty_like(truth)
    for fitted, used in StratifiedKFold(10).split(data.data, truth):
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        said[used] = model.fit(data.data[fitted], truth[fitted]).predict(seen[used])
    return truth, said


def weeks(name: str) -> Iterator[dict[str, Any]]:
    """Each week of a test: patients like those of the data, drawn with a fixed seed."""
    rng = np.random.default_rng(4)
    before = judged(1.0)
    after = before if name == "rarer" else judged(SHRUNK)
    for week in range(1, WEEKS + 1):
        truth, said = before if week <= CHANGE else after
        share = SCREENING if name == "rarer" and week > CHANGE else HOSPITAL
        sick = rng.binomial(PATIENTS, share)
        drawn = np.concatenate(
            [
                rng.choice(np.flatnonzero(truth == label), count)
                for label, count in (("malignant", sick), ("benign", PATIENTS - sick))
            ]
        )
        yield {
            "model": {"name": name, "version": f"week {week}"},
            "dataset": {"name": "tumours"},
            "input": {
                "kind": "predictions",
                "labels": ["malignant", "benign"],
                "positive": "malignant",
                "y_true": truth[drawn].tolist(),
                "y_pred": said[drawn].tolist(),
            },
        }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    url = parser.parse_args(arguments).url
    with httpx.Client(base_url=url, timeout=60) as client:
        for name in ("rarer", "worse"):
            for body in weeks(name):
                client.post("/v1/evaluations", json=body).raise_for_status()
            asked = {"dataset": "tumours", "metric": METRICS}
            answer = client.get(f"/v1/models/{name}/history", params=asked).raise_for_status().json()
            print(f"{name}:")
            for change in answer["changes"]:
                print(f"  {change['message']}")


if __name__ == "__main__":
    main()
