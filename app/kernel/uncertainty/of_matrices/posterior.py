"""Confusion matrices that the data leave possible: rows drawn from independent Dirichlet posteriors.

A Dirichlet over all K^2 cells equals Dirichlet rows times Dirichlet class shares, so one sampler serves both designs:
class counts fixed (shares observed or given) and random (shares sampled). Tötsch & Hoffmann (2021), Brodersen et al.
(2010).
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.weighted import weight_scales
from app.kernel.numerics.arrays import Array, ratio, silently
from app.kernel.uncertainty.design import Prior, Shares

# Cells per batch: 4 MB of matrices, and some times that in what metrics make of them.
CELLS_PER_BATCH = 1 << 19


def pseudo_counts(counts: Array, prior: Prior = Prior.EDGE, custom: Array | None = None) -> Array:
    """Dirichlet parameters (..., K, K) that the prior adds to the counts (..., K, K).

    Raises:
        ValueError: ``custom`` is missing for a custom prior, has another shape or a negative entry.
    """
    size = counts.shape[-1]
    if prior is Prior.CUSTOM:
        if custom is None or custom.shape[-2:] != counts.shape[-2:] or not (custom >= 0).all():
            raise ValueError("a custom prior needs a non-negative pseudo-count for every cell")
        return np.broadcast_to(custom, counts.shape)
    if prior is Prior.UNIFORM:
        return np.ones(counts.shape)
    jeffreys = np.full((size, size), 0.5 / (size - 1))
    np.fill_diagonal(jeffreys, 0.5)
    if prior is Prior.JEFFREYS_RECALL:
        return np.broadcast_to(jeffreys, counts.shape)
    with silently():
        recall = ratio(np.diagonal(counts, axis1=-2, axis2=-1), counts.sum(axis=-1))
    at_edge = (recall == 0) | (recall == 1)
    return np.where(at_edge[..., None], jeffreys, 0.0)


def draw_matrices(
    counts: Array,
    *,
    draws: int,
    random: np.random.Generator,
    prior: Prior = Prior.EDGE,
    custom: Array | None = None,
    shares: Shares = Shares.OBSERVED,
    given: Array | None = None,
    squares: Array | None = None,
) -> Iterator[Array]:
    """Batches of posterior confusion matrices (d, ..., K, K) whose entries sum to n, ``draws`` in total.

    Rows without samples stay 0. Shares: ``observed`` keeps the row sums, ``sampled`` draws them from
    Dirichlet(n_i + 1/2), ``given`` sets them in proportion to ``given``. Of weighted samples a cell is drawn with the
    mean and the variance that it has when every sample gets a standard exponential times its weight (Rubin 1981): a
    gamma variate with the samples that the cell is worth as its shape, which for equal weights are its samples.

    Args:
        counts: one matrix (K, K) or several (..., K, K), whole or real counts.
        draws: how many.
        random: source of the random numbers; the result depends on it and the arguments alone.
        prior: see ``Prior``.
        custom: pseudo-counts (..., K, K) of a custom prior.
        shares: see ``Shares``.
        given: class shares (K) for ``Shares.GIVEN``.
        squares: sums of squared weights (..., K, K) of weighted samples.

    Raises:
        ValueError: ``given`` is missing, or gives weight to a class without samples.
    """
    counts = np.asarray(counts, dtype=np.float64)
    actual = counts.sum(axis=-1)
    scales = None if squares is None else weight_scales(counts, squares)
    parameters = _parameters(counts, actual, scales, prior, custom)
    totals = actual.sum(axis=-1, keepdims=True)
    row_sums = actual
    if shares is Shares.GIVEN:
        row_sums = totals * checked_shares(given, actual)
    cells = np.flatnonzero(parameters)
    batch = max(1, CELLS_PER_BATCH // parameters.size)
    for start in range(0, draws, batch):
        size = min(batch, draws - start)
        rows = _gammas(parameters, cells, size, random)
        if scales is not None:
            rows *= scales
        if shares is Shares.SAMPLED:
            weights = _row_weights(actual, squares, size, random)
            row_sums = weights * (totals / weights.sum(axis=-1, keepdims=True))
        sums = rows.sum(axis=-1)
        rows *= np.divide(row_sums, sums, out=np.zeros_like(sums), where=sums > 0)[..., None]
        yield rows


def mean_matrix(
    counts: Array,
    *,
    prior: Prior = Prior.EDGE,
    custom: Array | None = None,
    shares: Shares = Shares.OBSERVED,
    given: Array | None = None,
    squares: Array | None = None,
) -> Array:
    """Expectation (..., K, K) of what ``draw_matrices`` draws with the same arguments.

    Raises:
        ValueError: as ``draw_matrices``.
    """
    counts = np.asarray(counts, dtype=np.float64)
    actual = counts.sum(axis=-1)
    scales = None if squares is None else weight_scales(counts, squares)
    parameters = _parameters(counts, actual, scales, prior, custom)
    if scales is not None:
        parameters = parameters * scales
    sums = parameters.sum(axis=-1)
    totals = actual.sum(axis=-1, keepdims=True)
    row_sums = actual
    if shares is Shares.GIVEN:
        row_sums = totals * checked_shares(given, actual)
    elif shares is Shares.SAMPLED:
        weights = np.where(actual > 0, actual + 0.5, 0.0)
        row_sums = totals * weights / weights.sum(axis=-1, keepdims=True)
    scale = np.divide(row_sums, sums, out=np.zeros_like(sums), where=sums > 0)
    means: Array = parameters * scale[..., None]
    return means


def _parameters(counts: Array, actual: Array, scales: Array | None, prior: Prior, custom: Array | None) -> Array:
    """Shapes (..., K, K): effective numbers of samples, and what the prior adds; 0 in rows without samples."""
    worth = counts if scales is None else counts / scales
    return np.where(actual[..., None] > 0, worth + pseudo_counts(counts, prior, custom), 0.0)


def _row_weights(actual: Array, squares: Array | None, size: int, random: np.random.Generator) -> Array:
    """What the classes (size, ..., K) weigh where their shares are drawn too."""
    if squares is None:
        return random.standard_gamma(np.where(actual > 0, actual + 0.5, 0.0), (size, *actual.shape))
    scales = weight_scales(actual, squares.sum(axis=-1))
    worth = np.where(actual > 0, actual / scales + 0.5, 0.0)
    return random.standard_gamma(worth, (size, *actual.shape)) * scales


def checked_shares(given: Array | None, actual: Array) -> Array:
    """Shares (K) scaled to sum 1. Raises ValueError when they are missing or give weight to a class without samples."""
    if given is None or given.shape[-1] != actual.shape[-1]:
        raise ValueError("shares are to be given for every class")
    if ((given > 0) & (actual == 0)).any():
        raise ValueError("a class without samples is given a share: nothing is known of how it is predicted")
    weights: Array = given / given.sum(axis=-1, keepdims=True)
    return weights


def _gammas(parameters: Array, cells: NDArray[np.intp], size: int, random: np.random.Generator) -> Array:
    """Gamma variates (size, ..., K, K) with these shapes; cells with parameter 0 stay 0 and cost nothing."""
    if cells.size == parameters.size:
        return random.standard_gamma(parameters, (size, *parameters.shape))
    flat = np.zeros((size, parameters.size))
    flat[:, cells] = random.standard_gamma(parameters.ravel()[cells], (size, cells.size))
    return flat.reshape(size, *parameters.shape)
