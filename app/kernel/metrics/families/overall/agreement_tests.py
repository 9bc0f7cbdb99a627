"""What tests of agreement say, where an expression asks for it."""

from functools import partial

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Orientation, Prevalence, Scope, metric
from app.kernel.metrics.conditions import NO_CLASS_IN_COMMON, NO_SAMPLES, ONE_ACTUAL_CLASS, ONE_PREDICTED_CLASS
from app.kernel.numerics.arrays import Array, inner, total

_statistic = partial(
    metric,
    scope=Scope.OVERALL,
    prevalence=Prevalence.SENSITIVE,
    ideal=None,
    orientation=Orientation.DESCRIPTIVE,
    degree=None,
    on_request=True,
    about_sample=True,
)


@_statistic(
    name="z test statistic of kappa",
    symbol="z",
    formula=r"\frac{\kappa}{\sigma_0},\quad \sigma_0=\frac{\sqrt{p_e+p_e^2-\sum_i p_{i\cdot}p_{\cdot i}"
    r"(p_{i\cdot}+p_{\cdot i})}}{(1-p_e)\sqrt{n}}",
    sentence="Kappa in standard errors that it would have were there no agreement beyond chance: beyond 1.96 or below "
    "-1.96 it differs from 0 at 5 %, two-sided.",
    range=(None, None),
    symmetric=True,
    undefined=(NO_SAMPLES, ONE_ACTUAL_CLASS, ONE_PREDICTED_CLASS, NO_CLASS_IN_COMMON),
    references=("fleiss1969",),
)
def kappa_z(t: Table) -> Array:
    # In counts, as a sum of terms of which none is below 0.
    both = t.actual * t.predicted
    chance = total(both)
    spread = inner(both, t.rest * t.predicted_rest + (chance[..., None] - both))
    return (t.n * t.correct - chance) * np.sqrt(t.n / spread)
