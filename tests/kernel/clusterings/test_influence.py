"""What each sample adds to measures of tables, against small changes of its weight, and how far noise raises them."""

from dataclasses import replace

import numpy as np
import pytest

from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Measure, compute
from app.kernel.metrics.families import clusterings
from app.kernel.numerics.arrays import silently
from app.kernel.samples.contingency import Contingency
from app.kernel.uncertainty import influence
from app.kernel.uncertainty.groups import Grouping
from app.kernel.uncertainty.influence import UnitInfluences, by_groups, limits
from app.kernel.uncertainty.jackknife import unit_influences
from app.kernel.uncertainty.units import CellUnits, ClusterUnits
from tests.bank import each
from tests.kernel.clusterings.test_exact import OF_TABLES

SIZE = 300
RNG = np.random.default_rng(1)
# Classes of sizes that no cluster has: of two equal ones either could be the smaller.
CLASSES = np.repeat(np.arange(5), [31, 47, 58, 73, 91])
CLUSTERS = np.where(RNG.random(SIZE) < 0.4, RNG.integers(0, 5, SIZE), CLASSES)
UNITS = ClusterUnits(CLASSES, CLUSTERS, (5, 5))
TABLE = UNITS.subject().parts[Inputs.CONTINGENCY]


@each("key", OF_TABLES)
def test_influences_against_small_changes_of_weights(key: str) -> None:
    """The outside witness knows the values alone."""
    metric = OF_TABLES[key]
    found = UnitInfluences(UNITS.subject(), SIZE, 5).of(metric)
    assert found is not None
    one_by_one = np.arange(SIZE), SIZE
    (wanted,) = unit_influences(UNITS, [lambda one: metric.compute(one.parts[Inputs.CONTINGENCY])], one_by_one)
    if metric.card.inference.biased:
        # Of information a whole sample is left out, and not a small part of one.
        assert np.corrcoef(found.influence, wanted[0])[0, 1] > 0.98
    else:
        np.testing.assert_allclose(found.influence, wanted[0], rtol=1e-3, atol=1e-6)
    cells = CellUnits(TABLE.counts, TABLE.places)
    of_cells = UnitInfluences(cells.subject(), cells.n_units, 5).of(metric)
    assert of_cells is not None
    assert of_cells.variance == pytest.approx(found.variance, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_groups_move_a_measure_by_what_it_is_without_each(weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes are in few groups: the outside witness leaves the samples of each out."""
    groups = np.digitize(np.arange(SIZE), [15, 40, 60, 100, 120, 170, 230, 260])
    weights = RNG.gamma(2.0, size=SIZE) if weighted else None
    units = ClusterUnits(CLASSES, CLUSTERS, (5, 5), worth=weights)
    grouping = Grouping(groups, 9)
    left_out = units.left_out(weights, grouping)
    influences = UnitInfluences(units.subject(weights), SIZE, 5, weights=weights, left_out=left_out)
    for key in ("v_measure", "bcubed_f1", "purity", "adjusted_rand", "cluster_accuracy"):
        asked = Measure(OF_TABLES[key], {}, None)
        linear = influences.of(asked.metric)
        assert linear is not None
        found = by_groups(influences.between_groups(asked, linear), grouping)
        subjects = [
            units.subject((np.ones(SIZE) if weights is None else weights) * (groups != one)) for one in range(9)
        ]
        moved = [linear.value - float(compute(asked, one)) for one in subjects]
        assert found.variance == pytest.approx(8 / 9 * sum(one**2 for one in moved), rel=1e-9), key
        assert found.bias == linear.bias
        assert replace(influences, left_out=None).between_groups(asked, linear) is linear
    asked = Measure(OF_TABLES["adjusted_mutual_information"], {}, None)
    linear = influences.of(asked.metric)
    assert linear is not None
    assert weighted or influences.between_groups(asked, linear) is not linear
    # What comes by chance takes long.
    monkeypatch.setattr(influence, "_MOST_BY_CHANCE", 8)
    assert influences.between_groups(asked, linear) is linear


@pytest.mark.parametrize("weighted", [False, True])
def test_noise_that_raises_information_is_what_leaving_out_one_sample_shows(weighted: bool) -> None:
    """The outside witness makes each table anew; what is expected by chance is held as it falls with the samples."""
    kept = RNG.choice(SIZE, 60, replace=False)
    counts = np.zeros((5, 5))
    np.add.at(counts, (CLASSES[kept], CLUSTERS[kept]), 1.0)
    if weighted:
        counts *= np.where(counts == 1.0, 0.6, 1.5)
    table = Contingency.of_table(counts)
    for key in ("v_measure", "mutual_information", "variation_of_information", "homogeneity"):
        metric = OF_TABLES[key]
        value, sums = float(metric.compute(table)), metric.card.inference.sums
        with silently():
            bias, parts = table.jackknifed(metric.compute, sums)
        places = np.argwhere(counts > 0)
        steps = np.minimum(counts[counts > 0], 1.0)
        times, without = counts[counts > 0] / steps, []
        for (row, column), step in zip(places, steps, strict=True):
            one_less = counts.copy()
            one_less[row, column] -= step
            without.append(float(metric.compute(Contingency.of_table(one_less))))
        n, mean = times.sum(), np.average(without, weights=times)
        assert bias == pytest.approx((n - 1) * (mean - value), rel=1e-6), key
        spread = (n - 1) / n * np.sum(times * np.square(np.array(without) - mean))
        assert np.square(parts).sum() == pytest.approx(spread, rel=1e-6), key


def test_noise_raises_information_by_as_much_as_tables_without_any_have() -> None:
    """It is about (R - 1)(S - 1) / 2n nats (Miller 1955), as the mean of tables drawn from one without any."""
    shares = np.full((3, 4), 1 / 12)
    drawn = Contingency.of_table(RNG.multinomial(240, shares.ravel(), 400).reshape(400, 3, 4))
    assert drawn.information.mean() == pytest.approx(6 / 480, rel=0.1)
    whole = Contingency.of_table(np.full((3, 4), 20))
    bias, _ = whole.jackknifed(clusterings.mutual_information.compute, ("information",))
    assert bias == pytest.approx(6 / 480, rel=0.03)


def test_squares_of_samples_that_are_spread_evenly_vary_by_the_second_order_alone() -> None:
    """Pearson's statistic of k equal cells has the variance 2 (k - 1) (n - 1) / n (Haldane 1937)."""
    whole = Contingency.of_table(np.full((3, 4), 20))
    n, cells = 240, 12
    of_pearson = 2 * (cells - 1) * (n - 1) / n
    found = whole.second_order(lambda c: c.squares, ("squares",))
    assert found * (n - 1) / n == pytest.approx(of_pearson * (n / cells) ** 2, rel=1e-9)
    assert np.abs(whole.influence(lambda c: c.squares, ("squares",))).max() < 1e-9
    # Classes of one size are as many cells.
    of_classes = whole.second_order(lambda c: c.actual_squares, ("actual_squares",))
    assert of_classes == pytest.approx(2 * (3 - 1) * (n / 3) ** 2, rel=1e-9)
    assert whole.second_order(clusterings.purity.compute, ("largest_in_clusters",)) == 0.0


def test_with_fewer_samples_than_cells_information_has_no_limits() -> None:
    few = Contingency.of_table(np.eye(5) * 4 + np.eye(5, k=1))
    influences = UnitInfluences(CellUnits(few.counts, few.places).subject(), few.counts.size, 5)
    found, plain = influences.of(clusterings.v_measure), influences.of(clusterings.purity)
    assert found is not None
    assert plain is not None
    with silently():
        assert np.isinf(found.bias)
        assert limits(found) is None
        assert limits(plain) is not None
