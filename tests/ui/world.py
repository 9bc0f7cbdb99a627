"""What pages are shown of: runs of two, four, 35 and 200 classes, comparisons, gates, names of all kinds."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import httpx
import numpy as np

from benchmarks.pages import attributes, ranking, regions, topics
from tests.api.answers import FOUR_CLASSES, create, evaluation, matrix_input
from tests.api.plots.world import HOSTILE, confused

# Names that would do something if anybody took them for more than names; one
# that is written from right to left, and a long one without a space.
NAMES = [*HOSTILE, "\u05d0\u05d1\u05d2 1 \u05d3\u05d4", "w" * 90]
ORIGINS = ("Head and neck", "Breast", "Bone or soft tissue", "Lung", "Kidney", "Skin", "Colon or rectum", "Liver")


@dataclass
class World:
    """Ids of what was saved, by what it is."""

    url: str
    runs: dict[str, str] = field(default_factory=dict)
    comparisons: dict[str, str] = field(default_factory=dict)
    checks: dict[str, str] = field(default_factory=dict)

    def pages(self) -> dict[str, str]:
        """The address of every page, by what it shows."""
        found = {
            "runs": "/ui",
            "leaderboard": "/ui?dataset=hartwig",
            "no runs": "/ui?model=nobody",
            "comparisons": "/ui/comparisons",
            "gates": "/ui/gates",
            "gate": "/ui/gates/promotion",
            "metrics": "/ui/metrics",
            "search": "/ui/metrics?q=recall",
            "metric": "/ui/metrics/cohen_kappa",
            "questions": "/ui/metrics/choose",
            "question": "/ui/metrics/choose?task=classification&answer=chance_corrected:no",
            "advice": "/ui/metrics/choose?task=ranking&answer=error_priority:order",
            "nothing": "/ui/nothing",
        }
        found |= {f"run of {name}": f"/ui/evaluations/{one}" for name, one in self.runs.items()}
        found["figures of two"] = f"/ui/evaluations/{self.runs['two']}/figures"
        found["figures of 200"] = f"/ui/evaluations/{self.runs['200']}/figures"
        found["simulator of two"] = f"/ui/evaluations/{self.runs['two']}/simulator"
        found["simulator of hostile"] = f"/ui/evaluations/{self.runs['hostile']}/simulator"
        runs = self.runs
        found["slices"] = f"/ui/evaluations/{self.runs['sliced']}/slices"
        found["compared rankings"] = f"/ui/compare?run={self.runs['ranking']}&run={self.runs['ranking 2']}"
        found["history"] = "/ui/history?model=tumor-rf&dataset=hartwig&split=test&metric=recall@D&metric=accuracy"
        found["history of twelve"] = "/ui/history?model=nightly&dataset=hospital&split=test&metric=h_mean"
        found["figures of history"] = found["history"].replace("history", "history/figures", 1)
        hostile = urlencode({"model": HOSTILE[0], "dataset": NAMES[4]})
        found["history hostile"] = f"/ui/history?{hostile}"
        found["compared"] = f"/ui/compare?run={runs['four']}&run={runs['better']}"
        found["compared hostile"] = "/ui/compare?run=" + "&run=".join(runs[f"hostile{n}"] for n in ("", " 2", " 3"))
        found |= {f"comparison of {name}": f"/ui/comparisons/{one}" for name, one in self.comparisons.items()}
        found |= {f"check: {name}": f"/ui/gates/promotion/checks/{one}" for name, one in self.checks.items()}
        return found


def labels_of(classes: int) -> list[str]:
    """Names as they are in the field."""
    return [f"{ORIGINS[place % len(ORIGINS)]}: type {place}" for place in range(classes)]


def scored(classes: int, n: int, seed: int = 0) -> dict[str, Any]:
    """Probabilities of so many classes."""
    rng = np.random.default_rng(seed)
    true = rng.choice(classes, n, p=np.linspace(3, 1, classes) / np.linspace(3, 1, classes).sum())
    logits = rng.normal(size=(n, classes))
    logits[np.arange(n), true] += 2.2
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = ["healthy", "ill"] if classes == 2 else labels_of(classes)
    return {
        "kind": "probabilities",
        "labels": labels,
        "y_true": [labels[one] for one in true],
        "probabilities": np.round(shares, 6).tolist(),
        "sum_tolerance": 1e-3,
    }


def _matrix(classes: int) -> dict[str, Any]:
    return matrix_input(confused(classes), labels=labels_of(classes))


def _run(model: str, version: str, dataset: str, source: dict[str, Any], **tags: str) -> dict[str, Any]:
    body = evaluation(input=source, tags=tags)
    return {
        **body,
        "model": {"name": model, "version": version},
        "dataset": {"name": dataset, "version": "2022-08", "split": "test"},
    }


def build(url: str) -> World:
    """Keep all of it."""
    world = World(url)
    four = matrix_input(FOUR_CLASSES, labels=["A", "B", "C", "D"])
    better = matrix_input(
        [[790, 6, 4, 0], [5, 590, 5, 0], [3, 2, 494, 1], [12, 9, 10, 69]], labels=["A", "B", "C", "D"]
    )
    with httpx.Client(base_url=url, timeout=300) as client:
        bodies = {
            "hostile": _run(HOSTILE[0], HOSTILE[1], NAMES[4], matrix_input(confused(len(NAMES)), labels=NAMES)),
            "hostile 2": _run(HOSTILE[2], HOSTILE[0], NAMES[4], matrix_input(confused(len(NAMES), 1), labels=NAMES)),
            "hostile 3": _run(NAMES[-1], NAMES[-2], NAMES[4], matrix_input(confused(len(NAMES), 2), labels=NAMES)),
            "sliced": _run(
                "screen-logit", "2.4", "screening by site", scored(2, 600) | {"attributes": attributes(600)}
            ),
            "labels": _run("topic-net", "5", "documents", topics(400, 1)),
            "ranking": _run("bm25", "1", "questions", ranking(60, 1)),
            "ranking 2": _run("dense", "1", "questions", ranking(60, 2)),
            "regions": _run("segment-net", "4", "slides", regions(120)),
            "probabilities": _run("origin-net", "3", "origins", scored(60, 900, 2)),
            "four": _run("tumor-rf", "7", "hartwig", four, stage="champion"),
            "better": _run("tumor-gbm", "2", "hartwig", better, stage="candidate"),
            "two": _run("screen-logit", "2.3", "screening", scored(2, 300)),
            "unkept": {**_run("screen-none", "1", "screening", scored(2, 300, 1)), "options": {"retain": "none"}},
            "35": _run("cup-net", "2.1", "tumour-origin", _matrix(35)),
            "200": _run("species-net", "1", "wildlife", _matrix(200)),
            "clusters": _run("kmeans", "8", "genes", {"kind": "clustering", "contingency": [[30, 2], [3, 25], [4, 6]]}),
        }
        for version in range(12):
            rows = np.round(np.array(FOUR_CLASSES) * np.random.default_rng(version).uniform(0.9, 1.1, (4, 4)))
            rows[3, 3] += 20 * (version > 7)
            found = matrix_input(rows.astype(int).tolist(), labels=["A", "B", "C", "D"])
            create(client, _run("nightly", f"{version}", "hospital", found))
        world.runs = {name: str(create(client, body)["id"]) for name, body in bodies.items()}
        asked = {"evaluations": [world.runs["better"], world.runs["four"]]}
        made = client.post("/v1/comparisons", json=asked)
        assert made.status_code == 201, made.text
        world.comparisons["runs"] = made.json()["id"]
        rules = [
            {"metric": "h_mean", "min": 0.8},
            {"metric": "recall@D", "min": 0.7},
            {"metric": "accuracy", "not_worse_than": "baseline", "margin": 0.001},
            {"metric": "recall@*", "not_worse_than": "baseline", "margin": 0.05, "bound": "upper"},
            {"metric": "hamming_loss", "max": 0.05},
        ]
        for some in (rules[:1], rules):
            put = client.put("/v1/gates/promotion", json={"rules": some, "minimum_samples": 500})
            assert put.status_code in (200, 201), put.text
        for name, candidate, baseline in (("better", "better", "four"), ("worse", "four", "better")):
            check = {"evaluation": world.runs[candidate], "baseline": world.runs[baseline]}
            answer = client.post("/v1/gates/promotion/checks", json=check)
            assert answer.status_code == 201, answer.text
            world.checks[name] = answer.json()["id"]
    return world
