"""Causes of a difference in a loss of probabilities: class prevalence, calibration, and refinement.

Weights move a run to any class shares. There its loss is what calibration costs, the loss less that after
recalibration, and what is left, the refinement. Each factor has the mean of what it changes at the shares of both runs,
so that the parts add up to the difference exactly, whatever the recalibration. Dimitriadis, Gneiting & Jordan (2021);
Murphy (1973).
"""

from dataclasses import dataclass

import numpy as np

from app.kernel.metrics.card import Recalibration
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.monotone import falling_means
from app.kernel.samples.losses import CLIP
from app.kernel.samples.recalibration import line, log_odds

# Twice the gain in likelihood of a line beyond which probabilities are miscalibrated: 95 % of chi-squared, 2 degrees.
_MISCALIBRATED = 5.991464547107979


@dataclass(frozen=True, slots=True)
class LossSplit:
    """Parts of a difference, first less second.

    Attributes:
        values: Of prevalence, calibration and refinement.
        influences: Of each run, (3, n): what each sample adds to the parts, recalibration held fixed.
        near: One of the runs is calibrated as far as can be told, where the error of calibration has no usual form.
    """

    values: tuple[float, float, float]
    influences: tuple[Array, Array]
    near: bool


def split_loss(kind: Recalibration, stated: tuple[Array, Array], hit: tuple[Mask, Mask]) -> LossSplit | None:
    """Split a difference of two runs of two classes; None where no recalibration exists.

    Args:
        kind: The line in log odds, with the log loss; or the rising function, with the squared error.
        stated: Of each run, (n) probabilities of the class that may hit.
        hit: Of each run, (n) whether it did; both classes have samples.
    """
    shares = np.array([[1.0 - one.mean(), one.mean()] for one in hit])
    losses = [_losses(kind, *run) for run in zip(stated, hit, strict=True)]
    after = list[list[Array]]()
    for stated_by, is_hit in zip(stated, hit, strict=True):
        known = [_recalibrated(kind, stated_by, is_hit, _moved(is_hit, at)) for at in shares]
        after.append([one for one in known if one is not None])
        if len(after[-1]) < len(known):
            return None
    # Means of each class: of the loss (run, class), and of that after recalibration at either shares (run, at, class).
    plain = np.array([_class_means(loss, is_hit) for loss, is_hit in zip(losses, hit, strict=True)])
    best = np.array([[_class_means(one, is_hit) for one in run] for run, is_hit in zip(after, hit, strict=True)])
    sides = (plain[:, None] - best, best)
    prevalence = float((shares[0] - shares[1]) @ plain.sum(axis=0)) / 2.0
    others = [float(np.einsum("tk,tk->", shares, part[0] - part[1])) / 2.0 for part in sides]
    influences = []
    for run, (sign, is_hit) in enumerate(zip((1.0, -1.0), hit, strict=True)):
        n, code, loss = is_hit.size, is_hit.astype(np.intp), losses[run]
        per = n * shares[run][code]
        moved = sign * (shares[0] - shares[1])[code] / 2.0 * (loss - plain[run][code]) / per
        # Its class shares are random too. The parts are first less second, whichever run this is.
        own = [sign * plain.sum(axis=0) / 2.0, *((part[0] - part[1])[run] / 2.0 for part in sides)]
        random = [(one[code] - shares[run] @ one) / n for one in own]
        rows = [sign * moved + random[0]]
        each = [[loss - one for one in after[run]], after[run]]
        for place, (terms, part) in enumerate(zip(each, sides, strict=True), start=1):
            added = sum(shares[at][code] * (term - part[run, at][code]) for at, term in enumerate(terms))
            rows.append(sign * added / 2.0 / per + random[place])
        influences.append(np.stack(rows))
    near = any(_is_near(own, is_hit) for own, is_hit in zip(stated, hit, strict=True))
    return LossSplit((prevalence, others[0], others[1]), (influences[0], influences[1]), near)


def _moved(hit: Mask, shares: Array) -> Array:
    """Weights (n), 1 together, that give the classes these shares."""
    found: Array = np.where(hit, shares[1] / hit.sum(), shares[0] / (~hit).sum())
    return found


def _class_means(values: Array, hit: Mask) -> Array:
    return np.array([values[~hit].mean(), values[hit].mean()])


def _losses(kind: Recalibration, stated: Array, hit: Mask) -> Array:
    chance = np.where(hit, stated, 1.0 - stated)
    found: Array = -np.log(np.maximum(chance, CLIP)) if kind is Recalibration.LINE else np.square(1.0 - chance)
    return found


def _recalibrated(kind: Recalibration, stated: Array, hit: Mask, weights: Array) -> Array | None:
    """Return the loss of each sample (n) after recalibration."""
    if kind is Recalibration.LINE:
        odds = log_odds(stated, CLIP)
        a, b = line(odds, hit, weights)
        if not np.isfinite([a, b]).all():
            return None
        found: Array = np.logaddexp(0.0, np.where(hit, -1.0, 1.0) * (a + b * odds))
        return found
    distinct, place = np.unique(-stated, return_inverse=True)
    mass, hits = (np.bincount(place, one, distinct.size).astype(np.float64) for one in (weights, weights * hit))
    squared: Array = np.square(falling_means(hits[None], mass)[0][place] - hit)
    return squared


def _is_near(stated: Array, hit: Mask) -> bool:
    """Are probabilities calibrated as far as can be told: does no line in log odds gain enough?"""
    plain = _losses(Recalibration.LINE, stated, hit)
    after = _recalibrated(Recalibration.LINE, stated, hit, np.full(hit.size, 1.0 / hit.size))
    return after is not None and 2.0 * float((plain - after).sum()) < _MISCALIBRATED
