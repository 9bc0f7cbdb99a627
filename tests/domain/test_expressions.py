"""The language of metric expressions: what it means, how it is written back, and what is said when it is wrong."""

import inspect
import math
import string
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.domain.errors import InvalidExpression
from app.domain.expressions.expressions import parse, render
from app.domain.expressions.syntax import LONGEST, read
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Card, Choice, Inputs, Number, Parameter, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Combination, Every, Expression, Measure, compute, is_list
from app.kernel.metrics.families.combinations import COMBINATIONS
from tests.bank import each

LABELS = ("A", "B", "C", "D")
BINARY = ("healthy", "ill")
MATRIX = Table([[800, 0, 0, 0], [0, 600, 0, 0], [0, 0, 500, 0], [40, 24, 20, 16]])


def measure(key: str, of: int | Every | None = None, **parameters: float | str) -> Measure:
    metric = catalogue().of_matrices.by_name[key]
    return Measure(metric, {**metric.card.defaults, **parameters}, of)


def canonical(text: str, labels: tuple[str, ...] = LABELS, positive: int | None = None) -> str:
    return render(parse(text, labels, positive), labels)


# Meaning


@each(
    ("text", "expected"),
    [
        ("h_mean", measure("h_mean")),
        ("h_mean()", measure("h_mean")),
        ("  h_mean \n", measure("h_mean")),
        ("((h_mean))", measure("h_mean")),
        ("ac_score", measure("h_mean")),
        ("recall@D", measure("recall", 3)),
        ("recall @ D", measure("recall", 3)),
        ('recall@"D"', measure("recall", 3)),
        ("recall@'D'", measure("recall", 3)),
        ("recall@*", measure("recall", Every.CLASS)),
        ("sensitivity@*", measure("recall", Every.CLASS)),
        ("f_beta(beta=2)@D", measure("f_beta", 3, beta=2.0)),
        ("f_beta( beta = 2e0 )@D", measure("f_beta", 3, beta=2.0)),
        ("f_beta@A", measure("f_beta", 0, beta=1.0)),
        ("f_beta(beta=1)@A", measure("f_beta", 0)),
        ("tversky_index(beta=.25, alpha=+3.)@B", measure("tversky_index", 1, alpha=3.0, beta=0.25)),
        ("power_mean_recall(r=-inf)", measure("power_mean_recall", r=-math.inf)),
        ("power_mean_recall(r=infinity)", measure("power_mean_recall", r=math.inf)),
        ("weighted_kappa(weights=quadratic)", measure("weighted_kappa", weights="quadratic")),
        ("weighted_kappa(weights='quadratic')", measure("weighted_kappa", weights="quadratic")),
    ],
)
def test_a_measure_is_a_metric_with_parameters_and_a_class(text: str, expected: Measure) -> None:
    assert parse(text, LABELS, None) == expected


def test_functions_take_lists_single_values_and_each_other() -> None:
    parsed = parse("gps(recall@*, mean(precision@D, f1@A), (min(h_mean)))", LABELS, None)
    assert parsed == Combination(
        "gps",
        (
            measure("recall", Every.CLASS),
            Combination("mean", (measure("precision", 3), measure("f1", 0))),
            Combination("min", (measure("h_mean"),)),
        ),
    )


NON_NEGATIVE = {key for key, card in COMBINATIONS.items() if card.of_positives is not None}


# Those that take any number of parts; `test_weights.py` has what is said of the others.
PLAIN = {key for key, card in COMBINATIONS.items() if card.weighted is None and card.arity is None}


@each("function", sorted(PLAIN))
@each("parts", [1, 2, 17])
def test_every_function_takes_any_number_of_parts(function: str, parts: int) -> None:
    parsed = parse(f"{function}({', '.join(['recall@A'] * parts)})", LABELS, None)
    assert parsed == Combination(function, (measure("recall", 0),) * parts)


def test_a_class_metric_without_a_class_is_that_of_the_positive_one() -> None:
    assert parse("recall", BINARY, 1) == measure("recall", 1)
    assert parse("recall", BINARY, 0) == measure("recall", 0)
    assert parse("gps(recall, specificity, recall@ill)", BINARY, 0) == Combination(
        "gps", (measure("recall", 0), measure("specificity", 0), measure("recall", 1))
    )


