"""Every metric against the definitions in exact arithmetic, on every matrix: empty rows, empty columns and one-class
data included.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tests.kernel.exact_agreement
import tests.kernel.exact_classes
import tests.kernel.exact_information
import tests.kernel.exact_overall
import tests.kernel.exact_similarity  # noqa: F401 - importing them fills CLASS and OVERALL
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Inputs, Metric, Scope
from app.kernel.metrics.catalogue import catalogue
from tests.bank import each
from tests.kernel.closeness import CANCELLING, RELATIVE, assert_close, value_of
from tests.kernel.exact import CLASS, OVERALL, Whole, decimal, fractions, settle
from tests.kernel.matrices import matrices

METRICS = tuple(metric for metric in catalogue().of_matrices.metrics if metric.card.inputs is Inputs.MATRIX)
NAMED = {metric.key: metric for metric in METRICS}


@cache
def whole(name: str) -> Whole:
    return Whole(fractions(matrices()[name]))


def of(metric: Metric[Table], exact: Whole, **parameters: Any) -> Any:
    """One value per class, or a single one."""
    if metric.card.scope is Scope.CLASS:
        return [settle(partial(CLASS[metric.key], c, **parameters)) for c in exact.classes]
    return settle(partial(OVERALL[metric.key], exact, **parameters))


def witness(metric: Metric[Table], name: str, **parameters: Any) -> Any:
    return of(metric, whole(name), **parameters)


def test_every_metric_has_an_exact_definition() -> None:
    """A metric added without an independent witness fails here."""
    assert set(CLASS) == {metric.key for metric in METRICS if metric.card.scope is Scope.CLASS}
    assert set(OVERALL) == {metric.key for metric in METRICS if metric.card.scope is Scope.OVERALL}


def floor_of(metric: Metric[Table], counts: NDArray[Any]) -> float:
    """The absolute error of what is a difference: the standard library's quantile near 0, Fager's and McGowan's two
    terms, and logarithms of factorials, which are as large as n ln n while what is left of them is not.
    """
    if metric.key == "gilbert_wells":
        n = float(counts.sum())
        return 4e-15 * n * math.log(n + 1.0)
    return CANCELLING if metric.key in ("sensitivity_index", "fager_mcgowan") else 0.0


# Exact arithmetic of many classes takes seconds for each matrix; other libraries see these in every run.
LARGE = [name for name in matrices() if int(name.split("-")[1]) > 5 and name != "sparse-12-0"]
USUAL = [name for name in matrices() if name not in LARGE]


@each("name", USUAL)
def test_default_parameters(name: str) -> None:
    check_default_parameters(name)


@pytest.mark.slow
@each("name", LARGE)
def test_default_parameters_of_many_classes(name: str) -> None:
    check_default_parameters(name)


def check_default_parameters(name: str) -> None:
    for metric in METRICS:
        floor = floor_of(metric, matrices()[name])
        assert_close(metric, value_of(metric, matrices()[name]), witness(metric, name), absolute=floor, where=name)


PARAMETERS: list[tuple[str, dict[str, Any]]] = [
    *(
        (key, {"beta": beta})
        for key in ("f_beta", "f_beta_negative", "macro_f_beta", "weighted_f_beta", "weighted_h_mean")
        for beta in (2.0, 0.5, 1e-3)
    ),
    ("micro_f_beta", {"beta": 3.0}),
    *(
        (key, {"weight": w})
        for key in ("weighted_balanced_accuracy", "weighted_g_mean")
        for w in (0.0, 0.25, 0.75, 1.0)
    ),
    *(("index_balanced_accuracy", {"alpha": alpha}) for alpha in (0.0, 0.1, 0.5)),
    *(("tversky_index", {"alpha": a, "beta": b}) for a, b in ((0.25, 0.75), (1.0, 1.0), (2.0, 0.125))),
    *(("net_benefit", {"threshold": t}) for t in (0.0, 0.125, 0.75)),
    *((key, {"weights": "quadratic"}) for key in ("weighted_kappa", "weighted_alpha")),
    *(
        ("power_mean_recall", {"r": r})
        for r in (0.0, 1.0, 2.0, -3.0, 0.5, -0.5, 1e-3, -1e-3, 30.0, -30.0, math.inf, -math.inf)
    ),
    *(
        ("gini_mean_recall", {"p": p, "q": q})
        for p, q in (
            (0.0, 0.0),
            (1.0, 0.0),
            (2.0, 1.0),
            (0.0, -1.0),
            (1.0, -1.0),
            (-1.0, -2.0),
            (1.0, 1.0),
            (0.5, 0.5),
            (-1.0, -1.0),
        )
    ),
    *(("lehmer_mean_recall", {"r": r}) for r in (0.0, -0.5, 1.0, -2.0, 2.0)),
]
# Roots and powers of decimals are slow: the parameters are tried on the small matrices.
SMALL = [name for name in matrices() if int(name.split("-")[1]) <= 5 and name.endswith("-0")]


@each(("key", "parameters"), PARAMETERS, ids=[f"{key}-{list(p.values())}" for key, p in PARAMETERS])
def test_other_parameters(key: str, parameters: dict[str, Any]) -> None:
    exact_parameters = {
        name: Fraction(value) if isinstance(value, float) and math.isfinite(value) else value
        for name, value in parameters.items()
    }
    for name in SMALL:
        got = value_of(NAMED[key], matrices()[name], **parameters)
        assert_close(NAMED[key], got, witness(NAMED[key], name, **exact_parameters), where=name)


def test_quasi_arithmetic_means_are_the_means_they_generate() -> None:
    metric = NAMED["quasi_arithmetic_mean_recall"]
    for name in SMALL:
        for generator, key, parameters in (
            ("log", "g_mean", {}),
            ("reciprocal", "h_mean", {}),
            ("identity", "balanced_accuracy", {}),
            ("power", "power_mean_recall", {"r": Fraction(5, 2)}),
        ):
            got = value_of(metric, matrices()[name], generator=generator, exponent=2.5)
            assert_close(metric, got, witness(NAMED[key], name, **parameters), where=f"{name} {generator}")


def test_present_classes_only_is_the_mean_over_the_classes_that_occur() -> None:
    means: dict[str, Callable[[list[Fraction]], Any]] = {
        "balanced_accuracy": lambda x: sum(x) / len(x),
        "g_mean": lambda x: float(decimal(math.prod(x)) ** (Decimal(1) / len(x))),
        "h_mean": lambda x: 0 if 0 in x else len(x) / sum(1 / value for value in x),
        "min_recall": min,
        "max_recall": max,
    }
    for name in SMALL:
        recalls = [c.tpr for c in whole(name).classes if c.P]
        for key, mean in means.items():
            got = value_of(NAMED[key], matrices()[name], classes="present")
            assert_close(NAMED[key], got, float(mean(recalls)), where=name)


def _or_zero(top: Any, bottom: Any) -> Any:
    return top / bottom if bottom else Fraction(0)


# Averages over the classes, and what they average.
AVERAGED: dict[str, Callable[[Any], Any]] = {
    "balanced_accuracy": lambda c: _or_zero(c.tp, c.P),
    "macro_precision": lambda c: _or_zero(c.tp, c.T),
    "macro_specificity": lambda c: _or_zero(c.tn, c.n - c.P),
    "macro_npv": lambda c: _or_zero(c.tn, c.n - c.T),
    "macro_f1": lambda c: _or_zero(2 * c.tp, c.P + c.T),
    "macro_f_beta": lambda c: _or_zero(2 * c.tp, c.P + c.T),
    "macro_f1_negative": lambda c: _or_zero(2 * c.tn, 2 * c.n - c.P - c.T),
    "macro_jaccard": lambda c: _or_zero(c.tp, c.P + c.T - c.tp),
    "class_balance_accuracy": lambda c: _or_zero(c.tp, max(c.P, c.T)),
    "survey_balanced_accuracy": lambda c: (_or_zero(c.tp, c.P) + _or_zero(c.tn, c.n - c.P)) / 2,
}
WEIGHTED: dict[str, Callable[[Any], Any]] = {
    "weighted_precision": AVERAGED["macro_precision"],
    "weighted_f1": AVERAGED["macro_f1"],
    "weighted_f_beta": AVERAGED["macro_f_beta"],
    "weighted_jaccard": AVERAGED["macro_jaccard"],
    "prevalence_weighted_auc": AVERAGED["survey_balanced_accuracy"],
    "weighted_specificity": AVERAGED["macro_specificity"],
    "weighted_npv": AVERAGED["macro_npv"],
}


@each("key", [*AVERAGED, *WEIGHTED])
def test_counting_undefined_as_zero(key: str) -> None:
    """As scikit-learn does with ``zero_division=0``."""
    for name in matrices():
        classes = whole(name).classes
        weights = [c.P if key in WEIGHTED else 1 for c in classes]
        part = (AVERAGED | WEIGHTED)[key]
        want = sum(weight * part(c) for weight, c in zip(weights, classes, strict=True)) / Fraction(sum(weights))
        assert_close(NAMED[key], value_of(NAMED[key], matrices()[name], undefined="zero"), float(want), where=name)


def test_every_average_can_count_undefined_as_zero() -> None:
    found = {key for key, metric in NAMED.items() if "undefined" in metric.card.defaults}
    assert found == {*AVERAGED, *WEIGHTED, "macro_f1_of_means"}
    for name in matrices():
        counts = matrices()[name]
        recall, precision = (
            value_of(NAMED[key], counts, undefined="zero") for key in ("balanced_accuracy", "macro_precision")
        )
        want = 2 * recall * precision / (recall + precision) if recall + precision else 0.0
        got = value_of(NAMED["macro_f1_of_means"], counts, undefined="zero")
        assert_close(NAMED["macro_f1_of_means"], got, want, where=name)


def test_weights_and_rates_are_as_good_as_counts() -> None:
    """Entries need not be whole numbers."""
    rng = np.random.default_rng(5)
    # The binomial tail at real counts is the incomplete beta function, which has no exact definition to compare with.
    metrics = [metric for metric in METRICS if metric.key != "accuracy_p_value"]
    for classes in (2, 4):
        counts = rng.integers(1, 5000, (classes, classes)) / 64.0
        exact = Whole(fractions(counts))
        for metric in metrics:
            want = of(metric, exact)
            floor = floor_of(metric, counts)
            got = value_of(metric, counts)
            assert_close(metric, got, want, relative=2 * RELATIVE, absolute=floor, where=f"weights K={classes}")


def test_aickin_alpha_tends_to_accuracy() -> None:
    """Where every confusion goes the same way the published iteration creeps up to p_o: sublinearly, so no epsilon
    stops it there.
    """
    counts = np.array([[37.0, 6.0], [0.0, 11.0]])
    actual, predicted, observed = counts.sum(1) / 54, counts.sum(0) / 54, 48 / 54
    a, b, path = predicted, actual, []
    for _ in range(20_000):
        chance = float(a @ b)
        alpha = (observed - chance) / (1 - chance)
        path.append(alpha)
        a = predicted / ((1 - alpha) + alpha * b / chance)
        b = actual / ((1 - alpha) + alpha * a / chance)
    gaps = observed - np.array(path[1::1000])
    assert (np.diff(gaps) < 0).all()
    assert 0 < gaps[-1] < 0.003
    assert value_of(NAMED["aickin_alpha"], counts) == pytest.approx(observed, rel=1e-15)


def test_the_tail_probability_of_the_witness_is_the_binomial_sum() -> None:
    """The witness for the p-value goes through Stirling's series; with small numbers it must equal the sum of exact
    fractions.
    """
    for name in ("dense-2-0", "sparse-3-0", "below_chance-2-0", "absent_class-2-0"):
        w = whole(name)
        n, share = int(w.n), Fraction(max(w.P), w.n)
        tail = sum(math.comb(n, j) * share**j * (1 - share) ** (n - j) for j in range(int(w.trace), n + 1))
        assert float(OVERALL["accuracy_p_value"](w)) == pytest.approx(float(tail), rel=1e-14)
