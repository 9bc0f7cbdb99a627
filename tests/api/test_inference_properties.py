"""What has to hold of every comparison, whatever the kind of input, the design of its samples and the metric."""

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
    return [np.nan if pair[name] is None else pair[name] for name in ("difference", "low", "high", "p_value")]


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


@pytest.mark.parametrize(("kind", "design"), EVERY)
def test_the_order_of_rows_changes_nothing(client: httpx.Client, kind: str, design: str) -> None:
    sources = two_runs(kind, design)
    size = max(len(value) for value in sources[0].values() if isinstance(value, list))
    order = np.random.default_rng(1).permutation(size)
    moved = [columns(source, lambda values: [values[place] for place in order]) for source in sources]
    assert not list(unlike(compared(client, sources, kind), compared(client, moved, kind)))


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


@pytest.mark.parametrize("kind", [kind for kind, cell in CELLS.items() if "weights" in cell.designs])
def test_equal_weights_change_nothing(client: httpx.Client, kind: str) -> None:
    sources = two_runs(kind, "plain")
    weighted = [source | {"sample_weight": [2.0] * SIZE} for source in sources]
    assert not list(unlike(compared(client, sources, kind), compared(client, weighted, kind)))


@pytest.mark.parametrize("kind", [kind for kind, cell in CELLS.items() if "groups" in cell.designs])
def test_groups_of_one_change_nothing(client: httpx.Client, kind: str) -> None:
    sources = two_runs(kind, "plain")
    grouped = [source | {"group_ids": list(range(SIZE))} for source in sources]
    assert not list(unlike(compared(client, sources, kind), compared(client, grouped, kind)))
