"""Exact definitions of the metrics of the whole matrix."""

from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.kernel.exact import (
    CLASS,
    PI,
    Number,
    OneVsRest,
    Undefined,
    Whole,
    add,
    average,
    decimal,
    harmonic,
    ln,
    over,
    overall,
    power,
    root,
)
from tests.kernel.exact_classes import f_beta

# Rates as lists.


def _each(w: Whole, key: str) -> list[Any]:
    return [CLASS[key](c) for c in w.classes]


def _recalls(w: Whole) -> list[Any]:
    return _each(w, "recall")


def _mean_of(name: str, key: str) -> None:
    def formula(w: Whole) -> Number:
        return average(_each(w, key))

    formula.__name__ = name
    overall(formula)


for _name, _key in {
    "balanced_accuracy": "recall",
    "macro_fnr": "fnr",
    "macro_precision": "precision",
    "macro_f1": "f1",
    "macro_npv": "npv",
    "macro_jaccard": "jaccard",
    "macro_f1_negative": "f1_negative",
    "macro_specificity": "specificity",
    "macro_fpr": "fpr",
    "average_accuracy": "accuracy_ovr",
    "classification_success_index": "class_success_index",
    "class_balance_accuracy": "braun_blanquet",
}.items():
    _mean_of(_name, _key)


@overall
def macro_f_beta(w: Whole, beta: Number = 1) -> Number:
    value: Number = average(f_beta(c, beta) for c in w.classes)
    return value


@overall
def macro_f1_of_means(w: Whole) -> Number:
    value: Number = harmonic([average(_each(w, "precision")), average(_recalls(w))])
    return value


@overall
def jaccard_sum(w: Whole) -> Number:
    value: Number = add(_each(w, "jaccard"))
    return value


@overall
def survey_balanced_accuracy(w: Whole) -> Number:
    value: Number = (average(_recalls(w)) + average(_each(w, "specificity"))) / 2
    return value


def _weighted(w: Whole, formula: Callable[[OneVsRest], Number]) -> Any:
    """Weighted by the share of the class; a class without samples has no weight, whatever its value."""
    if w.n == 0:
        raise Undefined
    return add(over(c.P, w.n) * formula(c) for c in w.classes if c.P)


@overall
def prevalence_weighted_auc(w: Whole) -> Number:
    return _weighted(w, CLASS["balanced_accuracy_ovr"])


@overall
def weighted_precision(w: Whole) -> Number:
    return _weighted(w, CLASS["precision"])


@overall
def weighted_f1(w: Whole) -> Number:
    return _weighted(w, CLASS["f1"])


@overall
def weighted_f_beta(w: Whole, beta: Number = 1) -> Number:
    return _weighted(w, lambda c: f_beta(c, beta))


@overall
def weighted_jaccard(w: Whole) -> Number:
    return _weighted(w, CLASS["jaccard"])


@overall
def weighted_specificity(w: Whole) -> Number:
    return _weighted(w, CLASS["specificity"])


@overall
def weighted_npv(w: Whole) -> Number:
    return _weighted(w, CLASS["npv"])


@overall
def micro_jaccard(w: Whole) -> Number:
    return over(sum(c.tp for c in w.classes), sum(c.tp + c.fp + c.fn for c in w.classes))


# Counts of the whole and pooled counts.


@overall
def accuracy(w: Whole) -> Number:
    return w.observed


@overall
def error_rate(w: Whole) -> Number:
    return 1 - w.observed


# With 1 for every mistake; other costs are tried in test_costs.


@overall
def expected_cost(w: Whole) -> Number:
    return 1 - w.observed


@overall
def normalized_cost(w: Whole) -> Number:
    constant = w.n - max(c.P for c in w.classes)
    if constant == 0:
        raise Undefined
    return over(w.n - w.trace, constant)


@overall
def cost_savings(w: Whole) -> Number:
    return 1 - normalized_cost(w)


@overall
def zero_one_loss_count(w: Whole) -> Number:
    return w.n - w.trace


def _pooled(w: Whole, name: str) -> Any:
    return add(getattr(c, name) for c in w.classes)


@overall
def micro_specificity(w: Whole) -> Number:
    return over(_pooled(w, "tn"), _pooled(w, "N"))


@overall
def micro_fpr(w: Whole) -> Number:
    return over(_pooled(w, "fp"), _pooled(w, "N"))


@overall
def micro_fnr(w: Whole) -> Number:
    return over(_pooled(w, "fn"), _pooled(w, "P"))


@overall
def micro_npv(w: Whole) -> Number:
    return over(_pooled(w, "tn"), _pooled(w, "M"))


@overall
def micro_f_beta(w: Whole, beta: Number = 1) -> Number:
    found = (1 + beta * beta) * _pooled(w, "tp")
    return over(found, found + beta * beta * _pooled(w, "fn") + _pooled(w, "fp"))


@overall
def global_performance_index(w: Whole) -> Number:
    return add(w.T) / w.K


@overall
def accuracy_standard_error(w: Whole) -> Number:
    return root(w.observed * (1 - w.observed) / w.n)


@overall
def no_information_rate(w: Whole) -> Number:
    return over(max(w.P), w.n)


