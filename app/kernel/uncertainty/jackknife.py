"""Influence of units on any metric, from small changes of their weights: the infinitesimal jackknife."""

from collections.abc import Callable, Sequence

import numpy as np

from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import Array, silently, sums_by_code
from app.kernel.samples.areas import ROUNDING
from app.kernel.samples.losses import Codes
from app.kernel.uncertainty.draws import generator
from app.kernel.uncertainty.groups import Grouping, moved_by_groups
from app.kernel.uncertainty.units import Units

# Relative to its weight, a unit weighs so much more and so much less for a derivative.
_STEP = 1e-3
# Units times changes that are passed over: some seconds. With more units random blocks of them change together.
_ENTRIES = 40_000_000
_PER_CHANGE = 1500
_FEWEST_BLOCKS, _MOST_BLOCKS = 100, 1000
_AT_ONCE = 1 << 19


def blocks_of(run: Units, n_runs: int, seed: int, grouping: Grouping | None = None) -> tuple[Codes, int] | None:
    """Blocks (n) of units that change together, and how many there are: single units, or groups, where these are few.

    A block has units of one stratum, drawn at random, or whole groups. None where not even the fewest blocks can be
    afforded.

    Args:
        run: The units.
        n_runs: How many runs like it are looked at.
        seed: Of the blocks.
        grouping: Groups of the units; None where they are independent.
    """
    n_units = run.n_units
    affordable = int(_ENTRIES / (2 * n_runs * run.width * (_PER_CHANGE + n_units)))
    if grouping is not None:
        count = min(grouping.n_groups, affordable, _MOST_BLOCKS)
        return None if count < min(_FEWEST_BLOCKS, grouping.n_groups) else (grouping.codes % count, count)
    if n_units <= min(affordable, _MOST_BLOCKS):
        return np.arange(n_units), n_units
    if affordable < _FEWEST_BLOCKS:
        return None
    wanted, random, codes, count = min(affordable, _MOST_BLOCKS), generator(seed), np.empty(n_units, np.intp), 0
    for stratum in range(run.n_strata):
        mine = np.flatnonzero(run.strata == stratum)
        if mine.size:
            own = min(mine.size, max(2, round(wanted * mine.size / n_units)))
            codes[random.permutation(mine)] = count + np.arange(mine.size) % own
            count += own
    return codes, count


def unit_influences(
    run: Units,
    functionals: Sequence[Callable[[Subject], Array]],
    blocks: tuple[Codes, int],
    weights: Array | None = None,
    *,
    centred: bool = True,
    shares: Array | None = None,
) -> list[Array]:
    """Return the influence of each block of units (V, B) on the values of every functional.

    The derivative by the weight of the units, about its mean in the stratum, with m / (m - 1) for its m blocks: the sum
    of squares is the variance where the numbers of units in the strata are fixed. Efron (1982), chapter 6; in blocks
    that is the grouped jackknife. Groups are left out instead (`moved_by_groups`).

    Args:
        run: The units.
        functionals: What is computed of them.
        blocks: Block (n) of each unit, and how many blocks there are.
        weights: (n) of the units; None is 1 each, or as many as each stands for.
        centred: Are the numbers of units in the strata fixed? Those of groups, which blocks are then, are as random as
            the rest.
        shares: Class shares (K) that values are of. Without a group the rest is brought to them anew.
    """
    times, (codes, n_blocks) = run.multiplicities, blocks
    fixed, anew = (shares, None) if centred else (None, shares)
    masses = run.at_shares(weights, fixed)
    if masses is None:
        masses = np.ones(run.n_units) if times is None else times
    parts: list[list[Array]] = [[] for _ in functionals]
    kinds, kind = run.kinds
    whole = np.bincount(kind, masses).astype(np.float64, copy=False)
    batch = min(max(1, _AT_ONCE // (2 * whole.size * run.width)), n_blocks)
    # Each unit moves once for each step, in rows of one batch, and lies still in all others.
    order, steps = np.argsort(codes, kind="stable"), (_STEP, -_STEP) if centred else (-1.0,)
    moving = np.tile(whole, (len(steps), batch, 1))
    with silently():
        for start in range(0, n_blocks, batch):
            size = min(batch, n_blocks - start)
            inside = order[slice(*np.searchsorted(codes, [start, start + size], sorter=order))]
            places = codes[inside] - start, kind[inside]
            for some, step in zip(moving, steps, strict=True):
                np.add.at(some, places, masses[inside] * step)
                # What is left of a kind of units that was taken from is rounding.
                some[places] = np.where(some[places] > ROUNDING * whole[places[1]], some[places], 0.0)
            moved = kinds.subject(kinds.at_shares(moving[:, :size].reshape(len(steps) * size, -1), anew))
            for found, functional in zip(parts, functionals, strict=True):
                values = np.asarray(functional(moved)).reshape(len(steps), size, -1)
                found.append((values[0] - values[1]) / (2.0 * _STEP) if centred else values[0])
            moving[:, *places] = whole[kind[inside]]
    if not centred:
        with silently():
            all_of_them = kinds.subject(kinds.at_shares(whole[None], anew))
            known = [np.asarray(functional(all_of_them)).ravel() for functional in functionals]
            return [moved_by_groups(*each) for each in zip(known, map(np.concatenate, parts), strict=True)]
    sizes = sums_by_code(codes, masses, n_blocks)
    stands_for = 1.0 if times is None else np.sqrt(np.maximum(sums_by_code(codes, times, n_blocks), 1.0))
    strata = np.zeros(n_blocks, np.intp)
    strata[codes] = run.strata
    return [_centred(np.concatenate(found).T, sizes, strata, times) / stands_for for found in parts]


def _centred(moves: Array, sizes: Array, strata: Codes, times: Array | None) -> Array:
    """Moves (V, B) about their mean in each stratum, to which a block belongs with its size (B)."""
    count = int(strata.max()) + 1
    totals = np.bincount(strata, sizes, count)
    present = np.bincount(strata, sizes > 0, count) if times is None else totals
    with silently():
        means = np.stack([np.bincount(strata, row, count) for row in moves]) / totals
        scale = np.sqrt(present / (present - 1.0))
    scale = np.where(present > 1, scale, 0.0)
    centred: Array = np.where(sizes > 0, (moves - means[:, strata] * sizes) * scale[strata], 0.0)
    return centred
