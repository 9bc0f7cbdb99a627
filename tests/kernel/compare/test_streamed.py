"""Sums over streamed samples: moments by class, and what is on the wrong side of a score in an order."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from app.kernel.compare.streamed import Curve, Moments
from tests.engine import ENGINE

RANDOM = np.random.default_rng(77)


@pytest.mark.parametrize("away", [0.0, 1e3])
def test_moments_are_those_of_all_samples_together(away: float) -> None:
    y, values = RANDOM.integers(0, 3, 5000), RANDOM.normal(size=(4, 5000)) + away
    weights = RANDOM.choice([0.1, 1.0, 30.0], y.size)
    values[3] = np.where(y == 1, 0.3, values[3])
    moments = Moments(4, 4)
    for rows in np.array_split(RANDOM.permutation(y.size), 7):
        for code in range(3):
            some = rows[y[rows] == code]
            moments.add(code, values[:, some], weights[some])
    found = moments.read(np.full(4, np.nan))
    whole = values @ weights / weights.sum()
    assert found.overall == pytest.approx(whole, rel=1e-13)
    for code in range(3):
        own, each = values[:, y == code], weights[y == code]
        mean = own @ each / each.sum()
        moved = each * (own - mean[:, None])
        assert found.means[code] == pytest.approx(mean, rel=1e-13)
        assert found.away[code] == pytest.approx(mean - whole, abs=1e-9 * max(away, 1e-3))
        assert found.products[code] == pytest.approx(moved @ moved.T, rel=1e-9, abs=1e-6)
        assert found.leaning[code] == pytest.approx(moved @ each, rel=1e-9, abs=1e-5)
    assert not found.products[1, 3].any()
    assert np.isnan(found.means[3]).all()


def test_values_without_end_are_kept_to_their_class() -> None:
    moments = Moments(2, 2)
    moments.add(0, np.array([[1.0, np.inf], [1.0, 2.0]]), np.ones(2))
    moments.add(1, np.array([[1.0, 3.0], [np.nan, 2.0]]), np.ones(2))
    found = moments.read(np.full(2, np.nan))
    assert moments.infinite().tolist() == [[True, False], [False, False]]
    assert found.overall[0] == np.inf
    assert np.isnan(found.overall[1])
    assert found.means[1, 0] == 2.0


Numbers = NDArray[np.float64]


def lost_by_hand(scores: Numbers, members: NDArray[np.bool_], each: Numbers) -> Numbers:
    """Pair by pair."""
    above = (scores[None] > scores[:, None]) + 0.5 * (scores[None] == scores[:, None])
    of_members, of_others = above @ np.where(members, 0.0, each), (1.0 - above) @ np.where(members, each, 0.0)
    lost: Numbers = 2.0 * np.where(members, of_members, of_others)
    return lost


@pytest.mark.parametrize("points", [1 << 16, 100])
def test_what_is_on_the_wrong_side_of_a_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, points: int) -> None:
    monkeypatch.setattr("app.kernel.compare.streamed._POINTS", points)
    monkeypatch.setattr("app.kernel.compare.streamed._FEW", points)
    members = RANDOM.random(3000) < 0.3
    scores = RANDOM.normal(size=members.size) + members
    scores[RANDOM.random(scores.size) < 0.2] = 0.5
    scores[:2] = -1.7e308, 1.7e308
    each = RANDOM.choice([0.5, 1.0, 7.0], scores.size)
    table = pa.table({"score": scores, "signed": np.where(members, each, -each)})
    with ENGINE.opened(tmp_path) as engine:
        curve = Curve.along(engine.take(table.schema, table.to_batches(max_chunksize=700)))
    expected = lost_by_hand(scores, members, each)
    wrong = float(each[members] @ expected[members])
    mass = float(each[members].sum()), float(each[~members].sum())
    assert curve.area == pytest.approx(1.0 - wrong / (2.0 * mass[0] * mass[1]), rel=1e-13)
    found = curve.lost(scores, members)
    if points > scores.size:
        assert found == pytest.approx(expected, rel=1e-13)
    else:
        assert curve.scores.size <= points + 2
        assert np.abs(found - expected).max() < 4.0 * sum(mass) / points
        tied = scores == 0.5
        assert found[tied] == pytest.approx(expected[tied], rel=1e-13)


def test_an_order_without_one_of_both_has_no_area(tmp_path: Path) -> None:
    table = pa.table({"score": [0.5, 0.25], "signed": [1.0, 1.0]})
    with ENGINE.opened(tmp_path) as engine:
        rows = engine.take(table.schema, table.to_batches())
        assert np.isnan(Curve.along(rows).area)
        nothing = Curve.along(rows.where("score > 1"))
    assert np.isnan(nothing.area)
    assert nothing.lost(np.zeros(0), np.zeros(0, dtype=np.bool_)).size == 0
