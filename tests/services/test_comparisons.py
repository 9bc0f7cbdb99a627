"""What is said of two runs, without a server."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.identifiers import new_id
from app.domain.inputs.content import Content
from app.services.estimands import parse_estimands
from app.services.runs.aligned import Runs
from app.services.runs.comparison import Comparison
from app.services.runs.differences import RunDifference
from app.services.runs.reading import KeptSamples
from app.services.runs.resampling import InferenceSettings


def kept(matrix: Any, dataset: str) -> EvaluationRecord:
    counts = np.array(matrix)
    return EvaluationRecord(
        id=new_id(),
        model=ModelRef("m"),
        dataset=DatasetRef(dataset),
        kind="confusion_matrix",
        labels=tuple(map(str, range(len(counts)))),
        content=Content.counts,
        counts=counts,
        revision="",
        values={},
    )


def unpaired(first: Any, second: Any, *metrics: str, dataset: str = "other") -> list[RunDifference]:
    """The differences of two matrices of different samples, unless their dataset is the same."""
    runs = Runs.align([kept(first, "d"), kept(second, dataset)]).pair(KeptSamples())
    estimands = parse_estimands(metrics, runs.labels, 1)
    comparison = Comparison(runs, estimands, InferenceSettings(rope=0.0), pairs=[(0, 1)])
    return [comparison.differences(index)[0][0] for index in range(len(metrics))]


# Ratios.

RATIOS = ("diagnostic_odds_ratio", "likelihood_ratio_positive", "likelihood_ratio_negative")
GOOD, BETTER = [[80, 20], [20, 80]], [[96, 4], [4, 96]]


def test_ratios_are_tested_by_their_logarithms() -> None:
    odds, positive, negative = unpaired(GOOD, BETTER, *RATIOS)
    z = (np.log(16) - np.log(576)) / np.sqrt(2 / 80 + 2 / 20 + 2 / 96 + 2 / 4)
    assert odds.test.p == pytest.approx(2 * norm.sf(abs(z)), rel=1e-6)
    # The logarithm of a risk ratio has variance 1/a - 1/n + 1/b - 1/m (Katz et al. 1978).
    ratio = (np.log(4) - np.log(24)) / np.sqrt(1 / 80 + 1 / 20 + 1 / 96 + 1 / 4 - 4 / 100)
    assert positive.test.p == pytest.approx(2 * norm.sf(abs(ratio)), rel=1e-6)
    assert negative.test.p == pytest.approx(positive.test.p, rel=1e-6)


@pytest.mark.parametrize("dataset", ["other", "d"])
def test_a_ratio_and_its_logarithm_say_the_same(dataset: str) -> None:
    odds, power = unpaired(GOOD, BETTER, "diagnostic_odds_ratio", "discriminant_power", dataset=dataset)
    assert odds.test.p == pytest.approx(power.test.p, rel=1e-6)
    if dataset == "d":
        assert odds.test.smallest == pytest.approx(power.test.smallest, rel=1e-6)
    else:
        assert odds.test.p == pytest.approx(8e-6, rel=0.1)
    assert odds.first_better == power.first_better < 0.001
    assert odds.test.high < 0
    assert power.test.high < 0


def test_a_ratio_of_nothing_has_no_test() -> None:
    (found,) = unpaired([[80, 20], [0, 100]], GOOD, "likelihood_ratio_negative")
    assert found.value == pytest.approx(-0.25)
    assert np.isnan(found.test.p)
    assert found.test.reason is not None
    assert "logarithm" in found.test.reason
