"""Weights and matrices in expressions: how they are written, read back, and what is said when they are wrong."""

import pytest

from app.domain.errors import InvalidExpression, InvalidParameter, UnknownLabel
from app.domain.expressions.expressions import parse, parse_for_any_classes, render
from app.kernel.metrics.expression import Combination, Measure
from tests.bank import each

LABELS = ("A", "B", "C")


def parameters(text: str, labels: tuple[str, ...] = LABELS) -> dict[str, object]:
    expression = parse(text, labels, None)
    again = render(expression, labels)
    assert parse(again, labels, None) == expression
    assert isinstance(expression, Measure | Combination)
    return dict(expression.parameters)


def refusal(text: str, labels: tuple[str, ...] = LABELS) -> InvalidExpression:
    with pytest.raises(InvalidExpression) as caught:
        parse(text, labels, None)
    return caught.value


@pytest.mark.parametrize(
    ("written", "weights"),
    [
        ('weights="2,1,1"', (2.0, 1.0, 1.0)),
        ("weights=' 2 , .5,1e3 '", (2.0, 0.5, 1000.0)),
        ('weights="A:2,B:1,C:1"', (2.0, 1.0, 1.0)),
        ('weights="C:4, A : 2 ,B:1"', (2.0, 1.0, 4.0)),
        ("weights=\"'A':2,B:1,'C':3\"", (2.0, 1.0, 3.0)),
    ],
)
def test_weights_by_position_and_by_class_mean_the_same(written: str, weights: tuple[float, ...]) -> None:
    assert parameters(f"wmean(recall@*, {written})") == {"weights": weights}


@each(
    ("label", "written"),
    [
        ("ICD:C50", 'weights="ICD:C50:2,b:1"'),
        ("ICD:C50", "weights=\"'ICD:C50':2,b:1\""),
        ("a, b", "weights=\"'a, b':2,b:1\""),
        ("it's", "weights='\"it\\'s\":2,b:1'"),
        ('say "x"', 'weights="\'say \\"x\\"\':2,b:1"'),
        ("a\\b", "weights=\"'a\\\\\\\\b':2,b:1\""),
        (" a ", "weights=\"' a ':2,b:1\""),
        ("", "weights=\"'':2,b:1\""),
        ("größer", 'weights="größer:2,b:1"'),
        ("two words", 'weights="two words:2,b:1"'),
    ],
)
def test_any_label_can_have_a_weight(label: str, written: str) -> None:
    """In quotes of its own where it holds a comma or a quote; up to the last colon where it holds one."""
    assert parameters(f"wgps(recall@*, {written})", (label, "b")) == {"weights": (2.0, 1.0)}


def test_values_of_single_classes_and_of_lists_take_the_weight_of_their_class() -> None:
    assert parameters('wmean(recall@*, precision@B, weights="A:1,B:2,C:3")') == {"weights": (1.0, 2.0, 3.0, 2.0)}
    assert parameters('wmean(recall@C, recall@A, weights="A:1,C:3")') == {"weights": (3.0, 1.0)}
    assert parameters('wmean(h_mean, recall@A, weights="1,3")') == {"weights": (1.0, 3.0)}
    assert parameters("wmean(h_mean, weights=3)") == {"weights": (3.0,)}


def test_canonical_text_has_weights_by_position() -> None:
    written = render(parse('wgmean((recall@*), weights="C:0.1,B:1,A:2.0")', LABELS, None), LABELS)
    assert written == 'wgmean(recall@*, weights="2,1,0.1")'
    assert render(parse("stolarsky(recall@A, recall@B, q=0, p=2)", LABELS, None), LABELS) == (
        "stolarsky(recall@A, recall@B, p=2)"
    )


@each(
    ("inside", "position", "words"),
    [
        ("recall@*", 0, 'wmean needs weights: write for example wmean(recall@*, weights="A:2,B:1"), or mean(...)'),
        ('recall@*, weights="1,2"', 24, "expected 3 weights, one for each value that wmean takes, got 2"),
        ('recall@*, weights="1,2,3,4"', 24, "got 4"),
        ('recall@*, weights="A:1,B:2"', 24, "the class 'C' has no weight in wmean"),
        ('recall@A, weights="A:1,B:2"', 24, "the class 'B' has a weight in wmean and no value"),
        ('recall@*, weights="A:1,B:2,A:1"', 24, "the class 'A' has two weights"),
        ('recall@*, weights="A:1,B:2,3"', 24, "all with their class or all without"),
        ('h_mean, recall@A, weights="A:1"', 32, "takes a value of no class"),
        ('recall@*, weights="1,0,2"', 24, "weight 2 of wmean is a number above 0, not '0'"),
        ('recall@*, weights="A:1,B:-2,C:1"', 24, "weight 2, of class 'B', of wmean is a number above 0, not '-2'"),
        ('recall@*, weights="1,x,2"', 24, "weight 2 of wmean is a number, not 'x'"),
        ('recall@*, weights="1,1e999,2"', 24, "weight 2 of wmean is a number"),
        ('recall@*, weights="1,nan,2"', 24, "weight 2 of wmean is a number, not 'nan'"),
        ('recall@*, weights="1,2,"', 24, "weight 3 of wmean is a number, not ''"),
        ('recall@*, weights=""', 24, "weight 1 of wmean is a number, not ''"),
        ('recall@*, weights="\'A:1"', 24, "weight 1 of wmean cannot be read, or has a quote that is not closed"),
        ("recall@*, weights=\"it's'A':1\"", 24, "a quote that is not closed"),
        ("recall@*, weights=\"x'A':1\"", 24, "weight 1 of wmean cannot be read, or"),
        ('recall@*, weights="1,1,1", weights="1,1,1"', 33, "given twice"),
        ('recall@*, weight="1,1,1"', 16, "no parameter 'weight'"),
    ],
)
def test_wrong_weights_are_said_with_their_place(inside: str, position: int, words: str) -> None:
    error = refusal(f"wmean({inside})")
    assert isinstance(error, InvalidParameter)
    assert words in error.detail
    assert error.position == position


