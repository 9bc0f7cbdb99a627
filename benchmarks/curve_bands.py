"""How often bands hold the curve of the population, by simulation.

Run ``python -m benchmarks.curve_bands``; prints a Markdown table. 2000 replicates give a standard error of half a
point. Scores are normal, 1.5 standard deviations apart; probabilities are calibrated.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from app.kernel.numerics.arrays import Array
from app.kernel.samples.curves import Curve, CurveName, calibration, decision, isotonic, precision_recall, roc
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.design import generator
from app.kernel.uncertainty.of_samples.curve_bands import BandForm, BandSettings
from app.services.decide.bands import Banded, band_of
from benchmarks.coverage import print_table

APART = 1.5
LEVEL = 0.95
# Fewer draws and points than answers have: 2000 replicates of all are a quarter of an hour.
DRAWS, POINTS = 200, 40
DESIGNS = ((100, 0.5), (500, 0.5), (500, 0.1), (1000, 0.02))
# Where a band is looked at: not where there are hardly any samples.
_INSIDE = np.linspace(0.1, 0.9, 17)


@dataclass(frozen=True)
class World:
    """A population of two classes whose probabilities are right."""

    share: float

    def sample(self, n: int, random: np.random.Generator) -> Scores:
        y = (random.random(n) < self.share).astype(np.intp)
        y[:2] = 0, 1
        p = self.probability(random.normal(size=n) + APART * y)
        return Scores(y, np.column_stack([1.0 - p, p]))

    def probability(self, z: Array) -> Array:
        odds = np.log(self.share / (1.0 - self.share))
        found: Array = expit(odds + APART * z - APART**2 / 2.0)
        return found

    def score(self, p: Array) -> Array:
        odds = np.log(self.share / (1.0 - self.share))
        found: Array = (np.log(p / (1.0 - p)) - odds + APART**2 / 2.0) / APART
        return found

    def tpr(self, fpr: Array) -> Array:
        return np.asarray(norm.sf(norm.isf(fpr) - APART))

    def precision(self, recall: Array) -> Array:
        fpr = norm.sf(norm.isf(recall) + APART)
        hits = self.share * recall
        return np.asarray(hits / (hits + (1.0 - self.share) * fpr))

    def net_benefit(self, t: Array) -> Array:
        z = self.score(t)
        return np.asarray(self.share * norm.sf(z - APART) - (1.0 - self.share) * norm.sf(z) * t / (1.0 - t))


def looked_at(name: CurveName, curve: Curve, world: World) -> tuple[Array, Array]:
    """Which points (m) of a curve are looked at, and the heights (m) of the population's there."""
    x = curve.x
    match name:
        case CurveName.ROC:
            return (x >= _INSIDE[0]) & (x <= _INSIDE[-1]), world.tpr(np.clip(x, 1e-12, 1 - 1e-12))
        case CurveName.PR:
            return (x >= _INSIDE[0]) & (x <= _INSIDE[-1]), world.precision(np.clip(x, 1e-12, 1 - 1e-12))
        case CurveName.DECISION:
            low, high = world.probability(np.array([0.0, APART]))
            return (x >= low) & (x <= high), world.net_benefit(x)
        case _:
            # The frequency within a bin of calibrated probabilities is their mean there.
            return np.ones(x.size, dtype=bool), x


CURVES: dict[str, tuple[CurveName, Callable[[Scores], Curve], int | None]] = {
    "ROC": (CurveName.ROC, lambda scores: roc(scores, 1), None),
    "precision and recall": (CurveName.PR, lambda scores: precision_recall(scores, 1), None),
    "decision": (CurveName.DECISION, lambda scores: decision(scores, 1), None),
    "calibration, 10 bins": (CurveName.CALIBRATION, lambda scores: calibration(scores, 1, bins=10), 10),
    "calibration, isotonic": (CurveName.CALIBRATION, lambda scores: isotonic(scores, 1), None),
}


def thinned(curve: Curve) -> Curve:
    """Some points of a curve, as who asks for few of them gets."""
    some = np.unique(np.linspace(0, curve.x.size - 1, min(POINTS, curve.x.size)).round().astype(np.intp))
    return curve.at(some)


def held(label: str, world: World, n: int, replicates: int) -> Iterator[float]:
    """Shares of points within a pointwise band, and of whole curves within a simultaneous one."""
    name, draw, bins = CURVES[label]
    consistent = name is CurveName.CALIBRATION and bins is None
    for form in BandForm:
        random, found = generator(n), []
        for seed in range(replicates):
            scores = world.sample(n, random)
            curve = thinned(draw(scores))
            banded = Banded(name=name, curve=curve, scores=scores, code=1, bins=bins)
            (low, high), _ = band_of(banded, BandSettings(form, LEVEL), seed, draws=DRAWS)
            some, truth = looked_at(name, curve, world)
            # What a consistency band holds is the curve of the data.
            inside = ((low <= curve.y) & (curve.y <= high)) if consistent else ((low <= truth) & (truth <= high))
            found.append(inside[some].mean() if form is BandForm.POINTWISE else inside[some].all())
        yield float(np.mean(found))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    replicates = parser.parse_args(arguments).replicates
    print_table(
        ["curve", "positive", "n", "points within a pointwise band", "curves within a simultaneous band"],
        [
            [label, f"{share:.0%}", n, *held(label, World(share), n, replicates)]
            for label in CURVES
            for n, share in DESIGNS
        ],
    )


if __name__ == "__main__":
    main()
