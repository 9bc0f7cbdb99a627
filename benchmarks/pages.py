"""What the first view of each page and the next ones take: `python -m benchmarks.pages [part of a name ...]`.

Milliseconds of the processor: all threads of the service, its processes and its Postgres. One worker, started again
before the first views, which so load templates and what is read from the database.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from app.embedded.cluster import free_port
from benchmarks.http import ROOT, serving, wait_for
from benchmarks.processes import thread_nanoseconds

VIEWS = 5
_SETTLE_SECONDS = 8.0
TOPICS = ("economy", "culture", "science", "health", "sport", "law")
Input = dict[str, Any]


def probabilities(rows: int, classes: int, seed: int, skill: float = 2.0, **columns: Any) -> Input:
    """A classifier of so many classes, the last of them rare; runs of one size are of the same samples."""
    shares = np.linspace(3, 1, classes)
    true = np.random.default_rng(rows).choice(classes, rows, p=shares / shares.sum())
    logits = np.random.default_rng(seed).normal(size=(rows, classes))
    logits[np.arange(rows), true] += skill
    odds = np.exp(logits)
    labels = [f"class {k}" for k in range(classes)]
    return {
        "kind": "probabilities",
        "labels": labels,
        "y_true": [labels[k] for k in true],
        "probabilities": np.round(odds / odds.sum(axis=1, keepdims=True), 6).tolist(),
        "sample_ids": list(range(rows)),
        "sum_tolerance": 1e-3,
        **columns,
    }


def matrix(classes: int, seed: int) -> Input:
    """Counts of a classifier that mistakes near classes for each other."""
    random = np.random.default_rng(seed)
    counts = random.poisson(4.0 / (1 + np.abs(np.subtract.outer(range(classes), range(classes)))))
    counts[np.diag_indices(classes)] += random.integers(20, 400, classes)
    return {"kind": "confusion_matrix", "matrix": counts.tolist(), "labels": [f"class {k}" for k in range(classes)]}


def ranking(queries: int, seed: int) -> Input:
    relevant = np.random.default_rng(queries).random((queries, 50)) < 0.1
    scores = relevant + np.random.default_rng(seed).normal(size=relevant.shape)
    ids = np.repeat(np.arange(queries), relevant.shape[1])
    return {
        "kind": "ranking",
        "query_ids": ids.tolist(),
        "relevance": relevant.astype(int).ravel().tolist(),
        "scores": scores.round(6).ravel().tolist(),
    }


def topics(rows: int, seed: int) -> Input:
    true = np.random.default_rng(rows).random((rows, len(TOPICS))) < (0.4, 0.3, 0.25, 0.2, 0.15, 0.05)
    logits = 2.0 * true - 1 + np.random.default_rng(seed).normal(size=true.shape)
    return {
        "kind": "multilabel",
        "labels": list(TOPICS),
        "y_true": true.astype(int).tolist(),
        "probabilities": np.round(1 / (1 + np.exp(-logits)), 6).tolist(),
        "sample_ids": list(range(rows)),
    }


def regions(rows: int) -> Input:
    random = np.random.default_rng(rows)
    true, found = random.integers(1, 200, (2, rows))
    common = random.binomial(np.minimum(true, found), 0.8)
    return {"kind": "sets", "n_true": true.tolist(), "n_predicted": found.tolist(), "n_common": common.tolist()}


def attributes(rows: int) -> dict[str, list[str]]:
    random = np.random.default_rng(1)
    return {
        name: random.choice(values, rows).tolist() for name, values in (("sex", ["f", "m"]), ("site", list("abcd")))
    }


# Datasets by name: how many runs, and the input of each.
DATASETS: dict[str, tuple[int, Callable[[int], Input]]] = {
    "4 classes": (2, lambda seed: matrix(4, seed)),
    "35 classes": (4, lambda seed: matrix(35, seed)),
    "200 classes": (1, lambda seed: matrix(200, seed)),
    "1,500 probabilities of 4": (6, lambda seed: probabilities(1_500, 4, seed)),
    "3,000 probabilities of 2": (6, lambda seed: probabilities(3_000, 2, seed)),
    "8,000 probabilities of 2": (6, lambda seed: probabilities(8_000, 2, seed, attributes=attributes(8_000))),
    "3,000 probabilities of 35": (1, lambda seed: probabilities(3_000, 35, seed)),
    "4,000 probabilities of 200": (1, lambda seed: probabilities(4_000, 200, seed, 4.0)),
    "ranking of 120": (3, lambda seed: ranking(120, seed)),
    "6 labels": (3, lambda seed: topics(1_000, seed)),
    "clustering": (1, lambda _: {"kind": "clustering", "contingency": [[30, 2, 1], [3, 25, 2], [4, 6, 40]]}),
    "sets": (1, lambda _: regions(300)),
}


def build(client: httpx.Client) -> dict[str, str]:
    """Keep everything; the address of every page, by what it shows."""

    def sent(path: str, body: Any, method: str = "POST") -> Any:
        return client.request(method, path, json=body).raise_for_status().json()

    def kept(name: str, seed: int, model: str, version: str) -> str:
        about = {"model": {"name": model, "version": version}, "dataset": {"name": name, "version": "1"}}
        return str(sent("/v1/evaluations", {"input": DATASETS[name][1](seed), **about})["id"])

    runs = {
        name: [kept(name, seed, f"model-{seed}", "1") for seed in range(count)] for name, (count, _) in DATASETS.items()
    }
    for version in range(100):
        last = kept("4 classes", version, "nightly", f"{version}")
    rules = [{"metric": "h_mean", "min": 0.5}, {"metric": "recall@*", "min": 0.4}]
    sent("/v1/gates/promotion", {"rules": rules}, "PUT")
    for run in [*runs["4 classes"], *runs["1,500 probabilities of 4"]]:
        check = sent("/v1/gates/promotion/checks", {"evaluation": run})["id"]
    saved = sent("/v1/comparisons", {"evaluations": runs["1,500 probabilities of 4"]})["id"]
    found = {"home": "/ui", "comparisons": "/ui/comparisons", "saved comparison of six": f"/ui/comparisons/{saved}"}
    found |= {"gates": "/ui/gates", "gate": "/ui/gates/promotion", "check": f"/ui/gates/promotion/checks/{check}"}
    found |= {"metrics": "/ui/metrics", "metric": "/ui/metrics/cohen_kappa", "questions": "/ui/metrics/choose"}
    found["history of 100"] = "/ui/history?model=nightly&dataset=4+classes&metric=h_mean"
    found["run with 99 earlier versions"] = f"/ui/evaluations/{last}"
    for name, ids in runs.items():
        found[f"run, {name}"] = f"/ui/evaluations/{ids[0]}"
        found[f"figures, {name}"] = f"/ui/evaluations/{ids[0]}/figures"
        if len(ids) > 1:
            found[f"leaderboard, {name}"] = str(httpx.URL("/ui", params={"dataset": name}))
            found[f"compared, {len(ids)} x {name}"] = "/ui/compare?" + "&".join(f"run={one}" for one in ids)
    for name in ("4 classes", "8,000 probabilities of 2"):
        found[f"simulator, {name}"] = f"/ui/evaluations/{runs[name][0]}/simulator"
    found["slices, 8,000 probabilities of 2"] = f"/ui/evaluations/{runs['8,000 probabilities of 2'][0]}/slices"
    return found


def measure(client: httpx.Client, root: int, path: str) -> tuple[float, int]:
    """Milliseconds of the processor, and bytes."""
    before = thread_nanoseconds(root)
    answer = client.get(path).raise_for_status()
    time.sleep(0.05)  # What goes on behind the answer counts too.
    taken = sum(spent - before.get(thread, 0) for thread, spent in thread_nanoseconds(root).items())
    return taken / 1e6, len(answer.content)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="pages with one of these in their name; all unless said")
    parser.add_argument("--folder", default=ROOT, help="the checkout to measure")
    parser.add_argument("--data", type=Path, help="keep what the pages show here, and use it again")
    parser.add_argument("--serve", action="store_true", help="serve until interrupted, for a look at the pages")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="prevail-bench-") as temporary:
        data, port = chosen.data or Path(temporary), free_port()
        settings = {"PREVAIL_DATA_DIR": str(data), "PREVAIL_PORT": str(port), "PREVAIL_LOG_LEVEL": "warning"}
        settings["PYTHONPATH"] = f"{chosen.folder}:{chosen.folder}/client/src"
        command = [sys.executable, "-m", "app", "serve"]
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120)
        pages = data / "pages.json"
        if not pages.exists():
            with serving(command, chosen.folder, **settings) as process:
                wait_for(port, "/readyz", process)
                pages.write_text(json.dumps(build(client)))
        with serving(command, chosen.folder, **settings) as process:
            wait_for(port, "/readyz", process)
            time.sleep(_SETTLE_SECONDS)
            print("| page | first ms | median ms | bytes |\n| --- | ---: | ---: | ---: |")
            for name, path in json.loads(pages.read_text()).items():
                if any(part in name for part in chosen.names or [""]):
                    views = [measure(client, process.pid, path) for _ in range(1 + VIEWS)]
                    median = statistics.median(taken for taken, _ in views[1:])
                    print(f"| {name} | {views[0][0]:.0f} | {median:.0f} | {views[0][1]:,} |", flush=True)
            if chosen.serve:
                print(f"http://127.0.0.1:{port}", file=sys.stderr)
                process.wait()


if __name__ == "__main__":
    main()
