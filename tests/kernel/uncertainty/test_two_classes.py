"""The exact posterior of two recalls against published limits and against draws."""

import numpy as np
import pytest

from app.kernel.metrics.catalogue import catalogue
from app.kernel.uncertainty.draws import Prior
from app.kernel.uncertainty.simulation import RowPosterior
from tests.kernel.uncertainty.resampled import posterior_intervals
from tests.kernel.uncertainty.two_classes import BOUNDARIES, mean_cdf, mean_limits

TWO = np.array([[40.0, 10.0], [5.0, 45.0]])


@pytest.mark.parametrize(
    ("key", "prior", "expected"),
    [
        ("balanced_accuracy", Prior.EDGE, (0.7755, 0.9120)),
        ("h_mean", Prior.EDGE, (0.7656, 0.9107)),
        ("balanced_accuracy", Prior.UNIFORM, (0.7613, 0.9002)),
    ],
)
def test_published_limits(key: str, prior: Prior, expected: tuple[float, float]) -> None:
    assert mean_limits(TWO, key, prior=prior) == pytest.approx(expected, abs=6e-5)


@pytest.mark.parametrize("key", BOUNDARIES)
@pytest.mark.parametrize("counts", [TWO, np.array([[90.0, 5.0], [4.0, 1.0]]), np.array([[20.0, 0.0], [3.0, 9.0]])])
def test_draws_converge_to_the_exact_limits(
    key: str, counts: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
) -> None:
    (drawn,) = posterior_intervals(
        RowPosterior(counts), [catalogue().of_matrices.by_name[key].compute], seed=3, draws=60_000
    )
    tolerance = 5 * float(drawn.monte_carlo_error[0]) + 1e-4
    assert mean_limits(counts, key) == pytest.approx((float(drawn.low[0]), float(drawn.high[0])), abs=tolerance)


def test_distribution_function_rises_from_zero_to_one() -> None:
    for key in BOUNDARIES:
        found = mean_cdf(TWO, key, np.linspace(0.0, 1.0, 101))
        assert found[0] == pytest.approx(0.0, abs=1e-9)
        assert found[-1] == pytest.approx(1.0, abs=1e-9)
        assert (np.diff(found) >= -1e-12).all()
