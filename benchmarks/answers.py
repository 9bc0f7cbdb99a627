"""How large answers are in each form, and what they cost: `python -m benchmarks.answers`.

In this process, without HTTP: computing the report, or the headline alone, and writing it.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from app.api.presentation import EVALUATION, Media, View
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.report import Options
from app.services.evaluate.evaluations import Evaluation
from app.services.evaluate.headline import headline_alone
from app.services.evaluate.questions import ask
from app.services.evaluate.reports import report_alone

CLASSES = (2, 4, 30, 1000)
VIEWS = {
    "JSON": View(EVALUATION),
    "`fields=headline`": View(EVALUATION, fields=("headline",)),
    "text": View(EVALUATION, Media.TEXT),
    "Markdown": View(EVALUATION, Media.MARKDOWN),
    "CSV": View(EVALUATION, Media.CSV),
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


def main() -> None:
    """Print the table."""
    print("| classes | form | bytes | computing, ms | writing, ms |")
    print("| ---: | --- | ---: | ---: | ---: |")
    for row in rows():
        print(row)


if __name__ == "__main__":
    main()
