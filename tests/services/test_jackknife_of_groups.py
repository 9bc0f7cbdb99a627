"""What each group adds to values of a matrix, where runs on samples in groups are compared."""

from dataclasses import replace

import numpy as np
import pytest

from app.domain.identifiers import new_id
from app.domain.inputs.classified import Probabilities
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import INPUTS_OF_CLASSES
from app.kernel.metrics.families.rate_means import h_mean
from app.kernel.metrics.families.rates import recall
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty import groups
from app.kernel.uncertainty.groups import GroupedCounts
from app.services.estimands import parse_estimands
from app.services.runs.aligned import Runs
from app.services.runs.comparison import Comparison
from app.services.runs.linear_draws import _added_by_groups
from app.services.runs.matrix_draws import InferenceSettings
from app.services.runs.pairing import KeptSamples, PairingMode
from app.services.stored import unkept_record


def in_groups(n_groups: int, rare_in: int, weights: Array | None = None) -> GroupedCounts:
    """Ten samples of each group; the third class is in the first few groups alone."""
    random, groups = np.random.default_rng(n_groups + 1), np.repeat(np.arange(n_groups), 10)
    truth = np.tile(np.arange(10) % 2, n_groups)
    truth[(groups < rare_in) & (np.arange(groups.size) % 10 > 6)] = 2
    predicted = np.where(random.random(groups.size) < 0.6, truth, (truth + 1) % 3)
    return GroupedCounts.gather(groups, truth, predicted, 3, weights)


def added(held: GroupedCounts) -> Array:
    """(2, G): to H and to the recall of the third class."""

    def values(table: Table) -> Array:
        return np.stack([h_mean(table), recall(table)[..., 2]], axis=-1)

    with np.errstate(all="ignore"):
        return _added_by_groups(held, values(Table(held.matrix())), values)


@pytest.mark.parametrize("weighted", [False, True])
def test_variances_are_those_of_the_jackknife(weighted: bool) -> None:
    weights = np.random.default_rng(0).gamma(2.0, size=80) if weighted else None
    held = in_groups(8, 3, weights)
    matrices = np.zeros((8, 3, 3))
    np.add.at(matrices, (held.codes, *np.divmod(held.cell, 3)), held.times)

    def values(matrix: Array) -> list[float]:
        rates = np.diagonal(matrix) / matrix.sum(axis=1)
        return [3.0 / float((1.0 / rates).sum()), float(rates[2])]

    whole = values(matrices.sum(axis=0))
    for place, (one, count) in enumerate(zip(added(held), (8, 3), strict=True)):
        without = [values(np.delete(matrices, group, axis=0).sum(axis=0))[place] for group in range(8)]
        expected = (count - 1) / count * sum((each - whole[place]) ** 2 for each in without)
        assert np.count_nonzero(one) == count
        # Those who add squares take them count / (count - 1) times.
        assert count / (count - 1) * float(one @ one) == pytest.approx(expected, rel=1e-9)


def test_what_needs_a_group_has_no_variance() -> None:
    means, _ = added(in_groups(8, 1))
    assert np.isnan(means[0])
    assert np.isfinite(means[1:]).all()


def test_of_many_groups_derivatives_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    held = in_groups(400, 200)
    left_out = added(held)
    monkeypatch.setattr(groups, "MOST_LEFT_OUT", 0)
    np.testing.assert_allclose((added(held) ** 2).sum(axis=1), (left_out**2).sum(axis=1), rtol=0.02)


def test_at_one_prevalence_samples_say_what_their_matrix_says() -> None:
    """Without a group the rest has other class shares, to which the error of a value at given shares owes nothing."""
    random, records, samples = np.random.default_rng(5), [], {}
    for share in (0.3, 0.6):
        groups = np.repeat(np.arange(20), random.integers(2, 16, 20))
        # Groups have shares of classes of their own.
        truth = (random.random(groups.size) < random.beta(share, 1.0 - share, 20)[groups]).astype(int)
        p = np.where(random.random(groups.size) < np.where(truth == 1, 0.6, 0.9), 0.8, 0.2)
        sure = np.where(truth == 1, p, 1.0 - p)
        source = Probabilities(
            y_true=truth, probabilities=np.column_stack([1.0 - sure, sure]), group_ids=groups, labels=["0", "1"]
        ).read("")
        records.append(replace(unkept_record(source), id=new_id()))
        samples[records[-1].id] = source.known_samples
    runs = Runs.align(records).pair(KeptSamples(samples), PairingMode.FALSE)
    asked = parse_estimands(
        ["accuracy", "top_k_accuracy(k=1)"],
        runs.labels,
        runs.positive,
        inputs=INPUTS_OF_CLASSES,
    )
    comparison = Comparison(runs, asked, InferenceSettings(), pairs=[(0, 1)])
    ((of_matrix,),), ((of_samples,),) = (comparison.differences(place) for place in range(2))
    found = [of_samples.difference, of_samples.low, of_samples.high, of_samples.p_value]
    expected = [of_matrix.difference, of_matrix.low, of_matrix.high, of_matrix.p_value]
    assert found == pytest.approx(expected, rel=1e-9)
