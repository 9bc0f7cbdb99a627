"""Values of libraries that are too large to be installed for the tests, recorded once.

`python -m tests.elsewhere`, in an environment of Python with ranx, ir_measures, genieclust and torchmetrics, writes
tests/data/elsewhere.json: what they have by name, the arguments that it takes, and what it says of some problems.
"""

import inspect
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from itertools import chain, permutations, product
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).parent / "data" / "elsewhere.json"
ROWS = Path(__file__).parent / "data" / "peers.csv"
# Modules by the peer of a row; where no row measures, names alone are kept.
MODULES = {
    "torchmetrics": ("torchmetrics.classification", "torchmetrics.nominal"),
    "torchmetrics clustering": ("torchmetrics.clustering",),
    "torchmetrics segmentation": ("torchmetrics.segmentation",),
    "torchmetrics retrieval": ("torchmetrics.retrieval",),
    "ranx": ("ranx.metrics",),
    "ir_measures": ("ir_measures",),
    "genieclust": ("genieclust.compare_partitions",),
}
_RANX = {
    "average_precision": "map",
    "reciprocal_rank": "mrr",
    "r_precision": "r-precision",
    "rank_biased_precision": "rbp",
}
Problem = dict[str, Any]


def problems() -> dict[str, list[Problem]]:
    """Random problems with ties and with nothing to divide by."""
    random = np.random.default_rng(28)
    regions = [{name: _pictures(random) for name in ("there", "said")} for _ in range(3)]
    return {
        "rankings": [*_rankings(random)],
        "clusterings": [*_clusterings(random)],
        "regions": regions,
        "foreground": [{name: np.minimum(pixels, 1) for name, pixels in one.items()} for one in regions],
    }


def _rankings(random: np.random.Generator) -> Iterator[Problem]:
    """Queries; one has no relevant item, one nothing else, and scores tie."""
    for query in range(10):
        relevance = random.integers(0, 4, 7) * (random.random(7) < 0.6)
        relevance = np.zeros(7, int) if query == 3 else np.maximum(relevance, 1) if query == 4 else relevance
        yield {"relevance": relevance.tolist(), "scores": (random.integers(0, 5, 7) / 4).tolist()}


def _clusterings(random: np.random.Generator) -> Iterator[Problem]:
    """Groupings of points; the last ones agree wholly, or are one group each."""
    for classes, clusters in ((3, 3), (4, 4), (5, 3), (2, 4)):
        truth = random.permutation(np.arange(60) % classes)
        found = np.where(random.random(60) < 0.6, truth % clusters, random.permutation(np.arange(60) % clusters))
        yield {"truth": truth, "found": found, "points": random.normal(size=(60, 2)) + truth[:, None]}
    yield {"truth": truth, "found": (truth + 1) % 2, "points": random.normal(size=(60, 2))}


def _pictures(random: np.random.Generator) -> Any:
    """Classes of the pixels (4, 6, 6) of some pictures; each has pixels of every class."""
    pixels = random.integers(0, 3, (4, 36))
    pixels[:, :3] = np.arange(3)
    return pixels.reshape(4, 6, 6)


def orders(scores: Sequence[float]) -> Iterator[list[int]]:
    """All orders of the items by falling score, in each of which ties stand in another order."""
    levels = sorted(set(scores), reverse=True)
    ties = [[place for place, own in enumerate(scores) if own == level] for level in levels]
    for chosen in product(*map(permutations, ties)):
        yield [*chain.from_iterable(chosen)]


def of_all_orders(one: Problem, ask: Callable[[list[list[int]]], list[float]]) -> float:
    """Mean over all orders of what a library says of relevances in each order."""
    known = Counter(tuple(one["relevance"][place] for place in order) for order in orders(one["scores"]))
    return float(np.average(ask([*map(list, known)]), weights=[*known.values()]))


def _ranx(call: str, one: Problem) -> list[float]:
    ranx: Any = import_module("ranx")
    name, given = call.partition("(")[0], dict(re.findall(r"(\w+)=([\d.]+)", call))
    text = _RANX.get(name, name) + (f"@{given['k']}" if "k" in given else "")
    text += f".{given['p'].partition('.')[2]}" if "p" in given else ""

    def ask(known: list[list[int]]) -> list[float]:
        if name == "rank_biased_precision":
            # Of grades it is no mean of yes and no.
            known = [[min(grade, 1) for grade in own] for own in known]
        judged = {f"q{at}": {f"d{place}": grade for place, grade in enumerate(own)} for at, own in enumerate(known)}
        ranked = {query: {item: 100.0 - int(item[1:]) for item in items} for query, items in judged.items()}
        return [float(found) for found in ranx.evaluate(ranx.Qrels(judged), ranx.Run(ranked), text, return_mean=False)]

    return [of_all_orders(one, ask)]