def test_values_are_those_of_the_metrics() -> None:
    def value(text: str) -> float:
        return float(compute(parse(text, LABELS, None), MATRIX))

    assert value("recall@D") == pytest.approx(0.16)
    assert value("gps(recall@*, precision@D)") == pytest.approx(5 / (3 + 1 / 0.16 + 1))
    assert value("mean(recall@*)") == pytest.approx(value("balanced_accuracy")) == pytest.approx(0.79)
    assert value("gmean(recall@*)") == pytest.approx(value("g_mean"))
    assert value("gps(recall@*)") == pytest.approx(value("h_mean"))
    assert value("gps_sd(recall@*)") == pytest.approx(value("gps_recall_sd"))
    assert value("range(recall@*)") == pytest.approx(0.84)
    assert value("max(min(recall@*), 0.1)".replace("0.1", "recall@D")) == pytest.approx(0.16)
    assert value("f_beta(beta=2)@D") == pytest.approx(5 * 16 / (5 * 16 + 4 * 84))
    np.testing.assert_allclose(compute(parse("recall@*", LABELS, None), MATRIX), [1, 1, 1, 0.16])


@each(
    ("written", "label"),
    [
        ("D", "D"),
        ("1", "1"),
        ("-1", "-1"),
        ("+1", "+1"),
        ("stage_2.b-c+", "stage_2.b-c+"),
        ("größer", "größer"),
        ("陽性", "陽性"),
        ("ICD:C50/2", "ICD:C50/2"),
        (">=5%", ">=5%"),
        ("a*", "a*"),
        ('"two words"', "two words"),
        ("'two words'", "two words"),
        ('"*"', "*"),
        ('""', ""),
        ('" D "', " D "),
        ('"a\\"b"', 'a"b'),
        ("'a\\'b'", "a'b"),
        ("'a\"b'", 'a"b'),
        ('"a\\\\"', "a\\"),
        ('"a\\nb\\tc\\rd"', "a\nb\tc\rd"),
        ('"a\nb"', "a\nb"),
        ('"\\u00e9\\u2260"', "é≠"),
        ('"(a), b@c=d"', "(a), b@c=d"),
        ('"🫀"', "🫀"),
        ('"recall@*"', "recall@*"),
    ],
)
def test_any_text_can_name_a_class(written: str, label: str) -> None:
    labels = ("first", label)
    assert parse(f"recall@{written}", labels, None) == measure("recall", 1)
    assert parse(f"gps(recall@{written},precision@{written} )", labels, None) == Combination(
        "gps", (measure("recall", 1), measure("precision", 1))
    )
    assert parse(canonical(f"recall@{written}", labels), labels, None) == measure("recall", 1)


def test_a_tree_is_kept_whatever_the_classes() -> None:
    text = "gps(recall@*, precision@x7)"
    assert read(text) is read(text)
    assert parse(text, ("x7", "b"), None) != parse(text, ("b", "x7"), None)


# Names


def test_no_function_is_also_a_metric() -> None:
    assert not set(COMBINATIONS) & set(catalogue().by_name)
    assert not set(catalogue().of_matrices.by_name) & set(catalogue().of_probabilities.by_name)


@each("name", sorted(catalogue().of_matrices.by_name))
def test_every_key_and_alias_can_be_written(name: str) -> None:
    metric = catalogue().of_matrices.by_name[name]
    at = "@D" if metric.card.scope is Scope.CLASS else ""
    parsed = parse(name + at, LABELS, None)
    assert parsed == measure(metric.key, 3 if at else None)
    assert render(parsed, LABELS) == metric.key + at


def test_defaults_of_the_cards_are_those_of_the_functions() -> None:
    """Canonical text leaves a default out, so the two must mean the same."""
    for metric in catalogue().of_matrices.metrics:
        defaults = {
            name: parameter.default
            for name, parameter in inspect.signature(metric.compute).parameters.items()
            if parameter.default is not inspect.Parameter.empty
        }
        assert defaults == metric.card.defaults, metric.key


# Canonical text


@each(
    ("text", "expected"),
    [
        ("ac_score", "h_mean"),
        ("( f_beta( beta = 2.0 ) @ D )", "f_beta(beta=2)@D"),
        ("f_beta(beta=1)@D", "f_beta@D"),
        ("f_beta(beta=0.1)@D", "f_beta(beta=0.1)@D"),
        ("f_beta(beta=1e22)@D", "f_beta(beta=1e+22)@D"),
        ("tversky_index(beta=2,alpha=3)@D", "tversky_index(alpha=3, beta=2)@D"),
        ("power_mean_recall(r=-inf)", "power_mean_recall(r=-inf)"),
        (
            "quasi_arithmetic_mean_recall(exponent=3,generator=power)",
            "quasi_arithmetic_mean_recall(generator=power, exponent=3)",
        ),
        ("gps((tpr@*),ppv@D)", "gps(recall@*, precision@D)"),
        ("mean(min(recall@*),((h_mean)))", "mean(min(recall@*), h_mean)"),
    ],
)
def test_canonical_text(text: str, expected: str) -> None:
    assert canonical(text) == expected
    assert canonical(expected) == expected


