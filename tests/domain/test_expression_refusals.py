"""Expressions that are refused: where, and in which words."""

import math
import re

import numpy as np
import pytest

from app.domain.errors import InvalidExpression, InvalidParameter, UnknownLabel, UnknownMetric
from app.domain.expressions.expressions import parse, render, suggest
from app.domain.expressions.parameters import describe
from app.domain.expressions.syntax import DEEPEST, LONGEST
from app.kernel.metrics.card import Choice, Inputs, Number, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Combination, Every, Measure
from app.kernel.metrics.families.combinations import COMBINATIONS
from tests.bank import each
from tests.domain.test_expressions import LABELS, NON_NEGATIVE, PLAIN, measure


def refusal(text: str, labels: tuple[str, ...] = LABELS, positive: int | None = None) -> InvalidExpression:
    with pytest.raises(InvalidExpression) as caught:
        parse(text, labels, positive)
    return caught.value


@each(
    ("text", "position", "words"),
    [
        ("", 0, "expected '(' or a metric or function at character 1, got the end"),
        ("gps(recall@*", 12, "expected ')' or ',' at character 13, got the end"),
        ("h_mean)", 6, "expected the end at character 7, got ')'"),
        ("recall@A recall@B", 9, "expected the end at character 10, got 'recall'"),
        ("recall@A, recall@B", 8, "expected the end at character 9, got ','"),
        ("mean(,)", 5, "got ','"),
        ("mean(recall@A,)", 14, "got ')'"),
        ("$", 0, "got '$'"),
        ("5", 0, "got '5'"),
        ("f_beta(beta=)@A", 12, "got ')'"),
        ("f_beta(beta=2=3)@A", 13, "got '='"),
        ("recall@", 6, "expected a class after the @ at character 7"),
        ("recall@*x", 6, "expected a class after the @"),
        ("recall@A@B", 8, "expected the end at character 9, got '@B'"),
        ('recall@"A', 7, "the quote at character 8 is not closed"),
        ("gps(recall@'A, recall@B)", 11, "the quote at character 12 is not closed"),
        ('recall@"\\x"', 8, "is no escape"),
        ('gps(recall@A, recall@"a\\u12")', 23, "is no escape"),
        ('recall@"\\ud83e\\udec0"', 8, "half a character"),
        ("recall", 0, "belongs to one class: write recall@<label>, or recall@* for every class"),
        ("gps(recall)", 4, "or recall@* for every class"),
        ("h_mean@D", 7, "looks at all classes together"),
        ("mcc@D", 4, "mcc_ovr@<label> for one class against the rest"),
        ("mean(h_mean@*)", 12, "looks at all classes together"),
        ("gps", 0, "gps is a function of metrics: write for example gps(recall@*)"),
        ("mean(gps)", 5, "gps is a function"),
        ("min()", 0, "min needs at least one metric"),
        ("gps(recall@*)@D", 14, "put the @ behind the metrics inside"),
        ("gps(0.5, recall@A)", 4, "gps takes metrics, got '0.5'"),
        ("gps('A')", 4, "as in recall@A"),
        ("recall(D)", 7, "a class stands behind an @: write recall@D"),
        ("recall('D')", 7, "a class stands behind an @: write recall@D"),
        ("recall(h_mean)", 7, "recall is a metric and not a function of others"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(text: str, position: int, words: str) -> None:
    error = refusal(text)
    assert error.code == "invalid_expression"
    assert words in error.detail
    assert error.position == position


@each(
    ("text", "position", "words"),
    [
        ("f_beta(gamma=2)@A", 7, "takes no parameter 'gamma'; it takes beta (a number above 0)"),
        ("recall(beta=2)@A", 7, "takes no parameter 'beta'; it takes none"),
        ("gmean(beta=2)", 6, "gmean takes metrics and no parameter 'beta'"),
        ("f_beta(beta=1, beta=1)@A", 15, "given twice"),
        ("f_beta(2)@A", 7, "write f_beta(beta=2)"),
        ("f_beta(beta=0)@A", 12, "a number above 0, not '0'"),
        ("f_beta(beta=-1)@A", 12, "a number above 0, not '-1'"),
        ("f_beta(beta=inf)@A", 12, "not 'inf'"),
        ("f_beta(beta=nan)@A", 12, "not 'nan'"),
        ("f_beta(beta=1e999)@A", 12, "not '1e999'"),
        ("f_beta(beta=two)@A", 12, "not 'two'"),
        ("f_beta(beta='2')@A", 12, "not '2'"),
        ("power_mean_recall(r=nan)", 20, "a number, inf or -inf, not 'nan'"),
        ("power_mean_recall(r=1e999)", 20, "not '1e999'"),
        ("gini_mean_recall(p=18.5)", 19, "a number from -18 up to 18, not '18.5'"),
        ("net_benefit(threshold=1)@A", 22, "a number from 0 below 1, not '1'"),
        ("weighted_balanced_accuracy(weight=1.01)@A", 34, "a number from 0 up to 1, not '1.01'"),
        ("weighted_kappa(weights=cubic)", 23, "linear or quadratic, or a matrix as '0,1; 1,0', not 'cubic'"),
        ("weighted_kappa(weights=2)", 23, "linear or quadratic, or a matrix as '0,1; 1,0', not '2'"),
    ],
)
def test_parameters_are_checked_against_the_card(text: str, position: int, words: str) -> None:
    error = refusal(text)
    assert isinstance(error, InvalidParameter)
    assert error.code == "invalid_parameter"
    assert words in error.detail
    assert error.position == position


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("top_k_accuracy(k=1.5)", "k of top_k_accuracy is a whole number from 1, not '1.5'"),
        ("top_k_accuracy(k=0)", "a whole number from 1, not '0'"),
        ("expected_calibration_error(bins=2.5)", "a whole number from 1 up to 10000, not '2.5'"),
        ("adaptive_calibration_error(bins=1e9)", "a whole number from 1 up to 10000, not '1e9'"),
    ],
)
def test_what_is_counted_is_a_whole_number(text: str, words: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        parse(text, LABELS, None, inputs=frozenset(Inputs))
    assert words in caught.value.detail


def test_a_whole_number_may_be_written_with_a_point() -> None:
    expression = parse("top_k_accuracy(k=3.0)", LABELS, None, inputs=frozenset(Inputs))
    assert render(expression, LABELS) == "top_k_accuracy(k=3)"


@each("name", sorted(m.key for m in catalogue().of_matrices.metrics if m.card.parameters))
def test_the_bounds_of_every_parameter_hold(name: str) -> None:
    """The default is taken, a value just outside any bound is not, an inclusive bound itself is."""
    card = catalogue().of_matrices.by_name[name].card
    at = "@A" if card.scope is Scope.CLASS else ""
    for parameter in card.parameters:
        assert isinstance(parse(f"{name}({parameter.name}={parameter.default}){at}", LABELS, None), Measure)
        if isinstance(parameter, Choice):
            for option in parameter.options:
                parse(f"{name}({parameter.name}={option}){at}", LABELS, None)
            assert isinstance(refusal(f"{name}({parameter.name}=no_such_option){at}"), InvalidParameter)
            continue
        assert isinstance(parameter, Number)
        for inclusive, direction in ((parameter.minimum, -math.inf), (parameter.maximum, math.inf)):
            if inclusive is not None:
                parse(f"{name}({parameter.name}={inclusive!r}){at}", LABELS, None)
                outside = float(np.nextafter(inclusive, direction))
                assert describe(parameter) in refusal(f"{name}({parameter.name}={outside!r}){at}").detail
        for exclusive in (parameter.above, parameter.below):
            if exclusive is not None:
                assert describe(parameter) in refusal(f"{name}({parameter.name}={exclusive!r}){at}").detail


@each(
    ("written", "meant"),
    [
        ("recal", "recall"),
        ("Recall", "recall"),
        ("f-beta", "f_beta"),
        ("f.beta", "f_beta"),
        ("kappa_cohen", "cohen_kappa"),
        ("balancedaccuracy", "balanced_accuracy"),
        ("MCC", "mcc"),
        ("GPS", "gps"),
        ("gsp", "gps"),
        ("gmaen", "gmean"),
        ("hmean", "h_mean"),
        ("specifity", "specificity"),
        ("sensitvity", "sensitivity"),
    ],
)
def test_an_unknown_name_offers_the_nearest(written: str, meant: str) -> None:
    error = refusal(f"mean(h_mean, {written})")
    assert isinstance(error, UnknownMetric)
    assert error.code == "unknown_metric"
    assert error.suggestions[0] == meant
    assert len(error.suggestions) <= 3
    assert f"did you mean {meant}" in error.detail
    assert error.position == 13


def test_suggestions_are_names_of_different_metrics() -> None:
    named = {name: metric.key for metric in catalogue().metrics for name in (metric.key, *metric.card.aliases)}
    known = named | {name: name for name in COMBINATIONS}
    for text in ("kapa", "preciion", "f", "accuracy_", "mean_", "yule"):
        meant = [known[name] for name in suggest(text)]
        assert len(meant) == len(set(meant))


def test_a_name_like_no_other_offers_nothing() -> None:
    error = refusal("zzzzqqqq")
    assert isinstance(error, UnknownMetric)
    assert error.suggestions == ()
    assert "the catalogue lists all metrics" in error.detail


def test_a_class_in_the_place_of_a_metric_is_recognised() -> None:
    error = refusal("gps(D)")
    assert "it is a class, and a class stands behind an @, as in recall@D" in error.detail
    assert error.suggestions == ()


def test_an_unknown_class_is_refused_with_the_known_ones() -> None:
    error = refusal("gps(recall@*, recall@E)")
    assert isinstance(error, UnknownLabel)
    assert error.code == "unknown_label"
    assert error.known == LABELS
    assert error.detail == "there is no class 'E'; the classes are 'A', 'B', 'C', 'D'"
    assert error.position == 21


def test_of_many_classes_the_nearest_are_offered() -> None:
    labels = tuple(f"tumour type {index}" for index in range(1000))
    error = refusal("recall@'tumor type 77'", labels)
    assert isinstance(error, UnknownLabel)
    assert "the nearest of 1000 classes are 'tumour type 77'" in error.detail
    assert len(error.detail) < 200
    assert "none of 1000 classes comes near" in refusal("recall@zzz", labels).detail
    assert "'Biliary'" in refusal("recall@biliary", ("Biliary", *labels)).detail


@each("function", sorted(NON_NEGATIVE))
@each(
    ("inside", "culprit"),
    [
        ("mcc", "mcc"),
        ("h_mean, informedness@A", "informedness"),
        ("markedness@*", "markedness"),
        ("net_benefit@A", "net_benefit"),
        ("mean(h_mean, mcc)", "mcc"),
        ("min(h_mean, cohen_kappa)", "cohen_kappa"),
        ("max(mcc, cohen_kappa)", "mcc"),
        ("mean(max(mcc, mean(cohen_kappa)))", "mcc"),
    ],
)
def test_harmonic_and_geometric_means_refuse_what_can_be_negative(function: str, inside: str, culprit: str) -> None:
    error = refusal(f"{function}({inside})")
    assert f"{function} cannot take {culprit}" in error.detail
    assert f"{COMBINATIONS[function].of_positives} of mixed signs is undefined" in error.detail
    assert error.position is not None


@each("inside", ["max(mcc, h_mean)", "range(mcc, cohen_kappa)", "gps(h_mean)", "recall@*", "lift@A"])
@each("function", sorted(NON_NEGATIVE & PLAIN))
def test_harmonic_means_take_what_cannot_be_negative(function: str, inside: str) -> None:
    assert isinstance(parse(f"{function}({inside})", LABELS, None), Combination)


@pytest.mark.parametrize("function", sorted(PLAIN - NON_NEGATIVE))
def test_other_functions_take_negative_values(function: str) -> None:
    assert isinstance(parse(f"{function}(mcc, informedness@*)", LABELS, None), Combination)


def test_a_metric_needs_its_inputs() -> None:
    for metric in catalogue().metrics:
        if metric.card.inputs is not Inputs.MATRIX and catalogue().named(metric.key, None) is metric:
            assert re.search(r"needs [^_]+, which are not there$", refusal(metric.key).detail)
    with pytest.raises(InvalidExpression, match="h_mean needs actual classes beside what was predicted, which"):
        parse("h_mean", LABELS, None, inputs={Inputs.PROBABILITIES})
    error = refusal("gps(recall@*, au_imcp)")
    assert error.detail == "au_imcp needs probabilities or scores, which are not there"
    assert error.position == 14
    both = parse("gps(recall@*, au_imcp)", LABELS, None, inputs=set(Inputs))
    area = Measure(catalogue().of_probabilities.by_name["au_imcp"], {}, None)
    assert both == Combination("gps", (measure("recall", Every.CLASS), area))
    assert render(both, LABELS) == "gps(recall@*, au_imcp)"


@each("name", sorted(catalogue().of_probabilities.by_name))
def test_metrics_of_probabilities_can_be_written(name: str) -> None:
    metric = catalogue().of_probabilities.by_name[name]
    at = "@D" if metric.card.scope is Scope.CLASS else ""
    parsed = parse(name + at, LABELS, None, inputs={Inputs.PROBABILITIES})
    assert parsed == Measure(metric, metric.card.defaults, 3 if at else None)
    assert render(parsed, LABELS) == metric.key + at


def test_too_long() -> None:
    text = "mean(" + ", ".join(["h_mean"] * 300) + ")"
    assert len(text) > LONGEST
    error = refusal(text)
    assert error.detail == f"expected at most {LONGEST} characters, got {len(text)}"
    assert parse("h_mean".ljust(LONGEST), LABELS, None) == measure("h_mean")


def test_too_deep() -> None:
    def nested(depth: int) -> str:
        return "min(" * depth + "h_mean" + ")" * depth

    assert isinstance(parse(nested(DEEPEST), LABELS, None), Combination)
    error = refusal(nested(DEEPEST + 1))
    assert error.detail == "expected brackets at most 32 deep (at character 132)"
    assert error.position == 131
    assert refusal("(" * 1999).position == DEEPEST
    brackets = "(" * 50
    assert parse(f'recall@"{brackets}"', (brackets, "b"), None) == measure("recall", 0)


def test_messages_do_not_repeat_long_text() -> None:
    name = "x" * 1500
    assert len(refusal(name).detail) < 200
    assert len(refusal(f"recall@{name}").detail) < 200
    assert len(refusal(f"f_beta(beta={name})@A").detail) < 200
    assert len(refusal(f"h_mean {name}").detail) < 200
