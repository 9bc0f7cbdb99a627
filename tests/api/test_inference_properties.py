"""What has to hold of every comparison, whatever the kind of input, the design of its samples and the metric."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pytest

from tests.api.answers import Json, evaluation
from tests.cells import CELLS, designed

SIZE = 120
EVERY = [(kind, design) for kind, cell in CELLS.items() for design in cell.designs]
Pair = dict[str, Any]
pytestmark = pytest.mark.slow
# Questions that a kind has no answer to.
REFUSED = {
    "predictions": {"thresholds", "roc", "calibration"},
    "scores": {"calibration"},
    "multilabel": {"projection"},
    "clustering": {"by slice", "slices", "projection", "thresholds", "roc", "calibration"},
}


def two_runs(kind: str, design: str) -> list[Json]:
    random = np.random.default_rng([7, *map(ord, kind)])
    return designed(CELLS[kind].made(random, SIZE), design, random)


def compared(
    client: httpx.Client, sources: list[Json], kind: str, *, swap: bool = False, paired: bool = True
) -> dict[str, Pair]:
    """The one difference of every metric."""
    runs, dataset = [], uuid4().hex
    for place, source in enumerate(sources):
        reply = client.post("/v1/evaluations", json=evaluation(model=f"m{place}", dataset=dataset, input=source))
        assert reply.status_code == 201, reply.text
        runs.append(reply.json()["id"])
    body = {
        "evaluations": runs[::-1] if swap else runs,
        "metrics": list(CELLS[kind].metrics),
        "paired": paired,
        "seed": 1,
        "draws": 400,
    }
    reply = client.post("/v1/comparisons", json=body)
    assert reply.status_code == 201, reply.text
    return {name: found["differences"][0] for name, found in reply.json()["metrics"].items()}


def numbers(pair: Pair) -> list[float]:
    return [np.nan if pair.get(name) is None else pair[name] for name in ("difference", "low", "high", "p_value")]


def unlike(first: dict[str, Pair], second: dict[str, Pair], tolerance: float = 1e-9) -> Iterator[str]:
    """Metrics whose differences, limits or p are not the same."""
    for name, pair in first.items():
        one, other = numbers(pair), numbers(second[name])
        if not np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True):
            yield f"{name}: {np.round(one, 6).tolist()} and {np.round(other, 6).tolist()}"


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("kind", "design"), EVERY)
def test_limits_and_p_are_of_one_distribution(client: httpx.Client, kind: str, design: str, *, paired: bool) -> None:
    wrong = []
    for name, pair in compared(client, two_runs(kind, design), kind, paired=paired).items():
        if pair["low"] is None or pair["p_value"] is None:
            wrong += [] if pair.get("reason") else [f"{name}: no limits, no reason"]
        elif (pair["low"] > 0 or pair["high"] < 0) != (pair["p_value"] < 0.05):
            wrong.append(f"{name}: {pair['low']} {pair['high']} p {pair['p_value']}")
    assert not wrong


@pytest.mark.parametrize(("kind", "design"), EVERY)
def test_runs_in_the_other_order_are_the_mirror_image(client: httpx.Client, kind: str, design: str) -> None:
    sources = two_runs(kind, design)
    one, other = compared(client, sources, kind), compared(client, sources, kind, swap=True)
    for pair in other.values():
        low, high = pair["low"], pair["high"]
        pair["difference"] *= -1
        pair["low"], pair["high"] = None if high is None else -high, None if low is None else -low
    assert not list(unlike(one, other))


def columns(source: Json, change: Callable[[list[Any]], list[Any]]) -> Json:
    """The source with every column of samples changed."""
    size = max(len(value) for value in source.values() if isinstance(value, list))
    return {
        name: change(value) if isinstance(value, list) and len(value) == size else value
        for name, value in source.items()
    }


def everything(client: httpx.Client, source: Json) -> Json:
    """Limits of all that a report has."""
    body = {"input": source, "options": {"intervals": "all", "draws": 200}}
    found: Json = client.post("/v1/metrics/compute", json=body).json()["intervals"]
    return found


@pytest.mark.parametrize(("kind", "design"), EVERY)
def test_the_order_of_rows_changes_nothing(client: httpx.Client, kind: str, design: str) -> None:
    sources = two_runs(kind, design)
    size = max(len(value) for value in sources[0].values() if isinstance(value, list))
    order = np.random.default_rng(1).permutation(size)
    moved = [columns(source, lambda values: [values[place] for place in order]) for source in sources]
    assert not list(unlike(compared(client, sources, kind), compared(client, moved, kind)))
    assert not list(unlike(everything(client, sources[0]), everything(client, moved[0])))


@pytest.mark.parametrize(
    ("kind", "design"),
    [(kind, design) for kind, design in EVERY if kind in ("predictions", "probabilities", "multilabel")],
)
def test_the_order_of_classes_changes_nothing(client: httpx.Client, kind: str, design: str) -> None:
    sources = two_runs(kind, design)
    turned = []
    for source in sources:
        new = source | {"labels": source["labels"][::-1]}
        if "probabilities" in source:
            new["probabilities"] = [row[::-1] for row in source["probabilities"]]
        if kind == "multilabel":
            new["y_true"] = [row[::-1] for row in source["y_true"]]
        turned.append(new)
    assert not list(unlike(compared(client, sources, kind), compared(client, turned, kind)))


def beside_names(value: Any) -> Any:
    """An answer without what names it, and what is said of the input itself."""
    if isinstance(value, dict):
        left_out = ("id", "instance", "created_at", "input")
        return {name: beside_names(one) for name, one in value.items() if name not in left_out}
    return [*map(beside_names, value)] if isinstance(value, list) else value


def answers(client: httpx.Client, sources: list[Json], kind: str) -> dict[str, Any]:
    """What is said of two runs, whatever is asked of them."""
    dataset, metrics, said = uuid4().hex, list(CELLS[kind].metrics), dict[str, httpx.Response]()
    for place, source in enumerate(sources):
        body = evaluation(model=f"m{place}", dataset=dataset, input=source)
        said[f"report {place}"] = client.post("/v1/evaluations", json=body)
    runs = [reply.json()["id"] for reply in said.values()]
    one, few = f"/v1/evaluations/{runs[0]}", metrics[:3]
    everything = {"intervals": "all", "draws": 200, "metrics": metrics}
    said["intervals"] = client.post("/v1/metrics/compute", json={"input": sources[0], "options": everything})
    for paired in (True, False):
        body = {"evaluations": runs, "metrics": metrics, "paired": paired, "draws": 200}
        said[f"comparison, paired {paired}"] = client.post("/v1/comparisons", json=body)
    for name, members in (("causes", {"explain": True, "paired": False}), ("by slice", {"by": ["site"]})):
        said[name] = client.post("/v1/comparisons", json={"evaluations": runs, "metrics": few, **members})
    for metric in few:
        said[f"board by {metric}"] = client.get("/v1/leaderboard", params={"dataset": dataset, "metric": metric})
    rules = [{"metric": metric, **rule} for metric in metrics for rule in ({"min": 0.4}, {"better_than": "baseline"})]
    assert client.put(f"/v1/gates/{dataset}", json={"rules": rules}).status_code == 201
    check = {"evaluation": runs[0], "baseline": runs[1]}
    said["gate"] = client.post(f"/v1/gates/{dataset}/checks", json=check)
    said["slices"] = client.post(f"{one}/slices", json={"by": ["site"], "metrics": few})
    labels = sources[0].get("labels", ["0", "1"])
    shares = {"prevalence": dict.fromkeys(labels, 1.0 / len(labels)), "metrics": metrics}
    said["projection"] = client.post(f"{one}/projections", json=shares)
    rule = {"objective": "f1", "per_label": True} if kind == "multilabel" else {"objective": "h_mean"}
    said["thresholds"] = client.post(f"{one}/thresholds", json=rule)
    for curve, band in (("roc", "simultaneous"), ("calibration", "pointwise")):
        said[curve] = client.get(f"{one}/curves/{curve}", params={"class": labels[1], "band": band})
    named = {dataset: "d"} | {run: f"run {place}" for place, run in enumerate(runs)}
    found = {}
    for question, reply in said.items():
        text = reply.text
        for name, other in named.items():
            text = text.replace(name, other)
        found[question] = reply.status_code, beside_names(json.loads(text))
    return found


@pytest.mark.parametrize("weight", [1.0, 2.5])
@pytest.mark.parametrize("kind", [kind for kind, cell in CELLS.items() if "weights" in cell.designs])
def test_equal_weights_change_nothing(client: httpx.Client, kind: str, weight: float) -> None:
    sources = two_runs(kind, "plain")
    if kind != "clustering":
        sources = [source | {"attributes": {"site": ["A", "B", "B"] * (SIZE // 3)}} for source in sources]
    weighted = [source | {"sample_weight": [weight] * SIZE} for source in sources]
    plain, found = (answers(client, one, kind) for one in (sources, weighted))
    assert {question for question, (status, _) in plain.items() if status >= 400} == REFUSED.get(kind, set())
    for question, said in plain.items():
        assert found[question] == said, question


@pytest.mark.parametrize("kind", [kind for kind, cell in CELLS.items() if "groups" in cell.designs])
def test_groups_of_one_change_nothing(client: httpx.Client, kind: str) -> None:
    sources = two_runs(kind, "plain")
    grouped = [source | {"group_ids": list(range(SIZE))} for source in sources]
    assert not list(unlike(compared(client, sources, kind), compared(client, grouped, kind)))