def _ir_measures(call: str, one: Problem) -> list[float]:
    ir_measures: Any = import_module("ir_measures")
    measure = eval(call, dict(vars(ir_measures)))  # noqa: S307 - names in a file of ours

    def ask(known: list[list[int]]) -> list[float]:
        items = [
            (f"q{at}", f"d{place}", place, grade) for at, own in enumerate(known) for place, grade in enumerate(own)
        ]
        judged = [ir_measures.Qrel(query, item, grade) for query, item, _, grade in items]
        ranked = [ir_measures.ScoredDoc(query, item, 100.0 - place) for query, item, place, _ in items]
        said = {found.query_id: float(found.value) for found in ir_measures.iter_calc([measure], judged, ranked)}
        # It says nothing of a query without relevant items, which counts as 0 in its means.
        return [said.get(f"q{at}", 0.0) for at in range(len(known))]

    return [of_all_orders(one, ask)]


def _genieclust(call: str, one: Problem) -> list[float]:
    module = import_module("genieclust.compare_partitions")
    return [float(getattr(module, call)(one["truth"], one["found"]))]


def _metric(module: str, call: str) -> Any:
    """A metric of torchmetrics, with its arguments."""
    known = vars(import_module(f"torchmetrics.{module}"))
    return eval(call if "(" in call else f"{call}()", dict(known))  # noqa: S307 - as above


def _torch_retrieval(call: str, one: Problem) -> list[float]:
    torch: Any = import_module("torch")
    metric = _metric("retrieval", call)
    graded = "DCG" in call

    def ask(known: list[list[int]]) -> list[float]:
        found = []
        for own in known:
            target = torch.tensor(own) if graded else torch.tensor(own) > 0
            preds = torch.arange(len(own), 0, -1).double()
            found.append(float(metric(preds, target, indexes=torch.zeros(len(own), dtype=torch.long))))
        return found

    return [of_all_orders(one, ask)]


def _torch_clustering(call: str, one: Problem) -> list[float]:
    torch: Any = import_module("torch")
    metric = _metric("clustering", call)
    first, second = (torch.tensor(one[name]) for name in ("found", "truth"))
    if "data" in inspect.signature(metric.update).parameters:
        first, second = torch.tensor(one["points"]), first
    return [float(metric(first, second))]


def _torch_segmentation(call: str, one: Problem) -> list[float]:
    torch: Any = import_module("torch")
    metric = _metric("segmentation", call)
    first, second = (torch.tensor(one[name]) for name in ("said", "there"))
    return [float(found) for found in np.ravel(metric(first, second))]


ASKED: dict[str, Callable[[str, Problem], list[float]]] = {
    "ranx": _ranx,
    "ir_measures": _ir_measures,
    "genieclust": _genieclust,
    "torchmetrics retrieval": _torch_retrieval,
    "torchmetrics clustering": _torch_clustering,
    "torchmetrics segmentation": _torch_segmentation,
}


def _names(peer: str) -> dict[str, str]:
    """What a library has, with the arguments that it takes, in their order."""
    if peer == "ir_measures":
        measures = import_module("ir_measures.measures").registry
        return {name: ", ".join(one.SUPPORTED_PARAMS) for name, one in sorted(measures.items())}
    found = {}
    for module in map(import_module, MODULES[peer]):
        public = getattr(
            module, "__all__", [name for name in dir(module) if re.search("_(score|accuracy|index)$", name)]
        )
        for name in sorted(public):
            one = getattr(module, name)
            function = getattr(one, "update", None) or getattr(one, "py_func", one)
            found[name] = ", ".join(_arguments(function))
    return found


def _arguments(function: Any) -> list[str]:
    try:
        return [name for name in inspect.signature(function).parameters if name not in ("self", "args", "kwargs")]
    except ValueError:
        # A function of C says it in its first line.
        return re.findall(r"\w+", function.__doc__.partition("(")[2].partition(")")[0])


def record() -> dict[str, Any]:
    """All of it."""
    known = problems()
    rows = [line.split("|") for line in ROWS.read_text(encoding="utf-8").splitlines()]
    said: dict[str, dict[str, Any]] = {peer: {"names": _names(peer), "values": {}} for peer in MODULES}
    for peer, call, _, check, _ in rows:
        if peer in ASKED and check.startswith("measured:"):
            asked = known[check.partition(":")[2]]
            said[peer]["values"][call] = [ASKED[peer](call, one) for one in asked]
    named = {one.partition(".")[0] for modules in MODULES.values() for one in modules}
    return {"versions": {one: version(one) for one in sorted(named)}, "problems": known, "said": said}


if __name__ == "__main__":
    text = json.dumps(record(), default=lambda one: one.tolist(), sort_keys=True)
    RECORD.write_text(re.sub(r'(\]|\}), (?=")', r"\1,\n", text) + "\n", encoding="utf-8")
