"""How often 95 % intervals of balanced accuracy hold the truth with few samples per class: all outcomes added up.

Run ``python -m benchmarks.few_samples``; prints a Markdown table. All recalls are equal, from .5 to .995.
"""

import itertools
from collections.abc import Sequence
from math import factorial

import numpy as np
from scipy.stats import binom

from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import generator, summarise
from app.kernel.uncertainty.intervals import jeffreys, mean_limits
from app.kernel.uncertainty.simulation import draw_matrices
from benchmarks.coverage import print_table

DESIGNS = ((2, 5), (2, 10), (3, 5), (3, 10), (4, 5), (4, 10), (5, 5), (5, 10))
# Coverage jumps where a limit is passed, so the lowest is beside one of them.
LEAST, MOST, BESIDE = 0.5, 0.995, 1e-9
SHOWN = (0.6, 0.8, 0.9, 0.95)
DRAWS = 20_000


def outcomes(classes: int, size: int) -> tuple[Array, Array]:
    """Right answers of every class (O, K), in any order of the classes, and in how many orders each occurs (O)."""
    found = np.array([*itertools.combinations_with_replacement(range(size + 1), classes)])
    orders = [factorial(classes) / np.prod([factorial(count) for count in np.bincount(one)]) for one in found]
    return found, np.array(orders)


def closed_form(right: Array, size: int) -> tuple[Array, Array]:
    ends = mean_limits(right / size, *jeffreys(right.astype(float), np.full(right.shape, float(size))))
    return ends[0, 0], ends[0, 1]


def posterior(right: Array, size: int) -> tuple[Array, Array]:
    """Of binary rows: what the posterior of a recall is does not depend on where the mistakes went."""
    recalls = []
    for hits in range(size + 1):
        counts = np.array([[hits, size - hits], [0, 1]], dtype=float)
        drawn = np.concatenate(list(draw_matrices(counts, draws=DRAWS, random=generator(hits))))
        recalls.append(drawn[:, 0, 0] / drawn[:, 0].sum(axis=-1))
    turns = [generator(100 + place).permutation(DRAWS) for place in range(right.shape[1])]
    low, high = np.empty(len(right)), np.empty(len(right))
    for index, hits in enumerate(right):
        mean = sum(recalls[one][turn] for one, turn in zip(hits, turns, strict=True)) / len(hits)
        found = summarise(np.asarray(mean)[:, None], np.array([hits.mean() / size]))
        low[index], high[index] = found.low[0], found.high[0]
    return low, high


def _held(right: Array, orders: Array, low: Array, high: Array, size: int, recall: float) -> float:
    """Chance of an outcome whose interval holds this recall of all classes."""
    chances = orders * binom.pmf(np.arange(size + 1), size, recall)[right].prod(axis=1)
    return float(chances[(low <= recall) & (recall <= high)].sum())


def coverage(classes: int, size: int) -> list[list[object]]:
    right, orders = outcomes(classes, size)
    rows: list[list[object]] = []
    for name, limits in (("closed form", closed_form), ("posterior", posterior)):
        low, high = limits(right, size)
        ends = np.concatenate([low - BESIDE, low + BESIDE, high - BESIDE, high + BESIDE])
        recalls = np.unique([*SHOWN, *ends[(ends >= LEAST) & (ends <= MOST)]])
        held = [_held(right, orders, low, high, size, recall) for recall in recalls.tolist()]
        shown = [held[int(np.searchsorted(recalls, recall))] for recall in SHOWN]
        rows.append([name, classes, size, *shown, min(held), f"{recalls[int(np.argmin(held))]:.4f}"])
    return rows


def main(arguments: Sequence[str] | None = None) -> None:  # noqa: ARG001 - as all benchmarks are called
    print_table(
        ["intervals", "K", "per class", *(f"recalls {recall:.2f}" for recall in SHOWN), "lowest", "at recalls"],
        [row for design in DESIGNS for row in coverage(*design)],
    )


if __name__ == "__main__":
    main()
