"""One threshold for all classes of samples that went by, beside exact fractions."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from app.kernel.folds import runs
from app.kernel.folds.joint import Together
from app.kernel.folds.scores import ScoresFold
from tests.kernel.folds.problems import PROBLEMS, Problem


def looked(problem: Problem, folder: Path, budget: int) -> Together:
    with ScoresFold(problem.classes, budget, folder) as fold:
        return fold.add(problem.y, problem.given).finish().together


def by_hand(problem: Problem) -> tuple[int, list[list[Fraction]]]:
    """Twice the pairs lost, and the precision of each class along the members of each, pair by pair."""
    rows, classes = problem.rows.tolist(), range(problem.classes)
    truth = problem.y.tolist()
    actual = [(rows[place][code], code) for place, code in enumerate(truth)]
    lost = 0
    for place, row in enumerate(rows):
        for other in set(classes) - {truth[place]}:
            lost += sum(2 * (row[other] > own) + (row[other] == own) for own, _ in actual)

    def height(code: int, above: list[bool]) -> Fraction:
        held = [truth[place] == code for place, there in enumerate(above) if there]
        return Fraction(sum(held), len(held)) if held else Fraction(1)

    precision = [[Fraction(0)] * problem.classes for _ in classes]
    for own, code in actual:
        for other in classes:
            before, after = ([row[other] > own for row in rows], [row[other] >= own for row in rows])
            precision[code][other] += (height(other, before) + height(other, after)) / 2
    return lost, precision


@pytest.mark.parametrize("name", ["one column tied", "extreme", "three classes tied", "a class that does not occur"])
def test_it_is_that_of_pairs_in_fractions(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_LEAST", 16)
    whole = PROBLEMS[name]
    problem = Problem(whole.y[:60], whole.given[:60], whole.rows[:60])
    lost, precision = by_hand(problem)
    few, many = (looked(problem, tmp_path, budget) for budget in (1 << 10, 1 << 22))
    assert few.twice_lost == many.twice_lost == lost
    np.testing.assert_array_equal(few.precision, many.precision)
    np.testing.assert_allclose(few.precision, [[float(one) for one in row] for row in precision], rtol=1e-14)


def test_more_than_two_classes_do_not_say_how_places_vary(tmp_path: Path) -> None:
    assert looked(PROBLEMS["three classes"], tmp_path, 1 << 22).variance is None
