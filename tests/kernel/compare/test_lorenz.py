"""The order of recalls against the means that it speaks for."""

import numpy as np
from scipy.stats import gmean, hmean, pmean

from app.kernel.compare.cost_ratios import lorenz_order

MEANS = (np.mean, gmean, hmean, np.min, lambda x: pmean(x, -5), lambda x: pmean(x, 0.5))


def test_all_means_agree_where_there_is_an_order() -> None:
    random = np.random.default_rng(4)
    seen: dict[int | None, int] = {}
    for _ in range(300):
        first, second = random.integers(1, 20, (2, 3)) / 20
        order = lorenz_order(first, second)
        seen[order] = seen.get(order, 0) + 1
        assert lorenz_order(second, first) == (None if order is None else -order)
        if order is not None:
            for mean in MEANS:
                assert order * (mean(first) - mean(second)) >= -1e-12
    assert min(seen.get(order, 0) for order in (1, -1, None)) > 50


def test_without_an_order_some_mean_disagrees() -> None:
    """Sums of min(x, t) over the rates are such means, and there is an order only where all of them agree."""
    random = np.random.default_rng(5)
    for _ in range(300):
        first, second = random.integers(1, 20, (2, 4)) / 20
        if lorenz_order(first, second) is None:
            signs = {
                int(np.sign(round(float(np.minimum(first, t).sum() - np.minimum(second, t).sum()), 9)))
                for t in np.linspace(0.05, 1, 20)
            }
            assert {1, -1} <= signs


def test_the_same_rates_in_any_order_are_equal() -> None:
    assert lorenz_order(np.array([0.3, 0.1, 0.2]), np.array([0.1, 0.2, 0.3])) == 0
    # A transfer from a strong class to a weak one: the same mean, less inequality.
    assert lorenz_order(np.array([0.5, 0.7]), np.array([0.4, 0.8])) == 1
    assert lorenz_order(np.array([0.5, 0.6]), np.array([0.4, 0.8])) is None
