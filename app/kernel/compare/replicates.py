"""The bootstrap of several runs together: one set of item weights for all of them, each sorted once per batch."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.prevalence import class_factors
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.losses import Codes
from app.kernel.uncertainty.draws import MOST_UNDEFINED, ClassCounts
from app.kernel.uncertainty.groups import Grouping
from app.kernel.uncertainty.resampling import Plan, SampleFunctional, replicated, resamples, values_of, weighted
from app.kernel.uncertainty.units import Units

# Values that differ by less are equal, reached by other sums.
DECIMALS = 12
# Probabilities times permutations in memory at once.
_AT_ONCE = 1 << 19


def importance(y: Codes, shares: Array, weights: Array | None = None) -> Array:
    """Weights (n) that give the classes these shares (K) and leave the total, 0 for a class that is not to count.

    On top of the weights (n) that the samples have, if any.
    """
    return _scaled(y, y, shares, weights) * (1.0 if weights is None else weights)


def replicate(
    runs: Sequence[Units],
    functionals: Sequence[SampleFunctional],
    *,
    seed: int,
    made: Plan,
    shares: Array | None = None,
    weights: Array | None = None,
    grouping: Grouping | None = None,
) -> list[Array]:
    """Values (B, R, V) of every functional in resamples within the classes, the same for all runs.

    Args:
        runs: R, without weights, on the same samples in the same order.
        functionals: What is computed.
        seed: Of the resamples.
        made: How many, of what.
        shares: Class shares (K) that the samples are weighted to; as they are when None.
        weights: (n) of the samples, which stay with them.
        grouping: Draw whole groups of samples.
    """
    masses, strata = runs[0].multiplicities, runs[0].strata
    weighting = whole = weights if shares is None else importance(strata, shares, weights)
    if masses is not None and shares is not None:
        # What is drawn of a unit that stands for several samples is how many of these there are.
        weighting, whole = _scaled(strata, strata, shares, masses), importance(strata, shares, masses)
    estimates = [values_of(run, functionals, whole) for run in runs]
    drawn = resamples(runs[0], made, seed, ClassCounts.FIXED, grouping)
    return replicated(runs, functionals, drawn, estimates, weighting)


def variance_of(draws: Array) -> Array:
    """Variances (V) of draws (D, V), undefined ones left out; NaN where these are too many."""
    defined = np.isfinite(draws)
    count = defined.sum(axis=0)
    enough = count >= (1.0 - MOST_UNDEFINED) * len(draws)
    with silently():
        center = np.where(defined, draws, 0.0).sum(axis=0) / count
        away = np.where(defined, draws - center, 0.0)
        spread = (away * away).sum(axis=0) / (count - 1)
    # Sums of equal numbers have rounding errors, which are no variance.
    spread = np.where(spread <= 10.0 ** (-2 * DECIMALS), 0.0, spread)
    return np.where(enough, spread, np.nan)


def permutation_p(
    first: Units,
    second: Units,
    functionals: Sequence[SampleFunctional],
    *,
    draws: int,
    random: np.random.Generator,
    paired: bool,
    shares: Array | None = None,
    weights: tuple[Array | None, Array | None] = (None, None),
    grouping: Grouping | None = None,
) -> list[Array]:
    """Two-sided permutation p-values (V) of the difference of two runs, exact when the runs are exchangeable.

    What the runs say is exchanged item by item when they are paired, and dealt out anew within the classes when they
    are not. All samples of both are sorted once: a permutation is the weights with which they belong to either run.

    p = (1 + permutations with a difference as large as observed) / (1 + permutations). Where the metric is undefined
    for a permutation, that one counts as extreme; where it is undefined for the data, p is NaN.

    Args:
        first: One run, without weights.
        second: The other, with the same samples in the same order when they are paired.
        functionals: What is computed.
        draws: How many permutations.
        random: Source of the random numbers.
        paired: Are they of the same samples?
        shares: Class shares (K) that the samples are weighted to; as they are when None.
        weights: (n) of the samples of each run, which stay with them; 1 each where None.
        grouping: Of paired runs, samples that are exchanged together.
    """
    pooled = first.beside(second)
    each = _joined_weights((first, second), weights)
    weighting = [
        each if shares is None else weighted(_scaled(pooled.strata, run.strata, shares, mine), each)
        for run, mine in zip((first, second), weights, strict=True)
    ]
    own = np.arange(pooled.n_units) < first.n_units

    def gaps(members: Array) -> list[Array]:
        sides = [
            pooled.subject(weighted(side, scale))
            for side, scale in zip((members, 1.0 - members), weighting, strict=True)
        ]
        with silently():
            return [
                np.abs(np.subtract(*(functional(side).reshape(len(members), -1) for side in sides)))
                for functional in functionals
            ]

    observed = [gap[0] for gap in gaps(own[None].astype(np.float64))]
    extreme = [np.zeros(gap.shape) for gap in observed]
    for members in _memberships(pooled, own, draws, random, paired=paired, grouping=grouping):
        for count, gap, found in zip(extreme, observed, gaps(members), strict=True):
            # Equal values reached by other sums differ by rounding; they are as extreme.
            np.add(count, (~(found < gap * (1.0 - 1e-12) - 1e-15)).sum(axis=0), out=count)
    return [
        np.where(np.isnan(gap), np.nan, (1.0 + count) / (1.0 + draws))
        for gap, count in zip(observed, extreme, strict=True)
    ]


def _joined_weights(runs: Sequence[Units], weights: Sequence[Array | None]) -> Array | None:
    """Of the pooled samples; None when none has any."""
    if all(own is None for own in weights):
        return None
    pairs = zip(runs, weights, strict=True)
    return np.concatenate([np.ones(run.n_units) if own is None else own for run, own in pairs])


def _scaled(pooled: Codes, own: Codes, shares: Array, weights: Array | None = None) -> Array:
    """What a sample of each class weighs in a run whose classes (n), in weights (n), are to have these shares."""
    return class_factors(np.bincount(own, weights, shares.size).astype(np.float64), shares).take(pooled)


def _memberships(
    pooled: Units,
    own: NDArray[np.bool_],
    draws: int,
    random: np.random.Generator,
    *,
    paired: bool,
    grouping: Grouping | None,
) -> Iterator[Array]:
    """Batches (d, n) of which of the pooled samples make the first run."""
    batch = max(1, _AT_ONCE // (own.size * pooled.width))
    classes = [np.flatnonzero(pooled.strata == code) for code in range(pooled.n_strata)]
    for start in range(0, draws, batch):
        size = min(batch, draws - start)
        if paired:
            together = own.size // 2 if grouping is None else grouping.n_groups
            kept = random.integers(0, 2, (size, together)).astype(np.float64)
            kept = kept if grouping is None else kept.take(grouping.codes, axis=1)
            yield np.concatenate([kept, 1.0 - kept], axis=1)
            continue
        members = np.zeros((size, own.size))
        for places in classes:
            members[:, places] = random.permuted(np.tile(own[places].astype(np.float64), (size, 1)), axis=1)
        yield members
