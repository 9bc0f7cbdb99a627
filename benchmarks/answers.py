"""How large answers are in each form, and what they cost: `python -m benchmarks.answers`.

In this process, without HTTP: computing the report, or the headline alone, and writing it. Of comparisons of 2 and of
50 runs of 30 classes over HTTP, with a service of its own.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx
import numpy as np

from app.api.presentation import EVALUATION, Media, View
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import Options
from app.services.evaluate.answers import Evaluation
from app.services.evaluate.headline import headline_alone
from app.services.evaluate.questions import ask
from app.services.evaluate.reports import report_alone
from benchmarks.ingest import served

CLASSES = (2, 4, 30, 1000)
VIEWS = {
    "JSON": View(EVALUATION),
    "`fields=headline`": View(EVALUATION, fields=("headline",)),
    "text": View(EVALUATION, Media.TEXT),
    "Markdown": View(EVALUATION, Media.MARKDOWN),
    "CSV": View(EVALUATION, Media.CSV),
}


# Runs that are compared, of so many classes and with so many samples.
RUNS, COMPARED_CLASSES, SAMPLES = (2, 50), 30, 3000
FORMS: dict[str, tuple[str, str]] = {
    "JSON": ("", "application/json"),
    "`fields=metrics`": ("?fields=metrics", "application/json"),
    "`fields=findings,disagreements`": ("?fields=findings,disagreements", "application/json"),
    "text": ("", "text/plain"),
    "Markdown": ("", "text/markdown"),
    "CSV": ("", "text/csv"),
}


def milliseconds(function: Callable[[], Any], rounds: int) -> float:
    """Median after one call that does not count."""
    function()
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        found.append(1e3 * (time.perf_counter() - start))
    return statistics.median(found)


def rows() -> Iterator[str]:
    """A line for every number of classes and form."""
    random = np.random.default_rng(0)
    for size in CLASSES:
        counts = random.integers(0, 5, (size, size)) + 60 * np.eye(size, dtype=np.int64)
        labels = tuple(f"class {k}" for k in range(size))
        source = MatrixInput("confusion_matrix", labels, 1 if size == min(CLASSES) else None, Content.counts, counts)
        question, rounds = ask(source, Options()), 5 if size == max(CLASSES) else 51
        whole = Evaluation(report=report_alone(question))
        computed = milliseconds(partial(report_alone, question), rounds)
        alone = milliseconds(partial(headline_alone, question), rounds)
        for name, view in VIEWS.items():
            written = milliseconds(partial(view.write, whole), rounds)
            cost = alone if view.fields else computed
            yield f"| {size:,} | {name} | {len(view.write(whole)):,} | {cost:.2f} | {written:.2f} |"


def compared(client: httpx.Client) -> Iterator[str]:
    """A line for every number of runs and form; the time of comparing is that of the POST with `return=minimal`."""
    random = np.random.default_rng(0)
    shares = np.full((COMPARED_CLASSES, COMPARED_CLASSES), 0.3 / (COMPARED_CLASSES - 1))
    np.fill_diagonal(shares, 0.7)
    runs = []
    for number in range(max(RUNS)):
        counts = [random.multinomial(SAMPLES // COMPARED_CLASSES, row).tolist() for row in shares]
        who: dict[str, Any] = {"model": {"name": f"m{number}"}, "dataset": {"name": "d"}}
        source = {"kind": "confusion_matrix", "matrix": counts}
        runs.append(client.post("/v1/evaluations", json={**who, "input": source}).raise_for_status().json()["id"])
    # What the service makes at first use is no time of these comparisons.
    client.post("/v1/comparisons", json={"evaluations": runs[:2]}).raise_for_status()
    for count in RUNS:
        body = {"evaluations": runs[:count], "seed": 0}
        start = time.perf_counter()
        made = client.post("/v1/comparisons", json=body, headers={"Prefer": "return=minimal"}).raise_for_status()
        took = 1e3 * (time.perf_counter() - start)
        address = f"/v1/comparisons/{made.json()['id']}"
        yield f"| {count} | `Prefer: return=minimal` | {len(made.content):,} | {took:.0f} | |"
        for name, (query, media) in FORMS.items():
            ask = partial(client.get, address + query, headers={"Accept": media, "Accept-Encoding": "identity"})
            read = milliseconds(ask, 11)
            yield f"| {count} | {name} | {len(ask().raise_for_status().content):,} | {took:.0f} | {read:.1f} |"


def main() -> None:
    """Print the tables."""
    print("| classes | form | bytes | computing, ms | writing, ms |")
    print("| ---: | --- | ---: | ---: | ---: |")
    for row in rows():
        print(row)
    print(
        f"\nRuns of {COMPARED_CLASSES} classes compared on the usual metrics; JSON is what every answer was before.\n"
    )
    print("| runs | form | bytes | comparing, ms | reading it again, ms |")
    print("| ---: | --- | ---: | ---: | ---: |")
    with served() as (url, _), httpx.Client(base_url=url, timeout=600, trust_env=False) as client:
        for row in compared(client):
            print(row)


if __name__ == "__main__":
    main()
