"""Limits of folded probabilities: their standard errors beside those of the resampled samples, and how often 95 %
intervals hold the truth.

Run ``python -m benchmarks.folded_coverage``; prints Markdown tables. ``--replicates`` sets the precision of the second:
500 give a standard error of one point.
"""

import argparse
from collections.abc import Sequence
from unittest.mock import patch

import numpy as np

from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import Sampling
from app.kernel.folds import joint
from app.kernel.folds.folded import FoldedScores
from app.kernel.folds.metrics import draw_of, linearised
from app.kernel.folds.scores import ScoresFold
from app.kernel.metrics.card import Inputs, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Measure, Subject
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.draws import ClassCounts, Shares, generator
from app.kernel.uncertainty.influence import Influences, Linearisation, limits, variance
from app.kernel.uncertainty.resampling import Plan, Resampled, bootstrap_samples, resampled
from app.kernel.uncertainty.units import Run
from app.services.estimands import Estimand, estimand_of
from app.services.estimates.estimate import LimitSettings
from app.services.estimates.estimates import estimate
from app.services.estimates.run_data import RunData
from benchmarks.coverage import print_table
from benchmarks.probability_coverage import LEVEL, World, even

KEYS = (
    "brier_skill_score",
    "average_precision",
    "pr_auc_trapezoid",
    "partial_roc_auc",
    "equal_error_rate",
    "median_phi",
    "ks_statistic",
    "h_measure",
    "expected_calibration_error",
    "adaptive_calibration_error",
    "maximum_calibration_error",
    "class_calibration_error",
)
# That of skill scores is their closed form.
RESAMPLED = KEYS[1:]
DRAWS = 300
BUDGET = 1 << 26
# Rows, draws and repetitions of the first table.
SIZE, MANY_DRAWS, TIMES = 20_000, 1000, 5
COMPARED = (
    (World(even(2)), ClassCounts.FIXED),
    (World(even(2), confidence=2.0), ClassCounts.FIXED),
    (World((0.95, 0.05)), ClassCounts.RANDOM),
    (World(even(2), apart=2.5), ClassCounts.RANDOM),
    (World((0.6, 0.3, 0.1)), ClassCounts.RANDOM),
    (World((0.6, 0.3, 0.1)), ClassCounts.FIXED),
)
COVERED = (
    (World(even(2)), 1000),
    (World(even(2)), 20_000),
    (World((0.95, 0.05), confidence=1.3), 20_000),
    (World(even(3), confidence=1.3), 20_000),
)
# Averages of areas, whose errors are those of some rows: samples, and rows of each class that are kept.
AVERAGES = ("roc_auc_ovr_macro", "roc_auc_ovr_weighted", "roc_auc_ovr_micro")
AVERAGED = (
    (World(even(3)), 200_000, None),
    (World((0.9, 0.09, 0.01)), 200_000, None),
    (World(even(10)), 200_000, None),
    (World(even(3)), 20_000, 1000),
    (World((0.9, 0.09, 0.01)), 20_000, 1000),
    (World(even(10), confidence=1.3), 20_000, 200),
)
AVERAGED_TIMES = 20


def measured(key: str, of: int) -> Resampled:
    metric = catalogue().of_probabilities.by_name[key]
    one = of if metric.card.scope is Scope.CLASS else None
    return resampled(Measure(metric, metric.card.defaults, one), metric.card.range)


def deviations_of_cells(scores: Scores, keys: Sequence[str], seed: int, counts: ClassCounts) -> list[float]:
    """Standard errors of the last class by resampled cells."""
    folded = ScoresFold(scores.n_classes, BUDGET, None).add(scores.y, scores.probabilities).finish()
    found = []
    for key in keys:
        metric, code = catalogue().of_probabilities.by_name[key], scores.n_classes - 1
        draw = draw_of(metric)
        at = None if draw is None else draw.at(scores.n_classes, code if metric.card.scope is Scope.CLASS else None)
        assert draw is not None
        assert at is not None
        cells = draw.cells(folded, at[0])
        known = np.atleast_1d(measured(key, code).values(Subject({Inputs.PROBABILITIES: folded})))
        summary = bootstrap_samples(
            cells,
            [measured(key, 0 if at[1] is None else at[1])],
            seed=seed,
            made=Plan(MANY_DRAWS, cells.n_units, cells.n_units),
            class_counts=counts,
            known=[known],
        )[0]
        found.append(float(summary.deviation[0]))
    return found


def ratios(world: World, counts: ClassCounts) -> list[float]:
    """Standard errors by cells as a share of those by samples."""
    random, keys, found = generator(SIZE), RESAMPLED, []
    for seed in range(TIMES):
        scores = world.sample(SIZE, random)
        asked = [measured(key, scores.n_classes - 1) for key in keys]
        made = Plan(MANY_DRAWS, SIZE, SIZE)
        of_samples = bootstrap_samples(Run(scores, scores.predicted), asked, seed=seed, made=made, class_counts=counts)
        of_cells = deviations_of_cells(scores, keys, seed + TIMES, counts)
        found.append([own / float(one.deviation[0]) for own, one in zip(of_cells, of_samples, strict=True)])
    return [float(ratio) for ratio in np.mean(found, axis=0)]


