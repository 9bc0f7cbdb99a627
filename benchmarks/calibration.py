"""Calibration errors: how often their tests reject calibrated probabilities, how often 95 % intervals hold the truth.

Run ``python -m benchmarks.calibration``; prints Markdown tables. 2000 replicates give a standard error of half a point.
"""

import argparse
from collections import Counter
from collections.abc import Sequence

import numpy as np

from app.domain.findings import Finding
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.kernel.matrix.table import confusion_counts
from app.kernel.metrics.families.calibration import expected_calibration_error
from app.kernel.metrics.families.imcp import median_phi
from app.kernel.metrics.families.score_ranking import roc_auc
from app.kernel.uncertainty.draws import generator
from app.services.estimates.run_data import RunData
from app.services.evaluate.sections.probability_findings import probability_findings
from app.services.json_values import numbers
from benchmarks.coverage import print_table
from benchmarks.probability_coverage import BY_CHANCE, LEVEL, World, even, resampled_coverage

CALIBRATED = (
    (World(even(2)), 100),
    (World(even(2)), 400),
    (World(even(2)), 2000),
    (World(even(2), apart=2.5), 400),
    (World((0.95, 0.05)), 400),
    (World(even(3)), 300),
    (World(even(10)), 500),
)
ANY = (
    (World(even(2)), 100),
    (World(even(2)), 400),
    (World(even(2)), 20_000),
    (World(even(2), confidence=1.3), 100),
    (World(even(2), confidence=1.3), 400),
    (World(even(2), confidence=1.3), 2000),
    (World(even(2), confidence=2.0), 100),
    (World(even(2), confidence=2.0), 400),
    (World(even(2), apart=2.5, confidence=1.5), 400),
    (World((0.95, 0.05), confidence=1.3), 400),
    (World(even(3), confidence=1.3), 300),
    (World(even(10), confidence=1.3), 500),
)


# Errors without a test, of the last class and of the predicted one.
MORE = ("class_calibration_error", "l2_calibration_error")
FINDINGS = ("unsure_class", "miscalibrated", "auc_hides_class", "confident_mistakes")


def false_alarms(world: World, size: int, replicates: int) -> list[float]:
    """Share of samples of calibrated probabilities that each test calls miscalibrated."""
    random, rejected = generator(size), np.zeros(len(BY_CHANCE))
    for _ in range(replicates):
        scores = world.sample(size, random)
        rejected += [test(scores).p_value <= 1.0 - LEVEL for test in BY_CHANCE.values()]
    return [float(count) / replicates for count in rejected]


def spoken_of(world: World, size: int, replicates: int) -> list[float]:
    """Share of samples of calibrated probabilities that each finding speaks of."""
    random, counts = generator(size), Counter[str]()
    for replicate in range(replicates):
        scores = world.sample(size, random)
        predicted = scores.predicted.astype(np.int64)
        source = MatrixInput(
            kind="probabilities",
            labels=tuple(map(str, range(scores.n_classes))),
            positive=1 if scores.n_classes == 2 else None,
            content=Content.counts,
            counts=confusion_counts(scores.y, predicted, scores.n_classes),
            samples=Samples(scores.y.astype(np.int64), predicted, scores.probabilities),
        )
        counts.update(finding.code for finding in findings_of(source, replicate))
    return [counts[code] / replicates for code in FINDINGS]


def findings_of(source: MatrixInput, seed: int) -> list[Finding]:
    """What a report says of its probabilities, without what it does not need for that."""
    run, errors = RunData(source), expected_calibration_error
    by_class = {metric.key: numbers(metric.compute(run.scores)) for metric in (roc_auc, median_phi)}
    chance = run.by_chance(errors, errors.card.defaults, seed)
    assert chance is not None
    said = {"observed": chance.observed, "expected_if_calibrated": chance.mean, "p_value": chance.p_value}
    return probability_findings(run, by_class, {"calibration": {errors.key: said}})


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    replicates = parser.parse_args(arguments).replicates
    names = [key.split("_")[0] for key in BY_CHANCE]
    print_table(
        ["calibrated probabilities rejected at 5 %: K", "n", "apart", *names],
        [[str(world), n, f"{world.apart:.1f}", *false_alarms(world, n, replicates)] for world, n in CALIBRATED],
    )
    print_table(
        ["findings about calibrated probabilities: K", "n", "apart", *FINDINGS],
        [[str(world), n, f"{world.apart:.1f}", *spoken_of(world, n, replicates)] for world, n in CALIBRATED],
    )
    print_table(
        [
            "95 % intervals holding the truth: K",
            "n",
            "apart",
            "confidence",
            *names,
            *(key.removesuffix("_calibration_error") for key in MORE),
        ],
        [
            [
                str(world),
                n,
                f"{world.apart:.1f}",
                f"{world.confidence:.1f}",
                *resampled_coverage(world, n, replicates, keys=(*BY_CHANCE, *MORE)),
            ]
            for world, n in ANY
        ],
    )


if __name__ == "__main__":
    main()
