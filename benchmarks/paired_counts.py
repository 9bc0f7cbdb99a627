"""How often tests of counts call two runs on the same samples different that are alike in what they test.

Run ``python -m benchmarks.paired_counts``. Prints Markdown tables: predictive values that are equal though the runs
differ, with the coverage of limits of their ratio; predictions of equal runs of many classes; the ratio of costs at
which two runs cost the same; and the same tests of samples in groups. ``--replicates 2000`` has a standard error of
half a point at 5 %, and takes two minutes.
"""

import argparse
import itertools
from collections.abc import Sequence

import numpy as np

from app.kernel.compare.cost_ratios import (
    RateGaps,
    certain_cost_ranges,
    independent_gap,
    paired_gap,
)
from app.kernel.compare.paired.joint import JointCounts, combine
from app.kernel.compare.paired.tests import (
    GroupedPair,
    PredictiveCounts,
    bhapkar,
    bowker,
    discordant,
    equal_recalls,
    p_of,
    prediction_table,
    predictive_values,
    stuart_maxwell,
)
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import generator
from app.services.compare.pairs.cost_ranges import between_groups
from benchmarks.coverage import print_table

ALPHA = 0.05
PREVALENCES = (0.02, 0.1, 0.5)
SIZES = (200, 1000, 5000)
# Shares of positives called positive, and of negatives, by both runs: equal quotients make equal predictive values.
EQUAL_VALUES = {"ppv": ((0.8, 0.6), (0.1, 0.075)), "npv": ((0.8, 0.9), (0.1, 0.55))}
# How much of what is possible two runs have in common within a class.
SHARED = 0.5
CLASSES = ((2, 100), (3, 30), (3, 100), (10, 25), (10, 100))
TESTS = ("generalised McNemar", "Stuart-Maxwell", "Bhapkar", "Bowker")
GROUPS, PER_GROUP = ((2, 20), (2, 100), (3, 20), (3, 100), (10, 200)), 8
# Miss rates and false alarm rates of two runs.
ERRORS = {"alike": ((0.2, 0.2), (0.1, 0.1)), "bold and careful": ((0.1, 0.3), (0.2, 0.1))}


def together(first: float, second: float) -> Array:
    """Chances (4) of both, only the first, only the second, neither."""
    both = first * second + SHARED * (min(first, second) - first * second)
    return np.array([both, first - both, second - both, 1.0 - first - second + both])


def cells(chances: tuple[Array, Array], prevalence: float, n: int, replicates: int, seed: int) -> Array:
    """Samples (replicates, 2, 4) of both classes, the positive one first, whose numbers vary too."""
    shares = np.concatenate([prevalence * chances[0], (1.0 - prevalence) * chances[1]])
    return generator(seed).multinomial(n, shares, size=replicates).reshape(replicates, 2, 4).astype(np.float64)


def errors_of_predictive_values(replicates: int) -> list[list[object]]:
    """Of values that are equal: rejections by the three tests, limits of the ratio without 1, and undefined values."""
    rows = []
    for (name, (hits, alarms)), prevalence, n in itertools.product(EQUAL_VALUES.items(), PREVALENCES, SIZES):
        drawn = cells((together(*hits), together(*alarms)), prevalence, n, replicates, n)
        (both, one, other, _), (both_wrong, one_wrong, other_wrong, _) = np.moveaxis(drawn, 0, -1)
        counts = PredictiveCounts(one, one_wrong, other, other_wrong, both, both_wrong)
        if name == "npv":
            # What is neither of one called positive is called negative by both, and right among the negatives.
            counts = PredictiveCounts(other_wrong, other, one_wrong, one, drawn[:, 1, 3], drawn[:, 0, 3])
        found = predictive_values(counts)
        low, high = found.ratio_limits(1.0 - ALPHA)
        defined = np.isfinite(low)
        statistics = (found.score, found.weighted_score, found.relative)
        shares = [float((p_of(statistic)[defined] < ALPHA).mean()) for statistic in statistics]
        missed = float(((low > 1.0) | (high < 1.0))[defined].mean())
        rows.append([name, f"{prevalence:.0%}", n, *shares, 1.0 - missed, float(1.0 - defined.mean())])
    return rows


def errors_of_predictions(replicates: int) -> list[list[object]]:
    """Of runs that are alike: rejections by the tests of the tables of predictions and of the recalls.

    Weights are gamma variates with shape 2 that have nothing to do with the outcome.
    """
    rows: list[list[object]] = []
    for (classes, size), weighted in itertools.product(CLASSES, (False, True)):
        random, truth = generator(classes * size), np.repeat(np.arange(classes), size)
        rejected = np.zeros(len(TESTS))
        for _ in range(replicates):
            wrong = (truth + random.integers(1, classes, (2, truth.size))) % classes
            right = random.random((2, truth.size)) < np.where(random.random(truth.size) < 0.3, 0.5, 0.98)
            weights = random.gamma(2.0, 0.5, truth.size) if weighted else None
            joint = combine(truth, np.where(right, truth, wrong), classes, weights=weights)
            table, recalls = prediction_table(joint), discordant(joint)
            squares, spread = None, None
            if weighted:
                squares, spread = prediction_table(joint, squares=True), np.add(*discordant(joint, squares=True))
            found = (
                equal_recalls(*recalls, spread),
                stuart_maxwell(table, squares),
                bhapkar(table, squares),
                bowker(table, squares),
            )
            rejected += np.array([one.p < ALPHA for one in found]) / replicates
        rows.append([classes, size, "gamma" if weighted else "none", *rejected.tolist()])
    return rows


