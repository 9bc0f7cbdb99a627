"""Classification problems with probabilities, made from fixed seeds."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.scores import Scores

Codes = NDArray[np.intp]


def softmax_problem(n: int, classes: int, seed: int, *, lift: float = 1.0) -> tuple[Codes, Array]:
    """No two probabilities are equal; every class is there."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(classes), rng.choice(classes, n - classes, p=skewed(classes))])
    logits = rng.normal(size=(n, classes))
    logits[np.arange(n), y] += lift
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    if classes == 2:
        p[:, 0] = 1.0 - p[:, 1]
    return y, p


def skewed(classes: int) -> Array:
    """Shares of the classes, the last three times the first."""
    weights = np.linspace(1.0, 3.0, classes)
    shares: Array = weights / weights.sum()
    return shares


def tied_problem(n: int, classes: int, seed: int, steps: int = 10) -> tuple[Codes, Array]:
    """Probabilities on a grid, as a forest of few trees gives them: many ties, zeros and ones."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(classes), rng.choice(classes, n - classes, p=skewed(classes))])
    pull = np.full((n, classes), 0.6) + 1.5 * np.eye(classes)[y]
    counts = np.array([rng.multinomial(steps, rng.dirichlet(row)) for row in pull])
    return y, counts / steps


def exact_tied_problem(n: int, classes: int, seed: int, steps: int = 8) -> tuple[Codes, Array, list[list[Fraction]]]:
    """The same on a grid of a power of 2, where floats are exact, with the fractions."""
    y, p = tied_problem(n, classes, seed, steps)
    return y, p, [[Fraction(float(value)) for value in row] for row in p]


def value(key: str, scores: Scores, **parameters: float | str) -> Array:
    """A metric by its key."""
    with silently():
        return catalogue().of_probabilities.by_name[key].compute(scores, **parameters)


def replicated(y: Codes, p: Array, times: tuple[int, ...]) -> tuple[Codes, Array]:
    """Every sample of class k repeated times[k] times, in another order."""
    index = np.repeat(np.arange(y.size), np.array(times)[y])
    index = np.random.default_rng(0).permutation(index)
    return y[index], p[index]


def hall(mean: float, parts: Array, quantile: float) -> tuple[float, float]:
    """Limits of a mean by the inverse of Hall's (1992) transformation, nowhere nearer than those of Student's t.

    Args:
        mean: The mean.
        parts: What each sample adds to its error.
        quantile: Of Student's t.
    """
    error = np.sqrt((parts**2).sum())
    skewness = (parts**3).sum() / error**3

    def bent(t: float) -> float:
        return float(t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6)

    below, above = (brentq(lambda t, at=at: bent(t) - at, -100.0, 100.0) for at in (quantile, -quantile))
    return mean - max(below, quantile) * error, mean + max(-above, quantile) * error