def log_factorial(number: Number) -> Decimal:
    """ln(number!) by Stirling's series after lifting the argument above 80."""
    z, lift = decimal(number + 1), Decimal(1)
    while z < 80:
        lift *= z
        z += 1
    bernoulli = [
        Fraction(1, 6), Fraction(-1, 30), Fraction(1, 42), Fraction(-1, 30), Fraction(5, 66), Fraction(-691, 2730),
        Fraction(7, 6), Fraction(-3617, 510), Fraction(43867, 798), Fraction(-174611, 330), Fraction(854513, 138),
    ]  # fmt: skip
    series = sum(
        (decimal(b / (2 * k * (2 * k - 1))) / z ** (2 * k - 1) for k, b in enumerate(bernoulli, start=1)), Decimal(0)
    )
    return (z - Decimal("0.5")) * z.ln() - z + (2 * PI).ln() / 2 + series - lift.ln()


@overall
def accuracy_p_value(w: Whole) -> Number:
    """Sum of the binomial terms away from their peak, until they no longer count."""
    share = no_information_rate(w)
    successes, n = int(w.trace), int(w.n)
    if successes == 0 or share == 1:
        return 1
    p = decimal(share)
    q = 1 - p
    upper = successes > n * p
    start, step = (successes, 1) if upper else (successes - 1, -1)
    term = (
        log_factorial(n) - log_factorial(start) - log_factorial(n - start) + start * p.ln() + (n - start) * q.ln()
    ).exp()
    total, j = term, start
    while 0 <= j + step <= n and term > total * Decimal("1e-25"):
        term *= (n - j) * p / ((j + 1) * q) if upper else j * q / ((n - j + 1) * p)
        j += step
        total += term
    return total if upper else 1 - total


# Means of the recalls.


@overall
def adjusted_balanced_accuracy(w: Whole) -> Number:
    chance = Fraction(1, w.K)
    return (average(_recalls(w)) - chance) / (1 - chance)


def _product(values: Iterable[Any]) -> Any:
    result = Fraction(1)
    for value in values:
        result *= value
    return result


@overall
def g_mean(w: Whole) -> Number:
    product = _product(_recalls(w))
    return product if product == 0 else (ln(product) / w.K).exp()


@overall
def h_mean(w: Whole) -> Number:
    return harmonic(_recalls(w))


@overall
def min_recall(w: Whole) -> Number:
    return min(_recalls(w))


@overall
def max_recall(w: Whole) -> Number:
    return max(_recalls(w))


@overall
def recall_range(w: Whole) -> Number:
    return max(_recalls(w)) - min(_recalls(w))


@overall
def power_mean_recall(w: Whole, r: Any = -1) -> Number:
    """Recalls of 0 are limits from above: M_r is 0 for r <= 0."""
    x = _recalls(w)
    if r == 0:
        return g_mean(w)
    if r in (float("inf"), float("-inf")):
        return max(x) if r > 0 else min(x)
    if r < 0 and 0 in x:
        return 0
    mean = average(power(value, r) for value in x)
    return mean if mean == 0 else (ln(mean) / decimal(r)).exp()


@overall
def gini_mean_recall(w: Whole, p: Any = 0, q: Any = -1) -> Number:
    """Limits x -> 0+ where a recall is 0: 0 when a power is negative, or both are 0."""
    x = _recalls(w)
    if 0 in x and (min(p, q) < 0 or p == q == 0 or max(x) == 0):
        return 0
    if p == q:
        weights = [decimal(power(value, p)) for value in x]
        # x^p ln x vanishes with x for p > 0.
        exponent = add(weight * ln(value) for weight, value in zip(weights, x, strict=True) if value) / add(weights)
        return exponent.exp()
    quotient = add(power(value, p) for value in x) / add(power(value, q) for value in x)
    return (ln(quotient) / decimal(p - q)).exp()


@overall
def lehmer_mean_recall(w: Whole, r: Any = -1) -> Number:
    return gini_mean_recall(w, p=r + 1, q=r)


@overall
def quasi_arithmetic_mean_recall(w: Whole) -> Number:
    return ln(average(decimal(x).exp() for x in _recalls(w)))


# General performance scores.


def _dispersion(values: list[Any]) -> Any:
    if 0 in values:
        raise Undefined
    gps = harmonic(values)
    spread = add((1 / value - 1 / gps) ** 2 for value in values)
    return decimal(gps * gps / (len(values) - 1)) * root(spread)


def _gps(name: str, key: str, *, sd: bool) -> None:
    def formula(w: Whole) -> Number:
        return harmonic(_each(w, key))

    def dispersion(w: Whole) -> Number:
        return _dispersion(_each(w, key))

    for function, suffix in ((formula, ""), (dispersion, "_sd")) if sd else ((formula, ""),):
        function.__name__ = name + suffix
        overall(function)


@overall
def gps_recall_sd(w: Whole) -> Number:
    return _dispersion(_recalls(w))


_gps("gps_precision", "precision", sd=True)
_gps("gps_npv", "npv", sd=True)
_gps("gps_upm", "upm", sd=True)
_gps("gps_specificity", "specificity", sd=False)


@overall
def gps_upm_ordered(w: Whole) -> Number:
    """Every cut as a 2 x 2 matrix of its own."""
    scores = []
    for cut in range(1, w.K):
        sides = (range(cut), range(cut, w.K))
        cells = [[add(w.cells[i][j] for i in rows for j in columns) for columns in sides] for rows in sides]
        scores.append(CLASS["upm"](OneVsRest(cells, 0)))
    return harmonic(scores)
