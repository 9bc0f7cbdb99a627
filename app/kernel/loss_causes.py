"""Causes of a difference in a loss of probabilities: class prevalence, calibration, and refinement.

Weights move a run to any class shares. There its loss is what calibration costs, the loss less that after
recalibration, and what is left, the refinement. Each factor has the mean of what it changes at the shares of both runs,
which is its Shapley value, so that the parts add up to the difference exactly, whatever the recalibration.
Dimitriadis, Gneiting & Jordan (2021); Murphy (1973).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from app.kernel.metrics.card import Recalibration
from app.kernel.numerics.arrays import Array, kish_effective_n
from app.kernel.numerics.scipy_bridge import chi_squared_upper_tail, falling_means
from app.kernel.samples.losses import CLIP, Codes, sums_by_code
from app.kernel.samples.recalibration import tempered
from app.kernel.samples.scores import Scores

# Below this chance of so much gain in likelihood by a line probabilities are miscalibrated.
_SURE: Final = 0.05
# Samples times classes, times these and a hundred: such runs of more than two classes are recalibrated within seconds.
MOST_WORK: Final = 1e8


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


def split_loss(kind: Recalibration, runs: tuple[Scores, Scores], groups: Sequence[Codes] = ()) -> LossSplit | None:
    """Split a difference of two runs; None where no recalibration exists.

    Args:
        kind: One slope of the log probabilities and a number for each class, with the log loss; or a rising function of
            the probabilities of each class, with the squared error.
        runs: Probabilities (n, K), classes and weights of the samples; every class has some weight in both.
        groups: Of each run (n) codes of what its samples are one of; none where they are independent.
    """
    size = runs[0].n_classes
    weights = [run.each for run in runs]
    masses = [sums_by_code(run.y, own, size) for run, own in zip(runs, weights, strict=True)]
    shares = np.array([one / one.sum() for one in masses])
    losses = [_losses(kind, run) for run in runs]
    after = list[Array]()
    for run, own, mass in zip(runs, weights, masses, strict=True):
        known = _recalibrated(kind, run, np.array([(own * (at / mass)[run.y]) for at in shares]))
        if known is None:
            return None
        after.append(known)
    # Means of each class: of the loss (run, class), and of that after recalibration at either shares (run, at, class).
    each = list(zip(runs, weights, masses, strict=True))
    plain = np.array([_class_means(loss, *one) for loss, one in zip(losses, each, strict=True)])
    best = np.array([[_class_means(at, *one) for at in known] for known, one in zip(after, each, strict=True)])
    sides = (plain[:, None] - best, best)
    prevalence = float((shares[0] - shares[1]) @ plain.sum(axis=0)) / 2.0
    others = [float(np.einsum("tk,tk->", shares, part[0] - part[1])) / 2.0 for part in sides]
    influences = []
    for place, (sign, (run, own, mass)) in enumerate(zip((1.0, -1.0), each, strict=True)):
        code, loss = run.y, losses[place]
        per, part_of_all = own / mass[code], own / own.sum()
        moved = sign * (shares[0] - shares[1])[code] / 2.0 * (loss - plain[place][code]) * per
        # Its class shares are random too. The parts are first less second, whichever run this is.
        slopes = [sign * plain.sum(axis=0) / 2.0, *((part[0] - part[1])[place] / 2.0 for part in sides)]
        random = [(one[code] - shares[place] @ one) * part_of_all for one in slopes]
        rows = [sign * moved + random[0]]
        terms_of: list[Array] = [loss - after[place], after[place]]
        for factor, (terms, part) in enumerate(zip(terms_of, sides, strict=True), start=1):
            added = sum(shares[at][code] * (term - part[place, at][code]) for at, term in enumerate(terms))
            rows.append(sign * added / 2.0 * per + random[factor])
        influences.append(np.stack(rows))
    near = any(_is_near(run, own, groups[place] if groups else None) for place, (run, own, _) in enumerate(each))
    return LossSplit((prevalence, others[0], others[1]), (influences[0], influences[1]), near)


def _class_means(values: Array, run: Scores, weights: Array, masses: Array) -> Array:
    found: Array = np.bincount(run.y, weights * values, run.n_classes) / masses
    return found


def _losses(kind: Recalibration, run: Scores) -> Array:
    if kind is Recalibration.LINE:
        found: Array = -np.log(np.maximum(run.p_true, CLIP))
        return found
    return sum((np.square(run.columns[code] - (run.y == code)) for code in _coded(run)), np.zeros(run.n_samples))


def _coded(run: Scores) -> range:
    """Return the classes whose squared errors make the score: of two classes one says all."""
    return range(1, 2) if run.n_classes == 2 else range(run.n_classes)


def _recalibrated(kind: Recalibration, run: Scores, weights: Array) -> Array | None:
    """Return the loss of each sample after recalibration (W, n) with some weights (W, n)."""
    if kind is Recalibration.LINE:
        return _on_lines(run, weights)
    found = np.zeros(weights.shape)
    for code in _coded(run):
        hit = run.y == code
        distinct, place = np.unique(-run.columns[code], return_inverse=True)
        mass = np.array([np.bincount(place, own, distinct.size) for own in weights])
        hits = np.array([np.bincount(place[hit], own[hit], distinct.size) for own in weights])
        # What weighs nothing belongs to whatever is beside it.
        found += np.square(falling_means(hits, np.maximum(mass, np.finfo(float).tiny))[:, place] - hit)
    return found


def _on_lines(run: Scores, weights: Array) -> Array | None:
    logs = np.log(np.maximum(run.columns, CLIP))
    known = [one for one in (tempered(logs, run.y, own) for own in weights) if one is not None]
    return None if len(known) < len(weights) else -np.array(known)


def _is_near(run: Scores, weights: Array, groups: Codes | None) -> bool:
    """Are probabilities calibrated as far as can be told: does no line gain enough likelihood?

    The gain is of as many samples as the weights are worth; of groups it is divided by how many times more it varies
    than it would if samples were independent.
    """
    after = _recalibrated(Recalibration.LINE, run, weights[None])
    if after is None:
        return False
    gains = weights * (_losses(Recalibration.LINE, run) - after[0])
    gain = 2.0 * float(gains.sum()) * kish_effective_n(weights) / float(weights.sum())
    if groups is not None:
        together, apart = (
            float(np.square(sums_by_code(groups, gains, int(groups.max()) + 1)).sum()),
            float(gains @ gains),
        )
        gain /= max(together / apart, 1.0) if apart > 0.0 else 1.0
    return float(chi_squared_upper_tail(gain, float(run.n_classes))) > _SURE
