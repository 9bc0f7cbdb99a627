"""The bootstrap of samples by weights: samples are sorted once, every replicate is a weighted pass."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from app.kernel.metrics.card import Gaps
from app.kernel.metrics.expression import Every, Expression, Measure, Subject, compute, data_of, is_biased
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.losses import Codes
from app.kernel.uncertainty.draws import Shares, Summary, generator, quantile_error, summarise
from app.kernel.uncertainty.groups import Grouping, expanded_level
from app.kernel.uncertainty.simulation import item_weights, unit_weights
from app.kernel.uncertainty.units import Units

# Halvings of the range in which a scale is looked for, and how often the range is doubled to hold it.
_HALVINGS, _DOUBLINGS = 24, 10


def inverted(drawn: Array, gaps: Array, level: float, *, combined: Callable[[Array], Array]) -> Summary:
    """Limits of the combined absolute gaps.

    Args:
        drawn: Gaps (D, P) in resamples.
        gaps: (P) as found.
        level: Of the interval.
        combined: From gaps (..., P) to the value (...): it grows with the size of every gap.

    Returns:
        Of one value. Where gaps are mostly noise the truth lies below the value found, which is the upper limit then.
    """
    noise, value, tail = drawn - gaps, float(combined(gaps)), (1.0 - level) / 2.0

    def at_least(scale: float) -> bool:
        return float(np.mean(combined(scale * gaps + noise) >= value)) >= tail

    def too_large(scale: float) -> bool:
        return float(np.mean(combined(scale * gaps + noise) <= value)) < tail

    low, high = _crossing(at_least) * value, max(_crossing(too_large) * value, value)
    deviation = float(combined(drawn).std(ddof=1))
    error = deviation * quantile_error(len(drawn), level)
    return Summary(*(np.array([each]) for each in (value, low, high, deviation, error, 0.0, False)))


def _crossing(turned: Callable[[float], bool]) -> float:
    """The scale from which on a condition holds, 0 where it always does."""
    if turned(0.0):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_DOUBLINGS):
        if turned(high):
            break
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if turned(middle) else (middle, high)
    return 0.5 * (low + high)


# From a batch of samples in weights to values (...) or (..., K).
SampleFunctional = Callable[[Subject], Array]
# From values (D, V) in resamples, values (V) as found and a level to limits.
Reading = Callable[[Array, Array, float], Summary]
# Subsets of samples (b), what each stands for (b), and batches of weights (d, b); None twice for one subset of all.
Resamples = Iterator[tuple[Codes | None, Array | None, Iterator[Array]]]

DRAWS = 1000
FEWEST_DRAWS = 200
# With all samples in every replicate at least so many replicates are made, or subsets are drawn instead.
_FEWEST_OF_ALL = 400
# Probabilities passed over in all replicates together: some 4 seconds of all metrics.
_ENTRIES = 40_000_000
# More of them in the fewest draws would take longer than anyone waits.
MOST_ENTRIES = 3 * _ENTRIES
# What a class costs in a replicate, whatever its size, in probabilities passed over.
_PER_CLASS = 1500
_SUBSETS = 10
_SMALLEST_SUBSET = 2000
_GROWTH = 0.6
# A class keeps at least so many samples in a subset, if it has them.
_KEPT = 200
# Probabilities times replicates in memory at once.
_AT_ONCE = 1 << 19


@dataclass(frozen=True, slots=True, eq=False)
class Resampled:
    """A functional of resampled data, and the method that reads its limits off the replicates.

    Attributes:
        known: Its values (V) for the data, where the units are cells that do not tell them: how far these are off is no
            sampling error.
    """

    values: SampleFunctional
    read: Reading = summarise
    method: str = "bootstrap"
    known: Array | None = None


def resampled(expression: Expression, bounds: tuple[float | None, float | None]) -> Resampled:
    """An expression within its bounds, so that limits are right for what noise moves to one side."""

    def values(subject: Subject) -> Array:
        return compute(expression, subject)

    if not is_biased(expression):
        return Resampled(values)
    if isinstance(expression, Measure) and (gaps := expression.metric.card.inference.gaps) is not None:
        return _of_gaps(expression, gaps)
    return Resampled(
        values, lambda drawn, found, level: reflected(summarise(drawn, found, level), bounds), "bootstrap_basic"
    )


def _of_gaps(expression: Measure, gaps: Gaps) -> Resampled:
    """A metric of gaps, or each of its values of all classes."""

    def values(subject: Subject) -> Array:
        found = gaps.of(data_of(expression.metric, subject), **expression.parameters)
        if isinstance(expression.of, int):
            return found[..., expression.of, :]
        return found if expression.of is None else found.reshape(*found.shape[:-2], -1)

    def combined(found: Array) -> Array:
        return gaps.combined(found, expression.parameters)

    def read(drawn: Array, found: Array, level: float) -> Summary:
        # Of all classes each has a gap in every bin.
        width = int(expression.parameters["bins"]) if expression.of is Every.CLASS else found.size
        starts = range(0, found.size, width)
        each = [inverted(drawn[:, at : at + width], found[at : at + width], level, combined=combined) for at in starts]
        return Summary(*(np.concatenate([getattr(one, name.name) for one in each]) for name in fields(Summary)))

    return Resampled(values, read, "bootstrap_inverted")


@dataclass(frozen=True, slots=True)
class Plan:
    """Numbers of replicates, and of the samples that each draws from: all n of them, or a subset."""

    draws: int
    subset: int
    n_samples: int

    @property
    def of_all(self) -> bool:
        """Does every replicate draw from all samples?"""
        return self.subset == self.n_samples

    def loads(self, n_classes: int) -> float:
        """Return the affordable number of passes over all metrics of the catalogue in all replicates."""
        return MOST_ENTRIES / (self.draws * n_classes * (_PER_CLASS + self.subset))


def plan(n_samples: int, n_classes: int, draws: int = DRAWS, *, whole: bool = False) -> Plan | None:
    """Return the replicates that take some seconds; None when even the fewest take longer.

    Up to 1000 replicates, fewer down to 400 where there are many samples; beyond that, about 1000 of ten subsets.

    With ``whole`` every replicate draws from all samples, as with groups of them.
    """
    wanted = min(draws, DRAWS)
    affordable = int(_ENTRIES / (n_classes * (_PER_CLASS + n_samples)))
    if affordable >= min(wanted, _FEWEST_OF_ALL):
        return Plan(min(wanted, affordable), n_samples, n_samples)
    if whole:
        most = int(affordable * MOST_ENTRIES / _ENTRIES)
        return None if most < FEWEST_DRAWS else Plan(max(affordable, FEWEST_DRAWS), n_samples, n_samples)
    subset = max(int(_ENTRIES / (n_classes * DRAWS)) - _PER_CLASS, int(n_samples**_GROWTH), _SMALLEST_SUBSET)
    subset = min(subset, n_samples)
    cost = n_classes * (_PER_CLASS + subset)
    if FEWEST_DRAWS * cost > MOST_ENTRIES:
        return None
    return Plan(max(min(wanted, int(_ENTRIES / cost)), FEWEST_DRAWS), subset, n_samples)


def bootstrap_samples(
    run: Units,
    asked: Sequence[Resampled],
    *,
    seed: int,
    made: Plan,
    level: float = 0.95,
    shares: Shares = Shares.SAMPLED,
    grouping: Grouping | None = None,
    weighting: Array | None = None,
) -> list[Summary]:
    """Intervals of everything that is asked for; fixed class counts resample within the classes.

    Args:
        run: Its samples, without weights.
        asked: All see the same replicates.
        seed: Of the replicates.
        made: How many, of what.
        level: Of the intervals.
        shares: Of the classes, fixed as observed or sampled.
        grouping: Draw whole groups of samples, of all of them; class counts are random then.
        weighting: (n) what each sample weighs besides, in every replicate.
    """
    read_at = level if grouping is None else expanded_level(level, grouping.effective_groups)
    drawn = resamples(run, made, seed, shares, grouping, weighting)
    functionals = [each.values for each in asked]
    estimates = values_of(run, functionals, weighting)
    values = replicated(run, functionals, drawn, estimates, weighting)
    return [
        each.read(found, own, read_at)
        if each.known is None
        else each.read(found + (each.known - own), each.known, read_at)
        for each, found, own in zip(asked, values, estimates, strict=True)
    ]


def values_of(run: Units, functionals: Sequence[SampleFunctional], weights: Array | None = None) -> list[Array]:
    """Values (V) of every functional for the samples of a run, in weights (n) where these are given."""
    with silently():
        subject = run.subject(weights)
        return [np.atleast_1d(np.asarray(functional(subject))) for functional in functionals]


def replicated(
    run: Units,
    functionals: Sequence[SampleFunctional],
    drawn: Resamples,
    estimates: Sequence[Array],
    weighting: Array | None = None,
    shares: tuple[Array, Array] | None = None,
) -> list[Array]:
    """Values (D, V) of every functional in resamples.

    Args:
        run: Without weights.
        functionals: What is computed.
        drawn: The resamples.
        estimates: Values (V) of every functional of the run.
        weighting: (n) what each sample weighs besides.
        shares: Class shares (K) that values are wanted at, and those of each resample (D, K), or (1, K) where all have
            the same; None leaves classes as they are drawn.
    """
    values: list[list[Array]] = [[] for _ in functionals]
    done = 0
    with silently():
        for chosen, base, batches in drawn:
            part = run if chosen is None else run.part(chosen)
            own = weighting if weighting is None or chosen is None else weighting.take(chosen)
            shifts = [np.zeros(1)] * len(functionals)
            if base is not None:
                # What a subset is off the data is no sampling error of the data.
                here = base if own is None else base * own
                off = values_of(part, functionals, run.at_shares(here, None if shares is None else shares[0], chosen))
                shifts = [whole - some for whole, some in zip(estimates, off, strict=True)]
            for weights in batches:
                here, spread = weights if own is None else weights * own, None if shares is None else shares[1]
                if spread is not None and len(spread) > 1:
                    spread = spread[done : done + len(weights)]
                done += len(weights)
                subject = part.subject(run.at_shares(here, spread, chosen))
                for found, functional, shift in zip(values, functionals, shifts, strict=True):
                    found.append(functional(subject).reshape(len(weights), -1) + shift)
    return [np.concatenate(found) for found in values]


def reflected(found: Summary, bounds: tuple[float | None, float | None]) -> Summary:
    """Percentile limits turned around the estimate (Davison & Hinkley 1997, eq. 5.6), on the side from which noise
    moves it by its bias once more: what was optimised on the data has twice the bias that a resample shows.

    The root of what is missing to the upper end of the range has nearly the same noise anywhere.
    """
    top, values = bounds[1], (found.estimate, found.low, found.high)
    center, low, high = (one if top is None else -np.sqrt(np.maximum(top - one, 0.0)) for one in values)
    bias = 0.5 * (low + high) - center
    ends = 2.0 * center - high - np.maximum(bias, 0.0), 2.0 * center - low - np.minimum(bias, 0.0)
    low, high = (np.clip(end if top is None else top - np.minimum(end, 0.0) ** 2, *bounds) for end in ends)
    return replace(found, low=low, high=high, extended=np.zeros_like(found.extended))


def resamples(
    run: Units,
    made: Plan,
    seed: int,
    shares: Shares,
    grouping: Grouping | None = None,
    weighting: Array | None = None,
) -> Resamples:
    """Subsets of samples (b), what each stands for (b), and batches of weights (d, b).

    None twice where there is one subset of all samples. Where these come in groups, whole groups are drawn, and class
    counts are random. Samples are drawn by what they hold, and weigh (n) besides, whatever the order of their rows.
    """
    random = generator(seed)
    y, fixed = run.strata, shares is Shares.OBSERVED
    batch = max(1, _AT_ONCE // (made.subset * run.width))
    if grouping is not None:
        yield None, None, grouping.weights(draws=made.draws, random=random, batch=batch)
        return
    if run.multiplicities is not None:
        strata = y if fixed else np.zeros_like(y)
        yield None, None, unit_weights(run.multiplicities, strata, draws=made.draws, random=random, batch=batch)
        return
    order = run.order(weighting)
    if made.of_all:
        strata = (y if fixed else np.zeros(y.size)).astype(np.int64)
        yield None, None, item_weights(strata, draws=made.draws, random=random, batch=batch, order=order)
        return
    counts = np.bincount(y, minlength=run.n_strata)
    kept = np.minimum(counts, max(1, min(_KEPT, made.subset // (2 * run.n_strata))))
    sizes = kept + (counts - kept) * (made.subset - kept.sum()) // (counts - kept).sum()
    members = [order[y[order] == code] for code in range(run.n_strata)]
    for number in range(_SUBSETS):
        draws = made.draws * (number + 1) // _SUBSETS - made.draws * number // _SUBSETS
        chosen = np.concatenate(
            [random.choice(of, size, replace=False) for of, size in zip(members, sizes.tolist(), strict=True)]
        )
        stands_for = np.repeat(counts / np.maximum(sizes, 1), sizes)
        strata = y[chosen] if fixed else np.zeros_like(chosen)
        yield chosen, stands_for, unit_weights(stands_for, strata, draws=draws, random=random, batch=batch)
