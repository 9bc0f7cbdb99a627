"""Samples on the wrong side of each, in the order of a class: those of counting every pair, whatever the blocks."""

import pickle
import tracemalloc
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.kernel.compare.folded import Block, Orders, Plan
from app.kernel.metrics.expression import Measure
from app.kernel.metrics.families.score_ranking import roc_auc, roc_auc_ovo_macro, roc_auc_ovr_macro, roc_auc_ovr_micro
from app.kernel.numerics.arrays import Array
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores

RANDOM = np.random.default_rng(1945)
ROWS = 600
PLAN = Plan((Measure(roc_auc, {}, 1),), 2, 2)


def lost(y: Codes, scores: Array) -> Array:
    """Twice how many of the other side are on the wrong side of each sample, pair by pair."""
    above = np.sign(scores[:, None] - scores[None, :])
    wrong = np.where(y[:, None] == 1, 1 - above, 1 + above) * (y[:, None] != y[None, :])
    found: Array = wrong.sum(axis=1)
    return found


def columns(ties: int) -> list[Array]:
    """Scores of two runs, of which so many are the same."""
    found = [RANDOM.standard_normal(ROWS) * 10.0 ** RANDOM.integers(-9, 9, ROWS) for _ in "ab"]
    for column in found:
        column[RANDOM.permutation(ROWS)[:ties]] = -0.0
        column[RANDOM.permutation(ROWS)[: ties // 2]] = 0.0
    return found


def elsewhere(function: Any, tasks: Iterable[Any]) -> Iterator[Any]:
    """Other processes, as far as what they are given goes."""
    for task in tasks:
        yield function(pickle.loads(pickle.dumps(task)))  # noqa: S301 - made above


@pytest.mark.parametrize("ties", [0, 40, ROWS])
@pytest.mark.parametrize("cuts", [0, 1, 25])
def test_what_is_lost_is_counted(tmp_path: Path, ties: int, cuts: int) -> None:
    y, both = RANDOM.integers(0, 2, ROWS), columns(ties)
    ways: tuple[Any, ...] = (map, elsewhere)
    found: list[Any] = []
    for number, in_order in enumerate(ways):
        folder = tmp_path / str(number)
        folder.mkdir()
        orders = Orders(PLAN, folder, 1)
        ends = np.sort(RANDOM.choice(np.arange(1, ROWS), cuts, replace=False))
        for rows in np.split(RANDOM.permutation(ROWS), ends):
            block = Block.of(PLAN, y[rows], [Scores.of_scores(y[rows], column[rows]) for column in both])
            assert block is not None
            orders.add(block)
        (moments,) = orders.sums(in_order).moments.values()
        found.append(moments.read())
    expected = [lost(y, column) for column in both]
    for code in range(2):
        inside = [[Fraction(value) for value in one[y == code].tolist()] for one in expected]
        size = len(inside[0])
        for first in range(2):
            for one in found:
                assert one.means[code, first] == float(sum(inside[first]) / size)
            for second in range(2):
                together = sum(one * other for one, other in zip(inside[first], inside[second], strict=True))
                exact = together - sum(inside[first]) * sum(inside[second]) / size
                assert {float(one.products[code, first, second]) for one in found} == {float(exact)}


@pytest.mark.slow
@pytest.mark.parametrize("ties", [0, ROWS])
@pytest.mark.parametrize("spread", [0.0, 3.0, 40.0])
def test_what_is_lost_is_weighed(tmp_path: Path, ties: int, spread: float) -> None:
    y, both, weights = RANDOM.integers(0, 2, ROWS), columns(ties), np.exp(RANDOM.normal(0.0, spread, ROWS))
    plan, found = Plan(PLAN.expressions, 2, 2, weighted=True), []
    for number, cuts in enumerate((0, 1, 25)):
        folder = tmp_path / str(number)
        folder.mkdir()
        orders = Orders(plan, folder, 1)
        ends = np.sort(RANDOM.choice(np.arange(1, ROWS), cuts, replace=False))
        for rows in np.split(RANDOM.permutation(ROWS), ends):
            runs = [Scores.of_scores(y[rows], column[rows]) for column in both]
            block = Block.of(plan, y[rows], runs, weights[rows])
            assert block is not None
            orders.add(block)
        (moments,) = orders.sums(elsewhere if cuts == 1 else map).moments.values()
        found.append(moments.read())
    masses = [Fraction(one) for one in weights.tolist()]
    for run, column in enumerate(both):
        above = np.sign(column[:, None] - column[None, :])
        wrong = np.where(y[:, None] == 1, 1 - above, 1 + above) * (y[:, None] != y[None, :])
        worth = [sum((int(row[one]) * masses[one] for one in np.flatnonzero(row)), start=Fraction(0)) for row in wrong]
        for code in range(2):
            inside = np.flatnonzero(y == code).tolist()
            mean = sum(worth[one] * masses[one] for one in inside) / sum(masses[one] for one in inside)
            assert found[0].means[code, run] == pytest.approx(float(mean), rel=1e-14)
    for one in found[1:]:
        assert all(np.array_equal(ours, theirs) for ours, theirs in zip(one, found[0], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("tied", [False, True])
def test_memory_does_not_grow_with_the_blocks(tmp_path: Path, *, tied: bool) -> None:
    each, taken = 10_000, []
    for blocks in (4, 24):
        folder = tmp_path / str(blocks)
        folder.mkdir()
        orders = Orders(PLAN, folder, 1 << 19)
        for _ in range(blocks):
            y = RANDOM.integers(0, 2, each)
            runs = [Scores.of_scores(y, np.zeros(each) if tied else RANDOM.random(each)) for _ in "ab"]
            block = Block.of(PLAN, y, runs)
            assert block is not None
            orders.add(block)
        tracemalloc.start()
        orders.sums()
        taken.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert taken[1] < 1.5 * taken[0]
    # All numbers of the larger one take 36 bytes a row and run.
    assert taken[1] < 24 * each * 36 * 2 / 4


def test_a_plan_says_how_often_samples_are_in_orders() -> None:
    metrics = [Measure(one, {}, None) for one in (roc_auc_ovr_macro, roc_auc_ovo_macro, roc_auc_ovr_micro)]
    assert [Plan((one,), 4, 2).entries for one in metrics] == [4.0, 6.0, 4.0]
    assert Plan((metrics[0], metrics[2]), 2, 2).entries == 3.0
    assert Plan((), 2, 2).entries == 0.0


def test_what_needs_no_order_makes_no_block() -> None:
    assert Block.of(Plan((), 2, 2), np.array([0, 1]), []) is None
