"""Reasons for which a metric has no value. A card lists them in the order in which they explain a missing value.

``{label}`` in a reason is the class; for an overall metric, the classes at fault.
"""

from collections.abc import Callable

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Condition
from app.kernel.numerics.arrays import Mask


def _where(code: str, reason: str, holds: Callable[[Table], Mask]) -> Condition:
    return Condition(code, reason, holds)


def _overall(code: str, reason: str, holds: Callable[[Table], Mask]) -> Condition:
    return Condition(code, reason, holds, overall=True)


NO_SAMPLES = _overall("no_samples", "the matrix holds no samples", lambda t: t.n == 0)

NO_ACTUAL = _where("no_actual_samples", "class {label} has no actual samples", lambda t: t.actual == 0)
NO_REST = _where("no_other_samples", "every sample belongs to class {label}", lambda t: t.rest == 0)
NEVER_PREDICTED = _where("never_predicted", "class {label} is never predicted", lambda t: t.predicted == 0)
ALWAYS_PREDICTED = _where(
    "always_predicted", "every sample is predicted as class {label}", lambda t: t.predicted_rest == 0
)
ABSENT = _where(
    "absent_class", "class {label} occurs neither in the data nor in the predictions", lambda t: t.margins == 0
)
UNIVERSAL = _where(
    "universal_class",
    "class {label} is all there is, in the data and in the predictions",
    lambda t: (t.rest == 0) & (t.predicted_rest == 0),
)
NOTHING_CORRECT = _where(
    "nothing_correct",
    "no member and no non-member of class {label} is classified correctly",
    lambda t: (t.tp == 0) & (t.tn == 0),
)

NO_FALSE_POSITIVES = _where(
    "infinite", "class {label} has no false positive, so the ratio is infinite", lambda t: t.fp == 0
)
NO_TRUE_NEGATIVES = _where(
    "infinite", "class {label} has no true negative, so the ratio is infinite", lambda t: t.tn == 0
)
NO_TRUE_POSITIVES = _where(
    "infinite", "class {label} has no true positive, so the logarithm is infinite", lambda t: t.tp == 0
)
NO_ONE_SIDED_ERROR = _where(
    "infinite",
    "class {label} has no false positive or no false negative, so the odds ratio is infinite",
    lambda t: (t.fp == 0) | (t.fn == 0),
)
A_RATE_AT_ITS_END = _where(
    "infinite",
    "recall or specificity of class {label} is exactly 0 or 1, where the transformation is infinite",
    lambda t: (t.tp == 0) | (t.fn == 0) | (t.fp == 0) | (t.tn == 0),
)

ONE_ACTUAL_CLASS = _overall("one_actual_class", "all samples belong to one class", lambda t: t.largest == t.n)
ONE_PREDICTED_CLASS = _overall(
    "one_predicted_class",
    "all samples are predicted as one class",
    lambda t: t.largest_predicted == t.n,
)
CHANCE_IS_CERTAIN = _overall(
    "chance_agreement_is_one",
    "all samples are of one class and predicted as that class, so agreement by chance is already complete",
    lambda t: t.chance_disagreement == 0,
)
POOLED_CHANCE_IS_CERTAIN = _overall(
    "chance_agreement_is_one",
    "all samples are of one class and predicted as that class, so agreement by chance is already complete",
    lambda t: t.pooled_disagreement == 0,
)
A_RECALL_IS_ZERO = _where(
    "zero_part", "class {label} has recall 0, so the harmonic mean is 0 and has no dispersion", lambda t: t.recall == 0
)
A_PRECISION_IS_ZERO = _where(
    "zero_part",
    "class {label} has precision 0, so the harmonic mean is 0 and has no dispersion",
    lambda t: t.precision == 0,
)
AN_NPV_IS_ZERO = _where(
    "zero_part", "class {label} has NPV 0, so the harmonic mean is 0 and has no dispersion", lambda t: t.npv == 0
)
A_UPM_IS_ZERO = _where(
    "zero_part", "class {label} has UPM 0, so the harmonic mean is 0 and has no dispersion", lambda t: t.upm == 0
)
NOT_PREDICTED_THOUGH_ACTUAL = _where(
    "never_predicted",
    "class {label} has actual samples but is never predicted",
    lambda t: (t.predicted == 0) & (t.actual > 0),
)
INFINITE_MARGIN_RATIO = _where(
    "infinite",
    "class {label} has actual samples but is never predicted, so the logarithm is infinite",
    lambda t: (t.predicted == 0) & (t.actual > 0),
)
AN_EMPTY_CLASS_IS_INFINITE = _where(
    "infinite",
    "class {label} has no actual samples, so the ratio is infinite",
    lambda t: (t.actual == 0) & (t.n_each > 0),
)
MARGINS = (NO_ACTUAL, NO_REST, NEVER_PREDICTED, ALWAYS_PREDICTED)
