"""One rate at the threshold where another has a given value: what is asked of a test before a threshold is chosen."""

from functools import partial

import numpy as np

from app.kernel.metrics.card import Inputs, Prevalence, Scope, metric
from app.kernel.metrics.conditions import NO_ACTUAL, NO_REST
from app.kernel.metrics.parameters import Number
from app.kernel.numerics.arrays import Array
from app.kernel.samples.operating_points import precision_at_recall, recall_at_specificity, specificity_at_recall
from app.kernel.samples.scores import Scores

_rate = partial(
    metric,
    scope=Scope.CLASS,
    inputs=Inputs.PROBABILITIES,
    prevalence=Prevalence.INSENSITIVE_BINARY,
    undefined=(NO_ACTUAL, NO_REST),
    references=("pepe2003", "robin2011"),
    on_request=True,
)


@_rate(
    name="recall at a specificity",
    formula=r"\max_t \{\mathrm{TPR}(t) : \mathrm{TNR}(t) \ge s\}",
    sentence="Highest recall of the thresholds whose specificity is at least the given one, on these samples.",
    aliases=("sensitivity_at",),
    elsewhere={"torchmetrics": "BinarySensitivityAtSpecificity"},
    parameters=(Number("specificity", 0.9, "smallest specificity", minimum=0.0, maximum=1.0),),
)
def recall_at(s: Scores, specificity: float = 0.9) -> Array:
    return np.stack([recall_at_specificity(ranking, specificity) for ranking in s.rankings], axis=-1)


@_rate(
    name="specificity at a recall",
    formula=r"\max_t \{\mathrm{TNR}(t) : \mathrm{TPR}(t) \ge r\}",
    sentence="Highest specificity of the thresholds whose recall is at least the given one, on these samples.",
    elsewhere={"torchmetrics": "BinarySpecificityAtSensitivity"},
    parameters=(Number("recall", 0.9, "smallest recall", minimum=0.0, maximum=1.0),),
)
def specificity_at(s: Scores, recall: float = 0.9) -> Array:
    return np.stack([specificity_at_recall(ranking, recall) for ranking in s.rankings], axis=-1)


@_rate(
    name="precision at a recall",
    prevalence=Prevalence.SENSITIVE,
    formula=r"\max_t \{\mathrm{PPV}(t) : \mathrm{TPR}(t) \ge r\}",
    sentence="Highest precision of the thresholds whose recall is at least the given one, on these samples.",
    elsewhere={"torchmetrics": "BinaryPrecisionAtFixedRecall"},
    parameters=(Number("recall", 0.8, "smallest recall", above=0.0, maximum=1.0),),
    undefined=(NO_ACTUAL,),
    references=("davis2006",),
)
def precision_at(s: Scores, recall: float = 0.8) -> Array:
    return np.stack([precision_at_recall(ranking, recall) for ranking in s.rankings], axis=-1)
