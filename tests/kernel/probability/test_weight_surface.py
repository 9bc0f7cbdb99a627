"""All class weights of a grid against decisions one by one in whole numbers, and fronts against all pairs."""

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest

from app.domain.expressions.expressions import parse
from app.kernel.decide.class_weights import pareto_front, rules_on_grid, simplex, simplex_size
from app.kernel.decide.rules import Constraint, Placed, Wanted
from app.kernel.samples.scores import Scores


@pytest.mark.parametrize(("n_classes", "steps"), [(2, 5), (3, 3), (3, 12), (4, 9)])
def test_the_grid_has_every_positive_weight_once(n_classes: int, steps: int) -> None:
    expected = {parts for parts in product(range(1, steps), repeat=n_classes) if sum(parts) == steps}
    found = np.round(simplex(n_classes, steps) * steps).astype(int)
    assert set(map(tuple, found.tolist())) == expected
    assert len(found) == len(expected) == simplex_size(n_classes, steps) == comb(steps - 1, n_classes - 1)


@pytest.mark.parametrize("n_classes", [3, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_points_are_the_rules_decided_one_by_one(n_classes: int, weighted: bool) -> None:
    random, labels, steps = np.random.default_rng(n_classes), [str(code) for code in range(n_classes)], 8
    sixteenths = random.multinomial(16, np.full(n_classes, 1.0 / n_classes), 40)
    truth = np.array([random.integers(0, n_classes) if random.random() < 0.4 else row.argmax() for row in sixteenths])
    each = random.integers(1, 4, 40) if weighted else np.ones(40, dtype=int)
    scores = Scores(truth, sixteenths / 16.0, each.astype(float) if weighted else None)
    limit = Constraint(Placed(parse("recall@0", labels, None)), 0.3, None)
    wanted, weights = (
        Wanted(objective=Placed(parse("h_mean", labels, None)), constraints=[limit]),
        simplex(n_classes, steps),
    )
    values, found = rules_on_grid(scores, wanted, weights)
    feasible, best = wanted.feasible(values), Fraction(-1)
    for place, row in enumerate(np.round(weights * steps).astype(int).tolist()):
        right, whole = [0] * n_classes, [0] * n_classes
        for code, parts, weight in zip(truth.tolist(), sixteenths.tolist(), each.tolist(), strict=True):
            products = [share * part for share, part in zip(row, parts, strict=True)]
            whole[code] += weight
            right[code] += weight * (products.index(max(products)) == code)
        recalls = [Fraction(hits, total) for hits, total in zip(right, whole, strict=True)]
        np.testing.assert_allclose(found[place], [float(recall) for recall in recalls], rtol=1e-12)
        mean = n_classes / sum((1 / recall for recall in recalls), Fraction(0)) if all(recalls) else Fraction(0)
        assert values[0, place] == pytest.approx(float(mean), rel=1e-12)
        assert feasible[place] == (recalls[0] >= Fraction(3, 10))
        if recalls[0] >= Fraction(3, 10):
            best = max(best, mean)
    chosen = wanted.best(values)
    assert chosen is not None
    assert values[0, chosen] == pytest.approx(float(best), rel=1e-12)


def test_no_feasible_point_is_no_best_one() -> None:
    scores = Scores(np.array([0, 1, 2, 0]), np.full((4, 3), 1.0 / 3.0))
    labels = ["0", "1", "2"]
    limit = Constraint(Placed(parse("min(recall@*)", labels, None)), 0.9, None)
    wanted = Wanted(objective=Placed(parse("accuracy", labels, None)), constraints=[limit])
    values, _ = rules_on_grid(scores, wanted, simplex(3, 5))
    assert wanted.best(values) is None
    assert not wanted.feasible(values).any()


@pytest.mark.parametrize("seed", range(5))
def test_fronts_are_what_no_other_point_beats(seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 6, (60, 3)) / 5.0
    expected = [not any((other >= own).all() and (other > own).any() for other in values) for own in values]
    np.testing.assert_array_equal(pareto_front(values), expected)
    missing = np.column_stack([values, np.full(60, np.nan)])
    np.testing.assert_array_equal(pareto_front(missing), expected)