def estimands(labels: tuple[str, ...]) -> list[Estimand]:
    made = []
    for key in KEYS:
        metric = catalogue().of_probabilities.by_name[key]
        of = len(labels) - 1 if metric.card.scope is Scope.CLASS else None
        made.append(estimand_of(Measure(metric, metric.card.defaults, of), key, labels))
    return made


def average_lines(scores: FoldedScores | Influences) -> list[Linearisation]:
    """Averages of areas with their errors."""
    metrics = [catalogue().of_probabilities.by_name[key] for key in AVERAGES]
    if isinstance(scores, Influences):
        found = [scores.of(metric) for metric in metrics]
    else:
        found = [linearised(scores, metric) for metric in metrics]
    return [line for line in found if line is not None]


def of_kept_rows(scores: Scores, most: int | None) -> list[Linearisation]:
    """The same of folded samples, of which so many rows of each class are kept; None is the usual number."""
    with patch.object(joint, "_MOST", joint._MOST if most is None else most):
        return average_lines(ScoresFold(scores.n_classes, BUDGET, None).add(scores.y, scores.probabilities).finish())


def ratios_of_averages(world: World, size: int, most: int | None) -> list[str]:
    """Standard errors by kept rows as a share of those by all: mean, lowest, highest, how often there is none."""
    random, found = generator(size), []
    for _ in range(AVERAGED_TIMES):
        scores = world.sample(size, random)
        pairs = zip(of_kept_rows(scores, most), average_lines(Influences(scores)), strict=True)
        found.append([float(np.sqrt(variance(own) / variance(all_rows))) for own, all_rows in pairs])
    known = [one[np.isfinite(one)] for one in np.array(found).T]
    return [f"{one.mean():.3f} ({one.min():.3f} to {one.max():.3f}; {len(found) - one.size} none)" for one in known]


def coverage_of_averages(world: World, size: int, most: int | None, replicates: int) -> list[float]:
    """Share of samples of which the interval by kept rows holds the truth, of those that have one."""
    truth, random, hits = world.truth(AVERAGES), generator(size + 1), np.zeros(len(AVERAGES))
    known = np.zeros(len(AVERAGES))
    for _ in range(replicates):
        ends = [limits(line, LEVEL) for line in of_kept_rows(world.sample(size, random), most)]
        known += [end is not None for end in ends]
        hits += [end is not None and end.low <= true <= end.high for end, true in zip(ends, truth, strict=True)]
    return [float(share) for share in hits / known]


def coverage(world: World, size: int, replicates: int) -> list[float]:
    """Share of samples of which the interval of the folded value holds the truth."""
    truth, random, hits = world.truth(KEYS), generator(size), np.zeros(len(KEYS))
    labels = tuple(map(str, range(len(world.shares))))
    settings = LimitSettings(level=LEVEL, sampling=Sampling(shares=Shares.SAMPLED, draws=DRAWS))
    for _ in range(replicates):
        scores = world.sample(size, random)
        folded = ScoresFold(len(labels), BUDGET, None).add(scores.y, scores.probabilities).finish()
        source = MatrixInput("probabilities", labels, None, Content.counts, folded.confusion)
        found = estimate(estimands(labels), RunData(source, folded=folded), settings)
        hits += [one.low <= true <= one.high for (one,), true in zip(found, truth, strict=True)]
    return [float(hit) / replicates for hit in hits]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=500)
    replicates = parser.parse_args(arguments).replicates
    print_table(
        [f"standard errors by cells over those by samples, n = {SIZE}: K", "apart", "confidence", "counts", *RESAMPLED],
        [
            [str(world), f"{world.apart:.1f}", f"{world.confidence:.1f}", counts.value, *ratios(world, counts)]
            for world, counts in COMPARED
        ],
    )
    print_table(
        ["95 % intervals holding the truth: K", "n", "apart", "confidence", *KEYS],
        [
            [str(world), n, f"{world.apart:.1f}", f"{world.confidence:.1f}", *coverage(world, n, replicates)]
            for world, n in COVERED
        ],
    )
    print_table(
        [
            f"standard errors by kept rows over those by all, {AVERAGED_TIMES} times: K",
            "n",
            "rows of a class",
            *AVERAGES,
        ],
        [
            [str(world), n, most or joint.most_of(len(world.shares)), *ratios_of_averages(world, n, most)]
            for world, n, most in AVERAGED
        ],
    )
    print_table(
        ["95 % intervals by kept rows holding the truth: K", "n", "rows of a class", *AVERAGES],
        [
            [str(world), n, most, *coverage_of_averages(world, n, most, replicates)]
            for world, n, most in AVERAGED
            if most is not None
        ],
    )


if __name__ == "__main__":
    main()