def test_canonical_text_names_the_class() -> None:
    assert canonical("recall", BINARY, 1) == "recall@ill"
    assert canonical("recall@'two words'", ("two words", "b")) == 'recall@"two words"'
    assert canonical('recall@"\\u200b"', ("\u200b", "b")) == 'recall@"\\u200b"'


def numbers(parameter: Number) -> st.SearchStrategy[float]:
    low = parameter.above if parameter.minimum is None else parameter.minimum
    high = parameter.below if parameter.maximum is None else parameter.maximum
    finite = st.floats(
        min_value=low,
        max_value=high,
        exclude_min=parameter.above is not None,
        exclude_max=parameter.below is not None,
        allow_nan=False,
        allow_infinity=False,
    )
    return st.one_of(finite, st.sampled_from([math.inf, -math.inf])) if parameter.infinite else finite


def values(parameter: Parameter) -> st.SearchStrategy[float | str]:
    if isinstance(parameter, Number):
        return numbers(parameter)
    assert isinstance(parameter, Choice)
    return st.sampled_from(parameter.options)


def can_be_negative(card: Card) -> bool:
    return card.range[0] is None or card.range[0] < 0


def leaves(n_classes: int, *, non_negative: bool) -> st.SearchStrategy[Expression]:
    metrics = [
        m
        for m in catalogue().of_matrices.metrics
        if m.card.inputs is Inputs.MATRIX and not (non_negative and can_be_negative(m.card))
    ]

    @st.composite
    def one(draw: st.DrawFn) -> Expression:
        metric = draw(st.sampled_from(metrics))
        parameters = {parameter.name: draw(values(parameter)) for parameter in metric.card.parameters}
        of: int | Every | None = None
        if metric.card.scope is Scope.CLASS:
            of = draw(st.one_of(st.integers(0, n_classes - 1), st.just(Every.CLASS)))
        return Measure(metric, parameters, of)

    return one()


def expressions(n_classes: int, *, non_negative: bool = False, depth: int = 3) -> st.SearchStrategy[Expression]:
    leaf = leaves(n_classes, non_negative=non_negative)
    if depth == 0:
        return leaf

    @st.composite
    def combined(draw: st.DrawFn) -> Expression:
        function = draw(st.sampled_from(sorted(COMBINATIONS)))
        card = COMBINATIONS[function]
        strict = non_negative or function in NON_NEGATIVE
        part = expressions(n_classes, non_negative=strict, depth=depth - 1)
        parts = tuple(draw(st.lists(part, min_size=card.arity or 1, max_size=card.arity or 4)))
        parameters: dict[str, Any] = {one.name: draw(values(one)) for one in card.parameters}
        count = sum(n_classes if is_list(one) else 1 for one in parts)
        assume(card.arity is None or count == card.arity)
        if card.weighted is not None:
            weight = st.floats(min_value=0.0, exclude_min=True, allow_infinity=False)
            parameters["weights"] = tuple(draw(st.lists(weight, min_size=count, max_size=count)))
        return Combination(function, parts, parameters)

    return st.one_of(leaf, combined())


LABEL_SETS = st.lists(
    st.one_of(st.text(max_size=8), st.text(string.punctuation + " \n\\*", max_size=4)),
    min_size=2,
    max_size=5,
    unique=True,
)


@given(data=st.data(), labels=LABEL_SETS)
def test_canonical_text_means_the_same(data: st.DataObject, labels: list[str]) -> None:
    expression = data.draw(expressions(len(labels)))
    text = render(expression, labels)
    assume(len(text) <= LONGEST)
    again = parse(text, labels, None)
    assert again == expression
    assert render(again, labels) == text


@given(st.one_of(st.text(max_size=40), st.text("recall@*gps(,)=\"'\\ 1D", max_size=40)))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    try:
        expression = parse(text, LABELS, None)
    except InvalidExpression as refused:
        error = refused
    else:
        assert parse(render(expression, LABELS), LABELS, None) == expression
        return
    assert error.detail
    assert error.position is not None
    assert 0 <= error.position <= len(text)
