"""How often bands hold the curve of the population, by simulation.

Run ``python -m benchmarks.curve_bands``; prints a Markdown table. 2000 replicates give a standard error of half a
point. All curves are of the last of K classes against the others; probabilities are right. The population are a million
samples. All curves of one sample, and both forms of their bands, see the same draws.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.samples.calibration import equal_width
from app.kernel.samples.curves import (
    Curve,
    CurveName,
    calibration,
    cuts_of,
    decision,
    detection_error,
    isotonic,
    precision_recall,
    roc,
)
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.curve_bands import (
    BandForm,
    BandSettings,
    Envelope,
    band_around,
    bins_band,
    consistent_curves,
    fnr_between,
    net_benefit_between,
    precision_between,
    simulated_rates,
    tpr_between,
)
from app.kernel.uncertainty.draws import generator
from app.kernel.uncertainty.intervals import Limits
from benchmarks.coverage import print_table
from benchmarks.probability_coverage import World

LEVEL, BINS, POPULATION = 0.95, 10, 1_000_000
# Fewer draws and points than answers have. Curves of the data leave a band of few draws too often: of 200 draws a
# simultaneous consistency band that is to hold 95 % of them holds 79 %, of 1000, as answers have, 95 %.
DRAWS, CONSISTENT_DRAWS, POINTS = 200, 1000, 40
DESIGNS = {
    2: ((100, 0.5), (500, 0.5), (500, 0.1), (1000, 0.02)),
    3: ((500, 0.5), (500, 0.1), (1000, 0.02)),
    10: ((500, 0.5), (500, 0.1), (1000, 0.02)),
}
# Where a band is looked at: not where there are hardly any samples.
FIRST, LAST = 0.1, 0.9
BINNED, ISOTONIC = "calibration, 10 bins", "calibration, isotonic"
CURVES: dict[str, tuple[Callable[[Scores, int], Curve], CurveName]] = {
    "ROC": (roc, CurveName.ROC),
    "DET": (detection_error, CurveName.DET),
    "precision and recall": (precision_recall, CurveName.PR),
    "decision": (decision, CurveName.DECISION),
    BINNED: (lambda scores, code: calibration(scores, code, bins=BINS), CurveName.CALIBRATION),
    ISOTONIC: (isotonic, CurveName.CALIBRATION),
}
ENVELOPES: dict[CurveName, Callable[[Array], Envelope]] = {
    CurveName.ROC: tpr_between,
    CurveName.DET: fnr_between,
    CurveName.PR: precision_between,
    CurveName.DECISION: lambda x: net_benefit_between(x, None),
}


@dataclass(frozen=True, eq=False)
class Population:
    """The last class of a world against the others: its share, and both rates (c) at falling thresholds."""

    share: float
    tpr: Array
    fpr: Array
    thresholds: Array

    @classmethod
    def of(cls, world: World) -> Self:
        last = len(world.shares) - 1
        cuts = cuts_of(world.sample(POPULATION, generator(1)).ranking(last))
        return cls(world.shares[last], cuts.tp / cuts.positives, cuts.fp / cuts.negatives, cuts.thresholds)

    def looked_at(self, name: CurveName, x: Array) -> tuple[Mask, Array]:
        """Which points (m) of a curve are looked at, and the heights (m) of the population's there."""
        within = (x >= FIRST) & (x <= LAST)
        match name:
            case CurveName.ROC:
                return within, np.interp(x, self.fpr, self.tpr)
            case CurveName.DET:
                return within, 1.0 - np.interp(x, self.fpr, self.tpr)
            case CurveName.PR:
                hits = self.share * x
                return within, hits / (hits + (1.0 - self.share) * np.interp(x, self.tpr, self.fpr))
            case CurveName.DECISION:
                return self._decisions(x)
            case _:
                # The frequency within a bin of calibrated probabilities is their mean there.
                return np.ones(x.size, dtype=bool), x

    def _decisions(self, x: Array) -> tuple[Mask, Array]:
        """Between the median probability of the others and that of the class."""
        falling = self.thresholds[1:]
        low, high = (float(self.thresholds[np.searchsorted(rate, 0.5)]) for rate in (self.fpr, self.tpr))
        place = falling.size - np.searchsorted(falling[::-1], x, side="left")
        cost = (1.0 - self.share) * self.fpr[place] * x / (1.0 - x)
        return (x >= low) & (x <= high), self.share * self.tpr[place] - cost


def thinned(curve: Curve) -> Curve:
    """Some points of a curve, as who asks for few of them gets."""
    some = np.unique(np.linspace(0, curve.x.size - 1, min(POINTS, curve.x.size)).round().astype(np.intp))
    return curve.at(some)


def bands(scores: Scores, code: int, seed: int) -> Iterator[tuple[str, Curve, list[Limits]]]:
    """Of each kind of curve one, with a band of each form."""
    ranking, _ = scores.falling(code)
    rates = list(simulated_rates(ranking, draws=DRAWS, seed=seed))
    forms = [BandSettings(form, LEVEL) for form in BandForm]
    for label, (drawn_as, name) in CURVES.items():
        curve = thinned(drawn_as(scores, code))
        if label == BINNED:
            made = equal_width(ranking, BINS)
            filled = np.flatnonzero(made.weight > 0)[::-1]
            yield label, curve, [bins_band(made, filled, form) for form in forms]
            continue
        if label == ISOTONIC:
            simulated = consistent_curves(ranking, draws=CONSISTENT_DRAWS, seed=seed, at=curve.x)
        else:
            read = ENVELOPES[name](curve.x)
            simulated = np.concatenate([read(one) for one in rates])
        yield label, curve, [band_around(simulated, form) for form in forms]


def held(world: World, n: int, replicates: int) -> dict[str, list[float]]:
    """By curve the share of points within a pointwise band, and of whole curves within a simultaneous one."""
    population, random, last = Population.of(world), generator(n), len(world.shares) - 1
    found: dict[str, list[tuple[float, float]]] = {label: [] for label in CURVES}
    with silently():
        for seed in range(replicates):
            for label, curve, limits in bands(world.sample(n, random), last, seed):
                some, truth = population.looked_at(CURVES[label][1], curve.x)
                # What a consistency band holds is the curve of the data.
                heights = curve.y if label == ISOTONIC else truth
                pointwise, together = ((low <= heights) & (heights <= high) for low, high in limits)
                # Few samples may have no point there.
                share = float(pointwise[some].mean()) if some.any() else np.nan
                found[label].append((share, float(together[some].all())))
    return {label: np.nanmean(each, axis=0).tolist() for label, each in found.items()}


def shares(classes: int, last: float) -> tuple[float, ...]:
    """The last class has a given share, the others are equally frequent."""
    return (*([(1.0 - last) / (classes - 1)] * (classes - 1)), last)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--classes", type=int, choices=tuple(DESIGNS), nargs="*", default=list(DESIGNS))
    options = parser.parse_args(arguments)
    measured = {
        (classes, share, n): held(World(shares(classes, share)), n, options.replicates)
        for classes in options.classes
        for n, share in DESIGNS[classes]
    }
    print_table(
        [
            "curve",
            "K",
            "share of the class",
            "n",
            "points within a pointwise band",
            "curves within a simultaneous band",
        ],
        [
            [label, classes, f"{share:.0%}", n, *found[label]]
            for label in CURVES
            for (classes, share, n), found in measured.items()
        ],
    )


if __name__ == "__main__":
    main()
