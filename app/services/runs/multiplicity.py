"""P-values of many differences of runs, adjusted together by how the differences vary together."""

from collections.abc import Sequence

import numpy as np

from app.kernel.compare.rankings import adjust_jointly
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.draws import generator, seed_of
from app.services.runs.comparison import Comparison
from app.services.runs.differences import Test
from app.services.runs.linear_draws import LinearDifferences
from app.services.runs.pairing import PairingDesign

# Deviations of all differences together.
_MOST_ENTRIES = 10_000_000
_FEWEST_DRAWS = 200


def joint_adjustment(comparison: Comparison, differences: Sequence[Sequence[Sequence[Test]]]) -> list[Array]:
    """By estimand, adjusted p (V, P) of the differences of its values.

    What was drawn together varies together. What was not is taken as independent, which asks for no less than is due
    (Sidak 1967): metrics in closed form, those that were resampled another way, and runs of one test set, of which it
    is not known which predictions belong together.
    """
    p = [np.array([[one.p_value for one in of_value] for of_value in by_value]) for by_value in differences]
    columns = sum(found.size for found in p)
    deviations = _deviations(comparison, max(_FEWEST_DRAWS, _MOST_ENTRIES // max(columns, 1)))
    adjusted = adjust_jointly(np.concatenate([found.ravel() for found in p]), deviations)
    ends = np.cumsum([found.size for found in p])[:-1]
    return [part.reshape(found.shape) for part, found in zip(np.split(adjusted, ends), p, strict=True)]


def _deviations(comparison: Comparison, most: int) -> Array:
    """Standardised deviations (D, m) of all differences, in their order."""
    drawn = [comparison.drawn(index) for index in range(len(comparison.estimands))]
    rows = min([most, comparison.settings.draws, *(len(one) for one in drawn if one is not None)])
    first, second = (list(places) for places in zip(*comparison.pairs, strict=True))
    found = []
    for index, values in enumerate(drawn):
        way, _ = comparison.placed[index]
        together = comparison.ways.index(way)
        for place in range(len(comparison.estimands[index].names)):
            apart = isinstance(way, LinearDifferences) or values is None
            random = generator(seed_of(comparison.settings.seed, together, (index, place) if apart else None))
            if values is None:
                found.append(random.standard_normal((rows, len(first))))
                continue
            gaps = values[:rows][:, first, place] - values[:rows][:, second, place]
            if comparison.runs.pairing.design is PairingDesign.TEST_SET:
                found.append(random.permuted(_standardised(gaps), axis=0))
            else:
                found.append(_standardised(gaps)[random.permutation(rows)])
    return np.concatenate(found, axis=1)


def _standardised(gaps: Array) -> Array:
    """Draws (D, P) about their mean in standard deviations; infinite where one is undefined, 0 where none varies."""
    defined = np.isfinite(gaps)
    with silently():
        count = defined.sum(axis=0)
        centered = np.where(defined, gaps, 0.0) - np.where(defined, gaps, 0.0).sum(axis=0) / count
        spread = np.sqrt((np.where(defined, centered, 0.0) ** 2).sum(axis=0) / (count - 1))
        found = np.where(spread > 0, centered / spread, 0.0)
    return np.where(defined, found, np.inf)
