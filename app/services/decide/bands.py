"""Which band a curve has, and how it is made."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.domain.errors import CurveUndefined, OutOfReach
from app.kernel.numerics.arrays import Array
from app.kernel.samples.calibration import equal_width
from app.kernel.samples.curves import Curve, CurveName
from app.kernel.samples.rankings import Ranking
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.curve_bands import (
    BandForm,
    BandSettings,
    Codes,
    Envelope,
    Reading,
    bins_band,
    consistency_band,
    fnr_at,
    fnr_between,
    frequency_in,
    net_benefit_at,
    net_benefit_between,
    precision_at,
    precision_between,
    resampled_band,
    simulated_band,
    tpr_at,
    tpr_between,
)
from app.kernel.uncertainty.draws import generator
from app.kernel.uncertainty.groups import Grouping, expanded_level
from app.kernel.uncertainty.intervals import Limits
from app.kernel.uncertainty.resampling import DRAWS, Plan, plan
from app.kernel.uncertainty.simulation import item_weights

# More would be drawn than anyone sees, and takes room in all resamples.
MOST_POINTS = 2000
BANDED = frozenset({CurveName.ROC, CurveName.PR, CurveName.DET, CurveName.CALIBRATION, CurveName.DECISION})
_AT_ONCE = 1 << 19


@dataclass(frozen=True, slots=True, kw_only=True)
class Banded:
    """The curve that is to have a band, and the samples that it is one of.

    Attributes:
        curve: With the points that are answered.
        scores: Probabilities or scores, with the weights of the samples if they have some.
        code: The class; None for the top label.
        grouping: Which samples are not independent of each other.
        prevalence: Of decision curves, the share of the class where it is decided; None for the observed one.
        bins: Of calibration curves; None for isotonic ones.
    """

    name: CurveName
    curve: Curve
    scores: Scores
    code: int | None
    grouping: Grouping | None = None
    prevalence: float | None = None
    bins: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveBand:
    """Limits around a curve.

    Attributes:
        form: `pointwise`: each point of the curve of the population lies within with this level; `simultaneous`: all
            of it does.
        method: `posterior` of the rates of both classes, `bootstrap` where samples weigh, `cluster_bootstrap` of whole
            groups, `wilson` of the frequency in each bin, or `consistency`: where the curve would lie if all
            probabilities were right.
        draws: Resamples, or simulated sets of outcomes; 0 where there are none.
        seed: Seed of the draws; `null` where there are none.
    """

    form: BandForm
    level: float
    method: str
    draws: int = 0
    seed: int | None = None


def band_of(banded: Banded, settings: BandSettings, seed: int) -> tuple[Limits, CurveBand]:
    """Limits (m) at the points of a curve, and how they were made, from at most so many draws.

    Raises:
        CurveUndefined: samples that weigh or come in groups have no consistency band.
        OutOfReach: there are too many samples to be resampled.
    """
    grouping = banded.grouping
    plain = grouping is None and banded.scores.weights is None
    if banded.bins is not None and plain:
        ranking, _ = banded.scores.falling(banded.code)
        filled = _filled(ranking, banded.bins)
        return bins_band(equal_width(ranking, banded.bins), filled, settings), _said(settings, "wilson")
    made = plan(banded.scores.n_samples, 2, DRAWS, whole=True)
    if made is None:
        raise OutOfReach("a band takes resamples, and there are too many samples for that")
    ranking, order = banded.scores.falling(banded.code)
    if banded.name is CurveName.CALIBRATION and banded.bins is None:
        if not plain:
            raise CurveUndefined("there is no consistency band for samples with weights or groups")
        found = consistency_band(ranking, draws=made.draws, seed=seed, at=banded.curve.x, settings=settings)
        return found, _said(settings, "consistency", made.draws, seed)
    if plain:
        found = simulated_band(ranking, _envelope(banded), settings, draws=made.draws, seed=seed)
        return found, _said(settings, "posterior", made.draws, seed)
    read_at, method = settings, "bootstrap"
    if grouping is not None:
        method = "cluster_bootstrap"
        read_at = BandSettings(settings.form, expanded_level(settings.level, grouping.effective_groups))
    limits = resampled_band(ranking, order, _reading(banded, ranking), _weights(banded, made, seed), read_at)
    return limits, _said(settings, method, made.draws, seed)


def _said(settings: BandSettings, method: str, draws: int = 0, seed: int | None = None) -> CurveBand:
    return CurveBand(form=settings.form, level=settings.level, method=method, draws=draws, seed=seed)


def _filled(ranking: Ranking, bins: int) -> Codes:
    """Numbers (m) of the bins that hold samples, from the lowest up, as the curve has them."""
    return np.flatnonzero(equal_width(ranking, bins).weight > 0)[::-1]


def _reading(banded: Banded, ranking: Ranking) -> Reading:
    x = banded.curve.x
    match banded.name:
        case CurveName.ROC:
            return tpr_at(x)
        case CurveName.DET:
            return fnr_at(x)
        case CurveName.PR:
            return precision_at(x)
        case CurveName.DECISION:
            return net_benefit_at(x, banded.prevalence)
        case _:
            assert banded.bins is not None  # noqa: S101 - isotonic ones have no resamples
            return frequency_in(banded.bins, _filled(ranking, banded.bins))


def _envelope(banded: Banded) -> Envelope:
    x = banded.curve.x
    match banded.name:
        case CurveName.ROC:
            return tpr_between(x)
        case CurveName.DET:
            return fnr_between(x)
        case CurveName.PR:
            return precision_between(x)
        case _:
            return net_benefit_between(x, banded.prevalence)


def _weights(banded: Banded, made: Plan, seed: int) -> Iterator[Array]:
    """Batches (d, n) of what samples weigh in resamples.

    What follows from the rates of each class is resampled within the classes; the rest has random class shares.
    """
    scores, random = banded.scores, generator(seed)
    batch = max(1, _AT_ONCE // scores.n_samples)
    if banded.grouping is not None:
        drawn = banded.grouping.weights(draws=made.draws, random=random, batch=batch)
    else:
        by_class = banded.name in (CurveName.ROC, CurveName.DET) or banded.prevalence is not None
        strata = scores.y == banded.code if by_class else np.zeros(scores.n_samples)
        drawn = item_weights(strata.astype(np.int64), draws=made.draws, random=random, batch=batch)
    return drawn if scores.weights is None else (weights * scores.weights for weights in drawn)