def errors_of_cost_ranges(replicates: int) -> list[list[object]]:
    """At the ratio at which two runs cost the same, how often it is beyond doubt that they do not."""
    rows = []
    for (name, (misses, alarms)), prevalence, n in itertools.product(ERRORS.items(), PREVALENCES, SIZES):
        slope, start = prevalence * (misses[0] - misses[1]), (1.0 - prevalence) * (alarms[0] - alarms[1])
        ratio = -start / slope if slope else (1.0 - prevalence) / prevalence
        drawn = cells((together(*misses), together(*alarms)), prevalence, n, replicates, n)
        sizes = drawn.sum(axis=2)
        paired, alone = 0.0, 0.0
        kept = drawn[sizes.min(axis=1) > 0]
        # The errors of the first in one replicate and of the second in the next are those of different samples.
        for mine, others in zip(kept, np.roll(kept, 1, axis=0), strict=True):
            gaps = [paired_gap(row[2], row[1], row.sum()) for row in mine]
            paired += _sure(gaps, prevalence, ratio) / len(kept)
            gaps = [
                independent_gap((first[0] + first[1], first.sum()), (second[0] + second[2], second.sum()))
                for first, second in zip(mine, others, strict=True)
            ]
            alone += _sure(gaps, prevalence, ratio) / len(kept)
        rows.append([name, f"{prevalence:.0%}", n, f"{ratio:.2f}", paired, alone])
    return rows


def errors_in_groups(replicates: int) -> list[list[object]]:
    """Of runs that are alike on the whole, of which in every group another one is better, by the tests that count
    groups, and by McNemar's and the ratio of costs as if the samples were independent.
    """
    rows: list[list[object]] = []
    for classes, count in GROUPS:
        random, group = generator(classes * count), np.repeat(np.arange(count), PER_GROUP)
        rejected = np.zeros(8)
        for _ in range(replicates):
            truth = random.integers(0, classes, group.size)
            tilt = random.uniform(-0.3, 0.3, count)[group] * np.array([[1.0], [-1.0]])
            right = random.random((2, group.size)) < 0.65 + tilt
            wrong = (truth + random.integers(1, classes, (2, truth.size))) % classes
            predictions = np.where(right, truth, wrong)
            pair = GroupedPair(JointCounts(classes, truth, predictions, np.ones(truth.size)), group, count)
            (((_, present), _),) = pair.predictive_values()
            joint = combine(truth, predictions, classes)
            found = [one().p for one in (pair.equal_recalls, pair.stuart_maxwell, pair.bhapkar, pair.bowker)]
            found += [float(p_of(present.score)[0]), float(present.relative_p[0])]
            found += [equal_recalls(*discordant(joint)).p]
            gaps = between_groups(pair, (1, 0), 1.0 - ALPHA)
            costs = gaps is not None and _at(gaps, 0.5, 1.0)
            rejected += np.append(np.array(found) < ALPHA, costs) / replicates
        rows.append([classes, count, *rejected[:6].tolist(), rejected[7] if classes == 2 else "", rejected[6]])
    return rows


def _sure(gaps: Sequence[tuple[float, float]], prevalence: float, ratio: float) -> bool:
    (misses, misses_variance), (alarms, alarms_variance) = gaps
    return _at(RateGaps(misses, alarms, misses_variance, alarms_variance), prevalence, ratio)


def _at(gaps: RateGaps, prevalence: float, ratio: float) -> bool:
    """Is it beyond doubt at a ratio which run is cheaper?"""
    found = certain_cost_ranges(gaps, prevalence, 1.0 - ALPHA)
    return any(one.better != 0 and one.low < ratio < one.high for one in found)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    replicates = parser.parse_args(arguments).replicates
    print("Equal predictive values of runs that differ, tests at 5 %, limits of the ratio at 95 %.\n")
    head = ["value", "prevalence", "samples", "generalised score", "weighted", "ratio", "limits hold 1", "undefined"]
    print_table(head, errors_of_predictive_values(replicates))
    print("Runs that are alike, tests at 5 %.\n")
    print_table(["K", "per class", "weights", *TESTS], errors_of_predictions(replicates))
    print("The ratio of costs at which two runs cost the same: how often it is said to be decided (nominal 5 %).\n")
    head = ["runs", "prevalence", "samples", "ratio", "same samples", "different samples"]
    print_table(head, errors_of_cost_ranges(replicates))
    print(
        f"Runs that are alike, {PER_GROUP} samples in each group, which suits one of the runs; tests at 5 % "
        "that count groups, and generalised McNemar of the samples as if independent.\n"
    )
    head = ["K", "groups", *TESTS, "generalised score", "ratio", "costs", "McNemar, independent"]
    print_table(head, errors_in_groups(replicates))


if __name__ == "__main__":
    main()
