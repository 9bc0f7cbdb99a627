"""Standard errors of R's package `survey`, of schools in districts: groups that are drawn whole, with replacement.

Counts of the sample `apiclus1` of that package (Lumley 2004, GPL): for each of 15 districts its elementary, high and
middle schools, and how many have no award and an award. Without a finite population correction, `svydesign(id = ~dnum,
weights = ~pw)`, the outputs are those of R that the tests of Survey.jl hold (`test/r_reference/proportions.csv`).
Of samples with weights of their own, alone and in clusters, those that the tests of `svy` hold (`tests/data/survey`).
"""

from pathlib import Path

import numpy as np
import pytest

from app.kernel.matrix.table import LabelTable, Table
from app.kernel.metrics.families.averages import accuracy
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.designs import RECALL, DesignedRate, DesignedSums, additive_influences
from app.kernel.uncertainty.groups import GroupedCounts, group_variance

DISTRICTS = np.array(
    [
        *([8, 1, 2, 2, 9], [2, 1, 1, 1, 3], [1, 0, 1, 1, 1], [10, 0, 3, 4, 9], [2, 0, 0, 0, 2], [2, 1, 1, 4, 0]),
        *([2, 1, 1, 1, 3], [13, 0, 3, 3, 13], [4, 4, 1, 5, 4], [34, 0, 0, 8, 26], [16, 2, 3, 7, 14]),
        *([30, 3, 4, 13, 24], [10, 0, 3, 3, 10], [1, 0, 0, 0, 1], [9, 1, 2, 1, 11]),
    ]
)
# Schools of a kind, or with an award: the share, and its standard error by `svymean`.
OF_R = {
    "elementary": (DISTRICTS[:, 0], 0.78688524590164, 0.0468025716133837),
    "high": (DISTRICTS[:, 1], 0.0765027322404372, 0.0270798559291773),
    "middle": (DISTRICTS[:, 2], 0.136612021857924, 0.0299472342965665),
    "award": (DISTRICTS[:, 4], 0.710382513661203, 0.0333503726041141),
}
# The same weight for all of them, as the package has it.
WEIGHT = 33.847


def share_of(hits: Array, among: Array) -> DesignedRate:
    """Shares (L), from sums of weights, of squared weights, and of samples (3, L)."""
    tables = [
        LabelTable(own, np.zeros_like(own), each - own, np.zeros_like(own))
        for own, each in zip(hits, among, strict=True)
    ]
    return DesignedSums.of_tables(*tables).rates(RECALL)


@pytest.mark.parametrize("name", OF_R)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_share_of_schools_is_an_accuracy(name: str, weighted: bool) -> None:
    """Who predicts the kind for every school is right as often as there are such schools."""
    hits, share, error = OF_R[name]
    sizes = DISTRICTS[:, :3].sum(axis=1)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    right = np.concatenate([np.arange(size) < hit for size, hit in zip(sizes, hits, strict=True)])
    truth = np.arange(groups.size) % 2
    weights = np.full(groups.size, WEIGHT) if weighted else None
    runs = GroupedCounts.gather(groups, truth, np.where(right, truth, 1 - truth), 2, weights)
    table, gradient = Table(runs.matrix()), accuracy.card.inference.gradient
    assert gradient is not None
    assert float(accuracy(table)) == pytest.approx(share, rel=1e-12)
    found = float(group_variance(additive_influences(runs, gradient(table))))
    assert found**0.5 == pytest.approx(error, rel=1e-10)


@pytest.mark.parametrize(
    ("hits", "error"),
    [(142, 0.0321663390337504), (25, 0.0234440422192481), (33, 0.0263122914892847), (124, 0.0344081327303582)],
)
def test_a_share_of_independent_schools(hits: int, error: float) -> None:
    """200 schools of one weight (`apisrs`, no correction): R divides by n - 1 where this variance divides by n."""
    weights = np.array([[30.97], [30.97**2], [1.0]])
    found = share_of(weights * hits, weights * 200.0)
    assert float(found.variance[0] * 200 / 199) ** 0.5 == pytest.approx(error, rel=1e-10)


SAMPLES = np.loadtxt(Path(__file__).parents[2] / "data" / "survey" / "samples.csv", delimiter=",", skiprows=1)


def test_a_share_of_samples_with_weights_of_their_own() -> None:
    """`svydesign(ids = ~1, weights = ~samp_wgt)`."""
    _, answer, weights = SAMPLES.T
    right = answer == 1
    hits, among = (np.array([[one.sum()], [(one**2).sum()], [one.size]]) for one in (weights[right], weights))
    found = share_of(hits, among)
    assert float(found.rate[0]) == pytest.approx(0.507348258357226, rel=1e-12)
    assert float(found.variance[0] * 922 / 921) ** 0.5 == pytest.approx(0.0192309892530454, rel=1e-12)
    assert weights.max() > 50 * weights.min()


def test_a_share_of_clusters_with_weights_of_their_own() -> None:
    """`svydesign(ids = ~cluster, weights = ~samp_wgt)`."""
    groups, answer, weights = SAMPLES.T
    truth, codes = np.arange(922) % 2, np.unique(groups, return_inverse=True)[1]
    runs = GroupedCounts.gather(codes, truth, np.where(answer == 1, truth, 1 - truth), 2, weights)
    table, gradient = Table(runs.matrix()), accuracy.card.inference.gradient
    assert gradient is not None
    assert float(accuracy(table)) == pytest.approx(0.507348258357226, rel=1e-12)
    found = float(group_variance(additive_influences(runs, gradient(table))))
    assert found**0.5 == pytest.approx(0.0164967611954173, rel=1e-11)


def test_a_share_of_schools_in_strata() -> None:
    """Schools with an award among 100 elementary, 50 high and 50 middle schools (`apistrat`), which weigh differently:
    `svydesign(id = ~1, strata = ~stype, weights = ~pw)`.
    """
    sizes, hits = np.array([100.0, 50.0, 50.0]), np.array([73.0, 16.0, 24.0])
    weight = np.array([44.2099990844727, 15.1000003814697, 20.3600006103516])
    squares = np.stack([weight, weight**2, np.ones(3)])
    found = share_of(squares * hits, squares * sizes)
    shares = weight * sizes / (weight @ sizes)
    assert float(shares @ found.rate) == pytest.approx(0.638936064050579, rel=1e-12)
    error = float(shares**2 @ (found.variance * sizes / (sizes - 1.0))) ** 0.5
    assert error == pytest.approx(0.0348975177769063, rel=1e-10)
