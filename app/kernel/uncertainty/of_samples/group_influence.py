"""Metrics that are sums over samples in groups: what adds up to the variance are the sums of each group."""

from dataclasses import replace

import numpy as np

from app.kernel.numerics.arrays import kish_effective_n, silently
from app.kernel.numerics.special import student_quantile
from app.kernel.samples.influence import LinearMethod
from app.kernel.samples.losses import sums_by_code
from app.kernel.uncertainty.of_groups.clusters import Grouping, Groups, wilson_of_variance
from app.kernel.uncertainty.of_matrices.closed_forms import Method
from app.kernel.uncertainty.of_samples.influence import Linearisation, limits_on_scale, variance


def by_groups(linear: Linearisation, grouping: Grouping) -> Linearisation:
    """The same metric with what each group (G) adds to its sampling error.

    Influences are summed within the groups, with G/(G-1) for the groups that have any (Liang & Zeger 1986, Obuchowski
    1997 for areas). Degrees of freedom are those of as many groups of equal size as are worth as much. NaN where all is
    in one group.
    """
    about, sums = linear.about, linear.influence
    if about is None:
        about = sums_by_code(grouping.codes, linear.influence != 0, grouping.n_groups)
        sums = sums_by_code(grouping.codes, linear.influence, grouping.n_groups)
    concerned = np.count_nonzero(about)
    if concerned == 1:
        return replace(linear, influence=np.full(sums.size, np.nan), freedom=0.0)
    factor = (concerned / (concerned - 1.0)) ** 0.5 if concerned else 1.0
    freedom = kish_effective_n(about) - 1.0 if concerned else 1.0
    return replace(linear, influence=factor * sums, freedom=min(linear.freedom, freedom))


def group_limits(linear: Linearisation, n_samples: int, level: float = 0.95) -> tuple[float, float] | None:
    """Ends of the interval of a metric that ``by_groups`` gave; None where it is undefined or has no variance."""
    value, spread = linear.value, variance(linear)
    if np.isnan(value) or np.isnan(spread):
        return None
    if linear.method is LinearMethod.WILSON:
        rate, total, squares, groups = map(np.asarray, (value, float(n_samples), spread, linear.freedom + 1.0))
        low, high = wilson_of_variance(rate, total, squares, Groups(groups, groups), level)
        return float(low), float(high)
    if spread == 0.0:
        return None
    with silently():
        half_width = float(student_quantile((1.0 + level) / 2.0, linear.freedom)) * spread**0.5
    return limits_on_scale(linear, half_width)


def group_method(linear: Linearisation) -> str:
    """What these limits are called."""
    return Method.GROUPED_WILSON.value if linear.method is LinearMethod.WILSON else f"cluster_{linear.method.value}"
