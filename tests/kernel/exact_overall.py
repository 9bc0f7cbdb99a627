"""Exact definitions of the metrics of the whole matrix."""

from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.kernel.exact import (
    CLASS,
    PI,
    Infinite,
    Number,
    OneVsRest,
    Undefined,
    Whole,
    add,
    average,
    decimal,
    harmonic,
    ln,
    log2,
    over,
    overall,
    plogp,
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
def weighted_jaccard(w: Whole) -> Number:
    return _weighted(w, CLASS["jaccard"])


# Counts of the whole and pooled counts.


@overall
def accuracy(w: Whole) -> Number:
    return w.observed


@overall
def error_rate(w: Whole) -> Number:
    return 1 - w.observed


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


def _log_factorial(number: int) -> Decimal:
    """ln(number!) by Stirling's series after lifting the argument above 80."""
    z, lift = Decimal(number + 1), Decimal(1)
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
        _log_factorial(n) - _log_factorial(start) - _log_factorial(n - start) + start * p.ln() + (n - start) * q.ln()
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


# Agreement.


def _beyond(observed: Number, chance: Number) -> Any:
    return over(observed - chance, 1 - chance)


@overall
def mcc(w: Whole) -> Number:
    """Gorodkin's R_K as the covariance of indicator variables."""
    covariance = w.n * w.trace - add(p * t for p, t in zip(w.P, w.T, strict=True))
    actual = w.n * w.n - add(p * p for p in w.P)
    predicted = w.n * w.n - add(t * t for t in w.T)
    return over(decimal(covariance), root(actual) * root(predicted))


@overall
def cohen_kappa(w: Whole) -> Number:
    return _beyond(w.observed, w.chance)


@overall
def scott_pi(w: Whole) -> Number:
    return _beyond(w.observed, w.pooled_chance)


@overall
def bennett_s(w: Whole) -> Number:
    return _beyond(w.observed, Fraction(1, w.K))


@overall
def kappa_no_prevalence(w: Whole) -> Number:
    return 2 * w.observed - 1


@overall
def gwet_ac1(w: Whole) -> Number:
    shares = [over(p + t, 2 * w.n) for p, t in zip(w.P, w.T, strict=True)]
    return _beyond(w.observed, add(s * (1 - s) for s in shares) / (w.K - 1))


@overall
def krippendorff_alpha(w: Whole) -> Number:
    small = Fraction(1) / (2 * w.n)
    return _beyond((1 - small) * w.observed + small, w.pooled_chance)


def _disagreement(weights: str, i: int, j: int) -> int:
    return abs(i - j) if weights == "linear" else (i - j) ** 2


@overall
def weighted_kappa(w: Whole, weights: str = "linear") -> Number:
    pairs = [(i, j) for i in range(w.K) for j in range(w.K)]
    observed = add(_disagreement(weights, i, j) * w.cells[i][j] for i, j in pairs)
    expected = add(_disagreement(weights, i, j) * w.P[i] * w.T[j] for i, j in pairs)
    return 1 - over(observed * w.n, expected)


@overall
def weighted_alpha(w: Whole, weights: str = "linear") -> Number:
    """PyCM's definition; with all samples in one cell it is 0/0 like the other chance-corrected ones."""
    largest = _disagreement(weights, 0, w.K - 1)
    small = Fraction(1) / (2 * w.n)
    observed, chance = Fraction(0), Fraction(0)
    for i in range(w.K):
        for j in range(w.K):
            credit = 1 - Fraction(_disagreement(weights, i, j), largest)
            observed += credit * w.cells[i][j] / w.n
            chance += credit * ((w.P[i] + w.T[j]) / (2 * w.n)) ** 2
    return _beyond((1 - small) * observed + small, chance)


@overall
def bangdiwala_b(w: Whole) -> Number:
    return over(add(c.tp * c.tp for c in w.classes), add(c.P * c.T for c in w.classes))


@overall
def expected_accuracy(w: Whole) -> Number:
    return w.chance


@overall
def expected_accuracy_unbiased(w: Whole) -> Number:
    return w.pooled_chance


@overall
def kappa_standard_error(w: Whole) -> Number:
    if w.chance == 1:
        raise Undefined
    return root(w.observed * (1 - w.observed) / (w.n * (1 - w.chance) ** 2))


@overall
def adjusted_rand(w: Whole) -> Number:
    def pairs(count: Fraction) -> Fraction:
        return count * (count - 1) / 2

    together = add(pairs(cell) for row in w.cells for cell in row)
    rows, columns = add(pairs(p) for p in w.P), add(pairs(t) for t in w.T)
    expected = over(rows * columns, pairs(w.n))
    return over(together - expected, (rows + columns) / 2 - expected)


# Information and association.


def _entropy(shares: Iterable[Any]) -> Decimal:
    return -sum((plogp(share) for share in shares), Decimal(0))


def _shares(counts: Iterable[Any], n: Any) -> list[Any]:
    return [over(count, n) for count in counts]


@overall
def response_entropy(w: Whole) -> Number:
    return _entropy(_shares(w.T, w.n))


@overall
def reference_entropy(w: Whole) -> Number:
    return _entropy(_shares(w.P, w.n))


@overall
def normalized_reference_entropy(w: Whole) -> Number:
    return reference_entropy(w) / log2(w.K)


@overall
def joint_entropy(w: Whole) -> Number:
    return _entropy(_shares((cell for row in w.cells for cell in row), w.n))


@overall
def conditional_entropy(w: Whole) -> Number:
    return sum(
        (decimal(over(p, w.n)) * _entropy(_shares(row, p)) for p, row in zip(w.P, w.cells, strict=True) if p),
        Decimal(0),
    )


@overall
def mutual_information(w: Whole) -> Number:
    return sum(
        (
            decimal(over(cell, w.n)) * log2(over(cell * w.n, w.P[i] * w.T[j]))
            for i, row in enumerate(w.cells)
            for j, cell in enumerate(row)
            if cell
        ),
        Decimal(0),
    )


@overall
def relative_classifier_information(w: Whole) -> Number:
    if max(w.P) == w.n:
        raise Undefined
    return over(mutual_information(w), reference_entropy(w))


@overall
def cross_entropy_margins(w: Whole) -> Number:
    if any(p and not t for p, t in zip(w.P, w.T, strict=True)):
        raise Infinite(1)
    return -sum((decimal(over(p, w.n)) * log2(over(t, w.n)) for p, t in zip(w.P, w.T, strict=True) if p), Decimal(0))


@overall
def kl_divergence_margins(w: Whole) -> Number:
    if any(p and not t for p, t in zip(w.P, w.T, strict=True)):
        raise Infinite(1)
    return sum((decimal(over(p, w.n)) * log2(over(p, t)) for p, t in zip(w.P, w.T, strict=True) if p), Decimal(0))


@overall
def lambda_a(w: Whole) -> Number:
    return over(add(max(column) for column in zip(*w.cells, strict=True)) - max(w.P), w.n - max(w.P))


@overall
def lambda_b(w: Whole) -> Number:
    return over(add(max(row) for row in w.cells) - max(w.T), w.n - max(w.T))


@overall
def chi_squared(w: Whole) -> Number:
    return add(
        over((cell - w.P[i] * w.T[j] / w.n) ** 2, w.P[i] * w.T[j] / w.n)
        for i, row in enumerate(w.cells)
        for j, cell in enumerate(row)
    )


@overall
def chi_squared_df(w: Whole) -> Number:
    return (w.K - 1) ** 2


@overall
def phi_squared(w: Whole) -> Number:
    return chi_squared(w) / w.n


@overall
def cramer_v(w: Whole) -> Number:
    return root(chi_squared(w) / w.n / (w.K - 1))


@overall
def pearson_c(w: Whole) -> Number:
    return root(chi_squared(w) / (w.n + chi_squared(w)))


@overall
def overall_confusion_entropy(w: Whole) -> Number:
    """An absent class has no entropy, and no weight either."""
    return add(
        decimal(over(c.P + c.T, 2 * w.n)) * decimal(CLASS["confusion_entropy"](c)) for c in w.classes if c.P + c.T
    )


@overall
def overall_modified_confusion_entropy(w: Whole) -> Number:
    mass = 2 * w.n - (w.trace if w.K > 2 else 0)
    present = [c for c in w.classes if c.P + c.T]
    return add(decimal(over(c.P + c.T - c.tp, mass)) * decimal(CLASS["modified_confusion_entropy"](c)) for c in present)


@overall
def imbalance_ratio(w: Whole) -> Number:
    return over(max(w.P), min(w.P))


@overall
def aickin_alpha(w: Whole, steps: int = 20_000) -> Number:
    """Aickin's iteration as published, its limit taken by Aitken's extrapolation; a share, so none below chance.

    Where all confusions go one way p_e tends to 0 and alpha to p_o, so slowly that the limit is written down
    (``test_aickin_alpha_tends_to_accuracy`` watches it).
    """
    if w.trace == w.n or cohen_kappa(w) == 0:
        return cohen_kappa(w)
    if cohen_kappa(w) < 0:
        raise Undefined
    if add(max(c.fn - c.fp, Fraction(0)) for c in w.classes) == w.n - w.trace:
        return w.observed
    p, t = ([decimal(over(count, w.n)) for count in counts] for counts in (w.P, w.T))
    observed = decimal(w.observed)
    a, b = list(t), list(p)
    history: list[Decimal] = []
    last = Decimal(9)
    for _ in range(steps):
        chance = sum((x * y for x, y in zip(a, b, strict=True)), Decimal(0))
        alpha = over(observed - chance, 1 - chance)
        history.append(alpha)
        if len(history) > 2 and (limit := _aitken(*history[-3:])) is not None:
            if abs(limit - last) <= abs(limit) * Decimal("1e-17"):
                return limit
            last = limit
        a = [x / ((1 - alpha) + alpha * y / chance) for x, y in zip(t, b, strict=True)]
        b = [y / ((1 - alpha) + alpha * x / chance) for x, y in zip(a, p, strict=True)]
    raise Undefined


def _aitken(first: Decimal, second: Decimal, third: Decimal) -> Decimal | None:
    bend = third - 2 * second + first
    return third if bend == 0 else third - (third - second) ** 2 / bend
