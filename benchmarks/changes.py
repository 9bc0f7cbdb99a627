"""How often the history of a model claims a change, and what it gives as the cause: `python -m benchmarks.changes`.

Series of 100 evaluations of 2,000 samples each, a class at 5 %, of which 80 % are caught, with false alarms on 0.5 % of
the others. From the fiftieth value on nothing changes, or the class becomes rarer, or less of it is caught. Errors are
those of Wilson's limits, as in reports. Prints one Markdown table; `--replicates 2000` gives a standard error of at
most half a point where claims are false.

Then series of 100 versions judged on one test set of 500 samples, of which each predicts nearly as the one before it:
as if they were independent, and with the covariances that the samples give.
"""

import argparse
from collections.abc import Callable, Mapping

import numpy as np

from app.kernel.causes import split
from app.kernel.history import History
from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.intervals import two_sided_z, wilson

POINTS, CHANGE, SAMPLES = 100, 50, 2_000
SHARE, CAUGHT, ALARMS = 0.05, 0.8, 0.005
SERIES = {
    "nothing changes": (SHARE, CAUGHT),
    "the class falls to 3 %": (0.03, CAUGHT),
    "the class falls to 3 %, over 50 values": ("slowly", 0.03, CAUGHT),
    "70 % are caught": (SHARE, 0.7),
    "70 % are caught, over 50 values": ("slowly", SHARE, 0.7),
}
# Hits and all of each rate, in a matrix of two classes, rows actual.
RATES: Mapping[str, Callable[[Array], tuple[Array, Array]]] = {
    "recall": lambda cells: (cells[:, 0, 0], cells[:, 0].sum(axis=1)),
    "precision": lambda cells: (cells[:, 0, 0], cells[:, :, 0].sum(axis=1)),
    "prevalence": lambda cells: (cells[:, 0].sum(axis=1), cells.sum(axis=(1, 2))),
}


def drawn(rng: np.random.Generator, shares: Array, caught: Array) -> Array:
    """Return matrices (points, 2, 2)."""
    ill = rng.binomial(SAMPLES, shares)
    hits, alarms = rng.binomial(ill, caught), rng.binomial(SAMPLES - ill, ALARMS)
    cells = [[hits, ill - hits], [alarms, SAMPLES - ill - alarms]]
    return np.moveaxis(np.array(cells, np.float64), 2, 0)


def precision(table: Table) -> Array:
    """Return the precision of the first class."""
    found: Array = table.counts[..., 0, 0] / table.counts[..., :, 0].sum(axis=-1)
    return found


def course(kind: tuple[object, ...]) -> tuple[Array, Array]:
    """Return the share of the class and the rate at which it is caught, value by value."""
    slowly, (share, caught) = kind[0] == "slowly", kind[-2:]
    part = np.zeros(POINTS)
    part[CHANGE:] = np.linspace(0.0, 1.0, POINTS - CHANGE) if slowly else 1.0
    return SHARE + part * (float(str(share)) - SHARE), CAUGHT + part * (float(str(caught)) - CAUGHT)


# Versions between two that predict all anew, the share of predictions that each changes of the one before it, and how
# many are right from the fiftieth on, of 90 % before.
ALIKE = (
    *((100, 0.01, 0.9), (100, 0.1, 0.9), (50, 0.002, 0.9), (50, 0.01, 0.9), (50, 0.05, 0.9), (10, 0.01, 0.9)),
    *((5, 0.002, 0.9), (1, 1.0, 0.9), (10, 0.01, 0.8), (50, 0.01, 0.8), (1, 1.0, 0.85)),
)
TESTED = 500


def judged_on_one_test_set(rng: np.random.Generator, in_a_row: int, own: float, after: float) -> Array:
    """Return which samples (points, samples) each version predicts right."""
    rows = []
    for point in range(POINTS):
        right = 0.9 if point < CHANGE else after
        if point % in_a_row == 0:
            alike = rng.random(TESTED) < right
        alike = np.where(rng.random(TESTED) < own, rng.random(TESTED) < right, alike)
        rows.append(alike)
    return np.array(rows, np.float64)


def of_one_test_set(replicates: int) -> None:
    """Print the table of versions on one test set."""
    print("\n| anew every | changed by each | right since | as independent | by their samples |\n|---|---|---|---|---|")
    for setting in ALIKE:
        rng, claims = np.random.default_rng(12), np.zeros(2)
        for _ in range(replicates):
            right = judged_on_one_test_set(rng, *setting)
            values, sizes = right.mean(axis=1), np.full(POINTS, float(TESTED))
            low, high = wilson(right.sum(axis=1), sizes, 0.95)
            added = (right - values[:, None]) / TESTED
            for place, covariances in enumerate((None, added @ added.T)):
                errors = (high - low) / 2.0 / two_sided_z(0.95)
                claims[place] += bool(History(values, errors, sizes, covariances=covariances).changes)
        row, own, after = setting
        shares = " | ".join(f"{100 * one / replicates:.2f} %" for one in claims)
        print(f"| {row} | {100 * own:g} % | {100 * after:g} % | {shares} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    replicates = parser.parse_args().replicates
    print(
        "| from the 50th of 100 values on | recall | precision | prevalence | precision's change owed to prevalence |"
    )
    print("|---|---|---|---|---|")
    for name, kind in SERIES.items():
        rng, claims, owed = np.random.default_rng(11), dict.fromkeys(RATES, 0), list[float]()
        for _ in range(replicates):
            cells = drawn(rng, *course(kind))
            for rate, counted in RATES.items():
                hits, among = counted(cells)
                with silently():
                    low, high = wilson(hits, among, 0.95)
                known = among > 0
                errors = (high - low)[known] / 2.0 / two_sided_z(0.95)
                found = History(hits[known] / among[known], errors, among[known]).changes
                claims[rate] += bool(found)
                if rate == "precision" and found:
                    at = np.flatnonzero(known)
                    before = cells[at[found[0].start : found[0].after + 1]].sum(axis=0)
                    since = cells[at[found[0].after + 1 : found[0].claimed + 1]].sum(axis=0)
                    (parts,) = split(np.array([since, before]), [(precision, None)])
                    owed.append(float(parts.values[0] / parts.values.sum()) if parts is not None else float("nan"))
        shares = [f"{100 * claims[rate] / replicates:.2f} %" for rate in RATES]
        middle = f"{100 * np.median(owed):.0f} % (median of {len(owed):,})" if owed else "-"
        print(f"| {name} | {' | '.join(shares)} | {middle} |", flush=True)
    of_one_test_set(replicates)


if __name__ == "__main__":
    main()