def test_a_class_that_does_not_exist_cannot_have_a_weight() -> None:
    error = refusal('wmean(recall@*, weights="A:1,B:1,C:1,X:2")')
    assert isinstance(error, UnknownLabel)
    assert error.known == LABELS
    assert "name 'X', and there is no such class" in error.detail


def test_functions_without_weights_name_the_one_that_has_them() -> None:
    assert "mean takes no weights; wmean does" in refusal('mean(recall@*, weights="1,1,1")').detail
    assert "gps takes no weights; wgps does" in refusal('gps(recall@*, weights="1,1,1")').detail
    assert (
        "max takes metrics, by and minimum_samples, and no parameter 'weights'"
        in refusal('max(recall@*, weights="1,1,1")').detail
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stolarsky(recall@*)", "stolarsky takes 2 values, got 3: write for example stolarsky(recall@A, recall@B)"),
        ("stolarsky(recall@A)", "takes 2 values, got 1"),
        ("stolarsky(recall@A, recall@B, p=1001)", "p of stolarsky is a number from -1000 up to 1000, not '1001'"),
        ("stolarsky(recall@A, recall@B, r=1)", "takes no parameter 'r'; it takes p (a number"),
        ("stolarsky(mcc, recall@B)", "stolarsky cannot take mcc"),
        ("wgps(mcc, recall@B, weights='1,1')", "wgps cannot take mcc"),
    ],
)
def test_a_mean_of_two(text: str, words: str) -> None:
    assert words in refusal(text).detail


# Matrices


def test_a_matrix_of_weights_is_kept_as_it_is_written() -> None:
    got = parameters("weighted_kappa(weights=' 1, .5,0;0.5,1 ,0; -1,0,1')")
    assert got == {"weights": ((1.0, 0.5, 0.0), (0.5, 1.0, 0.0), (-1.0, 0.0, 1.0))}
    text = 'weighted_kappa(weights="0,1,4;1,0,1;4,1,0.0")'
    assert render(parse(text, LABELS, None), LABELS) == 'weighted_kappa(weights="0,1,4;1,0,1;4,1,0")'


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ("0,1;1,0", "expected 3 rows in weights of weighted_kappa, one for each class, got 2"),
        ("0,1,1;1,0;1,1,0", "expected 3 numbers in row 2 of weights of weighted_kappa, got 2"),
        ("0,1,1;1,0,x;1,1,0", "row 2, column 3 of weights of weighted_kappa is a number, not 'x'"),
        ("0,1,1;1,1,1;1,1,0", "0 on the whole diagonal (disagreement) or 1 (agreement)"),
        ("2,1,1;1,2,1;1,1,2", "0 on the whole diagonal (disagreement) or 1 (agreement)"),
        ("0,1,1;1,0,-1;1,1,0", "holds -1: disagreement is at least 0"),
        ("1,0,0;0,1,1.5;0,0,1", "holds 1.5: agreement is at most 1"),
        ("0,0,0;0,0,0;0,0,0", "tells no confusion from a right answer"),
        ("1,1,1;1,1,1;1,1,1", "tells no confusion from a right answer"),
    ],
)
def test_wrong_matrices_are_said_with_their_place(matrix: str, words: str) -> None:
    error = refusal(f'weighted_kappa(weights="{matrix}")')
    assert isinstance(error, InvalidParameter)
    assert words in error.detail
    assert error.position == 23


def test_other_metrics_take_no_matrix() -> None:
    assert "linear or quadratic, not" in refusal('weighted_alpha(weights="0,1,1;1,0,1;1,1,0")').detail


# Before the classes are known


@pytest.mark.parametrize(
    "text",
    [
        'wmean(recall@*, weights="2,1,1,5")',
        'wgps(recall@*, precision@C, weights="A:2,B:1,C:1")',
        'weighted_kappa(weights="0,1,1;1,0,1;1,1,0")',
        "stolarsky(recall@*)",
        "stolarsky(recall@A, recall@B)",
    ],
)
def test_what_may_fit_some_classes_is_taken_before_they_are_known(text: str) -> None:
    assert isinstance(parse_for_any_classes(text), Measure | Combination)


@pytest.mark.parametrize(
    "text",
    [
        'wmean(recall@A, recall@B, weights="1")',
        'wmean(recall@*, weights="1,-1")',
        'weighted_kappa(weights="0,1,1;1,0,1")',
        "stolarsky(recall@A, recall@B, recall@C)",
    ],
)
def test_what_fits_no_classes_is_refused_before_they_are_known(text: str) -> None:
    with pytest.raises(InvalidExpression):
        parse_for_any_classes(text)
